/* tensor.h - arrays in files, random arrays, and summaries of arrays. */
#ifndef PLUGIN_CLI_TENSOR_H
#define PLUGIN_CLI_TENSOR_H

#include <stdio.h>

#include "base/tensor/string_table.h"
#include "base/tensor/literal.h"

/* Reads a .npy file, or a file in another format by cli_read_pb; the contents of the file tell the format.  If a .npy
 * file has elements that are bytes without a type, `raw` is their type (npy_parse).  Strings are added to the table. */
STATUS_MUST_USE status cli_read_tensor(arena *a, const char *path, dtype raw, string_table *strings, literal *out);
/* Writes DIR/output_K.npy if `format` is "npy", otherwise DIR/output_K.pb by cli_format_pb.  Makes the folder
 * if it does not exist. */
STATUS_MUST_USE status cli_write_tensor(arena *a, const char *dir, const char *format, const char *name, uint32_t k,
                                        const literal *l, string_table *strings);
/* Makes a random array, which is the same for the same seed: floats in [0, 1), any values for integers of at most 8
 * bits, and 0 or 1 for wider ones, which may be indices of small arrays.  Fails if the time of the budget is used
 * up. */
STATUS_MUST_USE status cli_random_tensor(arena *a, const shape *s, uint64_t seed, const mem_budget *time, literal *out);
/* Prints a summary such as "y: f32[2,3] min 0 max 5 mean 2.5 [0 1 2 3 4 5]". */
void cli_print_tensor(FILE *f, const char *name, const literal *l, const string_table *strings);

/* Read an ONNX tensor file (.pb), and make the bytes of one.  This needs protobuf, so each program has functions of its
 * own: onnx-xla's ask the compiler (plugin/cli/pb.c), those of onnx-xla-run fail (plugin/runner/main.c). */
STATUS_MUST_USE status cli_read_pb(arena *a, const char *path, string_table *strings, literal *out);
STATUS_MUST_USE status cli_format_pb(arena *a, const char *name, const literal *l, string_table *strings,
                                     uint8_t **bytes, size_t *size);

#endif
