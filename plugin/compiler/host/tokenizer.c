/* tokenizer.c - ONNX Runtime's operator Tokenizer: divides strings at separators, into the matches of a pattern, or
 * into characters. */
#include <inttypes.h>
#include <string.h>

#include "base/tensor/string_table.h"
#include "frontend/import/importer.h"
#include "plugin/compiler/host/regex.h"
#include "plugin/compiler/host/strings.h"

#define INVALID STATUS_INVALID_MODEL

typedef struct texts {
  uint32_t n, cap;
  host_text *items;
} texts;

typedef struct tokenizer {
  const interpreted_node *n;
  int64_t least; /* the least number of characters that a token has */
  bool mark;
  uint64_t pad;       /* the number of the string that fills rows of fewer tokens */
  regex *token;       /* each match is a token; NULL: */
  regex **separators; /* what lies between matches of these is a token */
  size_t n_separators;
} tokenizer;

/* Returns how many bytes the character at `at` has, of a text that is UTF-8. */
static size_t character(const host_text *t, size_t at) {
  size_t n = 1;
  while (at + n < t->n && (t->bytes[at + n] & 0xc0) == 0x80) {
    n++;
  }
  return n;
}

static void add_token(const tokenizer *k, texts *out, const char *bytes, size_t n) {
  int64_t characters = 0;
  for (size_t i = 0; i < n; i++) {
    characters += (bytes[i] & 0xc0) != 0x80;
  }
  if (characters >= k->least) {
    *ARENA_PUSH(k->n->outer->arena, out->items, out->n, out->cap) = (host_text){bytes, n};
  }
}

/* Adds the parts between matches.  After an empty match the search goes on behind the next character, which no part
 * has. */
static status split(const tokenizer *k, regex *separator, host_text t, texts *out) {
  size_t from = 0, start, end;
  bool found = true;
  while (found) {
    TRY(regex_find(separator, t.bytes, t.n, from, &found, &start, &end));
    found = found && start < t.n;
    add_token(k, out, t.bytes + from, (found ? start : t.n) - from);
    from = !found ? from : end > start ? end : start + character(&t, start);
    TRY(budget_check(k->n->run->options->budget));
  }
  return NULL;
}

/* Adds the matches.  After one that is too short the search goes on behind its first character. */
static status find_tokens(const tokenizer *k, host_text t, texts *out) {
  size_t start, end;
  bool found = true;
  for (size_t from = 0; found && from < t.n;) {
    TRY(regex_find(k->token, t.bytes, t.n, from, &found, &start, &end));
    if (!found || start == t.n) {
      break;
    }
    uint32_t before = out->n;
    add_token(k, out, t.bytes + start, end - start);
    from = out->n > before && end > start ? end : start + character(&t, start);
    TRY(budget_check(k->n->run->options->budget));
  }
  return NULL;
}

static status tokens_of(const tokenizer *k, host_text t, texts *out) {
  *out = (texts){0};
  if (k->token) {
    return find_tokens(k, t, out);
  }
  *ARENA_PUSH(k->n->outer->arena, out->items, out->n, out->cap) = t;
  for (size_t s = 0; s < k->n_separators; s++) { /* each separator divides what the ones before it left */
    texts parts = {0};
    for (uint32_t i = 0; i < out->n; i++) {
      TRY(split(k, k->separators[s], out->items[i], &parts));
    }
    *out = parts;
  }
  return NULL;
}

static status create_regex(const tokenizer *k, const char *pattern, regex **out) {
  return status_prefix(regex_create(k->n->outer->arena, pattern, out), "pattern \"%.60s\"", pattern);
}

static status read_patterns(tokenizer *k) {
  arena *a = k->n->outer->arena;
  const char *token, *const *separators;
  TRY(onnx_attr_string(a, k->n->node, "tokenexp", "", &token));
  TRY(onnx_attr_strings(a, k->n->node, "separators", &separators, &k->n_separators));
  CHECK_THAT((*token != 0) != (k->n_separators > 0), INVALID, "one of tokenexp and separators must be given");
  if (*token || (k->n_separators == 1 && !*separators[0])) { /* an empty separator means characters, of all kinds */
    return create_regex(k, *token && strcmp(token, ".") != 0 ? token : "(?s).", &k->token);
  }
  k->separators = ARENA_NEW_N(a, regex *, k->n_separators);
  for (size_t s = 0; s < k->n_separators; s++) {
    CHECK_THAT(*separators[s], INVALID, "separator %zu is empty", s);
    TRY(create_regex(k, separators[s], &k->separators[s]));
  }
  return NULL;
}

static status read_tokenizer(const interpreted_node *n, tokenizer *out) {
  const char *pad;
  *out = (tokenizer){.n = n};
  TRY(onnx_attr_int(n->node, "mincharnum", 1, &out->least));
  CHECK_THAT(out->least >= 1, INVALID, "mincharnum is %" PRId64 "; it must be at least 1", out->least);
  TRY(onnx_attr_bool(n->node, "mark", false, &out->mark));
  TRY(onnx_attr_string(n->outer->arena, n->node, "pad_value", "", &pad));
  out->pad = host_number_of(n, pad, strlen(pad));
  return read_patterns(out);
}

/* Writes a row: its tokens, between marks if there are any, and then what fills it. */
static void write_row(const tokenizer *k, const texts *tokens, int64_t width, uint64_t *out) {
  static const char start[] = "\x02", end[] = "\x03";
  int64_t at = 0;
  if (k->mark) {
    out[at++] = host_number_of(k->n, start, 1);
  }
  for (uint32_t i = 0; i < tokens->n; i++) {
    out[at++] = host_number_of(k->n, tokens->items[i].bytes, tokens->items[i].n);
  }
  if (k->mark) {
    out[at++] = host_number_of(k->n, end, 1);
  }
  while (at < width) {
    out[at++] = k->pad;
  }
}

static status tokenize(const tokenizer *k, const host_array *x, host_array **out) {
  shape s = *host_array_shape(x);
  int64_t rows = shape_elements(&s), most = 0;
  uint64_t *numbers;
  texts *all = ARENA_NEW_N(k->n->outer->arena, texts, (size_t)rows + 1);
  for (int64_t r = 0; r < rows; r++) {
    host_text t;
    TRY(host_text_of(k->n, x, r, &t));
    TRY(tokens_of(k, t, &all[r]));
    most = all[r].n > most ? all[r].n : most;
  }
  int64_t width = most ? most + 2 * k->mark : 0;
  s.dims[s.rank] = width;
  s.rank += rows > 0; /* without strings the result is as X is */
  TRY(host_strings_new(k->n, &s, out, &numbers));
  for (int64_t r = 0; width && r < rows; r++) {
    write_row(k, &all[r], width, numbers + r * width);
  }
  return NULL;
}

status interpret_contrib_tokenizer(const interpreted_node *n) {
  host_array *x, *y;
  tokenizer k;
  TRY(host_string_input(n, 0, &x));
  const shape *s = host_array_shape(x);
  CHECK_THAT(s->rank == 1 || s->rank == 2, INVALID, "X is %s; it must be [C] or [N,C]", SHAPE_STR(NULL, s));
  TRY(read_tokenizer(n, &k));
  TRY(tokenize(&k, x, &y));
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}
