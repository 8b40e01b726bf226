/* emulated_device.h - a device whose work is done by threads of the host, for targets that run on the host what is
 * meant for a device, and for tests.
 *
 * Its memory can be touched only while work of one of its streams is done: a host that reads or writes it at another
 * time ends with a signal.  New memory is full of 0xFF bytes, which are NaN in all types of floats.  Each stream has a
 * thread, so work is done late, as on a real device. */
#ifndef RUNTIME_HOST_EMULATED_DEVICE_H
#define RUNTIME_HOST_EMULATED_DEVICE_H

#include "runtime/program/target.h"

/* Returns the functions of such a device.  All devices of this kind have their memory in common. */
rt_device rt_emulated_device(void);

/* Lets the threads of all streams sleep for a random time, up to so many microseconds, before each piece of work.  At
 * first it is 0. */
void rt_emulated_set_delay(uint32_t longest);

/* Puts work(data) into the queue.  The stream frees `data`, which must be from malloc, also if this fails or the work
 * is left out because earlier work has failed. */
STATUS_MUST_USE status rt_emulated_submit(rt_stream *s, status (*work)(void *data), void *data);

/* Puts the call run(t, r) into the queue of the run, for kinds of thunks that work on the host as on a device.  The
 * call fails if a buffer of the thunk is not in the device's memory. */
STATUS_MUST_USE status rt_emulated_submit_thunk(const rt_thunk *t, const rt_run *r,
                                                status (*run)(const rt_thunk *t, rt_run *r));

/* Fails unless all buffers of the thunk are in memory of devices of this kind.  An address of the host's would work
 * here, but not on a real device. */
STATUS_MUST_USE status rt_emulated_check_buffers(const rt_thunk *t, const rt_run *r);

/* Returns true if all of these bytes are in one piece of memory that a device of this kind has allocated.  No bytes are
 * anywhere. */
bool rt_emulated_owns(const void *memory, size_t bytes);

#endif
