/* names.c - replaces characters of any text so that it is a C identifier, or may stand in a comment; see names.h. */
#include "aot/names.h"

#include <string.h>

#include "aot/aot.h"
#include "base/hash.h"

enum { MOST = 60 }; /* the greatest length of an identifier that is made from a model's name */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char *aot_identifier(arena *a, const char *text) {
  bool plain = is_letter(*text);
  char *out = arena_printf(a, "%s%.*s", plain ? "" : "_", MOST, text);
  for (char *c = out; *c; c++) {
    *c = is_letter(*c) || is_digit(*c) ? *c : '_';
  }
  return out;
}

const char **aot_identifiers(arena *a, uint32_t n, const char *const *texts) {
  const char **out = ARENA_NEW_N(a, const char *, n);
  str_map seen;
  str_map_init(&seen, a);
  for (uint32_t k = 0; k < n; k++) {
    const char *name = aot_identifier(a, texts[k]);
    out[k] = name;
    for (uint32_t number = 2; str_map_get(&seen, aot_capitals(a, out[k])); number++) {
      out[k] = arena_printf(a, "%s_%u", name, number);
    }
    *str_map_put(&seen, aot_capitals(a, out[k])) = &seen;
  }
  return out;
}

const char *aot_capitals(arena *a, const char *text) {
  char *out = arena_strdup(a, text);
  for (char *c = out; *c; c++) {
    *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
  }
  return out;
}

const char *aot_printable(arena *a, const char *text) {
  enum { LINE = 80 };
  char *out = arena_printf(a, "%.*s", LINE, text);
  for (char *c = out; *c; c++) {
    *c = *c < ' ' || *c > '~' || strchr("\"\\*/?", *c) ? '_' : *c;
  }
  return out;
}
