/* random.h - the thunk kinds for random numbers, which rt_common_kinds lists. */
#ifndef RUNTIME_EXEC_RANDOM_H
#define RUNTIME_EXEC_RANDOM_H

#include "runtime/program/target.h"

status rt_load_run_seed(rt_thunk *t, rt_loader *l);
status rt_run_run_seed(const rt_thunk *t, rt_run *r);
status rt_bind_mt19937(rt_thunk *t, arena *a);
status rt_run_mt19937(const rt_thunk *t, rt_run *r);

#endif
