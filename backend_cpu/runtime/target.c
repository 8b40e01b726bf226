/* target.c - the cpu target: what the code of its programs may call, and its thunk kinds. */
#include "backend_cpu/runtime/target.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "backend_cpu/runtime/contraction.h"
#include "backend_cpu/runtime/functions.h"
#include "backend_cpu/runtime/kinds.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/processor.h"

/* --- what kernels may call --- */

/* Implements rt_kernel_expired_fn (runtime/kernel_abi.h).  The argument is the run's budget, which may be NULL.
 * Kernels get it as the last entry of their table of buffers. */
int32_t onnx_xla_expired(const void *watch) { return budget_expired(watch); }

#if defined(__arm__)
#define ARM_CALL(function) extern void function(void);
#include "backend_cpu/runtime/arm_calls.def"
#endif

static const function_set *chosen; /* the functions for this processor; NULL if there are none */

static void choose_functions(void) {
  for (uint32_t k = cpu_n_function_sets; k-- > 0;) {
    status s = rt_processor_check(cpu_function_sets[k].target);
    if (!s) {
      chosen = &cpu_function_sets[k];
      return;
    }
    status_free(s);
  }
}

static const function_set *functions(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, choose_functions);
  return chosen;
}

/* Returns the precompiled function of this name, which contains the processor for which it was compiled; NULL if there
 * is none. */
static void *find_function(const char *name) {
  const named_function *found = NULL;
  for (uint32_t k = 0; k < cpu_n_function_sets && !found; k++) {
    found = function_set_find(&cpu_function_sets[k], name);
  }
  return found ? (void *)found->address : NULL;
}

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
  return find_function(name);
}

static status load_code(const rt_device *d, arena *a, rt_span object, const rt_code_cache *cache, rt_code **out) {
  (void)d;
  (void)cache;
  return rt_code_load(a, object, resolve, out);
}

static status check_cpu(const rt_device *d, const char *cpu) {
  (void)d;
  CHECK_THAT(!rt_processor_has_functions(cpu) || functions(), STATUS_INVALID_FILE,
             "its code calls functions of the library that compiled it");
  return rt_processor_check(cpu);
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
                              .load_code = load_code,
                              .functions = functions};
