/* trampoline.h - functions that only jump to another one, as assembler text. */
#ifndef EMIT_LLVM_TRAMPOLINE_H
#define EMIT_LLVM_TRAMPOLINE_H

#include "emit/llvm/ir.h"

/* Finds each function that only passes its own parameters to another one, and writes a jump, as assembler text, in its
 * place.  That takes LLVM a hundredth of the time of a function.  The call may have one more argument, the address of a
 * constant: the static chain of the function that is called, its last parameter (LLVM's attribute "nest").  Does
 * nothing for architectures without a text for it (emit_arch.static_chain). */
void emit_write_trampolines(emit_ir *w);

/* Returns true if f only calls another function in that way. */
bool emit_only_calls(LLVMValueRef f);

/* Gives a constant of the module a name in the object, so that its address can be a static chain, and returns the
 * constant. */
LLVMValueRef emit_static_chain(LLVMValueRef constant);

/* Marks the last parameter of a function as its static chain.  Does nothing for architectures without trampolines,
 * where it is a parameter like others. */
void emit_mark_static_chain(const emit_ir *w, LLVMValueRef function);

#endif
