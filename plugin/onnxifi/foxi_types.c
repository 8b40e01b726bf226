/* foxi_types.c - changes the element types of inputs in a model's bytes.  Caffe2 declares all weights of a model as
 * floats, even the shape of a Reshape; the descriptors of the weights have the actual types. */
#include <string.h>

#include "base/protobuf_wire.h"
#include "plugin/onnxifi/foxi_internal.h"

/* Returns the value of the message's last field of that number, or an empty one.  The compiler has read the model
 * before, so a malformed field only ends the search. */
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
      /* both the old and the new value are a varint of one byte */
      if (element.end - element.at == 1 && type < 0x80) {
        bytes[element.at - bytes] = (uint8_t)type;
      }
    }
  }
}
