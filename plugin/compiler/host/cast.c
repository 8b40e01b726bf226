/* cast.c - Cast and CastLike between strings and numbers.  ONNX says of the form of numbers: plain or scientific, and
 * "INF", "+INF", "-INF" and "NaN" in letters of any case. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "frontend/import/importer.h"
#include "plugin/compiler/host/strings.h"

/* --- numbers as strings --- */

/* Returns the digits that floats of a type need at most, so that another number of the type is another string. */
static int most_digits(dtype type) { return type == DTYPE_F64 ? 17 : 9; }

static bool reads_back(dtype type, const void *element, const char *text) {
  uint8_t back[8];
  dtype_store_f64(type, back, strtod(text, NULL), true, DTYPE_ROUND_NEAREST);
  return memcmp(back, element, dtype_bytes(type)) == 0;
}

/* Writes a float in the fewest digits from which it can be read again. */
static void float_text(dtype type, const void *element, char text[64]) {
  double x = dtype_load_f64(type, element);
  if (isnan(x) || isinf(x)) {
    strcpy(text, isnan(x) ? "NaN" : x > 0 ? "INF" : "-INF");
    return;
  }
  int digits = 1;
  do {
    snprintf(text, 64, "%.*g", digits, x);
  } while (!reads_back(type, element, text) && digits++ < most_digits(type));
}

static status to_text(dtype type, const void *element, char text[64]) {
  CHECK_THAT(!dtype_is_complex(type), STATUS_UNSUPPORTED, "casts of %s to strings are not supported", dtype_name(type));
  if (dtype_is_float(type)) {
    float_text(type, element, text);
  } else {
    int64_t number = dtype_load_i64(type, element);
    snprintf(text, 64, type == DTYPE_U64 ? "%" PRIu64 : "%" PRId64, number);
  }
  return NULL;
}

/* --- strings as numbers --- */

/* Returns true if there is nothing but blanks at `at`. */
static bool is_end(const char *at) {
  while (isspace((unsigned char)*at)) {
    at++;
  }
  return !*at;
}

/* Reads an integer, if the whole text is one; *out has the bits of a u64 above INT64_MAX. */
static bool read_integer(const char *text, int64_t *out) {
  char *end;
  bool negative = strchr(text, '-');
  *out = negative ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
  return end != text && is_end(end);
}

/* Reads the whole text.  An integer type takes what is before the point of another number. */
static status from_text(const char *text, size_t n, dtype type, bool saturate, void *out) {
  int64_t integer;
  char *end;
  double x = strtod(text, &end);
  bool whole = strlen(text) == n && end != text && is_end(end) && !strpbrk(text, "xX");
  CHECK_THAT(whole, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_VALUE, "the string \"%.40s\" is no number", text);
  CHECK_THAT(!dtype_is_complex(type), STATUS_UNSUPPORTED, "casts of strings to %s are not supported", dtype_name(type));
  if (dtype_is_float(type)) {
    bool small = dtype_bytes(type) == 1;
    dtype_store_f64(type, out, x, saturate || !small, DTYPE_ROUND_NEAREST);
  } else if (type != DTYPE_PRED && read_integer(text, &integer)) {
    dtype_store_i64(type, out, integer);
  } else {
    dtype_convert(DTYPE_F64, &x, type, out, 1, true, DTYPE_ROUND_NEAREST);
  }
  return NULL;
}

/* --- the nodes --- */

static status cast_element(const interpreted_node *n, const host_array *x, int64_t k, bool saturate, host_array *y) {
  dtype from = (dtype)host_array_shape(x)->type, to = (dtype)host_array_shape(y)->type;
  const char *element = (const char *)host_array_data(x) + (size_t)k * dtype_bytes(from);
  void *out = (char *)host_array_data(y) + (size_t)k * dtype_bytes(to);
  if (from == DTYPE_STR) {
    host_text t;
    TRY(host_text_of(n, x, k, &t));
    return from_text(t.bytes, t.n, to, saturate, out);
  }
  char text[64];
  TRY(to_text(from, element, text));
  *(uint64_t *)out = host_number_of(n, text, strlen(text));
  return NULL;
}

static status cast_all(const interpreted_node *n, host_array *x, dtype to) {
  bool saturate;
  host_array *y;
  shape s = shape_with_type(*host_array_shape(x), to);
  status failed = NULL;
  TRY(host_need_strings(n));
  TRY(onnx_attr_bool(n->node, "saturate", true, &saturate));
  TRY(host_array_new(n->run, &s, &y));
  c_locale outer = c_locale_enter();
  for (int64_t k = 0; !failed && k < shape_elements(&s); k++) {
    failed = cast_element(n, x, k, saturate, y);
    failed = failed ? failed : budget_check(n->run->options->budget);
  }
  c_locale_leave(outer);
  TRY(failed);
  host_array_release(x);
  return interpreter_define_outputs(n, 1, &y);
}

status interpret_cast(const interpreted_node *n) {
  host_array *x;
  int64_t to;
  TRY(interpreter_input(n, 0, &x));
  TRY(onnx_attr_int(n->node, "to", 0, &to));
  return cast_all(n, x, dtype_from_onnx((int32_t)to)); /* the importer has checked it */
}

status interpret_cast_like(const interpreted_node *n) {
  host_array *x, *like;
  TRY(interpreter_input(n, 0, &x));
  TRY(interpreter_input(n, 1, &like));
  dtype to = (dtype)host_array_shape(like)->type;
  host_array_release(like);
  return cast_all(n, x, to);
}
