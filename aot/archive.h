/* archive.h - an object file in an archive, as ar writes it, so that a linker takes it as a library. */
#ifndef AOT_ARCHIVE_H
#define AOT_ARCHIVE_H

#include "runtime/program/program.h"

/* Returns a static library in the format of System V and GNU, with an index of the n symbols.  The first 15 characters
 * of `name` are the name of the object in it.  The same arguments give the same bytes, since there is no time stamp in
 * them. */
rt_span aot_archive(arena *a, const char *name, rt_span object, uint32_t n, const char *const *symbols);

#endif
