/* descriptor.c - reads tensor descriptors and checks them without comparing them with a model. */
#include <stdlib.h>
#include <string.h>

#include "plugin/onnxifi/internal.h"

/* The standard defines neither type 8 (strings) nor 9 (bool), but models with comparisons have bools, so 9 is
 * accepted. */
enum { STRING = 8 };

/* The largest dimension and number of elements; with more, the number of bytes could overflow. */
static const uint64_t DIMENSION_MAX = (uint64_t)1 << 56;

/* Returns the size of an element in bytes; 0 if the type is unknown. */
static size_t element_bytes(onnxEnum type) {
  static const unsigned char bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 8, 1, 2, 8, 4, 8, 8, 16, 2};
  return type < sizeof bytes ? bytes[type] : 0;
}

/* Counts the elements.  Returns false if there are too many. */
static bool count(const onnxTensorDescriptorV1 *d, uint64_t *out) {
  bool fits = true, empty = false;
  *out = 1;
  for (uint32_t k = 0; k < d->dimensions; k++) {
    empty |= d->shape[k] == 0;
    fits &= d->shape[k] <= DIMENSION_MAX && !__builtin_mul_overflow(*out, d->shape[k] ? d->shape[k] : 1, out) &&
            *out <= DIMENSION_MAX;
  }
  *out = empty ? 0 : *out;
  return fits;
}

static onnxStatus check_shape(const onnxTensorDescriptorV1 *d, bool is_weight, uint64_t *elements) {
  if (d->dimensions && !d->shape) {
    return ONNXIFI_STATUS_INVALID_SHAPE;
  }
  if (d->dimensions > OXLA_MAX_RANK || !count(d, elements)) {
    return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
  }
  return is_weight && *elements == 0 ? ONNXIFI_STATUS_INVALID_SHAPE : ONNXIFI_STATUS_SUCCESS;
}

static onnxStatus check_memory_type(onnxEnum type) {
  switch (type) {
    case ONNXIFI_MEMORY_TYPE_CPU: return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_MEMORY_TYPE_CUDA_BUFFER:
    case ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER:
    case ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D:
    case ONNXIFI_MEMORY_TYPE_D3D_RESOURCE: return ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE;
    default: return ONNXIFI_STATUS_INVALID_MEMORY_TYPE;
  }
}

/* The standard forbids dimensions of 0, but official models have empty tensors, which need no memory.  Only weights
 * must obey the standard. */
onnxStatus ifi_check_descriptor(const onnxTensorDescriptorV1 *d, bool is_weight) {
  uint64_t elements = 0;
  onnxStatus s = check_shape(d, is_weight, &elements);
  if (!s && !element_bytes(d->dataType)) {
    s = ONNXIFI_STATUS_INVALID_DATATYPE;
  }
  if (!s) {
    s = check_memory_type(d->memoryType);
  }
  if (!s && !d->buffer && elements) {
    s = ONNXIFI_STATUS_INVALID_MEMORY_LOCATION;
  }
  return !s && d->dataType == STRING ? ONNXIFI_STATUS_UNSUPPORTED_DATATYPE : s;
}

void ifi_get_dims(const onnxTensorDescriptorV1 *d, int64_t *dims) {
  for (uint32_t k = 0; k < d->dimensions; k++) {
    dims[k] = (int64_t)d->shape[k];
  }
}

size_t ifi_descriptor_bytes(const onnxTensorDescriptorV1 *d) {
  uint64_t elements;
  count(d, &elements);
  return (size_t)elements * element_bytes(d->dataType);
}

/* --- lists --- */

static const void *descriptor_at(const ifi_list *list, uint32_t k) {
  return (const char *)list->descriptors + k * ifi_the_abi.descriptor_bytes;
}

static onnxStatus check_tags(const ifi_list *list) {
  for (uint32_t k = 0; k < list->n; k++) {
    int32_t tag;
    memcpy(&tag, descriptor_at(list, k), sizeof tag);
    if (tag != ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) {
      return ONNXIFI_STATUS_UNSUPPORTED_TAG;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ifi_read_list(const ifi_list *list, onnxTensorDescriptorV1 **out) {
  *out = NULL;
  onnxStatus s = check_tags(list);
  if (s) {
    return s;
  }
  onnxTensorDescriptorV1 *read = calloc(list->n + (size_t)1, sizeof *read);
  s = read ? s : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  for (uint32_t k = 0; !s && k < list->n; k++) {
    s = ifi_the_abi.read_descriptor(descriptor_at(list, k), &read[k]);
  }
  if (s) {
    free(read);
  } else {
    *out = read;
  }
  return s;
}
