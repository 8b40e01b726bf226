/* module.h - what the files of emit/ see of modules and of LLVM's start. */
#ifndef EMIT_KERNEL_MODULE_H
#define EMIT_KERNEL_MODULE_H

#include "emit/kernel/compile.h"
#include "emit/llvm/ir.h"

emit_ir *emit_module_ir_of(emit_module *m);

#endif
