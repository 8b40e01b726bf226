/* maps.c - the host-interpreted operators on maps.  A map has an array of keys, int64 or strings, and an array of
 * values (base/tensor/literal_list.h).  Strings are compared by their numbers, so keys are 8-byte numbers in either
 * case. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/tensor/literal_list.h"
#include "frontend/import/importer.h"
#include "plugin/compiler/host/strings.h"

#define INVALID STATUS_INVALID_MODEL

/* --- keys in order --- */

typedef struct entry {
  int64_t key;
  const char *text; /* of a string */
  size_t n;
  int64_t at; /* the position of the value */
} entry;

static int compare_keys(const entry *a, const entry *b) {
  if (!a->text) {
    return (a->key > b->key) - (a->key < b->key);
  }
  int by_bytes = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
  return by_bytes ? by_bytes : (a->n > b->n) - (a->n < b->n);
}

/* Equal keys come in the order of their values. */
static int compare_entries(const void *x, const void *y) {
  const entry *a = x, *b = y;
  int by_key = compare_keys(a, b);
  return by_key ? by_key : (a->at > b->at) - (a->at < b->at);
}

/* Sorts the entries by their keys, and keeps the last one of equal keys.  Returns how many are left. */
static int64_t sort_entries(entry *e, int64_t n) {
  int64_t left = 0;
  qsort(e, (size_t)n, sizeof *e, compare_entries);
  for (int64_t k = 0; k < n; k++) {
    if (k + 1 == n || compare_keys(&e[k], &e[k + 1]) != 0) {
      e[left++] = e[k];
    }
  }
  return left;
}

/* Reads the keys in the attributes `ints` and `strings`, one of which must be given, as entries on the frame's arena.
 */
static status read_keys(const interpreted_node *n, const char *ints, const char *strings, dtype *type, entry **out,
                        int64_t *count) {
  const ProtobufCBinaryData *words;
  const int64_t *numbers;
  size_t n_words, n_numbers;
  TRY(onnx_attr_ints(n->node, ints, &numbers, &n_numbers));
  TRY(onnx_attr_byte_strings(n->node, strings, &words, &n_words));
  CHECK_THAT((n_words > 0) != (n_numbers > 0), INVALID, "%s %s and %s are given; one of them must be",
             n_words ? "both" : "neither", ints, strings);
  *type = n_words ? DTYPE_STR : DTYPE_S64;
  *count = (int64_t)(n_words + n_numbers);
  *out = ARENA_NEW_N(n->outer->arena, entry, (size_t)*count);
  TRY(n_words ? host_need_strings(n) : NULL);
  for (int64_t k = 0; k < *count; k++) {
    entry *e = &(*out)[k];
    *e = (entry){.key = n_words ? 0 : numbers[k], .at = k};
    if (n_words) {
      e->text = words[k].len ? (const char *)words[k].data : "";
      e->n = words[k].len;
      e->key = (int64_t)host_number_of(n, e->text, e->n);
    }
  }
  return NULL;
}

/* --- ZipMap --- */

/* The memory of a sequence of maps: what the lists point to follows them. */
typedef struct map_lists {
  literal_list list;
  literal items[2]; /* the keys, which all maps share, and the values */
} map_lists;

static void write_map(map_lists *m, const int64_t *keys, dtype type, int64_t count, const float *values) {
  m->items[0] = literal_make(shape_make(type, 1, &count), keys);
  m->items[1] = literal_make(shape_make(DTYPE_F32, 1, &count), values);
  m->list = (literal_list){2, m->items};
}

/* Makes a map of each row of X, with the keys in e[0] to e[count - 1]. */
static status make_maps(const interpreted_node *n, const host_array *x, int64_t rows, int64_t width, const entry *e,
                        int64_t count, dtype type, host_array **out) {
  size_t of_rows = (size_t)rows, of_keys = (size_t)count;
  size_t bytes = sizeof(literal_list) + of_rows * (sizeof(literal) + sizeof(map_lists)) + of_keys * sizeof(int64_t) +
                 of_rows * of_keys * sizeof(float);
  shape s = shape_scalar(DTYPE_F32);
  s.kind = SHAPE_SEQUENCE;
  void *memory;
  TRY(host_packed_new(n->run, &s, bytes, out, &memory));
  literal_list *all = memory;
  literal *items = (literal *)(all + 1);
  map_lists *maps = (map_lists *)(items + of_rows);
  int64_t *keys = (int64_t *)(maps + of_rows);
  float *values = (float *)(keys + of_keys);
  *all = (literal_list){(uint32_t)rows, items};
  for (int64_t k = 0; k < count; k++) {
    keys[k] = e[k].key;
  }
  for (int64_t r = 0; r < rows; r++, values += count) {
    const float *row = (const float *)host_array_data(x) + r * width;
    for (int64_t k = 0; k < count; k++) {
      values[k] = row[e[k].at];
    }
    write_map(&maps[r], keys, type, count, values);
    items[r] = literal_map(&maps[r].list);
  }
  return NULL;
}

