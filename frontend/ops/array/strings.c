/* strings.c - operators on the bytes of strings and of files: no kernel sees the bytes of strings, since arrays have
 * their numbers (base/tensor/string_table.h), and none decodes images, so the host runs these nodes between segments
 * (plugin/compiler/host/). */
#include "frontend/import/importer.h"

static status on_the_host(const onnx_node *n) { return onnx_leave_to_interpreter(n, "it runs on the host"); }

status onnx_import_string_concat(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_split(onnx_node *n) { return on_the_host(n); }
status onnx_import_string_normalizer(onnx_node *n) { return on_the_host(n); }

static status by_pcre2(const onnx_node *n) {
#ifdef PCRE2_LIBRARY
  return on_the_host(n);
#else
  (void)n;
  return status_error(STATUS_UNSUPPORTED, "onnx-xla was built without PCRE2, which matches patterns");
#endif
}

status onnx_import_regex_full_match(onnx_node *n) { return by_pcre2(n); }
status onnx_import_contrib_tokenizer(onnx_node *n) { return by_pcre2(n); }

status onnx_import_image_decoder(onnx_node *n) {
#ifdef LEPTONICA_LIBRARY
  return on_the_host(n);
#else
  return status_error(STATUS_UNSUPPORTED, "onnx-xla was built without Leptonica, which decodes images");
#endif
}
