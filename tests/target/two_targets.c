#include "tests/target/two_targets.h"

#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"

const variant variants[N_VARIANTS] = {{"native", "native", 0, 2, true},   {"16 lanes", "native", 16, 1, false},
                                      {"8 lanes", "native", 8, 1, false}, {"4 lanes", "native", 4, 2, false},
                                      {"1 lane", "native", 1, 1, false},  {"x86-64", "x86-64", 0, 1, true}};

status run_on_cpu(arena *a, hlo_module *m, const variant *v, const literal *in, literal *out) {
  rt_program *p;
  rt_executable *e;
  rt_compile_options options = {
      .cpu = v->cpu, .lanes = v->lanes, .threads = v->threads, .eval = v->folds ? ref_fold : NULL};
  TRY(cpu_compiler.compile((struct hlo_module *)m, &options, a, &p, NULL));
  TRY(rt_executable_create(p, &cpu_target, NULL, &e));
  rt_thread_pool *pool;
  status s = rt_thread_pool_create(v->threads, &pool);
  const void **params = ARENA_NEW_N(a, const void *, p->n_params + 1);
  void **results = ARENA_NEW_N(a, void *, p->n_results + 1);
  for (uint32_t k = 0; k < p->n_params; k++) {
    params[k] = in[k].data;
  }
  for (uint32_t k = 0; k < p->n_results; k++) {
    out[k] = literal_new(a, p->results[k].shape, &results[k]);
    memset(results[k], 0x5a, (size_t)shape_bytes(&p->results[k].shape));
  }
  for (int round = 0; round < 3 && !s;
       round++) { /* the first one's thunks are watched; memory of the second run is used again */
    s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool, .check_memory = round == 0}, params,
                   results);
  }
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  return s;
}