status interpret_zip_map(const interpreted_node *n) {
  enum { MOST_MAPS = 1 << 24 };
  host_array *x, *all;
  entry *e;
  int64_t width, count;
  dtype type;
  TRY(interpreter_input(n, 0, &x));
  TRY(read_keys(n, "classlabels_int64s", "classlabels_strings", &type, &e, &width));
  const shape *s = host_array_shape(x);
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->type == DTYPE_F32 && (s->rank == 1 || s->rank == 2), INVALID,
             "X is %s; it must be f32[N,C] or f32[C]", SHAPE_STR(NULL, s));
  int64_t rows = s->rank == 2 ? s->dims[0] : 1;
  CHECK_THAT(s->dims[s->rank - 1] == width, INVALID, "X is %s, but there are %" PRId64 " labels", SHAPE_STR(NULL, s),
             width);
  CHECK_THAT(rows <= MOST_MAPS, STATUS_RESOURCE, "a sequence of %" PRId64 " maps; at most %d are supported", rows,
             MOST_MAPS);
  count = sort_entries(e, width);
  TRY(make_maps(n, x, rows, width, e, count, type, &all));
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &all);
}

/* --- maps as inputs --- */

typedef struct map {
  const host_array *keys, *values;
  int64_t n;
  entry *entries; /* by their keys */
} map;

static const host_array *part_of(const host_array *m, uint32_t k) { return host_list_element(m, k); }

/* Reads input 0, which must be a map whose keys have that type, with a reference for the caller. */
static status map_input(const interpreted_node *n, dtype key, host_array **reference, map *out) {
  TRY(interpreter_input(n, 0, reference));
  const shape *s = host_array_shape(*reference);
  CHECK_THAT(s->kind == SHAPE_MAP, INVALID, "X is %s; a map is needed", SHAPE_STR(NULL, s));
  *out = (map){part_of(*reference, 0), part_of(*reference, 1), .n = 0};
  CHECK_THAT(host_array_shape(out->keys)->type == key, INVALID, "the keys of X are %s; %s are needed",
             dtype_name((dtype)host_array_shape(out->keys)->type), dtype_name(key));
  out->n = shape_elements(host_array_shape(out->keys));
  out->entries = ARENA_NEW_N(n->outer->arena, entry, (size_t)out->n);
  for (int64_t k = 0; k < out->n; k++) {
    out->entries[k] = (entry){.key = ((const int64_t *)host_array_data(out->keys))[k], .at = k};
  }
  out->n = sort_entries(out->entries, out->n);
  return NULL;
}

static int compare_numbers(const void *x, const void *y) { return compare_keys(x, y); }

/* Returns the position of the key's value; -1 if the map does not have the key. */
static int64_t find_key(const map *m, int64_t key) {
  entry wanted = {.key = key};
  const entry *e = bsearch(&wanted, m->entries, (size_t)m->n, sizeof *e, compare_numbers);
  return e ? e->at : -1;
}

status interpret_dict_vectorizer(const interpreted_node *n) {
  host_array *x, *y;
  map m;
  entry *vocabulary;
  int64_t count;
  dtype type;
  TRY(read_keys(n, "int64_vocabulary", "string_vocabulary", &type, &vocabulary, &count));
  TRY(map_input(n, type, &x, &m));
  shape s = shape_make(host_array_shape(m.values)->type, 2, (dim[]){1, count});
  size_t width = dtype_bytes((dtype)s.type);
  TRY(host_array_new(n->run, &s, &y));
  for (int64_t k = 0; k < count; k++) {
    int64_t at = find_key(&m, vocabulary[k].key);
    char *to = (char *)host_array_data(y) + (size_t)k * width;
    memset(to, 0, width); /* also the number of the empty string */
    if (at >= 0) {
      memcpy(to, (const char *)host_array_data(m.values) + (size_t)at * width, width);
    }
  }
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}

/* --- CastMap --- */

typedef enum cast_to { TO_FLOAT, TO_STRING, TO_INT64 } cast_to;

