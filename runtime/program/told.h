/* told.h - parameters that tell the contents of inputs (rt_io.told).
 *
 * Sizes may depend on the content of an input that is a short list of integers, such as the shape to which a Reshape
 * reshapes.  A program for many sizes has a symbol for each element of such a list.  As symbols stand for dimensions of
 * parameters, the program has one more parameter for each element: if the value of the element is n, the shape is
 * u8[n,0], so the parameter takes no memory. */
#ifndef RUNTIME_PROGRAM_TOLD_H
#define RUNTIME_PROGRAM_TOLD_H

#include "base/tensor/literal.h"
#include "runtime/program/program.h"

/* Returns the number of parameters that are inputs, which come before those that tell contents. */
uint32_t rt_program_inputs(const rt_program *p);

/* Returns true if the program has n inputs, and all of its other parameters tell contents. */
bool rt_program_takes_inputs(const rt_program *p, uint32_t n);

/* Returns the shape that the parameter `io`, which tells an element of `input`, has for this input.  Its first
 * dimension is -1 if the element is not known (input->data is NULL) or cannot be a size. */
shape rt_told_shape(const rt_io *io, const literal *input);

/* Returns the contents of input k, on the arena, as the shapes of parameters tell them; NULL if no parameter tells
 * them.  The dimensions of those parameters must be numbers. */
const void *rt_told_content(arena *a, const rt_program *p, uint32_t k);

/* Returns true if each input whose contents the program depends on (rt_io.value) has these contents in `values`.  An
 * entry of `values`, or the whole list, is NULL if it is not known; then the function returns false if the program
 * depends on it. */
bool rt_program_has_contents(const rt_program *p, const void *const *values);

/* Checks the parameters that tell contents, which may come from a damaged file. */
STATUS_MUST_USE status rt_told_check(const rt_program *p);

#endif
