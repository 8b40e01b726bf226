/* target.c - the cpu target: which processors run a program, what its code may call, and its thunk kinds. */
#include "backend_cpu/runtime/target.h"

#include <math.h>
#include <string.h>

#include "backend_cpu/runtime/contraction.h"
#include "backend_cpu/runtime/kinds.h"
#include "base/machine.h"
#include "runtime/host/code_loader.h"

/* --- what kernels may call --- */

/* Implements rt_kernel_expired_fn (runtime/kernel_abi.h).  The argument is the run's budget, which may be NULL.
 * Kernels get it as the last entry of their table of buffers. */
static int32_t onnx_xla_expired(const void *watch) { return budget_expired(watch); }

#if defined(__arm__)
#define ARM_CALL(function) extern void function(void);
#include "backend_cpu/runtime/arm_calls.def"
#endif

static void *resolve(const char *name) {
#define EXTERNAL(result, function, parameters) {#function, (void *)(result(*) parameters)function},
  static const struct {
    const char *name;
    void *address;
  } table[] = {
#include "runtime/kernel_externals.def"
#if defined(__arm__)
#define ARM_CALL(function) {#function, (void *)function},
#include "backend_cpu/runtime/arm_calls.def"
#endif
  };
#undef EXTERNAL
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strcmp(table[k].name, name) == 0) {
      return table[k].address;
    }
  }
  return NULL;
}

static status load_code(const rt_device *d, arena *a, rt_span object, rt_code **out) {
  (void)d;
  return rt_code_load(a, object, resolve, out);
}

/* --- processors --- */

/* Checks one feature that the code needs, "+name".  Fails if this processor lacks it or if onnx-xla does not know
 * it. */
static status check_feature(const char *text, size_t n) {
  machine_feature f;
  CHECK_THAT(*text == '+' && machine_find_feature(text + 1, n - 1, &f), STATUS_INVALID_FILE,
             "its code needs '%.*s', which this onnx-xla does not know", (int)n, text);
  CHECK_THAT(f.here, STATUS_INVALID_FILE, "its code needs %s, which this processor lacks", f.name);
  return NULL;
}

/* `cpu` is a text that emit_target_text made: triple, LLVM's name of the processor, features, lanes. */
static status check_cpu(const rt_device *d, const char *cpu) {
  (void)d;
  const char *architecture = machine_architecture();
  if (*cpu == '\0') { /* a program without kernels runs on any machine */
    return NULL;
  }
  CHECK_THAT(strncmp(cpu, architecture, strlen(architecture)) == 0, STATUS_INVALID_FILE,
             "compiled for %.*s, but this machine is %s", (int)strcspn(cpu, " "), cpu, architecture);
  const char *name = strchr(cpu, ' '), *features = name ? strchr(name + 1, ' ') : NULL;
  CHECK_THAT(features, STATUS_INVALID_FILE, "compiled for '%s', which is no processor", cpu);
  size_t n;
  for (const char *at = features + 1; *at && *at != ' '; at += n + (at[n] == ',')) {
    n = strcspn(at, ", ");
    TRY(check_feature(at, n));
  }
  return NULL;
}

/* --- the thunk kinds --- */

static const rt_thunk_kind kinds[] = {
    {.name = "cpu.kernel",
     .load = cpu_kernel_load,
     .run = cpu_kernel_run,
     .access = RT_READS_ELEMENT_FIRST,
     .bind = cpu_kernel_bind},
    {.name = "cpu.sort", .load = cpu_sort_load, .run = cpu_sort_run, .bind = cpu_sort_bind},
    {.name = "cpu.nms", .load = cpu_nms_load, .run = cpu_nms_run, .bind = cpu_nms_bind},
    {.name = "cpu.convolution", .load = cpu_convolution_load, .run = cpu_contraction_run},
    {.name = "cpu.dot", .load = cpu_dot_load, .run = cpu_contraction_run},
};

const rt_target cpu_target = {.abi = RT_ABI,
                              .name = "cpu",
                              .kinds = kinds,
                              .n_kinds = sizeof kinds / sizeof *kinds,
                              .keeps_programs = true,
                              .libraries = cpu_library_name,
                              .check_cpu = check_cpu,
                              .load_code = load_code};
