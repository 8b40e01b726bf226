/* module.h - gives the other files of emit/ access to the LLVM module of an emit_module. */
#ifndef EMIT_KERNEL_MODULE_H
#define EMIT_KERNEL_MODULE_H

#include "emit/kernel/compile.h"
#include "emit/llvm/ir.h"

emit_ir *emit_module_ir_of(emit_module *m);

#endif
