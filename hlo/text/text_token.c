/* text_token.c - reads and writes the tokens of HLO text: words, numbers and strings. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text/text_internal.h"

/* --- writing --- */

static void flush(text_out *o) {
  if (!o->error && o->n) {
    o->error = o->sink.write(o->sink.data, o->buffer, o->n);
  }
  o->n = 0;
}

void text_put(text_out *o, const char *text, size_t n) {
  while (n) {
    size_t piece = sizeof o->buffer - o->n;
    piece = piece < n ? piece : n;
    memcpy(o->buffer + o->n, text, piece);
    o->n += piece;
    text += piece;
    n -= piece;
    if (o->n == sizeof o->buffer) {
      flush(o);
    }
  }
}

void text_puts(text_out *o, const char *text) { text_put(o, text, strlen(text)); }

void text_printf(text_out *o, const char *format, ...) {
  char text[128];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  text_put(o, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void text_put_quoted(text_out *o, const char *text) {
  text_puts(o, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      text_printf(o, "\\%c", c);
    } else if (c == '\n') {
      text_puts(o, "\\n");
    } else if (c < ' ' || c == 127 || c == 0xff) { /* 0xff never occurs in UTF-8 */
      text_printf(o, "\\x%02x", c);
    } else {
      text_put(o, text, 1);
    }
  }
  text_puts(o, "\"");
}

void text_put_double(text_out *o, double value) {
  literal l = literal_make(shape_scalar(DTYPE_F64), &value);
  text_put_literal(o, &l, NULL);
}

status text_finish(text_out *o) {
  flush(o);
  return o->error;
}

/* --- reading --- */

void text_skip(text_in *in) {
  for (;;) {
    in->at += strspn(in->at, " \t\r\n");
    if (in->at[0] != '/' || in->at[1] != '/') {
      return;
    }
    in->at += strcspn(in->at, "\n");
  }
}

bool text_accept(text_in *in, const char *text) {
  size_t n = strlen(text);
  text_skip(in);
  if (strncmp(in->at, text, n) != 0) {
    return false;
  }
  in->at += n;
  return true;
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

bool text_accept_word(text_in *in, const char *word) {
  size_t n = strlen(word);
  text_skip(in);
  return !in_word(in->at[strncmp(in->at, word, n) == 0 ? n : 0]) && text_accept(in, word);
}

status text_expected(text_in *in, const char *what) {
  text_skip(in);
  size_t n = in->at[0] ? strcspn(in->at + 1, " \t\r\n,(){}[]=:\"") + 1 : 0;
  if (in->at >= in->end) {
    return status_error(STATUS_INVALID_FILE, "%s is expected, but the text ends", what);
  }
  return status_error(STATUS_INVALID_FILE, "%s is expected instead of '%.*s'", what, (int)(n < 40 ? n : 40), in->at);
}

status text_expect(text_in *in, const char *text) {
  char what[32];
  if (text_accept(in, text)) {
    return NULL;
  }
  snprintf(what, sizeof what, "'%s'", text);
  return text_expected(in, what);
}

bool text_at_quote(text_in *in) {
  text_skip(in);
  return in->at[0] == '"';
}

/* Returns the character for which an escape stands, and moves *from, which is after the backslash, to the end of the
 * escape.  Returns 0 if there is no such escape. */
static char read_escape(const char **from) {
  const char *at = *from;
  *from = at + 1;
  if (at[0] == 'n') {
    return '\n';
  }
  if (at[0] != 'x') {
    return at[0] == '"' || at[0] == '\\' ? at[0] : '\0';
  }
  char digits[3] = {at[1], at[1] ? at[2] : '\0', '\0'};
  if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1])) {
    return '\0';
  }
  *from = at + 3;
  return (char)strtol(digits, NULL, 16);
}

status text_read_quoted(text_in *in, const char **out) {
  TRY(text_expect(in, "\""));
  const char *end = in->at;
  while (*end && *end != '"' && *end != '\n') {
    end += end[0] == '\\' && end[1] ? 2 : 1;
  }
  CHECK_THAT(*end == '"', STATUS_INVALID_FILE, "a string has no end");
  char *text = arena_alloc(in->arena, (size_t)(end - in->at) + 1);
  size_t n = 0;
  while (in->at < end) {
    char c = *in->at++;
    if (c == '\\') {
      c = read_escape(&in->at);
      CHECK_THAT(c, STATUS_INVALID_FILE, "an escape in a string must be \\\", \\\\, \\n or \\xHH, not zero");
    }
    text[n++] = c;
  }
  in->at = end + 1;
  *out = text;
  return NULL;
}

status text_read_word(text_in *in, const char *more, const char **word, size_t *n) {
  text_skip(in);
  size_t length = 0;
  while (in->at[length] && (isalnum((unsigned char)in->at[length]) || strchr(more, in->at[length]))) {
    length++;
  }
  if (!length) {
    return text_expected(in, "a name");
  }
  *word = in->at;
  *n = length;
  in->at += length;
  return NULL;
}

status text_read_int(text_in *in, int64_t *out) {
  text_skip(in);
  if (!isdigit((unsigned char)in->at[in->at[0] == '-'])) {
    return text_expected(in, "an integer");
  }
  char *end = NULL;
  errno = 0;
  *out = strtoll(in->at, &end, 10);
  CHECK_THAT(errno == 0, STATUS_INVALID_FILE, "the integer does not fit 64 bits");
  in->at = end;
  return NULL;
}
