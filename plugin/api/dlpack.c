/* dlpack.c - implements onnx-xla.h: inputs and outputs as DLPack's tensors. */
#include "plugin/api/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/api/internal.h"

/* --- element types --- */

static const struct {
  oxla_type type;
  uint8_t code, bits;
} types[] = {{OXLA_FLOAT, kDLFloat, 32},
             {OXLA_DOUBLE, kDLFloat, 64},
             {OXLA_FLOAT16, kDLFloat, 16},
             {OXLA_BFLOAT16, kDLBfloat, 16},
             {OXLA_INT8, kDLInt, 8},
             {OXLA_INT16, kDLInt, 16},
             {OXLA_INT32, kDLInt, 32},
             {OXLA_INT64, kDLInt, 64},
             {OXLA_UINT8, kDLUInt, 8},
             {OXLA_UINT16, kDLUInt, 16},
             {OXLA_UINT32, kDLUInt, 32},
             {OXLA_UINT64, kDLUInt, 64},
             {OXLA_BOOL, kDLBool, 8},
             {OXLA_COMPLEX64, kDLComplex, 64},
             {OXLA_COMPLEX128, kDLComplex, 128},
             {OXLA_FLOAT8E4M3FN, kDLFloat8_e4m3fn, 8},
             {OXLA_FLOAT8E4M3FNUZ, kDLFloat8_e4m3fnuz, 8},
             {OXLA_FLOAT8E5M2, kDLFloat8_e5m2, 8},
             {OXLA_FLOAT8E5M2FNUZ, kDLFloat8_e5m2fnuz, 8},
             {OXLA_FLOAT8E8M0, kDLFloat8_e8m0fnu, 8}};
enum { N_TYPES = sizeof types / sizeof *types };

static status type_of(const DLDataType *t, const char *name, oxla_type *out) {
  size_t k = 0;
  while (k < N_TYPES && (types[k].code != t->code || types[k].bits != t->bits)) {
    k++;
  }
  CHECK_THAT(k < N_TYPES && t->lanes == 1, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "input '%s' has DLPack's type %d of %d bits and %d lanes", name, t->code, t->bits, t->lanes);
  *out = types[k].type;
  return NULL;
}

/* --- inputs --- */

void api_drop_tensor(oxla_run *run, size_t k) {
  DLManagedTensor *t = run->tensors[k];
  run->tensors[k] = NULL;
  if (t && t->deleter) {
    t->deleter(t);
  }
}

static status check_contiguous(const DLTensor *t, const char *name) {
  int64_t expected = 1;
  bool empty = false;
  for (int d = 0; d < t->ndim; d++) {
    empty |= t->shape[d] == 0;
  }
  for (int d = t->ndim; t->strides && !empty && d-- > 0;) {
    CHECK_THAT(t->shape[d] == 1 || t->strides[d] == expected, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
               "input '%s' is not contiguous", name);
    expected *= t->shape[d];
  }
  return NULL;
}

/* Sets *on_device to true if the tensor is in the memory of the model's device, and to false if it is in the
 * host's.  Fails if it is in other memory. */
static status find_place(const oxla_model *model, const DLDevice *is, const char *name, bool *on_device) {
  oxla_device own = api_device(model);
  int type = is->device_type == kDLCUDAManaged ? kDLCUDA : is->device_type;
  *on_device = type == (int)own.type && is->device_id == own.id;
  CHECK_THAT(*on_device || type == kDLCPU || type == kDLCUDAHost, STATUS_INVALID_ARGUMENT,
             "input '%s' is on device %d:%d of DLPack; the model computes on %d:%d", name, is->device_type,
             is->device_id, (int)own.type, own.id);
  return NULL;
}

static status set_input(oxla_run *run, const char *name, DLManagedTensor *tensor) {
  uint32_t k;
  TRY(api_find_input(run, name, &k));
  CHECK_THAT(tensor, STATUS_INVALID_ARGUMENT, "input '%s': no tensor", name);
  const DLTensor *t = &tensor->dl_tensor;
  CHECK_THAT(t->ndim >= 0 && t->ndim <= OXLA_MAX_RANK && (t->ndim == 0 || t->shape),
             STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "input '%s' has rank %d and %s dimensions", name, t->ndim,
             t->shape ? "" : "no");
  oxla_type type;
  bool on_device;
  TRY(type_of(&t->dtype, name, &type));
  TRY(check_contiguous(t, name));
  TRY(find_place(run->model, &t->device, name, &on_device));
  const char *data = t->data;
  TRY(api_set_input(run, k, type, t->ndim, t->shape, data ? data + t->byte_offset : NULL, on_device));
  run->tensors[k] = tensor;
  return NULL;
}

oxla_error *oxla_set_input_dlpack(oxla_run *run, const char *name, DLManagedTensor *tensor) {
  return api_error(run ? set_input(run, name, tensor) : status_error(STATUS_INVALID_ARGUMENT, "no run"));
}

/* --- outputs --- */

/* An output as a tensor of DLPack, with the memory for its sizes.  It is a user of the model (oxla_model.users). */
typedef struct exported {
  DLManagedTensor tensor; /* its member manager_ctx points to this struct, for the deleter */
  oxla_model *model;
  int64_t shape[OXLA_MAX_RANK], strides[OXLA_MAX_RANK];
} exported;

static void free_exported(DLManagedTensor *self) {
  exported *e = self->manager_ctx;
  oxla_free_output(e->model, e->tensor.dl_tensor.data);
  api_release_model(e->model);
  free(e);
}

static status describe(exported *e, const oxla_tensor *t, const char *name, const oxla_device *device) {
  size_t k = 0;
  while (k < N_TYPES && types[k].type != t->type) {
    k++;
  }
  CHECK_THAT(k < N_TYPES, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "DLPack has no type for output '%s'", name);
  int64_t stride = 1;
  for (int d = t->rank; d-- > 0;) {
    e->shape[d] = t->dims[d];
    e->strides[d] = stride;
    stride *= t->dims[d] > 1 ? t->dims[d] : 1;
  }
  e->tensor = (DLManagedTensor){.dl_tensor = {.data = t->data,
                                              .device = {(int32_t)device->type, device->id},
                                              .ndim = t->rank,
                                              .dtype = {types[k].code, types[k].bits, 1},
                                              .shape = e->shape,
                                              .strides = e->strides},
                                .manager_ctx = e,
                                .deleter = free_exported};
  return NULL;
}

static status export(oxla_run *run, uint32_t k, const char *name, exported *e) {
  oxla_tensor t;
  TRY(api_get_output(run, k, &t));
  oxla_device host = {OXLA_DEVICE_HOST, 0}, own = api_device(run->model);
  TRY(describe(e, &t, name, run->outputs[k].own_on_device ? &own : &host));
  TRY(api_take_output(run, &t));
  e->model = run->model;
  atomic_fetch_add(&run->model->users, 1);
  return NULL;
}

static status take_output(oxla_run *run, const char *name, DLManagedTensor **out) {
  uint32_t k;
  TRY(api_find_output(run, name, &k));
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  exported *e = calloc(1, sizeof *e);
  CHECK_THAT(e, STATUS_RESOURCE, "out of memory");
  status failed = export(run, k, name, e);
  if (failed) {
    free(e);
    return failed;
  }
  *out = &e->tensor;
  return NULL;
}

oxla_error *oxla_take_output_dlpack(oxla_run *run, const char *name, DLManagedTensor **out) {
  return api_error(run ? take_output(run, name, out) : status_error(STATUS_INVALID_ARGUMENT, "no run"));
}
