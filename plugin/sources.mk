# Written by m4/list-sources: do not edit.
plugin_api_sources = \
	plugin/api/api.c \
	plugin/api/carry.c \
	plugin/api/device.c \
	plugin/api/dlpack.c \
	plugin/api/event.c \
	plugin/api/gpu.c \
	plugin/api/profile.c \
	plugin/api/run.c \
	plugin/api/strings.c \
	plugin/api/values.c \
	plugin/session/cache.c \
	plugin/session/compile_cache.c \
	plugin/session/compiler.c \
	plugin/session/fingerprint.c \
	plugin/session/libraries.c \
	plugin/session/log.c \
	plugin/session/model_description.c \
	plugin/session/open.c \
	plugin/session/opened_file.c \
	plugin/session/options.c \
	plugin/session/profile.c \
	plugin/session/profile_text.c \
	plugin/session/programs.c \
	plugin/session/ranges.c \
	plugin/session/run.c \
	plugin/session/save.c \
	plugin/session/session.c \
	plugin/session/specialise.c \
	plugin/session/store.c
plugin_compiler_sources = \
	plugin/compiler/arrays.c \
	plugin/compiler/backend.c \
	plugin/compiler/check.c \
	plugin/compiler/compile.c \
	plugin/compiler/compiler.c \
	plugin/compiler/explain.c \
	plugin/compiler/host/cast.c \
	plugin/compiler/host/image.c \
	plugin/compiler/host/image_file.c \
	plugin/compiler/host/library.c \
	plugin/compiler/host/maps.c \
	plugin/compiler/host/pnm.c \
	plugin/compiler/host/regex.c \
	plugin/compiler/host/regex_pattern.c \
	plugin/compiler/host/strings.c \
	plugin/compiler/host/tokenizer.c \
	plugin/compiler/import.c \
	plugin/compiler/interpreter.c \
	plugin/compiler/object.c \
	plugin/compiler/open.c \
	plugin/compiler/part.c \
	plugin/compiler/precompute.c \
	plugin/compiler/segment.c \
	plugin/compiler/segment_compile.c \
	plugin/compiler/segments.c \
	plugin/compiler/sequences.c \
	plugin/compiler/support.c \
	plugin/compiler/text.c \
	plugin/compiler/verify.c
plugin_ifi_sources = \
	plugin/onnxifi/backend.c \
	plugin/onnxifi/descriptor.c \
	plugin/onnxifi/event.c \
	plugin/onnxifi/graph.c \
	plugin/onnxifi/handles.c \
	plugin/onnxifi/ids.c \
	plugin/onnxifi/info.c \
	plugin/onnxifi/io.c \
	plugin/onnxifi/rates.c \
	plugin/onnxifi/run.c \
	plugin/onnxifi/status.c
plugin_onnxifi_sources = \
	plugin/onnxifi/onnxifi.c
plugin_foxi_sources = \
	plugin/onnxifi/foxi.c \
	plugin/onnxifi/foxi_extensions.c \
	plugin/onnxifi/foxi_types.c
plugin_ort_sources = \
	plugin/onnxruntime/claim.c \
	plugin/onnxruntime/context.c \
	plugin/onnxruntime/factory.c \
	plugin/onnxruntime/fused.c \
	plugin/onnxruntime/model.c \
	plugin/onnxruntime/support.c \
	plugin/onnxruntime/verify.c \
	plugin/onnxruntime/weights.c
plugin_cli_sources = \
	plugin/cli/bench.c \
	plugin/cli/cache.c \
	plugin/cli/case.c \
	plugin/cli/case_find.c \
	plugin/cli/check.c \
	plugin/cli/cli.c \
	plugin/cli/compile.c \
	plugin/cli/info.c \
	plugin/cli/inputs.c \
	plugin/cli/model.c \
	plugin/cli/object.c \
	plugin/cli/opt.c \
	plugin/cli/options.c \
	plugin/cli/pb.c \
	plugin/cli/profile.c \
	plugin/cli/progress.c \
	plugin/cli/run.c \
	plugin/cli/tensor.c \
	plugin/cli/test.c \
	plugin/cli/verify.c \
	plugin/cli/workers.c
plugin_runner_sources = \
	plugin/runner/main.c \
	plugin/runner/program.c
plugin_public_headers = \
	plugin/api/onnx-xla.h \
	plugin/onnxifi/foxi.h \
	plugin/onnxifi/onnxifi.h
plugin_files = \
	plugin/README \
	plugin/api/dlpack.h \
	plugin/api/internal.h \
	plugin/api/onnx-xla.map \
	plugin/cli/case.h \
	plugin/cli/cli.h \
	plugin/cli/commands.def \
	plugin/cli/inputs.h \
	plugin/cli/options.def \
	plugin/cli/options.h \
	plugin/cli/tensor.h \
	plugin/cli/workers.h \
	plugin/compiler/backend.h \
	plugin/compiler/compiler.h \
	plugin/compiler/compiler.map \
	plugin/compiler/host/image_file.h \
	plugin/compiler/host/leptonica_functions.def \
	plugin/compiler/host/library.h \
	plugin/compiler/host/pcre2_functions.def \
	plugin/compiler/host/pnm.h \
	plugin/compiler/host/regex.h \
	plugin/compiler/host/regex_pattern.h \
	plugin/compiler/host/strings.h \
	plugin/compiler/internal.h \
	plugin/compiler/interpreter.h \
	plugin/compiler/interpreter_internal.h \
	plugin/compiler/part.h \
	plugin/compiler/segments.h \
	plugin/compiler/segments_internal.h \
	plugin/compiler/support.h \
	plugin/compiler/verify.h \
	plugin/onnxifi/foxi-xla.map \
	plugin/onnxifi/foxi_internal.h \
	plugin/onnxifi/graph.h \
	plugin/onnxifi/internal.h \
	plugin/onnxifi/onnxifi-xla.map \
	plugin/onnxruntime/abi.h \
	plugin/onnxruntime/internal.h \
	plugin/onnxruntime/ort.map \
	plugin/runner/runner.h \
	plugin/session/cache.h \
	plugin/session/compile_cache.h \
	plugin/session/fingerprint.h \
	plugin/session/internal.h \
	plugin/session/model_description.h \
	plugin/session/opened_file.h \
	plugin/session/options.h \
	plugin/session/profile.h \
	plugin/session/session.h \
	plugin/session/specialise.h \
	plugin/session/store.h
