/* npy.h - NumPy's .npy files to literals and back (format versions 1 to 3). */
#ifndef BASE_TENSOR_NPY_H
#define BASE_TENSOR_NPY_H

#include "base/tensor/literal.h"

/* Element types that NumPy itself lacks go by the names that the ml_dtypes package gives them ("bfloat16",
 * "float8_e4m3fn", "int4", ...): np.load reads and we write them so, where that package is imported.  np.save writes
 * them as bytes without a name ("<V2", "<V1"): such are taken for `raw`, what the reader expects, if that has their
 * size; DTYPE_INVALID: they are refused.
 *
 * Elements are borrowed from `bytes` where they can stay as they are, otherwise copied to `a`: big-endian and
 * Fortran-ordered arrays are turned round, bools become 0 or 1, types below a byte lose the bits above them.  `what`
 * starts messages.
 * Errors: INVALID_FILE (damaged), UNSUPPORTED (element types without an equal here: text, records, objects,
 * dates; rank above SHAPE_MAX_RANK). */
STATUS_MUST_USE status npy_parse(arena *a, const char *what, const void *bytes, size_t size, dtype raw, literal *out);

/* The same from a file, mapped for the life of the arena. */
STATUS_MUST_USE status npy_read(arena *a, const char *path, dtype raw, literal *out);

/* A whole file as bytes on the arena.  Strings: UNSUPPORTED. */
STATUS_MUST_USE status npy_format(arena *a, const literal *l, uint8_t **bytes, size_t *size);

#endif
