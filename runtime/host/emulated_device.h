/* emulated_device.h - a device whose work is done by threads of the host, for targets that run on the host what is
 * meant for a device, and for tests.
 *
 * Its memory can be touched only while work of one of its streams is done: a host that reads or writes it at another
 * time ends with a signal.  New memory is full of 0xFF bytes, which are NaN in all types of floats.  Each stream has a
 * thread, so work is done late, as on a real device.  A recording is broken by what CUDA forbids in one: waits, and
 * copies of the host's memory, whose address may be another's at the next replay. */
#ifndef RUNTIME_HOST_EMULATED_DEVICE_H
#define RUNTIME_HOST_EMULATED_DEVICE_H

#include "runtime/program/target.h"

/* Returns the functions of such a device.  All devices of this kind have their memory in common. */
rt_device rt_emulated_device(void);

/* Lets the threads of all streams sleep for a random time, up to so many microseconds, before each piece of work.  At
 * first it is 0. */
void rt_emulated_set_delay(uint32_t longest);

/* Puts work(data, run) into the queue, or into the recording that was begun for it.  `run` is a copy of the run that is
 * given here, or of the one that replays the recording; if NULL is given, it may not be used.  The stream or recording
 * frees `data`, which must be from malloc, also if this fails or the work is left out because earlier work has
 * failed. */
STATUS_MUST_USE status rt_emulated_submit(rt_stream *s, const rt_run *run, status (*work)(void *data, rt_run *run),
                                          void *data);

/* Puts the call run(t, r) into the queue of the run, for kinds of thunks that work on the host as on a device.  The
 * call fails if a buffer of the thunk is not in the device's memory. */
STATUS_MUST_USE status rt_emulated_submit_thunk(const rt_thunk *t, const rt_run *r,
                                                status (*run)(const rt_thunk *t, rt_run *r));

/* Returns a hash of the addresses and sizes that the work of the thunk depends on. */
uint64_t rt_emulated_fingerprint(const rt_thunk *t, const rt_run *r);
/* Fails unless all buffers of the thunk are in memory of devices of this kind, and its fingerprint is what it was when
 * the work was submitted.  An address of the host's would work here, but not on a real device, where in turn a
 * recording would use the addresses and sizes of another run. */
STATUS_MUST_USE status rt_emulated_check_thunk(const rt_thunk *t, const rt_run *r, uint64_t fingerprint);

/* Returns true if all of these bytes are in one piece of memory that a device of this kind has allocated.  No bytes are
 * anywhere. */
bool rt_emulated_owns(const void *memory, size_t bytes);

#endif
