/* bounds.h - the thunk kind for checks of bounds (base/tensor/bounds.h), which rt_common_kinds lists. */
#ifndef RUNTIME_EXEC_BOUNDS_H
#define RUNTIME_EXEC_BOUNDS_H

#include "runtime/program/target.h"

/* Returns the config of such a thunk: n lower bounds, then n upper bounds, which elements use in turn. */
rt_span rt_bounds_config(arena *a, const char *what, uint32_t n, const int64_t *low, const int64_t *high);
status rt_load_check(rt_thunk *t, rt_loader *l);
/* Fails if an element of the input is out of bounds. */
status rt_run_check(const rt_thunk *t, rt_run *r);

#endif
