/* emulator.c - see emulator.h. */
#include "backend_gpu/runtime/emulator.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/block_abi.h"
#include "runtime/host/code_loader.h"
#include "runtime/host/emulated_device.h"
#include "runtime/host/processor.h"
#include "runtime/host/thread_pool.h"

struct gpu_function {
  rt_block_fn *fn;
};

/* --- orders of threads --- */

typedef enum order { FORWARD, REVERSE, SHUFFLED } order;

static order thread_order = FORWARD;

static void read_order(void) {
  const char *text = getenv("ONNX_XLA_EMULATOR_ORDER");
  thread_order = text && strcmp(text, "reverse") == 0    ? REVERSE
                 : text && strcmp(text, "shuffled") == 0 ? SHUFFLED
                                                         : FORWARD;
}

/* Returns the number of the thread that runs as the k-th of n threads, a multiple of the size of a warp. */
static int32_t ordered(int32_t k, int32_t n) {
  enum { STEP = 37 }; /* has no divisor in common with the number of threads, which 2, 3, 5 and 7 may divide */
  switch (thread_order) {
    case REVERSE: return n - 1 - k;
    case SHUFFLED: return (int32_t)((int64_t)k * STEP % n);
    default: return k;
  }
}

/* --- launches --- */

typedef struct launch {
  rt_block_fn *fn;
  rt_run run;
  const rt_thunk *thunk;
  int64_t blocks, steps;
  int32_t threads;
  const int64_t *args;
  const void *buffers[]; /* and behind them the arguments */
} launch;

static void run_blocks(void *data, int64_t begin, int64_t end) {
  const launch *l = data;
  for (int64_t b = begin; b < end; b++) {
    for (int32_t k = 0; k < l->threads; k++) {
      rt_block_thread at = {.block = b, .thread = ordered(k, l->threads), .threads = l->threads};
      l->fn(l->buffers, l->args, l->steps, &at);
    }
  }
}

/* A kernel that gets an address of the host would work here, but not on a GPU. */
static status check_buffers(const launch *l) {
  for (uint32_t k = 0; k < l->thunk->n_buffers; k++) {
    CHECK_THAT(rt_emulated_owns(l->buffers[k], (size_t)rt_buffer_bytes(&l->thunk->buffers[k])), STATUS_INTERNAL,
               "buffer %u of a kernel is not in the device's memory", k);
  }
  return NULL;
}

static status run_launch(void *data) {
  launch *l = data;
  TRY(check_buffers(l));
  return rt_parallel_run(&l->run, l->blocks, 1, run_blocks, l);
}

static status start_launch(rt_stream *s, const gpu_function *f, const gpu_launch *given) {
  size_t buffers = given->n_buffers * sizeof(void *), args = given->n_args * sizeof(int64_t);
  launch *l = malloc(sizeof *l + buffers + args);
  CHECK_THAT(l, STATUS_RESOURCE, "out of memory");
  *l = (launch){.fn = f->fn,
                .run = *given->run,
                .thunk = given->thunk,
                .blocks = given->blocks,
                .steps = given->steps,
                .threads = (int32_t)given->threads,
                .args = (int64_t *)(l->buffers + given->n_buffers)};
  memcpy(l->buffers, given->buffers, buffers);
  memcpy(l->buffers + given->n_buffers, given->args, args);
  return rt_emulated_submit(s, run_launch, l);
}

/* --- code --- */

/* A processor without an instruction for it calls the function; it computes the same bits. */
static void *resolve(const char *name) {
  return strcmp(name, "fma") == 0    ? (void *)(double (*)(double, double, double))fma
         : strcmp(name, "fmaf") == 0 ? (void *)(float (*)(float, float, float))fmaf
                                     : NULL;
}

static status load(const gpu_device *d, arena *a, rt_span code, rt_code **out) {
  (void)d;
  return rt_code_load(a, code, resolve, out);
}

static gpu_function *find(const gpu_device *d, arena *a, rt_code *code, const char *symbol) {
  (void)d;
  rt_block_fn *fn = (rt_block_fn *)rt_code_find(code, symbol);
  gpu_function *f = fn ? ARENA_NEW(a, gpu_function) : NULL;
  if (f) {
    f->fn = fn;
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
