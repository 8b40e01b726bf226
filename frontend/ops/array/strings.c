/* strings.c - operators on the bytes of strings: no kernel sees these, since arrays of strings have numbers
 * (base/tensor/string_table.h), so the host runs these nodes between segments (plugin/compiler/host/). */
#include "frontend/import/importer.h"

static status on_the_host(const onnx_node *n) {
  onnx_require_interpreter(n);
  return status_error(STATUS_UNSUPPORTED, "it runs on the host");
}

status onnx_import_string_concat(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_split(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_normalizer(onnx_node *n) { return on_the_host(n); }

status onnx_import_regex_full_match(onnx_node *n) {
#ifdef PCRE2_LIBRARY
  return on_the_host(n);
#else
  return status_error(STATUS_UNSUPPORTED, "onnx-xla was built without PCRE2, which matches patterns");
#endif
}
