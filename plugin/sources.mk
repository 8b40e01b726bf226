# Written by m4/list-sources: do not edit.
plugin_api_sources = \
	plugin/api.c \
	plugin/session.c \
	plugin/session_compiler.c
plugin_compiler_sources = \
	plugin/compiler.c \
	plugin/compiler_text.c
plugin_onnxifi_sources =
plugin_cli_sources =
plugin_libraries = \
	libonnx-xla.la
plugin_modules = \
	libonnx-xla-compiler.la
plugin_programs =
plugin_public_headers = \
	plugin/onnx-xla.h
plugin_files = \
	plugin/compiler.h \
	plugin/compiler.map \
	plugin/compiler_text.h \
	plugin/onnx-xla.map \
	plugin/onnxifi-xla.map \
	plugin/session.h
