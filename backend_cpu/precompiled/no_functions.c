/* no_functions.c - tables without functions, for builds without precompiled functions
 * (backend_cpu/runtime/functions.h). */
#include "backend_cpu/runtime/functions.h"

const function_set cpu_function_sets[] = {{"", 0, NULL}};
const uint32_t cpu_n_function_sets = 0;
