/* outline.h - a part of a module as a module of its own, to be tried and written down alone. */
#ifndef VERIFY_OUTLINE_H
#define VERIFY_OUTLINE_H

#include "hlo/ir/ir.h"

/* A module whose results are those of `i`.  What `i` reads, up to `depth` instructions back, comes with it;
 * constants do always. What these read are the module's parameters: their values are copied from values[],
 * which has them by instruction id and result, to *inputs, both on the arena. */
hlo_module *verify_outline(arena *a, const hlo_instr *i, int depth, literal *const *values, literal **inputs);

#endif
