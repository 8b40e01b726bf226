/* elf.h - objects as ELF files: gives a section its contents after LLVM has written the object.  If LLVM wrote the
 * weights too, which can be hundreds of megabytes, it would keep five copies of them in memory, and hash them. */
#ifndef AOT_ELF_H
#define AOT_ELF_H

#include "base/arena.h"
#include "runtime/program/program.h"

/* Sets *out to a copy of the object on the arena.  The section's new contents are the last `bytes` bytes of the copy,
 * aligned to `align`; the caller writes them to *contents.  The error is INTERNAL if the object is no ELF file or has
 * no such section. */
STATUS_MUST_USE status aot_elf_make_room(arena *a, rt_span object, const char *section, uint64_t bytes, uint64_t align,
                                         rt_span *out, char **contents);

#endif
