/* size_text.h - says in words which sizes a program for many sizes serves: its symbols, with the inputs from which they
 * come, what is known of them, and its guards. */
#ifndef RUNTIME_PROGRAM_SIZE_TEXT_H
#define RUNTIME_PROGRAM_SIZE_TEXT_H

#include <stdio.h>

#include "base/arena.h"
#include "runtime/program/program.h"

/* Returns true if node k of the program's sizes is the size of a dimension of an input.  The node's name is a symbol of
 * the model or an expression, such as 32*height.m for a height that must be a multiple of 32. */
bool size_is_symbol(const rt_program *p, uint32_t k);
/* Writes where symbol k comes from, such as "ids[1], mask[1]": all dimensions of inputs that are equal to it, and all
 * elements of inputs, such as "element shape[0]". */
void size_write_dimensions(FILE *f, const rt_program *p, uint32_t k);
/* Returns true if the definition makes its symbol a number. */
bool size_is_pin(const rt_definition *d);
/* Returns text that says which nodes have pinned the sizes of a program that was to be for all sizes. */
const char *size_why_static(arena *a, const rt_program *p);

/* Writes a line that says that one `what`, such as a program, is for all sizes but those that are pinned, and how many
 * guards must hold.  Its first word is padded to `width`. */
void size_write_heading(FILE *f, int width, const char *what, const rt_program *p);
/* Writes a line for each symbol, definition and guard, and one with the number of pins of each operator.  The first
 * word of each line is indented by `indent` and padded to `width`. */
void size_write_lines(FILE *f, int indent, int width, const rt_program *p);

#endif
