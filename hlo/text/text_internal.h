/* text_internal.h - reads and writes tokens of HLO text; shared by print.c, parse.c and text_literal.c. */
#ifndef HLO_TEXT_TEXT_INTERNAL_H
#define HLO_TEXT_TEXT_INTERNAL_H

#include "base/locale.h"
#include "hlo/text/text.h"

/* --- writing --- */

/* Collects text in the buffer and hands it to the sink when the buffer is full.  After a failure nothing more is
 * written. */
typedef struct text_out {
  hlo_sink sink;
  status error;
  size_t n;
  char buffer[4096];
} text_out;

void text_put(text_out *o, const char *text, size_t n);
void text_puts(text_out *o, const char *text);
void text_printf(text_out *o, const char *format, ...) STATUS_PRINTF(2, 3);
/* Writes the text in quotes, with escapes. */
void text_put_quoted(text_out *o, const char *text);
/* Writes a double with as many digits as are needed to read the same value back. */
void text_put_double(text_out *o, double value);
/* Writes the buffered text to the sink, and returns the first error if there was one. */
STATUS_MUST_USE status text_finish(text_out *o);

void text_put_literal(text_out *o, const literal *l, const hlo_print_options *options);

/* --- reading --- */

/* A position in a text that ends with a 0 at `end`.  Blanks and comments before a token are skipped. */
typedef struct text_in {
  const char *start, *at, *end;
  arena *arena; /* the arena for the values that are read */
} text_in;

void text_skip(text_in *in);
/* If the text or word comes next, text_accept and text_accept_word move after it and return true; otherwise they return
 * false.  text_accept_word also returns false if a letter, a digit or '_' follows the word. */
bool text_accept(text_in *in, const char *text);
bool text_accept_word(text_in *in, const char *word);
STATUS_MUST_USE status text_expect(text_in *in, const char *text);
/* Returns a failure that shows what comes next and what was expected. */
STATUS_MUST_USE status text_expected(text_in *in, const char *what);
bool text_at_quote(text_in *in);
STATUS_MUST_USE status text_read_quoted(text_in *in, const char **out);
/* Reads a word of at least one character, of letters, digits and the characters in `more`. */
STATUS_MUST_USE status text_read_word(text_in *in, const char *more, const char **word, size_t *n);
STATUS_MUST_USE status text_read_int(text_in *in, int64_t *out);
STATUS_MUST_USE status text_read_double(text_in *in, double *out);

/* Reads a literal.  A splat is a short text for an array of equal elements, so its bytes are subtracted from *budget,
 * and it is an error if they exceed it. */
STATUS_MUST_USE status text_read_literal(text_in *in, dim_table *dims, const hlo_parse_options *options,
                                         int64_t *budget, const literal **out);

#endif
