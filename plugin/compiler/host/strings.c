/* strings.c - the host-interpreted operators on the bytes of strings.  Strings that they make are added to the table of
 * the run. */
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/hash.h"
#include "base/tensor/string_table.h"
#include "frontend/import/importer.h"
#include "plugin/compiler/host/regex.h"
#include "plugin/compiler/host/strings.h"

#define INVALID STATUS_INVALID_MODEL

status host_need_strings(const interpreted_node *n) {
  CHECK_THAT(n->run->options->strings, STATUS_UNSUPPORTED, "strings cannot be made here");
  return NULL;
}

status host_string_input(const interpreted_node *n, size_t k, host_array **out) {
  TRY(host_need_strings(n));
  TRY(interpreter_input(n, k, out));
  const shape *s = host_array_shape(*out);
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->type == DTYPE_STR, INVALID, "input '%s' is %s; strings are needed",
             n->node->input[k], SHAPE_STR(NULL, s));
  return NULL;
}

status host_text_of(const interpreted_node *n, const host_array *a, int64_t k, host_text *out) {
  uint64_t number = ((const uint64_t *)host_array_data(a))[k];
  out->bytes = string_table_text(n->run->options->strings, number, &out->n);
  CHECK_THAT(out->bytes, STATUS_INVALID_ARGUMENT, "there is no string %" PRIu64, number);
  return NULL;
}

uint64_t host_number_of(const interpreted_node *n, const void *bytes, size_t size) {
  return string_table_add(n->run->options->strings, bytes, size);
}

status host_strings_new(const interpreted_node *n, const shape *s, host_array **out, uint64_t **numbers) {
  TRY(shape_check(s, "the result"));
  TRY(host_array_new(n->run, s, out));
  *numbers = host_array_data(*out);
  return NULL;
}

/* --- StringConcat --- */

static status broadcast_shape(const shape *x, const shape *y, shape *out) {
  *out = x->rank >= y->rank ? *x : *y;
  for (int d = 1; d <= out->rank; d++) {
    int64_t a = d <= x->rank ? x->dims[x->rank - d] : 1, b = d <= y->rank ? y->dims[y->rank - d] : 1;
    CHECK_THAT(a == b || a == 1 || b == 1, INVALID, "X is %s, but Y is %s", SHAPE_STR(NULL, x), SHAPE_STR(NULL, y));
    out->dims[out->rank - d] = a == 1 ? b : a;
  }
  return NULL;
}

/* Returns the position in an array of shape `s` of the element that is broadcast to position k of `all`. */
static int64_t broadcast_position(const shape *s, const shape *all, int64_t k) {
  int64_t position = 0, stride = 1;
  for (int d = 1; d <= s->rank; d++) {
    int64_t extent = s->dims[s->rank - d], whole = all->dims[all->rank - d];
    position += extent == 1 ? 0 : k % whole * stride;
    stride *= extent;
    k /= whole;
  }
  return position;
}

status interpret_string_concat(const interpreted_node *n) {
  host_array *x, *y, *z;
  uint64_t *numbers;
  shape s;
  TRY(host_string_input(n, 0, &x));
  TRY(host_string_input(n, 1, &y));
  TRY(broadcast_shape(host_array_shape(x), host_array_shape(y), &s));
  TRY(host_strings_new(n, &s, &z, &numbers));
  for (int64_t k = 0; k < shape_elements(&s); k++) {
    host_text a, b;
    TRY(host_text_of(n, x, broadcast_position(host_array_shape(x), &s, k), &a));
    TRY(host_text_of(n, y, broadcast_position(host_array_shape(y), &s, k), &b));
    char *both = arena_alloc(n->outer->arena, a.n + b.n + 1);
    memcpy(both, a.bytes, a.n);
    memcpy(both + a.n, b.bytes, b.n);
    numbers[k] = host_number_of(n, both, a.n + b.n);
    TRY(budget_check(n->run->options->budget));
  }
  host_array_release(x);
  host_array_release(y);
  return interpreter_define_outputs(n, 1, &z);
}

/* --- StringSplit --- */

static bool is_blank(char c) { return c && strchr(" \t\n\v\f\r", c); }

/* Takes the next part of the text, which is not at its end, as Python's str.split does without a delimiter: parts are
 * divided by any number of blanks, and the last one has all that is left.  Returns false if there is none. */
static bool next_word(host_text *left, bool last, host_text *out) {
  while (left->n && is_blank(*left->bytes)) {
    left->bytes++;
    left->n--;
  }
  *out = (host_text){left->bytes, 0};
  while (out->n < left->n && (last || !is_blank(left->bytes[out->n]))) {
    out->n++;
  }
  left->bytes += out->n;
  left->n -= out->n;
  return out->n;
}

