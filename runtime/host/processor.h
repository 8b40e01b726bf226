/* processor.h - whether this processor can run code. */
#ifndef RUNTIME_HOST_PROCESSOR_H
#define RUNTIME_HOST_PROCESSOR_H

#include <stdbool.h>

#include "base/status.h"

/* Returns an error if this machine cannot run code that was compiled for `cpu`, a text of emit_target_text such as
 * "x86_64-linux-gnu znver4 +avx2,+fma 8": the triple, LLVM's name of the processor, features, lanes, and perhaps
 * further words.  It is "" for a program without code, which runs anywhere. */
STATUS_MUST_USE status rt_processor_check(const char *cpu);

/* Returns true if code that was compiled for `cpu` calls functions of the library that compiled it
 * (rt_target.functions), so that no other library can run it. */
bool rt_processor_has_functions(const char *cpu);

#endif
