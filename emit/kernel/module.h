/* module.h - the interface between the files of emit/ for modules and the initialisation of LLVM. */
#ifndef EMIT_KERNEL_MODULE_H
#define EMIT_KERNEL_MODULE_H

#include "emit/kernel/compile.h"
#include "emit/llvm/ir.h"

emit_ir *emit_module_ir_of(emit_module *m);

#endif