/* Takes the part up to the next delimiter.  Returns false if the text has ended, of which left->bytes is then NULL. */
static bool next_part(host_text *left, const host_text *delimiter, bool last, host_text *out) {
  if (!left->bytes) {
    return false;
  }
  const char *end = last ? NULL : memmem(left->bytes, left->n, delimiter->bytes, delimiter->n);
  *out = (host_text){left->bytes, end ? (size_t)(end - left->bytes) : left->n};
  *left = end ? (host_text){end + delimiter->n, left->n - out->n - delimiter->n} : (host_text){NULL, 0};
  return true;
}

typedef struct splitting {
  host_text delimiter; /* empty: words are divided by blanks */
  int64_t most;        /* how often a string is divided at most */
} splitting;

/* Writes the numbers of the parts to `numbers`, unless it is NULL, and returns how many there are. */
static int64_t split(const interpreted_node *n, const splitting *s, host_text left, uint64_t *numbers) {
  host_text part;
  for (int64_t count = 0;; count++) {
    bool last = count == s->most;
    if (!(s->delimiter.n ? next_part(&left, &s->delimiter, last, &part) : next_word(&left, last, &part))) {
      return count;
    }
    if (numbers) {
      numbers[count] = host_number_of(n, part.bytes, part.n);
    }
  }
}

static status read_splitting(const interpreted_node *n, splitting *out) {
  TRY(onnx_attr_string(n->outer->arena, n->node, "delimiter", "", &out->delimiter.bytes));
  out->delimiter.n = strlen(out->delimiter.bytes);
  TRY(onnx_attr_int(n->node, "maxsplit", INT64_MAX, &out->most));
  CHECK_THAT(out->most >= 0, INVALID, "maxsplit is %" PRId64, out->most);
  return NULL;
}

status interpret_string_split(const interpreted_node *n) {
  host_array *x, *results[2];
  splitting how;
  uint64_t *numbers;
  host_text t;
  TRY(read_splitting(n, &how));
  TRY(host_string_input(n, 0, &x));
  shape s = *host_array_shape(x), counts = shape_with_type(s, DTYPE_S64);
  int64_t count = shape_elements(&s), most = 0;
  CHECK_THAT(s.rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "X is %s", SHAPE_STR(NULL, &s));
  TRY(host_array_new(n->run, &counts, &results[1]));
  int64_t *lengths = host_array_data(results[1]);
  for (int64_t k = 0; k < count; k++) {
    TRY(host_text_of(n, x, k, &t));
    lengths[k] = split(n, &how, t, NULL);
    most = lengths[k] > most ? lengths[k] : most;
  }
  s.dims[s.rank++] = most;
  TRY(host_strings_new(n, &s, &results[0], &numbers));
  memset(numbers, 0, (size_t)shape_bytes(&s));
  for (int64_t k = 0; k < count; k++) {
    TRY(host_text_of(n, x, k, &t));
    (void)split(n, &how, t, numbers + k * most);
    TRY(budget_check(n->run->options->budget));
  }
  host_array_release(x);
  return interpreter_define_outputs(n, 2, results);
}

/* --- StringNormalizer --- */

typedef enum letters { LETTERS_SAME, LETTERS_LOWER, LETTERS_UPPER } letters;

/* Changes the case of letters by Unicode's tables; bytes that are not UTF-8 stay as they are. */
static host_text change_case(arena *a, host_text from, letters to) {
  enum { LONGEST = 8 }; /* bytes of a character; the case of some changes their number */
  char *out = arena_alloc(a, LONGEST * from.n + 1);
  size_t n = 0;
  mbstate_t in = {0}, put = {0};
  for (size_t at = 0; at < from.n;) {
    wchar_t c;
    size_t length = mbrtowc(&c, from.bytes + at, from.n - at, &in);
    if (length == 0 || length > from.n - at) { /* a NUL, or no character */
      in = (mbstate_t){0};
      out[n++] = from.bytes[at++];
      continue;
    }
    wint_t changed = to == LETTERS_LOWER ? towlower((wint_t)c) : towupper((wint_t)c);
    size_t written = wcrtomb(out + n, (wchar_t)changed, &put);
    if (written > LONGEST) {
      put = (mbstate_t){0};
      memcpy(out + n, from.bytes + at, length);
      written = length;
    }
    n += written;
    at += length;
  }
  return (host_text){out, n};
}

typedef struct normalizer {
  letters action;
  bool case_sensitive;
  str_map stops; /* the words that are left out, in lower case unless case_sensitive is set */
} normalizer;

static host_text key_of(arena *a, const normalizer *z, host_text t) {
  return z->case_sensitive ? t : change_case(a, t, LETTERS_LOWER);
}

