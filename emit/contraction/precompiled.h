/* precompiled.h - the shared functions (emit/llvm/function.h) that are compiled when the library is built, so that
 * programs need not bring them. */
#ifndef EMIT_CONTRACTION_PRECOMPILED_H
#define EMIT_CONTRACTION_PRECOMPILED_H

#include "emit/kernel/compile.h"

/* Adds to the module, for its target (emit_module_set_target), the functions of f32 that products, convolutions and
 * Winograd's transforms of any model may call: register blocks of all sizes that fit the registers, with vectors as
 * wide as the target's and half as wide; rows of depthwise convolutions with 3, 5 or 7 taps in a row; Winograd's tiles
 * of all sizes that have a plan.  Functions of other types, and for still narrower vectors, are rare, so programs bring
 * these themselves. */
void emit_write_precompiled(emit_module *m);

#endif
