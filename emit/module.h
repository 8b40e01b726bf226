/* module.h - what the files of emit/ see of modules and of LLVM's start. */
#ifndef EMIT_MODULE_H
#define EMIT_MODULE_H

#include "emit/compile.h"
#include "emit/ir.h"

emit_ir *emit_module_ir_of(emit_module *m);
/* Once in a process; cheap after that. */
void emit_start_llvm(void);

#endif
