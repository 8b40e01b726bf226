/* npy.h - NumPy's .npy files to literals and back (format versions 1 to 3). */
#ifndef BASE_NPY_H
#define BASE_NPY_H

#include "base/literal.h"

/* Elements are borrowed from `bytes` where they can stay as they are, otherwise copied to `a`: big-endian and
 * Fortran-ordered arrays are turned round, bools become 0 or 1.  `what` starts messages.
 * Errors: INVALID_FILE (damaged), UNSUPPORTED (element types without an equal here: text, records, objects,
 * dates; rank above SHAPE_MAX_RANK). */
STATUS_MUST_USE status npy_parse(arena *a, const char *what, const void *bytes, size_t size, literal *out);

/* The same from a file, mapped for the life of the arena. */
STATUS_MUST_USE status npy_read(arena *a, const char *path, literal *out);

/* A whole file as bytes on the arena.  NumPy has no name for bf16, float8 and float4: they are written as raw
 * bytes
 * ("<V2", "|V1"), as the ml_dtypes package does; sub-byte integers as int8 or uint8.  Strings: UNSUPPORTED.
 */
STATUS_MUST_USE status npy_format(arena *a, const literal *l, uint8_t **bytes, size_t *size);

#endif
