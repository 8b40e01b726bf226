/* kernel.c - the thunk kind gpu.kernel: a launch of a compiled kernel (runtime/block_abi.h). */
#include "backend_gpu/runtime/kinds.h"
#include "runtime/block_abi.h"
#include "runtime/kernel_abi.h"

enum { MAX_KERNEL_BUFFERS = RT_BLOCK_PARAMETER_BYTES / 8, BLOCK_THREADS = 256, WARP = 32 };

/* The sizes of the thunk: the number of steps, then the arguments. */
static int64_t steps_of(const rt_thunk *t) { return t->sizes[0]; }

status gpu_kernel_load(rt_thunk *t, rt_loader *l) {
  const gpu_device *d = (const gpu_device *)l->device;
  rt_reader r = rt_reader_make(t->config);
  int64_t code = rt_get_in(&r, 0, (int64_t)l->program->n_code - 1);
  const char *symbol = rt_get_text(&r);
  (void)rt_get_in(&r, 1, INT64_MAX); /* how many steps are worth a thread of a CPU */
  TRY(rt_reader_end(&r, t->kind));
  CHECK_THAT(t->n_buffers <= MAX_KERNEL_BUFFERS && t->n_sizes && t->n_sizes <= MAX_KERNEL_BUFFERS, STATUS_INVALID_FILE,
             "a kernel of %u buffers and %u sizes", t->n_buffers, t->n_sizes);
  t->state = d->find(d, l->arena, l->code[code], symbol);
  CHECK_THAT(t->state, STATUS_INVALID_FILE, "there is no kernel '%s'", symbol);
  return NULL;
}

status gpu_kernel_bind(rt_thunk *t, arena *a) {
  (void)a;
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].offset % RT_KERNEL_ALIGN == 0, STATUS_INVALID_FILE, "a buffer is misaligned");
  }
  CHECK_THAT(steps_of(t) >= 0, STATUS_INVALID_FILE, "the grid of a kernel is negative");
  return NULL;
}

/* Returns the number of threads of a block: no more warps than there is work for. */
static uint32_t threads_for(int64_t steps) {
  return steps < BLOCK_THREADS ? (uint32_t)((steps + WARP - 1) / WARP * WARP) : BLOCK_THREADS;
}

status gpu_kernel_run(const rt_thunk *t, rt_run *r) {
  int64_t steps = steps_of(t);
  if (steps == 0) {
    return NULL;
  }
  const void *buffers[t->n_buffers + 1];
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    buffers[k] = rt_address(r, &t->buffers[k]);
  }
  uint32_t threads = threads_for(steps);
  gpu_launch l = {.thunk = t,
                  .run = r,
                  .blocks = (steps - 1) / threads + 1,
                  .threads = threads,
                  .n_buffers = t->n_buffers,
                  .n_args = t->n_sizes - 1,
                  .buffers = buffers,
                  .args = t->sizes + 1,
                  .steps = steps};
  return ((const gpu_device *)r->device)->launch(r->stream, t->state, &l);
}
