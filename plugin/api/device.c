/* device.c - implements onnx-xla.h: memory of a model's device. */
#include <stdlib.h>

#include "plugin/api/internal.h"
#include "runtime/exec/memory.h"

oxla_device api_device(const oxla_model *model) {
  const rt_device *d = session_device(model->session);
  return d ? (oxla_device){d->type ? (oxla_device_type)d->type : OXLA_DEVICE_OTHER, d->id}
           : (oxla_device){OXLA_DEVICE_HOST, 0};
}

static status model_device(const oxla_model *model, oxla_device *out) {
  CHECK_THAT(model && out, STATUS_INVALID_ARGUMENT, "no %s", model ? "place for the device" : "model");
  *out = api_device(model);
  return NULL;
}

oxla_error *oxla_model_device(const oxla_model *model, oxla_device *out) { return api_error(model_device(model, out)); }

static status allocate(oxla_model *model, size_t bytes, void **out) {
  CHECK_THAT(model && out, STATUS_INVALID_ARGUMENT, "no %s", model ? "place for the address" : "model");
  api_taken *t = malloc(sizeof *t);
  CHECK_THAT(t, STATUS_RESOURCE, "out of memory");
  session_output o = {.on_device = session_device(model->session) != NULL};
  status failed = session_output_reserve(model->session, &o, bytes, "an array on the device", NULL);
  if (failed) {
    free(t);
    return failed;
  }
  *t = (api_taken){NULL, o.own, o.own_bytes, o.own_on_device};
  api_remember_taken(model, t);
  *out = t->data;
  return NULL;
}

oxla_error *oxla_device_allocate(oxla_model *model, size_t bytes, void **out) {
  return api_error(allocate(model, bytes, out));
}

static status copy_on(const rt_device *d, rt_copy way, void *to, const void *from, size_t bytes) {
  rt_stream *stream = NULL;
  TRY(d ? d->create_stream(d, &stream) : NULL);
  status failed = rt_memory_copy(d, stream, way, to, from, bytes);
  failed = rt_memory_await(d, stream, NULL, failed);
  if (d) {
    d->destroy_stream(stream);
  }
  return failed;
}

static status copy(oxla_model *model, oxla_copy direction, void *to, const void *from, size_t bytes) {
  static const rt_copy ways[] = {
      [OXLA_TO_DEVICE] = RT_UPLOAD, [OXLA_FROM_DEVICE] = RT_DOWNLOAD, [OXLA_WITHIN_DEVICE] = RT_ON_DEVICE};
  CHECK_THAT(model, STATUS_INVALID_ARGUMENT, "no model");
  CHECK_THAT((to && from) || bytes == 0, STATUS_INVALID_ARGUMENT, "no memory to copy");
  CHECK_THAT(direction >= OXLA_TO_DEVICE && direction <= OXLA_WITHIN_DEVICE, STATUS_INVALID_ARGUMENT,
             "%d is not a direction of copying", (int)direction);
  return copy_on(session_device(model->session), ways[direction], to, from, bytes);
}

oxla_error *oxla_device_copy(oxla_model *model, oxla_copy direction, void *to, const void *from, size_t bytes) {
  return api_error(copy(model, direction, to, from, bytes));
}
