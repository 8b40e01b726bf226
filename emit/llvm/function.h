/* function.h - functions of a module beside its kernels, which the kernels call. */
#ifndef EMIT_LLVM_FUNCTION_H
#define EMIT_LLVM_FUNCTION_H

#include "emit/llvm/ir.h"

/* Gives the function that is being written the attributes that all functions of kernels have. */
void emit_mark_function(const emit_ir *w);
/* Makes LLVM compile the function that is being written in less than half the time, without any optimization.  This is
 * for functions that do little themselves and call other functions for the work.  Does nothing where code should be
 * small (emit_target.small). */
void emit_compile_quickly(const emit_ir *w);
/* Makes LLVM write the divisions of the function that is being written as they are.  For many x86 processors it would
 * otherwise write two divisions and a test whether 32 bits suffice, which takes long to compile.  This is for functions
 * that divide seldom. */
void emit_divide_plainly(const emit_ir *w);
/* Adds a function with the attributes of emit_mark_function that only the module sees. */
LLVMValueRef emit_add_internal_function(const emit_ir *w, const char *name, LLVMTypeRef type);

/* A function that many kernels call, and that returns nothing.  `body` writes its code; the `w` that it gets is for
 * that function, and w->watch is NULL.  The code may depend only on the name and the target, since functions of one
 * name are written once for a target. */
typedef struct emit_shared {
  const char *name;
  const char *parameters; /* a letter for each parameter: p for a pointer, i for an i64; the last one may be c, a
                             pointer that is the function's static chain (trampoline.h) */
  void (*body)(emit_ir *w, const void *data);
  const void *data;
} emit_shared;

enum { EMIT_SHARED_PARAMETERS = 32 }; /* the most parameters of a shared function */

/* Returns the type of a shared function with these parameters. */
LLVMTypeRef emit_shared_type(const emit_ir *w, const char *parameters);
/* Writes a call of a function whose type emit_shared_type returns for `parameters`.  There are as many arguments as
 * parameters. */
void emit_call_typed(const emit_ir *w, LLVMValueRef function, const char *parameters, LLVMValueRef *arguments);
/* Returns the shared function f in code for the target w->target.  If that is one of the functions that are there when
 * the code runs (emit_target.functions), it is declared in the module.  Otherwise the module has it, and it is added at
 * the first use. */
LLVMValueRef emit_shared_function(const emit_ir *w, const emit_shared *f);
/* Writes a call of the function that emit_shared_function returns. */
void emit_call_shared(const emit_ir *w, const emit_shared *f, LLVMValueRef *arguments);

/* Returns the address of a constant in the module's data. */
LLVMValueRef emit_constant_data(const emit_ir *w, LLVMValueRef value, const char *name);
/* Returns a constant table of the module with n entries of 8 bytes: a record.  An entry is an i64 or a pointer. */
LLVMValueRef emit_constant_record(const emit_ir *w, int n, LLVMValueRef *entries);
/* Return the address of entry k of a record, and the integer or pointer that the entry is. */
LLVMValueRef emit_record_at(const emit_ir *w, LLVMValueRef record, LLVMValueRef k);
LLVMValueRef emit_record_number(const emit_ir *w, LLVMValueRef record, int k);
LLVMValueRef emit_record_pointer(const emit_ir *w, LLVMValueRef record, int k);

#endif
