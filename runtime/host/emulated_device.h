/* emulated_device.h - a device whose work is done by threads of the host, for targets that run on the host what is
 * meant for a device, and for tests.
 *
 * Its memory can be touched only while work of a stream of such a device is running: a process that reads or writes it
 * at another time is ended by a signal.  New memory is full of 0xFF bytes, which are NaN in f16, bf16, f32 and f64.
 * Each stream has a thread, so work is done some time after it was submitted, as on a real device.  A recording fails
 * if it contains a wait (which CUDA forbids in a recording), an event, or a copy from or to host memory (which may be
 * used for something else at the next replay). */
#ifndef RUNTIME_HOST_EMULATED_DEVICE_H
#define RUNTIME_HOST_EMULATED_DEVICE_H

#include "runtime/program/target.h"

/* Returns the functions of such a device.  All devices of this kind have their memory in common. */
rt_device rt_emulated_device(void);

/* Lets the threads of all streams sleep before each piece of work, for a random time of less than `longest`
 * microseconds.  The default is 0. */
void rt_emulated_set_delay(uint32_t longest);

/* Puts the call of `work` into the queue, or into the recording that was begun for it.  The call gets `data` and a copy
 * of *run, or of the run that replays the recording; if `run` is NULL, `work` must not use its argument `run`.  The
 * stream or recording frees `data`, which must be from malloc, also if this fails or the work is left out because
 * earlier work has failed. */
STATUS_MUST_USE status rt_emulated_submit(rt_stream *s, const rt_run *run, status (*work)(void *data, rt_run *run),
                                          void *data);

/* Puts the call run(t, r) into the queue of the run, for thunk kinds whose work the host does in place of a device.
 * When its turn comes, the call fails if a buffer of the thunk is not in the device's memory. */
STATUS_MUST_USE status rt_emulated_submit_thunk(const rt_thunk *t, const rt_run *r,
                                                status (*run)(const rt_thunk *t, rt_run *r));

/* Returns a hash of the addresses and sizes that the work of the thunk depends on. */
uint64_t rt_emulated_fingerprint(const rt_thunk *t, const rt_run *r);
/* Fails unless all buffers of the thunk are in memory of devices of this kind, and its fingerprint is what it was when
 * the work was submitted.  Both faults would go unnoticed on the host, but not on a real device: it cannot access host
 * memory, and a recording uses the addresses and sizes with which it was made. */
STATUS_MUST_USE status rt_emulated_check_thunk(const rt_thunk *t, const rt_run *r, uint64_t fingerprint);

/* Returns true if all of these bytes are in one piece of memory that a device of this kind has allocated.  Returns true
 * if `bytes` is 0. */
bool rt_emulated_owns(const void *memory, size_t bytes);

#endif
