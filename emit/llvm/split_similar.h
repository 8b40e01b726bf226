/* split_similar.h - keeps the code of similar functions once, so that it is compiled once. */
#ifndef EMIT_LLVM_SPLIT_SIMILAR_H
#define EMIT_LLVM_SPLIT_SIMILAR_H

#include "emit/llvm/ir.h"

/* Prepares functions that differ only in constants, and in the functions and tables that they name, so that LLVM's pass
 * "mergefunc" keeps their code once.  Moves the code of each one to a new function that takes the address of a
 * record of these constants, and that the old one then calls (trampoline.h).  The code becomes slightly slower, as it
 * loads what were constants.  (LLVM's own pass of that kind, GlobalMergeFunctions, came with version 20.) */
void emit_split_similar(emit_ir *w);

#endif
