/* maps.c - operators on maps, which no kernel has: the host runs these nodes between segments
 * (plugin/compiler/host/maps.c). */
#include "frontend/import/importer.h"

static status on_the_host(const onnx_node *n) { return onnx_leave_to_interpreter(n, "it makes or reads a map"); }

status onnx_import_cast_map(onnx_node *n) { return on_the_host(n); }
status onnx_import_dict_vectorizer(onnx_node *n) { return on_the_host(n); }
status onnx_import_zip_map(onnx_node *n) { return on_the_host(n); }
