/* write.h - writes findings as text and as files. */
#ifndef VERIFY_WRITE_H
#define VERIFY_WRITE_H

#include "verify/compare.h"
#include "verify/verify.h"

/* Returns a text on the arena such as "result 0: 12 of 96 elements differ; element 5 is 1.5, not 1.25 (0.0001
 * allowed)". */
const char *verify_difference_text(arena *a, const verify_difference *d);

/* Adds to the finding the ONNX nodes from which the instruction, and all that it calls, comes.  They are on the
 * arena. */
void verify_name_sources(arena *a, const hlo_instr *i, verify_finding *f);

/* Reserves a name for files, "FOLDER/verify-N" with the first N for which no file exists, by creating the file with
 * this extension. */
STATUS_MUST_USE status verify_claim(arena *a, const char *folder, const char *extension, const char **stem);

/* Writes the bytes to STEM.EXTENSION and the inputs to files beside it. */
STATUS_MUST_USE status verify_write_example(arena *a, const char *stem, const char *extension, const void *bytes,
                                            size_t size, uint32_t n_inputs, const char **names, const literal *inputs,
                                            verify_example *out);

/* Writes the module with its inputs, and stores the names of the files and the sources in the finding.  Nothing is
 * written if constants make the module larger than 64 MiB, or if folder is NULL. */
STATUS_MUST_USE status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs,
                                    verify_finding *f);

#endif
