/* shape.c - checks, compares, prints and parses shapes. */
#include "base/tensor/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

shape shape_make(dtype type, int rank, const dim *dims) {
  assert(rank >= 0 && rank <= SHAPE_MAX_RANK);
  shape s = {.type = (uint8_t)type, .kind = SHAPE_ARRAY, .rank = (uint8_t)rank};
  if (rank) {
    memcpy(s.dims, dims, (size_t)rank * sizeof *dims);
  }
  return s;
}

bool shape_same_dims(const shape *a, const shape *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

bool shape_equal(const shape *a, const shape *b) {
  return a->type == b->type && a->kind == b->kind && shape_same_dims(a, b);
}

bool shape_is_static(const shape *s) {
  for (int i = 0; i < s->rank; i++) {
    if (!dim_is_const(s->dims[i])) {
      return false;
    }
  }
  return true;
}

bool shape_is_exact(const dim_table *t, const shape *s) {
  for (int i = 0; i < s->rank; i++) {
    if (!dim_is_exact(t, s->dims[i])) {
      return false;
    }
  }
  return true;
}

/* Multiplies only the dims that are positive constants.  A dim of 0 is left out, since the strides of a shape such as
 * [2^40, 0, 2^40] must not overflow either. */
status shape_check(const shape *s, const char *what) {
  int64_t bytes = (int64_t)dtype_bytes(s->type);
  bytes = bytes ? bytes : 1;
  for (int i = 0; i < s->rank; i++) {
    dim d = s->dims[i];
    CHECK_THAT(d != DIM_OVERFLOW, STATUS_INVALID_MODEL, "%s: dimension %d is negative or too large", what, i);
    if (d > 0 && (__builtin_mul_overflow(bytes, d, &bytes) || bytes > DIM_MAX)) {
      return status_error(STATUS_RESOURCE, "%s: %s has more than 2^56 bytes", what, SHAPE_STR(NULL, s));
    }
  }
  return NULL;
}

int64_t shape_product(const shape *s, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) {
    assert(dim_is_const(s->dims[i]));
    n *= s->dims[i];
  }
  return n;
}

int64_t shape_elements(const shape *s) { return shape_product(s, 0, s->rank); }

int64_t shape_bytes(const shape *s) { return shape_elements(s) * (int64_t)dtype_bytes(s->type); }

bool shape_is_empty(const shape *s) {
  for (int k = 0; k < s->rank; k++) {
    if (s->dims[k] == 0) {
      return true;
    }
  }
  return false;
}

dim shape_dim_product(dim_table *t, const shape *s, int from, int to) {
  dim n = 1;
  for (int k = from; k < to; k++) {
    n = dim_mul(t, n, s->dims[k]);
  }
  return n;
}

dim shape_dim_bytes(dim_table *t, const shape *s) {
  return shape_is_static(s) ? shape_bytes(s)
                            : dim_mul(t, shape_dim_product(t, s, 0, s->rank), (dim)dtype_bytes((dtype)s->type));
}

void shape_dim_strides(dim_table *t, const shape *s, dim *strides) {
  if (shape_is_static(s)) {
    shape_strides(s, strides);
    return;
  }
  dim stride = 1;
  for (int i = s->rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride = dim_mul(t, stride, s->dims[i]);
  }
}

void shape_strides(const shape *s, int64_t *strides) {
  int64_t stride = 1;
  for (int i = s->rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= s->dims[i];
  }
}

static const char *const kind_names[] = {"", "seq", "opt", "map", "any-rank"};

