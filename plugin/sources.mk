# Written by m4/list-sources: do not edit.
plugin_api_sources = \
	plugin/api.c \
	plugin/api_event.c \
	plugin/api_profile.c \
	plugin/api_run.c \
	plugin/session.c \
	plugin/session_cache.c \
	plugin/session_compile_cache.c \
	plugin/session_compiler.c \
	plugin/session_fingerprint.c \
	plugin/session_libraries.c \
	plugin/session_log.c \
	plugin/session_open.c \
	plugin/session_profile.c \
	plugin/session_profile_text.c \
	plugin/session_run.c \
	plugin/session_save.c \
	plugin/session_stack.c \
	plugin/session_store.c
plugin_compiler_sources = \
	plugin/compiler.c \
	plugin/compiler_arrays.c \
	plugin/compiler_backend.c \
	plugin/compiler_explain.c \
	plugin/compiler_interpreter.c \
	plugin/compiler_part.c \
	plugin/compiler_segments.c \
	plugin/compiler_sequences.c \
	plugin/compiler_support.c \
	plugin/compiler_text.c \
	plugin/compiler_verify.c
plugin_ifi_sources = \
	plugin/onnxifi_backend.c \
	plugin/onnxifi_descriptor.c \
	plugin/onnxifi_event.c \
	plugin/onnxifi_graph.c \
	plugin/onnxifi_handles.c \
	plugin/onnxifi_info.c \
	plugin/onnxifi_io.c \
	plugin/onnxifi_rates.c \
	plugin/onnxifi_run.c \
	plugin/onnxifi_status.c
plugin_onnxifi_sources = \
	plugin/onnxifi.c
plugin_foxi_sources = \
	plugin/foxi.c \
	plugin/foxi_extensions.c \
	plugin/foxi_types.c
plugin_ort_sources = \
	plugin/ort_claim.c \
	plugin/ort_context.c \
	plugin/ort_factory.c \
	plugin/ort_fused.c \
	plugin/ort_model.c \
	plugin/ort_support.c \
	plugin/ort_verify.c \
	plugin/ort_weights.c \
	plugin/ort_wire.c
plugin_cli_sources = \
	plugin/cli.c \
	plugin/cli_bench.c \
	plugin/cli_cache.c \
	plugin/cli_case.c \
	plugin/cli_case_find.c \
	plugin/cli_check.c \
	plugin/cli_compile.c \
	plugin/cli_info.c \
	plugin/cli_model.c \
	plugin/cli_opt.c \
	plugin/cli_options.c \
	plugin/cli_profile.c \
	plugin/cli_progress.c \
	plugin/cli_run.c \
	plugin/cli_tensor.c \
	plugin/cli_test.c \
	plugin/cli_verify.c \
	plugin/cli_workers.c
plugin_libraries = \
	libonnx-xla.la \
	libfoxi-xla.la
plugin_onnxifi_libraries = \
	libonnxifi-xla.la
plugin_modules = \
	libonnx-xla-compiler.la \
	libonnxruntime_ep_xla.la
plugin_programs = \
	onnx-xla
plugin_public_headers = \
	plugin/foxi.h \
	plugin/onnx-xla.h \
	plugin/onnxifi.h
plugin_files = \
	plugin/README \
	plugin/api_internal.h \
	plugin/cli.h \
	plugin/cli_case.h \
	plugin/cli_options.h \
	plugin/cli_workers.h \
	plugin/compiler.h \
	plugin/compiler.map \
	plugin/compiler_backend.h \
	plugin/compiler_interpreter.h \
	plugin/compiler_interpreter_internal.h \
	plugin/compiler_part.h \
	plugin/compiler_segments.h \
	plugin/compiler_support.h \
	plugin/compiler_text.h \
	plugin/compiler_verify.h \
	plugin/foxi-xla.map \
	plugin/foxi_internal.h \
	plugin/onnx-xla.map \
	plugin/onnxifi-xla.map \
	plugin/onnxifi_graph.h \
	plugin/onnxifi_internal.h \
	plugin/ort.map \
	plugin/ort_abi.h \
	plugin/ort_internal.h \
	plugin/ort_wire.h \
	plugin/session.h \
	plugin/session_cache.h \
	plugin/session_compile_cache.h \
	plugin/session_fingerprint.h \
	plugin/session_internal.h \
	plugin/session_profile.h \
	plugin/session_stack.h \
	plugin/session_store.h
