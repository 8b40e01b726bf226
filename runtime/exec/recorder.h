/* recorder.h - recordings of the work that runs put into the queue of a device.
 *
 * A launch costs the host microseconds, so a model of many small kernels is limited by the host.  If a run uses the
 * same addresses as an earlier one, its thunks put the same work into the queue.  That work is recorded, as a CUDA
 * graph, and later runs put all of it into the queue by one call.
 *
 * A recording is found by everything that the work depends on: the binding, which has the thunks and sizes, and the
 * addresses of the arena, of the inputs and of the results.  Constants and code stay where they are as long as the
 * executable exists.  So a recording is never replayed for other addresses than its own: if they change, the thunks run
 * as usual until the same addresses are used a second time.
 *
 * Thunks that cannot be recorded (rt_thunk_kind.is_recordable), since the host decides or does their work, run as usual
 * between recordings.  The bodies of control flow that cannot be recorded have recordings of their own. */
#ifndef RUNTIME_EXEC_RECORDER_H
#define RUNTIME_EXEC_RECORDER_H

#include "runtime/exec/executable.h"

/* The recordings of runs that use the same queue, one after the other. */
typedef struct rt_recordings rt_recordings;

STATUS_MUST_USE status rt_recordings_create(const rt_device *d, rt_recordings **out);
/* Must be called when no work is left in the queue.  NULL is allowed. */
void rt_recordings_destroy(rt_recordings *all);

/* Sets r->recorder if the run's work is to be recorded or is recorded already.  The first run with a set of addresses
 * is not recorded, since a device may create things when it is first used, which is not possible while it records.  No
 * work of earlier runs may be left to do. */
STATUS_MUST_USE status rt_recordings_find(rt_recordings *all, const rt_binding *b, rt_run *r);

/* Runs the thunks of a sequence in a run that has a recorder. */
STATUS_MUST_USE status rt_run_recorded(const rt_sequence *s, rt_run *r);

/* Returns true if the work of all of these thunks can be recorded. */
bool rt_is_recordable(const rt_sequence *s, const rt_run *r);

#endif
