/* text.h - modules as text, version HLO_TEXT_VERSION.  The same module always gives the same text.  If a text that
 * hlo_print wrote is parsed and printed again with the same options, the result is the same text, byte for byte.  (A
 * text with elided literals cannot be parsed.)  The grammar is in hlo/text/GRAMMAR.md.
 *
 *   onnx-xla hlo 1
 *   module "net" {
 *     computation body(%0: f32[2], %1: f32[2]) {
 *       %2 = add(%0, %1) : f32[2] @"node of the model"
 *       return %2
 *     }
 *     entry main(%0: f32[2] "x") {
 *       %1 = constant() {value=f32[2] {0.5, 1}} : f32[2]
 *       %2 = composite(%0, %1) {name="sum", ints=[], floats=[], computations=[body]} : f32[2]
 *       return %2 "y"
 *     }
 *   }
 *
 * Input may also hold comments (// to the end of the line), attributes in any order, and names instead of numbers (%x).
 */
#ifndef HLO_TEXT_TEXT_H
#define HLO_TEXT_TEXT_H

#include "hlo/ir/ir.h"

/* The form in which constants with more than `small_elements` elements are written, unless all their elements are
 * equal. */
typedef enum hlo_literal_form {
  HLO_LITERAL_FULL,  /* base64 "...": little-endian bytes; this is the default */
  HLO_LITERAL_ELIDE, /* "...", for people to read; the parser refuses it */
  HLO_LITERAL_BLOB   /* blob(k): the bytes are kept elsewhere, by callbacks of the printer and the parser */
} hlo_literal_form;

typedef struct hlo_print_options {
  hlo_literal_form literals;
  int64_t small_elements; /* the largest number of elements that are written one by one in any form; 0 means 64 */
  bool no_sources;        /* leaves out the names of the model's nodes */
  status (*blob)(void *data, const literal *l, uint64_t *number);
  void *blob_data;
} hlo_print_options;

/* Receives text while it is written.  A failure ends the printing. */
typedef struct hlo_sink {
  status (*write)(void *data, const char *text, size_t n);
  void *data;
} hlo_sink;

/* options may be NULL, which means full literals.  Computations are printed in the order of the module;
 * hlo_module_clean brings callees before their callers.  Numbers the instructions anew. */
STATUS_MUST_USE status hlo_print_to(const hlo_module *m, const hlo_print_options *options, hlo_sink sink);
/* Prints to a NUL-terminated text on the arena.  If `size` is not NULL, *size becomes the text's length without the
 * NUL. */
STATUS_MUST_USE status hlo_print(arena *a, const hlo_module *m, const hlo_print_options *options, const char **text,
                                 size_t *size);
/* Returns one instruction as one line, with literals elided and values by instruction id, for messages. */
const char *hlo_instr_text(arena *a, const hlo_instr *i);

typedef struct hlo_parse_options {
  /* Sets *bytes to the elements of blob(number), whose shape is *s.  They must be aligned to the element and live as
   * long as the module.  If the function is NULL, blobs are refused. */
  status (*blob)(void *data, uint64_t number, const shape *s, const void **bytes);
  void *blob_data;
  /* The limit in bytes for the elements of all splats together, whose text is shorter than their elements; 0
   * means 2^30. */
  int64_t max_bytes;
} hlo_parse_options;

/* Parses text, which need not be trusted and need not end with a 0.  The module is on `a` and has passed hlo_verify.
 * Messages begin with "line:column: ". options may be NULL. */
STATUS_MUST_USE status hlo_parse(arena *a, const char *text, size_t n, const hlo_parse_options *options,
                                 hlo_module **out);

#endif
