/* bounds.h - the thunk kind "check", one of rt_common_kinds, which compares integers with bounds
 * (base/tensor/bounds.h). */
#ifndef RUNTIME_EXEC_BOUNDS_H
#define RUNTIME_EXEC_BOUNDS_H

#include "runtime/program/target.h"

/* Returns the config of a check: `what` and `from_end` as in `bounds` (base/tensor/bounds.h).  The limits are not in
 * the config; they are the thunk's sizes. */
rt_span rt_bounds_config(arena *a, const char *what, bool from_end);
status rt_load_check(rt_thunk *t, rt_loader *l);
status rt_bind_check(rt_thunk *t, arena *a);
/* Fails if an element of the input is out of bounds. */
status rt_run_check(const rt_thunk *t, rt_run *r);

#endif
