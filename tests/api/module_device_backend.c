/* module_device_backend.c - the toy backend with memory of its own, which the host cannot touch, and a queue whose work
 * is done late. */
#include "runtime/host/emulated_device.h"

#define onnx_xla_backend toy_backend
#include "tests/api/module_toy_backend.c"
#undef onnx_xla_backend

static status run_on_device(const rt_thunk *t, rt_run *r) { return rt_emulated_submit_thunk(t, r, run); }

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
