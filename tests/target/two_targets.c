#include "tests/target/two_targets.h"

#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"

const variant variants[N_VARIANTS] = {
    {.name = "native", .cpu = "native", .threads = 2, .folds = true},
    {.name = "16 lanes", .cpu = "native", .lanes = 16, .threads = 1},
    {.name = "8 lanes", .cpu = "native", .lanes = 8, .threads = 1},
    {.name = "4 lanes", .cpu = "native", .lanes = 4, .threads = 2},
    {.name = "1 lane", .cpu = "native", .lanes = 1, .threads = 1},
    {.name = "x86-64", .cpu = "x86-64", .threads = 1, .folds = true},
    {.name = "own kernels", .cpu = "native", .threads = 3, .folds = true, .own_kernels = true},
    {.name = "own, 1 lane", .cpu = "x86-64", .lanes = 1, .threads = 1, .own_kernels = true},
};

bool is_of_own_kernels(const rt_sequence *s) {
  static const char *const kinds[] = {"cpu.kernel", "copy", "while", "conditional", "concurrent", "check", "run-seed"};
  bool all = true;
  for (uint32_t k = 0; k < s->n && all; k++) {
    const rt_thunk *t = &s->thunks[k];
    size_t kind = 0, n = sizeof kinds / sizeof *kinds;
    while (kind < n && strcmp(t->kind, kinds[kind]) != 0) {
      kind++;
    }
    all = kind < n;
    for (uint32_t b = 0; b < t->n_bodies && all; b++) {
      all = is_of_own_kernels(&t->bodies[b]);
    }
  }
  return all;
}

status run_on_cpu(arena *a, hlo_module *m, const variant *v, const literal *in, literal *out) {
  rt_program *p;
  rt_executable *e;
  rt_compile_options options = {.cpu = v->cpu,
                                .lanes = v->lanes,
                                .threads = v->threads,
                                .eval = v->folds ? ref_fold : NULL,
                                .own_kernels = v->own_kernels,
                                .numerics.deterministic = v->deterministic};
  TRY(cpu_compiler.compile((struct hlo_module *)m, &options, a, &p, NULL));
  CHECK_THAT(!v->own_kernels || is_of_own_kernels(&p->body), STATUS_INTERNAL, "a thunk is not one of own kernels");
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
       round++) { /* the first run checks what its thunks access; the others use the same memory again */
    s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool, .check_memory = round == 0}, params,
                   results);
  }
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  return s;
}
