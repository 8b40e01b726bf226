/* code_bundle.h - the code of a program for several machines as one code object, from which a device takes the code
 * that suits it best.
 *
 * A program that was compiled for several GPUs has such a bundle in place of each code object (rt_program.code).  All
 * codes of a bundle have the same functions. */
#ifndef RUNTIME_PROGRAM_CODE_BUNDLE_H
#define RUNTIME_PROGRAM_CODE_BUNDLE_H

#include "runtime/program/program.h"

/* Stands between the machines in rt_program.cpu.  A machine is described by a text of emit_target_text. */
#define RT_CPU_SEPARATOR "; "

typedef struct rt_bundled_code {
  const char *cpu; /* the machine that the code is for */
  rt_span code;
} rt_bundled_code;

/* Returns a bundle of the n codes, on the arena. */
rt_span rt_code_bundle_write(arena *a, uint32_t n, const rt_bundled_code *codes);

/* Returns true if the code is a bundle. */
bool rt_code_is_bundle(rt_span code);
/* Sets *out to the *n codes of a bundle, which may come from a damaged file.  The list is on the arena; the codes are
 * borrowed from the bundle. */
STATUS_MUST_USE status rt_code_bundle_read(arena *a, rt_span bundle, uint32_t *n, const rt_bundled_code **out);

#endif
