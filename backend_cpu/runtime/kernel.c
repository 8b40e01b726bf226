/* kernel.c - the thunk kind cpu.kernel: a compiled function whose grid is divided among the run's threads. */
#include "backend_cpu/runtime/kinds.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/thread_pool.h"
#include "runtime/kernel_abi.h"

enum { MAX_KERNEL_BUFFERS = 4096 };

typedef struct kernel_state {
  rt_kernel_fn *fn;
  int64_t grid, grain;
  const int64_t *args;
} kernel_state;

status cpu_kernel_load(rt_thunk *t, rt_loader *l) {
  rt_reader r = rt_reader_make(t->config);
  int64_t code = rt_get_in(&r, 0, (int64_t)l->program->n_code - 1);
  const char *symbol = rt_get_text(&r);
  kernel_state *s = ARENA_NEW(l->arena, kernel_state);
  s->grid = rt_get_in(&r, 0, INT64_MAX);
  s->grain = rt_get_in(&r, 1, INT64_MAX);
  uint32_t n_args;
  s->args = rt_get_i64s(&r, l->arena, &n_args);
  TRY(rt_reader_end(&r, t->kind));
  CHECK_THAT(t->n_buffers <= MAX_KERNEL_BUFFERS, STATUS_INVALID_FILE, "a kernel of %u buffers", t->n_buffers);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].offset % RT_KERNEL_ALIGN == 0, STATUS_INVALID_FILE, "a buffer is misaligned");
  }
  s->fn = (rt_kernel_fn *)rt_code_find(l->code[code], symbol);
  CHECK_THAT(s->fn, STATUS_INVALID_FILE, "there is no kernel '%s'", symbol);
  t->state = s;
  return NULL;
}

typedef struct kernel_run {
  rt_kernel_fn *fn;
  const void *const *buffers;
  const int64_t *args;
} kernel_run;

static void run_range(void *data, int64_t begin, int64_t end) {
  const kernel_run *k = data;
  k->fn(k->buffers, k->args, begin, end);
}

status cpu_kernel_run(const rt_thunk *t, rt_run *r) {
  const kernel_state *s = t->state;
  const void *buffers[t->n_buffers + 1]; /* the last entry is the run's budget, for onnx_xla_expired */
  buffers[t->n_buffers] = r->budget;
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    buffers[k] = rt_address(r, &t->buffers[k]);
  }
  if (s->grid <= s->grain) {
    if (s->grid > 0) {
      s->fn(buffers, s->args, 0, s->grid);
    }
    return NULL;
  }
  return rt_parallel_run(r, s->grid, s->grain, run_range, &(kernel_run){s->fn, buffers, s->args});
}
