/* emulator.c - see emulator.h. */
#include "backend_gpu/runtime/emulator.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/emulated_device.h"
#include "runtime/host/processor.h"
#include "runtime/host/thread_pool.h"

struct gpu_function {
  rt_block_fn *fn;
  const char *name;
};

static gpu_order thread_order = GPU_FORWARD;

static void read_order(void) {
  const char *text = getenv("ONNX_XLA_EMULATOR_ORDER");
  thread_order = text && strcmp(text, "reverse") == 0    ? GPU_REVERSE
                 : text && strcmp(text, "shuffled") == 0 ? GPU_SHUFFLED
                                                         : GPU_FORWARD;
}

/* --- launches --- */

typedef struct launch {
  gpu_blocks of; /* what is the same for all blocks */
  const rt_thunk *thunk;
  uint64_t fingerprint;
  int64_t n_blocks;
  _Atomic(status) failed; /* the first failure of a block */
  const void *buffers[];  /* followed by the arguments */
} launch;

static void run_blocks(void *data, int64_t begin, int64_t end) {
  launch *l = data;
  status none = NULL, failed = l->failed ? NULL : gpu_run_blocks(&l->of, begin, end);
  if (failed && !atomic_compare_exchange_strong(&l->failed, &none, failed)) {
    status_free(failed);
  }
}

static status run_launch(void *data, rt_run *run) {
  launch *l = data;
  l->failed = NULL;
  TRY(rt_emulated_check_thunk(l->thunk, run, l->fingerprint));
  status late = rt_parallel_run(run, l->n_blocks, 1, run_blocks, l);
  return status_first(l->failed, late);
}

static status start_launch(rt_stream *s, const gpu_function *f, const gpu_launch *given) {
  size_t buffers = given->n_buffers * sizeof(void *), args = given->n_args * sizeof(int64_t);
  launch *l = malloc(sizeof *l + buffers + args);
  CHECK_THAT(l, STATUS_RESOURCE, "out of memory");
  int64_t *own_args = (int64_t *)(l->buffers + given->n_buffers);
  *l = (launch){.of = {.fn = f->fn,
                       .name = f->name,
                       .buffers = l->buffers,
                       .args = own_args,
                       .steps = given->steps,
                       .threads = given->threads,
                       .shared_bytes = given->shared_bytes,
                       .order = thread_order},
                .thunk = given->thunk,
                .fingerprint = rt_emulated_fingerprint(given->thunk, given->run),
                .n_blocks = given->blocks};
  memcpy(l->buffers, given->buffers, buffers);
  memcpy(own_args, given->args, args);
  return rt_emulated_submit(s, given->run, run_launch, l);
}

/* --- code --- */

/* Returns the function of this name, which kernels call on a processor without an instruction for it.  The function
 * computes the same bits. */
static void *resolve(const char *name) {
  return strcmp(name, "fma") == 0    ? (void *)(double (*)(double, double, double))fma
         : strcmp(name, "fmaf") == 0 ? (void *)(float (*)(float, float, float))fmaf
                                     : NULL;
}

static status load(const gpu_device *d, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out) {
  (void)d;
  (void)cache;
  return rt_code_load(a, code, resolve, out);
}

static gpu_function *find(const gpu_device *d, arena *a, rt_code *code, const char *symbol) {
  (void)d;
  rt_block_fn *fn = (rt_block_fn *)rt_code_find(code, symbol);
  gpu_function *f = fn ? ARENA_NEW(a, gpu_function) : NULL;
  if (f) {
    f->fn = fn;
    f->name = arena_strdup(a, symbol);
  }
  return f;
}

static status check_cpu(const gpu_device *d, const char *cpu) {
  (void)d;
  return rt_processor_check(cpu);
}

/* --- the device --- */

static gpu_device emulator;

static void make_emulator(void) {
  read_order();
  emulator = (gpu_device){
      .device = rt_emulated_device(), .check_cpu = check_cpu, .load = load, .find = find, .launch = start_launch};
}

const gpu_device *gpu_emulator(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_emulator);
  return &emulator;
}
