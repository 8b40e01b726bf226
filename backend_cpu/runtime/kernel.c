/* kernel.c - the thunk kind cpu.kernel: a compiled function whose grid is divided among the run's threads. */
#include "backend_cpu/runtime/kinds.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/thread_pool.h"
#include "runtime/kernel_abi.h"

enum { MAX_KERNEL_BUFFERS = 4096 };

typedef struct kernel_state {
  rt_kernel_fn *fn;
  int64_t grain;
} kernel_state;

/* The sizes of the thunk: the grid, then the arguments. */
static int64_t grid_of(const rt_thunk *t) { return t->sizes[0]; }
static const int64_t *args_of(const rt_thunk *t) { return t->sizes + 1; }

status cpu_kernel_config_read(const rt_thunk *t, uint32_t n_code, cpu_kernel_config *out) {
  rt_reader r = rt_reader_make(t->config);
  out->code = rt_get_in(&r, 0, (int64_t)n_code - 1);
  out->symbol = rt_get_text(&r);
  out->grain = rt_get_in(&r, 1, INT64_MAX);
  return rt_reader_end(&r, t->kind);
}

status cpu_kernel_load(rt_thunk *t, rt_loader *l) {
  cpu_kernel_config c;
  TRY(cpu_kernel_config_read(t, l->program->n_code, &c));
  kernel_state *s = ARENA_NEW(l->arena, kernel_state);
  s->grain = c.grain;
  CHECK_THAT(t->n_buffers <= MAX_KERNEL_BUFFERS, STATUS_INVALID_FILE, "a kernel of %u buffers", t->n_buffers);
  CHECK_THAT(t->n_sizes, STATUS_INVALID_FILE, "a kernel without a grid");
  s->fn = (rt_kernel_fn *)rt_code_find(l->code[c.code], c.symbol);
  CHECK_THAT(s->fn, STATUS_INVALID_FILE, "there is no kernel '%s'", c.symbol);
  t->state = s;
  return NULL;
}

status cpu_kernel_bind(rt_thunk *t, arena *a) {
  (void)a;
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].offset % RT_KERNEL_ALIGN == 0, STATUS_INVALID_FILE, "a buffer is misaligned");
  }
  CHECK_THAT(grid_of(t) >= 0, STATUS_INVALID_FILE, "the grid of a kernel is negative");
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
  if (grid_of(t) <= s->grain) {
    if (grid_of(t) > 0) {
      s->fn(buffers, args_of(t), 0, grid_of(t));
    }
    return NULL;
  }
  return rt_parallel_run(r, grid_of(t), s->grain, run_range, &(kernel_run){s->fn, buffers, args_of(t)});
}