/* A locale may have other rules for letters: in Turkish, for example, i becomes a capital letter with a dot. */
static status check_locale(const interpreted_node *n) {
  static const char *const other_rules[] = {"tr", "az", "lt"};
  const char *name;
  TRY(onnx_attr_string(n->outer->arena, n->node, "locale", "en_US", &name));
  for (size_t k = 0; k < sizeof other_rules / sizeof *other_rules; k++) {
    CHECK_THAT(strncmp(name, other_rules[k], 2) != 0, STATUS_UNSUPPORTED, "the letters of locale \"%.20s\"", name);
  }
  return NULL;
}

static status read_normalizer(const interpreted_node *n, normalizer *out) {
  arena *a = n->outer->arena;
  const char *action;
  const ProtobufCBinaryData *words;
  size_t count;
  TRY(check_locale(n));
  TRY(onnx_attr_string(a, n->node, "case_change_action", "NONE", &action));
  out->action = strcmp(action, "LOWER") == 0   ? LETTERS_LOWER
                : strcmp(action, "UPPER") == 0 ? LETTERS_UPPER
                                               : LETTERS_SAME;
  CHECK_THAT(out->action || strcmp(action, "NONE") == 0, INVALID, "case_change_action is \"%.20s\"", action);
  TRY(onnx_attr_bool(n->node, "is_case_sensitive", false, &out->case_sensitive));
  TRY(onnx_attr_byte_strings(n->node, "stopwords", &words, &count));
  str_map_init(&out->stops, a);
  for (size_t k = 0; k < count; k++) {
    host_text key = key_of(a, out, (host_text){words[k].len ? (const char *)words[k].data : "", words[k].len});
    *str_map_put_n(&out->stops, key.bytes, key.n) = out;
  }
  return NULL;
}

/* Leaves the words out of X[C] or X[1,C], and changes the case of the others.  If none is left, the result is one empty
 * string. */
static status normalize(const interpreted_node *n, host_array *x, host_array **out) {
  arena *a = n->outer->arena;
  shape s = *host_array_shape(x);
  normalizer z;
  TRY(read_normalizer(n, &z));
  CHECK_THAT(s.rank == 1 || (s.rank == 2 && s.dims[0] == 1), INVALID, "X is %s; it must be [C] or [1,C]",
             SHAPE_STR(NULL, &s));
  int64_t count = s.dims[s.rank - 1], kept = 0;
  host_text *left = ARENA_NEW_N(a, host_text, (size_t)count + 1), t;
  left[0] = (host_text){"", 0};
  for (int64_t k = 0; k < count; k++) {
    TRY(host_text_of(n, x, k, &t));
    host_text key = key_of(a, &z, t);
    if (!str_map_get_n(&z.stops, key.bytes, key.n)) {
      left[kept++] = z.action ? change_case(a, t, z.action) : t;
    }
    TRY(budget_check(n->run->options->budget));
  }
  s.dims[s.rank - 1] = kept ? kept : 1;
  uint64_t *numbers;
  TRY(host_strings_new(n, &s, out, &numbers));
  for (int64_t k = 0; k < s.dims[s.rank - 1]; k++) {
    numbers[k] = host_number_of(n, left[k].bytes, left[k].n);
  }
  return NULL;
}

status interpret_string_normalizer(const interpreted_node *n) {
  host_array *x, *y;
  TRY(host_string_input(n, 0, &x));
  locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
  CHECK_THAT(unicode, STATUS_UNSUPPORTED, "the system has no locale C.UTF-8");
  locale_t outer = uselocale(unicode);
  status failed = normalize(n, x, &y);
  uselocale(outer);
  freelocale(unicode);
  TRY(failed);
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}

/* --- RegexFullMatch --- */

status interpret_regex_full_match(const interpreted_node *n) {
  host_array *x, *y;
  const char *pattern;
  regex *r;
  host_text t;
  TRY(host_string_input(n, 0, &x));
  TRY(onnx_attr_string(n->outer->arena, n->node, "pattern", NULL, &pattern));
  CHECK_THAT(pattern, INVALID, "attribute pattern is missing");
  TRY(status_prefix(regex_create(n->outer->arena, pattern, &r), "pattern \"%.60s\"", pattern));
  shape s = shape_with_type(*host_array_shape(x), DTYPE_PRED);
  TRY(host_array_new(n->run, &s, &y));
  for (int64_t k = 0; k < shape_elements(&s); k++) {
    bool matches;
    TRY(host_text_of(n, x, k, &t));
    TRY(status_prefix(regex_matches(r, t.bytes, t.n, &matches), "pattern \"%.60s\"", pattern));
    ((uint8_t *)host_array_data(y))[k] = matches;
    TRY(budget_check(n->run->options->budget));
  }
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}
