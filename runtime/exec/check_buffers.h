/* check_buffers.h - checks the buffers of a thunk, which may come from a damaged file, so that no thunk touches memory
 * outside of them. */
#ifndef RUNTIME_EXEC_CHECK_BUFFERS_H
#define RUNTIME_EXEC_CHECK_BUFFERS_H

#include "runtime/program/target.h"

/* Returns INVALID_FILE if a buffer is outside of its space or misaligned, or if an output is in memory that must not be
 * written, overlaps another output, or overlaps an input that the thunk may still read (rt_access).  All sizes of the
 * program and the thunk must be numbers, and t->ops must be set. */
STATUS_MUST_USE status rt_check_buffers(const rt_program *p, const rt_thunk *t);

/* Sets *bytes to the number of bytes from the first to the last element.  Returns false if an extent or a stride is
 * negative or the number is too large. */
bool rt_buffer_reach(const rt_buffer *b, int64_t *bytes);

#endif