static const dtype types_of_cast[] = {DTYPE_F32, DTYPE_STR, DTYPE_S64};

/* Reads a number at the beginning of a string, as C's strtof and strtoll do.  ONNX says nothing about their form. */
static status parse(const char *text, cast_to to, void *out) {
  char *end;
  c_locale outer = c_locale_enter();
  if (to == TO_FLOAT) {
    *(float *)out = strtof(text, &end);
  } else {
    *(int64_t *)out = strtoll(text, &end, 10);
  }
  c_locale_leave(outer);
  CHECK_THAT(end != text, STATUS_INVALID_ARGUMENT, "the value \"%.40s\" is no number", text);
  return NULL;
}

static status cast_string(const interpreted_node *n, const map *m, int64_t at, cast_to to, void *out) {
  host_text t;
  TRY(host_text_of(n, m->values, at, &t));
  if (to == TO_STRING) {
    *(uint64_t *)out = ((const uint64_t *)host_array_data(m->values))[at];
    return NULL;
  }
  return parse(t.bytes, to, out);
}

/* A float becomes a string with six digits behind the point, as C++'s to_string writes it. */
static status cast_float(const interpreted_node *n, float x, cast_to to, void *out) {
  char text[64];
  switch (to) {
    case TO_FLOAT: *(float *)out = x; return NULL;
    case TO_INT64: dtype_convert(DTYPE_F32, &x, DTYPE_S64, out, 1, true, DTYPE_ROUND_NEAREST); return NULL;
    default: break;
  }
  c_locale outer = c_locale_enter();
  int length = snprintf(text, sizeof text, "%f", (double)x);
  c_locale_leave(outer);
  *(uint64_t *)out = host_number_of(n, text, (size_t)length);
  return NULL;
}

/* Casts the value at that position of the map, or what stands for a value that is not there if it is -1. */
static status cast_value(const interpreted_node *n, const map *m, int64_t at, cast_to to, void *out) {
  if (at >= 0) {
    return host_array_shape(m->values)->type == DTYPE_STR
               ? cast_string(n, m, at, to, out)
               : cast_float(n, ((const float *)host_array_data(m->values))[at], to, out);
  }
  memset(out, 0, dtype_bytes(types_of_cast[to]));
  if (to == TO_STRING) { /* what the standard's operator has in the place of a value */
    *(uint64_t *)out = host_number_of(n, "0.f", 3);
  }
  return NULL;
}

static status read_word(const interpreted_node *n, const char *attribute, size_t count, const char *const *words,
                        int *out) {
  const char *given;
  TRY(onnx_attr_string(n->outer->arena, n->node, attribute, words[0], &given));
  for (*out = 0; (size_t)*out < count; ++*out) {
    if (strcmp(given, words[*out]) == 0) {
      return NULL;
    }
  }
  return status_error(INVALID, "%s is \"%.20s\"", attribute, given);
}

status interpret_cast_map(const interpreted_node *n) {
  static const char *const casts[] = {"TO_FLOAT", "TO_STRING", "TO_INT64"}, *const forms[] = {"DENSE", "SPARSE"};
  host_array *x, *y;
  map m;
  int to, sparse;
  int64_t width;
  TRY(host_need_strings(n));
  TRY(read_word(n, "cast_to", 3, casts, &to));
  TRY(read_word(n, "map_form", 2, forms, &sparse));
  TRY(onnx_attr_int(n->node, "max_map", 1, &width));
  TRY(map_input(n, DTYPE_S64, &x, &m));
  dtype from = (dtype)host_array_shape(m.values)->type;
  CHECK_THAT(from == DTYPE_F32 || from == DTYPE_STR, INVALID, "the values of X are %s", dtype_name(from));
  CHECK_THAT(!sparse || width > 0, INVALID, "max_map is %" PRId64, width);
  CHECK_THAT(!sparse || m.n == 0 || m.entries[0].key >= 0, INVALID, "the key %" PRId64 " of a sparse map is negative",
             m.entries[0].key);
  shape s = shape_make(types_of_cast[to], 2, (dim[]){1, sparse ? width : m.n});
  TRY(shape_check(&s, "the result"));
  TRY(host_array_new(n->run, &s, &y));
  for (int64_t k = 0; k < s.dims[1]; k++) {
    int64_t at = sparse ? find_key(&m, k) : m.entries[k].at;
    void *element = (char *)host_array_data(y) + (size_t)k * dtype_bytes((dtype)s.type);
    TRY(cast_value(n, &m, at, (cast_to)to, element));
  }
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}
