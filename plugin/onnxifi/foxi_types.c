/* foxi_types.c - element types of inputs in a model's bytes.  Caffe2 declares all of a model's weights as floats, also
 * the shape of a Reshape; what they are, their descriptors tell. */
#include <string.h>

#include "plugin/onnxifi/foxi_internal.h"

/* Bytes of a protobuf message that are still to be read.  The model was read by the compiler before: what does not fit
 * ends the search, and no more. */
typedef struct wire {
  uint8_t *at, *end;
} wire;

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static bool get_varint(wire *w, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
    uint8_t byte = *w->at++;
    *out |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      return true;
    }
  }
  return false;
}

/* The next field of the message: its number, and its bytes (of a varint: where it stands). */
static bool next(wire *w, uint64_t *number, wire *value) {
  uint64_t key, size = 0;
  if (!get_varint(w, &key)) {
    return false;
  }
  *number = key >> 3;
  value->at = w->at;
  switch (key & 7) {
    case VARINT:
      if (!get_varint(w, &size)) {
        return false;
      }
      value->end = w->at;
      return true;
    case BYTES:
      if (!get_varint(w, &size)) {
        return false;
      }
      value->at = w->at;
      break;
    case FIXED64: size = 8; break;
    case FIXED32: size = 4; break;
    default: return false;
  }
  if (size > (uint64_t)(w->end - w->at)) {
    return false;
  }
  w->at += size;
  value->end = w->at;
  return true;
}

/* The last field of that number; nothing of no bytes if there is none. */
static wire find(wire w, uint64_t wanted) {
  wire found = {0}, value;
  uint64_t number;
  while (next(&w, &number, &value)) {
    found = number == wanted ? value : found;
  }
  return found;
}

enum { MODEL_GRAPH = 7, GRAPH_INPUT = 11, VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1 };

static void set_type(wire input, onnxEnum type) {
  wire element = find(find(find(input, VALUE_TYPE), TYPE_TENSOR), TENSOR_ELEMENT);
  if (element.end - element.at == 1 && type < 0x80) { /* a varint of one byte, before and after */
    *element.at = (uint8_t)type;
  }
}

void foxi_set_input_type(void *model, size_t size, const char *name, onnxEnum type) {
  wire graph = find((wire){model, (uint8_t *)model + size}, MODEL_GRAPH), input;
  uint64_t number;
  while (next(&graph, &number, &input)) {
    wire own = number == GRAPH_INPUT ? find(input, VALUE_NAME) : (wire){0};
    if (own.at && name && strlen(name) == (size_t)(own.end - own.at) && memcmp(own.at, name, strlen(name)) == 0) {
      set_type(input, type);
    }
  }
}
