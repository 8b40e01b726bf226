/* tensor.h - values in files, random arrays, and summaries of arrays. */
#ifndef PLUGIN_CLI_TENSOR_H
#define PLUGIN_CLI_TENSOR_H

#include <stdio.h>

#include "plugin/compiler/compiler.h"

/* Reads a value that the model declares as `v`: a .npy file, or a file in another format by cli_read_pb; the contents
 * of the file tell the format.  If a .npy file has elements that are bytes without a type, they have the declared one
 * (npy_parse).  For a sequence, `text` may also be names of files with commas between them, one for each element; for
 * an optional with a sequence, too; for a map, one for the keys and one for the values.  If it is empty, the sequence
 * has no elements, or the optional none.  Strings are added to the table. */
STATUS_MUST_USE status cli_read_value(arena *a, const char *text, const model_value *v, string_table *strings,
                                      literal *out);
/* Writes DIR/output_K.npy if `format` is "npy", otherwise DIR/output_K.pb by cli_format_pb.  Makes the folder if it
 * does not exist.  The elements of a sequence, and the keys and the values of a map, get a .npy file each,
 * DIR/output_K_0.npy and so on, and an optional without an element gets none. */
STATUS_MUST_USE status cli_write_value(arena *a, const char *dir, const char *format, const model_value *v, uint32_t k,
                                       const literal *l, string_table *strings);
/* Makes a random array, which is the same for the same seed: floats in [0, 1), any values for integers of at most 8
 * bits, and 0 or 1 for wider ones, which may be indices of small arrays.  Fails if the time of the budget is used
 * up. */
STATUS_MUST_USE status cli_random_tensor(arena *a, const shape *s, uint64_t seed, const mem_budget *time, literal *out);
/* Prints a summary such as "y: f32[2,3] min 0 max 5 mean 2.5 [0 1 2 3 4 5]", with a line for each element of a
 * sequence.
 */
void cli_print_value(FILE *f, const char *name, const literal *l, const string_table *strings);

/* Read a file of a value in ONNX's format (.pb), and make the bytes of one.  This needs protobuf, so each program has
 * functions of its own: onnx-xla's ask the compiler (plugin/cli/pb.c), those of onnx-xla-run fail
 * (plugin/runner/main.c).
 */
STATUS_MUST_USE status cli_read_pb(arena *a, const char *path, const shape *declared, string_table *strings,
                                   literal *out);
STATUS_MUST_USE status cli_format_pb(arena *a, const model_value *v, const literal *l, string_table *strings,
                                     uint8_t **bytes, size_t *size);

#endif
