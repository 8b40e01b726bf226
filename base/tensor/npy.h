/* npy.h - reads NumPy's .npy files (format versions 1 to 3) as literals and writes them. */
#ifndef BASE_TENSOR_NPY_H
#define BASE_TENSOR_NPY_H

#include "base/tensor/string_table.h"
#include "base/tensor/literal.h"

/* Reads a .npy file in memory.  Element types that NumPy itself lacks have the names that the ml_dtypes package gives
 * them ("bfloat16", "float8_e4m3fn", "int4", ...), and npy_format writes these names; np.load reads such files if that
 * package is imported.  But np.save writes these types as bytes without a name ("<V2", "<V1").  Such elements are taken
 * to be of type `raw`, which the caller expects, if it has the same size; if `raw` is DTYPE_INVALID, they are refused.
 *
 * Strings ("<U5", in UTF-32, or "|S5", bytes without the NULs at their end) are added to the table, in UTF-8; they are
 * UNSUPPORTED if it is NULL.
 *
 * Elements are borrowed from `bytes` if they are aligned and can stay as they are.  Otherwise they are copied to `a`:
 * the bytes of big-endian numbers and the elements of Fortran-ordered arrays are reordered, bools become 0 or 1, and
 * the unused high bits of types with less than 8 bits are set as dtypes.def states.  Messages start with `what`.
 * Errors are INVALID_FILE (the file is damaged), UNSUPPORTED (the format version is another one; there is no such
 * element type here: records, objects, dates; or the rank is above SHAPE_MAX_RANK), and those of shape_check (the
 * shape is too large). */
STATUS_MUST_USE status npy_parse(arena *a, const char *what, const void *bytes, size_t size, dtype raw,
                                 string_table *strings, literal *out);

/* Reads a file by file_map; the elements are valid until the arena is destroyed.  Strings are UNSUPPORTED. */
STATUS_MUST_USE status npy_read(arena *a, const char *path, dtype raw, literal *out);

/* Returns the literal as the bytes of a .npy file, on the arena.  Strings, whose bytes are in the table, become bytes
 * ("|S5"); they are UNSUPPORTED if the table is NULL, or if one of them ends with a NUL. */
STATUS_MUST_USE status npy_format(arena *a, const literal *l, const string_table *strings, uint8_t **bytes,
                                  size_t *size);

#endif
