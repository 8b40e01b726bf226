/* outline.h - makes a part of a module a module of its own, which can be compiled and written to a file alone. */
#ifndef VERIFY_OUTLINE_H
#define VERIFY_OUTLINE_H

#include "hlo/ir/ir.h"

/* Returns a module whose results are those of `i`.  The instructions that `i` reads, up to `depth` levels back, are
 * included, and so are all constants that they read.  Other values that they read become parameters, and *inputs are
 * their values, taken from values[id][result].  All is on the arena. */
hlo_module *verify_outline(arena *a, const hlo_instr *i, int depth, literal *const *values, literal **inputs);

#endif
