/* foxi_internal.h - what the files of libfoxi-xla.so share: foxi's header, taken before the core's so that the
 * functions have its arguments. */
#ifndef PLUGIN_ONNXIFI_FOXI_INTERNAL_H
#define PLUGIN_ONNXIFI_FOXI_INTERNAL_H

#include "plugin/onnxifi/foxi.h"

#include "plugin/onnxifi/graph.h"

/* Declares another element type of the input of that name, in the bytes of a valid model. */
void foxi_set_input_type(void *model, size_t size, const char *name, onnxEnum type);

#endif
