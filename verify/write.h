/* write.h - writes findings as text and as files. */
#ifndef VERIFY_WRITE_H
#define VERIFY_WRITE_H

#include "verify/compare.h"
#include "verify/verify.h"

/* Returns a text on the arena such as "result 0: 12 of 96 elements differ; element 5 is 1.5, not 1.25 (0.0001 allowed;
 * the largest is 3)". */
const char *verify_difference_text(arena *a, const verify_difference *d);

/* Sets the members n_sources and sources of the finding to the ONNX nodes from which the instruction, and the
 * computations that it calls, come.  The texts are on the arena. */
void verify_name_sources(arena *a, const hlo_instr *i, verify_finding *f);

/* Reserves a name for a finding's files: sets *stem to "FOLDER/verify-N", where N is the first number for which no file
 * exists, and creates the empty file STEM.EXTENSION. */
STATUS_MUST_USE status verify_claim(arena *a, const char *folder, const char *extension, const char **stem);

/* Writes the bytes to STEM.EXTENSION and the inputs to files beside it. */
STATUS_MUST_USE status verify_write_example(arena *a, const char *stem, const char *extension, const void *bytes,
                                            size_t size, uint32_t n_inputs, const char **names, const literal *inputs,
                                            verify_example *out);

/* Writes the module and its inputs to files, and stores the names of the files and the ONNX nodes of the module in the
 * finding.  Does nothing if the constants of the entry have more than 64 MiB in all, or if `folder` is NULL. */
STATUS_MUST_USE status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs,
                                    verify_finding *f);

#endif
