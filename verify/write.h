/* write.h - findings as text and files. */
#ifndef VERIFY_WRITE_H
#define VERIFY_WRITE_H

#include "verify/compare.h"
#include "verify/verify.h"

/* "result 0: 12 of 96 elements differ; element 5 is 1.5, not 1.25 (0.0001 allowed)", on the arena. */
const char *verify_difference_text(arena *a, const verify_difference *d);

/* Adds the ONNX nodes to the finding from which the instruction, and all that it calls, comes.  They are on the arena.
 */
void verify_name_sources(arena *a, const hlo_instr *i, verify_finding *f);

/* Claims a name for files: "FOLDER/verify-N" with the first N that no file has, by making the one with this
 * extension. */
STATUS_MUST_USE status verify_claim(arena *a, const char *folder, const char *extension, const char **stem);

/* Writes the bytes to STEM.EXTENSION, the inputs beside it. */
STATUS_MUST_USE status verify_write_example(arena *a, const char *stem, const char *extension, const void *bytes,
                                            size_t size, uint32_t n_inputs, const char **names, const literal *inputs,
                                            verify_example *out);

/* Writes the module with its inputs and tells the finding, its sources included.  Where constants make it
 * larger than 64 MiB, or folder is NULL, nothing is written. */
STATUS_MUST_USE status verify_write(arena *a, const char *folder, hlo_module *m, const literal *inputs,
                                    verify_finding *f);

#endif
