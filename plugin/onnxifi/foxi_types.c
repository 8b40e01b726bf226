/* foxi_types.c - element types of inputs in a model's bytes.  Caffe2 declares all of a model's weights as floats, also
 * the shape of a Reshape; what they are, their descriptors tell. */
#include <string.h>

#include "base/protobuf_wire.h"
#include "plugin/onnxifi/foxi_internal.h"

/* Returns the value of the message's last field of that number, or nothing.  The model was read by the compiler before:
 * what does not fit ends the search, and no more. */
static pb_cursor find(pb_cursor message, uint64_t number) {
  pb_cursor found = {0};
  for (pb_field f; pb_next(&message, &f);) {
    found = f.number == number ? pb_value(&f) : found;
  }
  return found;
}

enum { MODEL_GRAPH = 7, GRAPH_INPUT = 11, VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1 };

void foxi_set_input_type(void *model, size_t size, const char *name, onnxEnum type) {
  uint8_t *bytes = model;
  pb_cursor graph = find((pb_cursor){bytes, bytes + size}, MODEL_GRAPH);
  for (pb_field input; pb_next(&graph, &input);) {
    pb_cursor own = input.number == GRAPH_INPUT ? find(pb_value(&input), VALUE_NAME) : (pb_cursor){0};
    if (own.at && name && strlen(name) == (size_t)(own.end - own.at) && memcmp(own.at, name, strlen(name)) == 0) {
      pb_cursor element = find(find(find(pb_value(&input), VALUE_TYPE), TYPE_TENSOR), TENSOR_ELEMENT);
      if (element.end - element.at == 1 && type < 0x80) { /* a varint of one byte, before and after */
        bytes[element.at - bytes] = (uint8_t)type;
      }
    }
  }
}
