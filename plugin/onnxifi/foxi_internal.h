/* foxi_internal.h - declarations that the files of libfoxi-xla.so share. foxi.h must be included before graph.h, since
 * onnxifi.h then leaves out the functions that foxi.h declares with other arguments. */
#ifndef PLUGIN_ONNXIFI_FOXI_INTERNAL_H
#define PLUGIN_ONNXIFI_FOXI_INTERNAL_H

#include "plugin/onnxifi/foxi.h"

#include "plugin/onnxifi/graph.h"

/* Changes the element type of the input of that name in the bytes of a valid model. */
void foxi_set_input_type(void *model, size_t size, const char *name, onnxEnum type);

#endif
