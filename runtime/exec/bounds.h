/* bounds.h - the thunk kind of checks (base/tensor/bounds.h); rt_common_kinds names it. */
#ifndef RUNTIME_EXEC_BOUNDS_H
#define RUNTIME_EXEC_BOUNDS_H

#include "runtime/program/target.h"

/* The config of the kind: low ends, then high ends, as many as elements in turn have. */
rt_span rt_bounds_config(arena *a, const char *what, uint32_t n, const int64_t *low, const int64_t *high);
status rt_load_check(rt_thunk *t, rt_loader *l);
/* Fails where an element of the input lies outside. */
status rt_run_check(const rt_thunk *t, rt_run *r);

#endif
