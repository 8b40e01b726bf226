/* trampoline.h - functions that only jump to another one, as assembler text. */
#ifndef EMIT_LLVM_TRAMPOLINE_H
#define EMIT_LLVM_TRAMPOLINE_H

#include "emit/llvm/ir.h"

/* Writes functions as assembler text that only pass their parameters on to another function, and perhaps the address of
 * a constant as that one's static chain (its last parameter, which has LLVM's attribute "nest").  Such a text takes
 * LLVM a hundredth of the time of a function.  Does nothing for architectures without a text for it
 * (emit_arch.static_chain). */
void emit_write_trampolines(emit_ir *w);

/* Marks the last parameter of the function that is being written as its static chain.  Does nothing for architectures
 * without trampolines, where it is a parameter like others. */
void emit_mark_static_chain(const emit_ir *w);

#endif
