/* function.h - functions of a module beside its kernels, which the kernels call. */
#ifndef EMIT_LLVM_FUNCTION_H
#define EMIT_LLVM_FUNCTION_H

#include "emit/llvm/ir.h"

/* Gives the function that is being written the attributes that all functions of kernels have. */
void emit_mark_function(const emit_ir *w);
/* Makes LLVM compile the function that is being written in less than half the time, without any optimization: for
 * functions that do little themselves and call other functions for the work.  Nothing changes where code should be
 * small (emit_target.small). */
void emit_compile_quickly(const emit_ir *w);
/* Makes LLVM write the divisions of the function that is being written as they are.  For many x86 processors it would
 * write two divisions and a test whether 32 bits suffice, which takes long to compile: for functions that divide
 * seldom. */
void emit_divide_plainly(const emit_ir *w);
/* Adds a function with these attributes that only the module sees. */
LLVMValueRef emit_add_internal_function(const emit_ir *w, const char *name, LLVMTypeRef type);

/* Returns the function of the module that `name` and the target, with all of its features, name.  If the module has
 * none, adds it with this type; `body` then writes its code, which may depend only on what the name tells.  `w` is for
 * that function; its `watch` is NULL. */
typedef void emit_shared_body_fn(emit_ir *w, const void *data);
LLVMValueRef emit_shared_function(const emit_ir *w, const char *name, LLVMTypeRef type, emit_shared_body_fn *body,
                                  const void *data);
/* Writes a call of such a function, which returns nothing and whose parameters have the types of the n arguments. */
void emit_call_shared(const emit_ir *w, const char *name, emit_shared_body_fn *body, const void *data, unsigned n,
                      LLVMValueRef *arguments);

#endif
