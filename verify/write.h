/* write.h - findings as text and files. */
#ifndef VERIFY_WRITE_H
#define VERIFY_WRITE_H

#include "verify/compare.h"
#include "verify/verify.h"

/* "result 0: 12 of 96 elements differ; element 5 is 1.5, not 1.25 (0.0001 allowed)", on the arena. */
const char *verify_difference_text(arena *a, const verify_difference *d);

/* Writes the module to `folder` under a name that no file has yet, its inputs beside it, and tells the
 * finding.  Where constants make it larger than 64 MiB, or folder is NULL, nothing is written. */
STATUS_MUST_USE status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs,
                                    verify_finding *f);

#endif
