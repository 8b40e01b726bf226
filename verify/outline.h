/* outline.h - makes a module from a part of another one, so that the part can be compiled alone and written to a file.
 */
#ifndef VERIFY_OUTLINE_H
#define VERIFY_OUTLINE_H

#include "hlo/ir/ir.h"

/* Returns a module whose results are those of `i`.  It contains `i`, the instructions that `i` reads in at most `depth`
 * steps on every path (in one step its operands, in two steps also their operands), and all constants that these
 * instructions read.  All other values that they read become parameters; *inputs are the values of these parameters,
 * taken from values[id][result].  Everything is on the arena. */
hlo_module *verify_outline(arena *a, const hlo_instr *i, int depth, literal *const *values, literal **inputs);

#endif
