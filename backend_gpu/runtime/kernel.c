/* kernel.c - the thunk kind gpu.kernel: a launch of a compiled kernel (runtime/block_abi.h). */
#include <inttypes.h>

#include "backend_gpu/runtime/kinds.h"
#include "runtime/block_abi.h"
#include "runtime/kernel_abi.h"

enum { MAX_KERNEL_BUFFERS = RT_BLOCK_PARAMETER_BYTES / 8, BLOCK_THREADS = 256 };

/* What the config says of a kernel (lower_kernels_attach). */
typedef struct kernel {
  gpu_function *function;
  uint32_t threads, step_threads, shared_bytes; /* as in emit_kernel_info */
} kernel;

/* The sizes of the thunk: the number of steps, then the arguments. */
static int64_t steps_of(const rt_thunk *t) { return t->sizes[0]; }

/* Returns true if blocks of the kernel can be launched. */
static bool is_launchable(const kernel *k) {
  bool alone = k->step_threads == 1, warp = k->step_threads == RT_BLOCK_WARP;
  return (k->threads % RT_BLOCK_WARP == 0 || alone) && (alone || warp || (k->threads && k->step_threads == k->threads));
}

status gpu_kernel_load(rt_thunk *t, rt_loader *l) {
  const gpu_device *d = (const gpu_device *)l->device;
  rt_reader r = rt_reader_make(t->config);
  int64_t code = rt_get_in(&r, 0, (int64_t)l->program->n_code - 1);
  const char *symbol = rt_get_text(&r);
  int64_t abi = rt_get_i64(&r);
  CHECK_THAT(r.bad || abi == RT_BLOCK_ABI, STATUS_INVALID_FILE,
             "its kernels use version %" PRId64 " of the ABI of blocks; this onnx-xla uses %d: compile the model again",
             abi, RT_BLOCK_ABI);
  kernel *k = ARENA_NEW(l->arena, kernel);
  k->threads = (uint32_t)rt_get_in(&r, 0, RT_BLOCK_MOST_THREADS);
  k->step_threads = (uint32_t)rt_get_in(&r, 1, RT_BLOCK_MOST_THREADS);
  k->shared_bytes = (uint32_t)rt_get_in(&r, 0, RT_BLOCK_MOST_SHARED);
  TRY(rt_reader_end(&r, t->kind));
  CHECK_THAT(t->n_buffers <= MAX_KERNEL_BUFFERS && t->n_sizes && t->n_sizes <= MAX_KERNEL_BUFFERS, STATUS_INVALID_FILE,
             "a kernel of %u buffers and %u sizes", t->n_buffers, t->n_sizes);
  CHECK_THAT(is_launchable(k), STATUS_INVALID_FILE, "a kernel of %u threads, %u for each step", k->threads,
             k->step_threads);
  k->function = d->find(d, l->arena, l->code[code], symbol);
  CHECK_THAT(k->function, STATUS_INVALID_FILE, "there is no kernel '%s'", symbol);
  t->state = k;
  return NULL;
}

status gpu_kernel_bind(rt_thunk *t, arena *a) {
  (void)a;
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(t->buffers[k].offset % RT_KERNEL_ALIGN == 0, STATUS_INVALID_FILE, "a buffer is misaligned");
  }
  CHECK_THAT(steps_of(t) >= 0 && steps_of(t) <= INT64_MAX / RT_BLOCK_MOST_THREADS, STATUS_INVALID_FILE,
             "the grid of a kernel is negative or too large");
  return NULL;
}

bool gpu_kernel_is_recordable(const rt_thunk *t, const rt_run *r) {
  (void)t, (void)r;
  return true;
}

/* Returns the number of threads of a block: what the kernel requires or, if it requires nothing, at most BLOCK_THREADS
 * and no more warps than are needed for `all` threads. */
static uint32_t threads_for(const kernel *k, int64_t all) {
  uint32_t needed = all < BLOCK_THREADS ? (uint32_t)((all + RT_BLOCK_WARP - 1) / RT_BLOCK_WARP * RT_BLOCK_WARP)
                                        : (uint32_t)BLOCK_THREADS;
  return k->threads ? k->threads : needed;
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
  const kernel *k = t->state;
  int64_t all = steps * k->step_threads; /* the threads of the launch that have work */
  uint32_t threads = threads_for(k, all);
  gpu_launch l = {.thunk = t,
                  .run = r,
                  .blocks = (all - 1) / threads + 1,
                  .threads = threads,
                  .shared_bytes = k->shared_bytes,
                  .n_buffers = t->n_buffers,
                  .n_args = t->n_sizes - 1,
                  .buffers = buffers,
                  .args = t->sizes + 1,
                  .steps = steps};
  return ((const gpu_device *)r->device)->launch(r->stream, k->function, &l);
}
