/* roofline.h - what this machine can do at most, measured now: the measure of a profile. */
#ifndef RUNTIME_HOST_ROOFLINE_H
#define RUNTIME_HOST_ROOFLINE_H

#include "runtime/program/target.h"

typedef struct rt_roofline {
  uint32_t threads;
  double flops_one,
      flops_all;             /* f32 multiply-adds between registers, two operations each: a second, 1 thread and all */
  double read_one, read_all; /* bytes read from memory a second, 1 thread and all */
} rt_roofline;

/* Takes about a third of a second.  The pool must be idle. */
STATUS_MUST_USE status rt_roofline_measure(rt_thread_pool *pool, rt_roofline *out);

#endif