const char *shape_text(char *buffer, const dim_table *table, const shape *s) {
  size_t n = 0;
  if (s->kind != SHAPE_ARRAY) {
    n += (size_t)snprintf(buffer, SHAPE_TEXT_MAX, "%s<", kind_names[s->kind]);
  }
  bool dims = s->kind == SHAPE_ARRAY || s->rank > 0;
  n += (size_t)snprintf(buffer + n, SHAPE_TEXT_MAX - n, "%s%s", dtype_name(s->type), dims ? "[" : "");
  arena *a = table ? arena_create(NULL) : NULL;
  for (int i = 0; i < s->rank && n < SHAPE_TEXT_MAX - 32; i++) {
    const char *comma = i ? "," : "";
    if (dim_is_const(s->dims[i])) {
      n += (size_t)snprintf(buffer + n, SHAPE_TEXT_MAX - n, "%s%" PRId64, comma, s->dims[i]);
    } else {
      const char *d = table && s->dims[i] != DIM_OVERFLOW ? dim_print(a, table, s->dims[i]) : "?";
      n += (size_t)snprintf(buffer + n, SHAPE_TEXT_MAX - n, "%s%.*s", comma, (int)(SHAPE_TEXT_MAX - n - 8), d);
    }
  }
  arena_destroy(a);
  snprintf(buffer + n, SHAPE_TEXT_MAX - n, "%s%s", dims ? "]" : "", s->kind != SHAPE_ARRAY ? ">" : "");
  return buffer;
}

const char *shape_print(arena *a, const dim_table *table, const shape *s) {
  bool array = s->kind == SHAPE_ARRAY, dims = array || s->rank > 0;
  text_builder text = {.arena = a};
  text_builder_put(&text, array ? "" : kind_names[s->kind]);
  text_builder_put(&text, array ? "" : "<");
  text_builder_put(&text, dtype_name(s->type));
  text_builder_put(&text, dims ? "[" : "");
  for (int i = 0; i < s->rank; i++) {
    text_builder_put(&text, i ? "," : "");
    if (dim_is_const(s->dims[i])) {
      text_builder_put_number(&text, s->dims[i]);
    } else {
      text_builder_put(&text, dim_print(a, table, s->dims[i]));
    }
  }
  text_builder_put(&text, dims ? "]" : "");
  text_builder_put(&text, array ? "" : ">");
  return text_builder_end(&text);
}

static bool accept(const char **text, const char *word) {
  size_t n = strlen(word);
  if (strncmp(*text, word, n) != 0) {
    return false;
  }
  *text += n;
  return true;
}

static status parse_array(dim_table *table, const char **text, bool handle, shape *out) {
  size_t n = strspn(*text, "abcdefghijklmnopqrstuvwxyz0123456789");
  dtype type = dtype_from_name(*text, n);
  CHECK_THAT(type != DTYPE_INVALID, STATUS_INVALID_FILE, "'%.*s' is no element type", (int)(n < 20 ? n : 20), *text);
  *text += n;
  *out = shape_scalar(type);
  if (handle && **text != '[') {
    return NULL;
  }
  CHECK_THAT(accept(text, "["), STATUS_INVALID_FILE, "'[' expected after the element type");
  if (accept(text, "]")) {
    return NULL;
  }
  do {
    CHECK_THAT(out->rank < SHAPE_MAX_RANK, STATUS_INVALID_FILE, "a shape has more than %d dimensions", SHAPE_MAX_RANK);
    TRY(dim_parse(table, text, &out->dims[out->rank]));
    out->rank++;
  } while (accept(text, ","));
  CHECK_THAT(accept(text, "]"), STATUS_INVALID_FILE, "']' expected at the end of a shape");
  return shape_check(out, "shape");
}

status shape_parse(dim_table *table, const char **text, shape *out) {
  for (int kind = SHAPE_SEQUENCE; kind <= SHAPE_MAP; kind++) {
    const char *start = *text;
    if (accept(text, kind_names[kind]) && accept(text, "<")) {
      TRY(parse_array(table, text, true, out));
      out->kind = (uint8_t)kind;
      CHECK_THAT(accept(text, ">"), STATUS_INVALID_FILE, "'>' expected");
      return NULL;
    }
    *text = start;
  }
  return parse_array(table, text, false, out);
}
