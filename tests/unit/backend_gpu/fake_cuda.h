/* fake_cuda.h - what a test can ask of the fake driver of CUDA (module_fake_cuda.c), beside the driver's own functions.
 * They are exported by the module, so a test looks them up by dlsym. */
#ifndef TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_H
#define TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_H

#include <stdint.h>

/* Return how many calls the driver got, how often a rule of the driver was broken, how many pieces of memory, streams,
 * modules, linkers and graphs have not been freed, how often a graph was launched, and how often PTX was compiled. */
uint64_t fake_cuda_calls(void);
uint64_t fake_cuda_breaches(void);
uint64_t fake_cuda_live(void);
uint64_t fake_cuda_graph_launches(void);
uint64_t fake_cuda_compilations(void);

#endif
