# Written by m4/list-sources: do not edit.
plugin_api_sources =
plugin_compiler_sources =
plugin_onnxifi_sources =
plugin_cli_sources =
plugin_libraries =
plugin_modules =
plugin_programs =
plugin_public_headers =
plugin_files = \
	plugin/compiler.map \
	plugin/onnx-xla.map \
	plugin/onnxifi-xla.map
