/* module_device_backend.c - the toy backend with memory of its own, which the host cannot touch, and a queue whose work
 * is done late. */
#include <stdlib.h>

#include "runtime/host/emulated_device.h"

#define onnx_xla_backend toy_backend
#include "tests/api/module_toy_backend.c"
#undef onnx_xla_backend

typedef struct call {
  const rt_thunk *thunk;
  rt_run run;
} call;

static status run_call(void *data) {
  call *c = data;
  for (uint32_t k = 0; k < c->thunk->n_buffers; k++) {
    const rt_buffer *b = &c->thunk->buffers[k];
    CHECK_THAT(rt_emulated_owns(rt_address(&c->run, b), (size_t)rt_buffer_bytes(b)), STATUS_INTERNAL,
               "buffer %u is not in the device's memory", k);
  }
  return run(c->thunk, &c->run);
}

static status run_on_device(const rt_thunk *t, rt_run *r) {
  call *c = malloc(sizeof *c);
  if (c) {
    *c = (call){t, *r};
  }
  return rt_emulated_submit(r->stream, run_call, c);
}

static const rt_thunk_kind device_kinds[] = {{.name = "toy.loop", .load = load, .run = run_on_device}};
static rt_device device;
static const rt_target device_target = {
    .abi = RT_ABI, .name = "toy", .kinds = device_kinds, .n_kinds = 1, .device = &device};
static const rt_backend device_backend = {
    .abi = RT_ABI, .adopt_guard = guard_adopt, .target = &device_target, .compiler = &compiler};

rt_backend_entry onnx_xla_backend;

const rt_backend *onnx_xla_backend(uint32_t abi) {
  device = rt_emulated_device();
  rt_emulated_set_delay(200);
  return abi == RT_ABI && toy_backend(abi) ? &device_backend : NULL;
}
