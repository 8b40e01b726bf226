/* cuda_case.h - for tests of the CUDA platform: the fake driver, kernels for it, and a program that uses everything. */
#ifndef TESTS_UNIT_BACKEND_GPU_CUDA_CASE_H
#define TESTS_UNIT_BACKEND_GPU_CUDA_CASE_H

#include "backend_gpu/runtime/cuda.h"

/* A fixture for all tests of a process and its children: lets the platform use the fake driver, and compiles kernels.
 */
void cuda_case_setup(void);
void cuda_case_teardown(void);

extern const char *cuda_case_driver; /* the path of the fake driver */
extern rt_span cuda_case_code; /* an object with the kernels "add", "add_unchecked" and "linger", which takes long */

/* Runs "CC OPTIONS", where CC is the C compiler with the include path of the sources; it must succeed. */
void cuda_case_compile(const char *options);

/* Returns what a function of fake_cuda.h returns.  The driver must have been opened. */
uint64_t cuda_case_ask(const char *function);
/* Fails unless everything was given back to the driver, and no rule of it was broken. */
void cuda_case_check_end(void);
/* Fails unless `s` is a failure with this code, whose message contains the text.  Frees it. */
void cuda_case_check_failure(status s, status_code expected, const char *text);

const gpu_device *cuda_case_device(uint32_t ordinal);

/* --- a cache of one piece of code --- */

typedef struct cuda_case_cache {
  rt_code_cache cache;
  char compiler[1000]; /* what the code was compiled by, from `source`; "": nothing is kept */
  rt_span source, code;
  int found, kept; /* how often code was found in the cache, and how often code was kept in it */
} cuda_case_cache;

/* What is kept is on the heap until cuda_case_cache_free. */
cuda_case_cache *cuda_case_cache_new(void);
void cuda_case_cache_free(cuda_case_cache *c);

/* --- a program: three arrays on the device, of which the kernel "add" computes the third --- */

enum { CUDA_CASE_N = 1000, CUDA_CASE_BYTES = CUDA_CASE_N * sizeof(int) };

typedef struct cuda_program {
  const gpu_device *gpu;
  const rt_device *device;
  arena *arena;
  cuda_case_cache *code_cache;
  const gpu_function *add;
  rt_stream *stream;
  void *memory[3];
  int x[CUDA_CASE_N], y[CUDA_CASE_N], sums[CUDA_CASE_N], last[1];
} cuda_program;

cuda_program *cuda_program_new(const gpu_device *g);
/* Loads the program's code twice: first it is compiled, then it is found in the cache. */
status cuda_program_load(cuda_program *p);
/* Returns a program of device 0 that is loaded. */
cuda_program *cuda_program_loaded(void);
/* Launches the kernel "add": the third array becomes x + factor y. */
status cuda_program_launch(const cuda_program *p, int64_t factor);
/* Uploads, launches, copies on the device, also within an array, downloads and waits. */
status cuda_program_run(cuda_program *p, const mem_budget *budget);
/* Queues a kernel that takes long, then `copies` downloads of x to p->sums, each followed by that kernel. */
void cuda_program_linger(cuda_program *p, int copies);
void cuda_program_check_results(const cuda_program *p);
void cuda_program_free(cuda_program *p);

/* Records a launch and a copy, and checks that each replay does both with the numbers that x has at the replay, not
 * with those that it had when they were recorded. */
status cuda_program_replay(cuda_program *p);

/* Loads a program, runs it twice, then by a recording, times a launch, and frees it, whatever fails, as the runtime
 * does. */
status cuda_program_do(const gpu_device *g);

#endif
