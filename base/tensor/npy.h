/* npy.h - reads NumPy's .npy files (format versions 1 to 3) as literals and writes them. */
#ifndef BASE_TENSOR_NPY_H
#define BASE_TENSOR_NPY_H

#include "base/tensor/literal.h"

/* Element types that NumPy itself lacks have the names that the ml_dtypes package gives them ("bfloat16",
 * "float8_e4m3fn", "int4", ...).  If that package is imported, np.load reads them, and we write them so. np.save writes
 * them as bytes without a name ("<V2", "<V1"): such elements are taken for the type `raw`, which the reader expects, if
 * that has the same size.  If `raw` is DTYPE_INVALID, they are refused.
 *
 * Elements are borrowed from `bytes` if they can stay as they are; otherwise they are copied to `a`: big-endian and
 * Fortran-ordered arrays are reordered, bools become 0 or 1, and types below a byte lose the bits above their own.
 * Messages start with `what`.  Errors are INVALID_FILE (the file is damaged) and UNSUPPORTED (there is no such element
 * type here: text, records, objects, dates; or the rank is above SHAPE_MAX_RANK). */
STATUS_MUST_USE status npy_parse(arena *a, const char *what, const void *bytes, size_t size, dtype raw, literal *out);

/* Reads a file, which stays mapped until the arena is destroyed. */
STATUS_MUST_USE status npy_read(arena *a, const char *path, dtype raw, literal *out);

/* Returns a whole file as bytes on the arena.  Strings are UNSUPPORTED. */
STATUS_MUST_USE status npy_format(arena *a, const literal *l, uint8_t **bytes, size_t *size);

#endif
