/* strings.c - operators that make strings: no kernel can, since arrays of strings have numbers
 * (base/tensor/string_table.h), so the host runs these nodes between segments (plugin/compiler/strings.c). */
#include "frontend/import/importer.h"

static status on_the_host(const onnx_node *n) {
  onnx_require_interpreter(n);
  return status_error(STATUS_UNSUPPORTED, "it makes strings");
}

status onnx_import_string_concat(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_split(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_normalizer(onnx_node *n) { return on_the_host(n); }
