/* module_apart_backend.c - the target "apart": the reference evaluator on memory that the host cannot touch.  Work is
 * done late, by the threads of an emulated device.  It proves that the runtime, lowering and sessions keep what is the
 * device's apart from what is the host's, without any code for a GPU. */
#include "backend_ref/target.h"
#include "runtime/host/emulated_device.h"

static status run_on_device(const rt_thunk *t, rt_run *r) {
  return rt_emulated_submit_thunk(t, r, ref_target.kinds[0].run);
}

static bool is_recordable(const rt_thunk *t, const rt_run *r) {
  (void)t, (void)r;
  return true;
}

static status compile(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                      rt_report *report) {
  TRY(ref_compiler.compile(m, options, a, out, report));
  (*out)->target = "apart";
  return NULL;
}

static rt_thunk_kind kind;
static rt_device device;
static const rt_target target = {.abi = RT_ABI, .name = "apart", .kinds = &kind, .n_kinds = 1, .device = &device};
static const rt_compiler compiler = {.abi = RT_ABI, .name = "apart", .compile = compile};
static const rt_backend backend = {.abi = RT_ABI, .adopt_guard = guard_adopt, .target = &target, .compiler = &compiler};

rt_backend_entry onnx_xla_backend;

const rt_backend *onnx_xla_backend(uint32_t abi) {
  enum { LONGEST_DELAY = 50 }; /* microseconds: enough for a copy that does not wait, a fault, to begin too early */
  kind = ref_target.kinds[0];
  kind.run = run_on_device;
  kind.is_recordable = is_recordable;
  device = rt_emulated_device();
  rt_emulated_set_delay(LONGEST_DELAY);
  return abi == RT_ABI ? &backend : NULL;
}
