/* text.h - modules as text, version HLO_TEXT_VERSION: deterministic, and print(parse(text)) is `text` again, byte for
 * byte, for whatever hlo_print wrote with the same options.  The grammar is in hlo/text/GRAMMAR.md.
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
 * Input may also hold comments (// to the end of the line), attributes in any order, and names instead of numbers
 * (%x). */
#ifndef HLO_TEXT_TEXT_H
#define HLO_TEXT_TEXT_H

#include "hlo/ir/ir.h"

/* What is written for a constant of more than `small_elements` elements that are not all the same. */
typedef enum hlo_literal_form {
  HLO_LITERAL_FULL,  /* base64 "...": little-endian bytes; as hlo_print_options {0} has it */
  HLO_LITERAL_ELIDE, /* ...: for people; the parser refuses it */
  HLO_LITERAL_BLOB   /* blob(k): k comes from and goes to a callback that keeps the bytes elsewhere */
} hlo_literal_form;

typedef struct hlo_print_options {
  hlo_literal_form literals;
  int64_t small_elements; /* 0: 64 */
  bool no_sources;        /* leaves out the names of the model's nodes */
  status (*blob)(void *data, const literal *l, uint64_t *number);
  void *blob_data;
} hlo_print_options;

/* Takes text as it is written; a failure ends the printing. */
typedef struct hlo_sink {
  status (*write)(void *data, const char *text, size_t n);
  void *data;
} hlo_sink;

/* options NULL: full literals.  Callees are printed as they stand: hlo_module_clean brings them before their callers.
 * Numbers the instructions anew. */
STATUS_MUST_USE status hlo_print_to(const hlo_module *m, const hlo_print_options *options, hlo_sink sink);
/* The same on the arena, with an end; *size (may be NULL) without it. */
STATUS_MUST_USE status hlo_print(arena *a, const hlo_module *m, const hlo_print_options *options, const char **text,
                                 size_t *size);
/* One instruction on one line, literals elided, values by instruction id; for messages. */
const char *hlo_instr_text(arena *a, const hlo_instr *i);

typedef struct hlo_parse_options {
  /* Bytes of blob(k) of that shape, borrowed for the module's life, aligned to the element; NULL means blobs are
   * refused. */
  status (*blob)(void *data, uint64_t number, const shape *s, const void **bytes);
  void *blob_data;
  int64_t max_bytes; /* of all constants that the text spells out shorter than they are (splats); 0: 2^30 */
} hlo_parse_options;

/* The text need not be trusted nor end with a 0; the module lives on `a` and has passed hlo_verify.  Messages begin
 * with "line:column: ".  options may be NULL. */
STATUS_MUST_USE status hlo_parse(arena *a, const char *text, size_t n, const hlo_parse_options *options,
                                 hlo_module **out);

#endif
