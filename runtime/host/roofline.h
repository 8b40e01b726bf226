/* roofline.h - measures the peak arithmetic rate and the peak memory bandwidth of this machine, with which profiles are
 * compared. */
#ifndef RUNTIME_HOST_ROOFLINE_H
#define RUNTIME_HOST_ROOFLINE_H

#include "runtime/program/target.h"

typedef struct rt_roofline {
  uint32_t threads;
  bool is_device; /* whether these are the peaks of a device: they do not depend on threads, so the numbers for one
                     thread and for all threads are equal */
  /* F32 multiply-adds in registers per second, each counted as two operations: on one thread, and on all. */
  double flops_one, flops_all;
  double read_one, read_all; /* bytes read from memory per second: on one thread, and on all */
} rt_roofline;

/* Takes about a third of a second.  The pool must be idle. */
STATUS_MUST_USE status rt_roofline_measure(rt_thread_pool *pool, rt_roofline *out);

#endif
