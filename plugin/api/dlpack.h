/* dlpack.h - the parts of DLPack's stable interface that the C API takes and gives: DLManagedTensor and what it
 * contains, with the names and layouts of version 0.8.  The codes of the types with 8-bit floats are those of version
 * 1.1. */
#ifndef PLUGIN_API_DLPACK_H
#define PLUGIN_API_DLPACK_H

#include <stdint.h>

enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 };

enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14
};

typedef struct DLDevice {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* 1 for types that are not vectors */
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;       /* `ndim` sizes in elements */
  int64_t *strides;     /* in elements; NULL: the array is row-major and contiguous */
  uint64_t byte_offset; /* the bytes from `data` to the first element */
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;                             /* for the deleter */
  void (*deleter)(struct DLManagedTensor *self); /* frees the tensor and what it points to; may be NULL */
} DLManagedTensor;

#endif
