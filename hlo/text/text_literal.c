/* text_literal.c - literals in the HLO text:
 *
 *   f32[] 0.5          f32[2,2] {1, 2, 3, 4}      f32[8,8] splat 1      f32[0] {}
 *   f32[100] base64 "AACAPw..."                   f32[100] ...          f32[100] blob(3)
 *
 * A number has as few decimal digits as read back to the same bits (an integer below 10^7 has all of its digits), or is
 * #HEX if no decimal reads back (NaN payloads); pred is true or false; complex is (re, im); a string is written as the
 * number that is its id. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text/text_internal.h"

/* --- one element --- */

static dtype part_type(dtype t) { return t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64; }

/* Returns the bits of an element of at most 8 bytes. */
static uint64_t load_bits(dtype t, const void *element) {
  const unsigned char *bytes = element;
  uint64_t bits = 0;
  for (size_t k = 0; k < dtype_bytes(t); k++) {
    bits |= (uint64_t)bytes[k] << 8 * k;
  }
  return bits;
}

static void store_bits(dtype t, void *element, uint64_t bits) {
  unsigned char *bytes = element;
  for (size_t k = 0; k < dtype_bytes(t); k++) {
    bytes[k] = (unsigned char)(bits >> 8 * k);
  }
}

/* Returns true if the text reads back as an element with these bits. */
static bool reads_as(dtype t, const char *text, uint64_t bits) {
  unsigned char element[8] = {0};
  dtype_store_f64(t, element, strtod(text, NULL), false, DTYPE_ROUND_NEAREST);
  return load_bits(t, element) == bits;
}

static void put_float(text_out *o, dtype t, const void *element) {
  char text[40];
  double value = dtype_load_f64(t, element);
  uint64_t bits = load_bits(t, element);
  if (isnan(value)) {
    strcpy(text, reads_as(t, "nan", bits) ? "nan" : "-nan");
  } else if (value == (int64_t)fmax(-1e7, fmin(value, 1e7))) {
    snprintf(text, sizeof text, "%.0f", value);
  } else {
    for (int digits = 1; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, value);
      if (reads_as(t, text, bits)) {
        break;
      }
    }
  }
  if (!reads_as(t, text, bits)) {
    snprintf(text, sizeof text, "#%" PRIx64, bits);
  }
  text_puts(o, text);
}

static void put_element(text_out *o, dtype t, const void *element) {
  switch (dtype_get_info(t)->kind) {
    case DTYPE_CLASS_BOOL: text_puts(o, dtype_load_i64(t, element) ? "true" : "false"); break;
    case DTYPE_CLASS_SIGNED: text_printf(o, "%" PRId64, dtype_load_i64(t, element)); break;
    case DTYPE_CLASS_UNSIGNED: text_printf(o, "%" PRIu64, (uint64_t)dtype_load_i64(t, element)); break;
    case DTYPE_CLASS_STRING: text_printf(o, "%" PRIu64, load_bits(t, element)); break;
    case DTYPE_CLASS_FLOAT: put_float(o, t, element); break;
    case DTYPE_CLASS_COMPLEX:
      text_puts(o, "(");
      put_float(o, part_type(t), element);
      text_puts(o, ", ");
      put_float(o, part_type(t), (const char *)element + dtype_bytes(part_type(t)));
      text_puts(o, ")");
      break;
    case DTYPE_CLASS_NONE: break;
  }
}

static status read_float(text_in *in, dtype t, void *element) {
  char *end = NULL;
  if (text_accept(in, "#")) {
    uint64_t bits = strtoull(in->at, &end, 16);
    CHECK_THAT(isxdigit((unsigned char)in->at[0]) && (dtype_bytes(t) == 8 || bits >> 8 * dtype_bytes(t) == 0),
               STATUS_INVALID_FILE, "hexadecimal digits of one %s are expected", dtype_name(t));
    store_bits(t, element, bits);
    in->at = end;
    return NULL;
  }
  double value = strtod(in->at, &end);
  if (end == in->at) {
    return text_expected(in, "a number");
  }
  dtype_store_f64(t, element, value, false, DTYPE_ROUND_NEAREST);
  CHECK_THAT(!isfinite(value) || isfinite(dtype_load_f64(t, element)), STATUS_INVALID_FILE,
             "the number does not fit %s", dtype_name(t));
  in->at = end;
  return NULL;
}

static status read_unsigned(text_in *in, uint64_t *out) {
  char *end = NULL;
  text_skip(in);
  if (!isdigit((unsigned char)in->at[0])) {
    return text_expected(in, "a number without sign");
  }
  errno = 0;
  *out = strtoull(in->at, &end, 10);
  CHECK_THAT(errno == 0, STATUS_INVALID_FILE, "the integer does not fit 64 bits");
  in->at = end;
  return NULL;
}

static status read_integer(text_in *in, dtype t, void *element) {
  int64_t value = 0;
  uint64_t bits = 0;
  if (dtype_is_signed(t)) {
    TRY(text_read_int(in, &value));
  } else {
    TRY(read_unsigned(in, &bits));
    value = (int64_t)bits;
  }
  dtype_store_i64(t, element, value);
  CHECK_THAT(dtype_load_i64(t, element) == value, STATUS_INVALID_FILE, "the number does not fit %s", dtype_name(t));
  return NULL;
}

static status read_complex(text_in *in, dtype t, void *element) {
  TRY(text_expect(in, "("));
  TRY(read_float(in, part_type(t), element));
  TRY(text_expect(in, ","));
  text_skip(in);
  TRY(read_float(in, part_type(t), (char *)element + dtype_bytes(part_type(t))));
  return text_expect(in, ")");
}

static status read_element(text_in *in, dtype t, void *element) {
  uint64_t bits = 0;
  text_skip(in);
  switch (dtype_get_info(t)->kind) {
    case DTYPE_CLASS_BOOL:
      bits = text_accept_word(in, "true");
      if (!bits && !text_accept_word(in, "false")) {
        return text_expected(in, "true or false");
      }
      dtype_store_i64(t, element, (int64_t)bits);
      return NULL;
    case DTYPE_CLASS_SIGNED:
    case DTYPE_CLASS_UNSIGNED: return read_integer(in, t, element);
    case DTYPE_CLASS_FLOAT: return read_float(in, t, element);
    case DTYPE_CLASS_COMPLEX: return read_complex(in, t, element);
    case DTYPE_CLASS_STRING:
      TRY(read_unsigned(in, &bits));
      store_bits(t, element, bits);
      return NULL;
    case DTYPE_CLASS_NONE: break;
  }
  return status_error(STATUS_INVALID_FILE, "a literal has no type");
}

status text_read_double(text_in *in, double *out) {
  text_skip(in);
  return read_float(in, DTYPE_F64, out);
}

/* --- base64 --- */

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(text_out *o, const unsigned char *bytes, size_t n) {
  text_puts(o, "base64 \"");
  for (size_t k = 0; k < n; k += 3) {
    uint32_t v = (uint32_t)bytes[k] << 16;
    v |= k + 1 < n ? (uint32_t)bytes[k + 1] << 8 : 0;
    v |= k + 2 < n ? bytes[k + 2] : 0;
    char four[4] = {digits64[v >> 18], digits64[v >> 12 & 63], digits64[v >> 6 & 63], digits64[v & 63]};
    four[2] = k + 1 < n ? four[2] : '=';
    four[3] = k + 2 < n ? four[3] : '=';
    text_put(o, four, 4);
  }
  text_puts(o, "\"");
}

static status read_base64(text_in *in, const shape *s, void *data, size_t n) {
  unsigned char values[256], *bytes = data;
  memset(values, 255, sizeof values);
  for (unsigned char k = 0; k < 64; k++) {
    values[(unsigned char)digits64[k]] = k;
  }
  TRY(text_expect(in, "\""));
  size_t length = (n + 2) / 3 * 4, have = strcspn(in->at, "\"\n");
  CHECK_THAT(have == length && in->at[have] == '"', STATUS_INVALID_FILE, "%s needs %zu characters of base64",
             SHAPE_STR(NULL, s), length);
  for (size_t k = 0; k < n; k++) { /* byte k is in the characters k + k/3 and k + k/3 + 1 */
    const char *pair = in->at + k + k / 3;
    unsigned char high = values[(unsigned char)pair[0]], low = values[(unsigned char)pair[1]];
    CHECK_THAT(high != 255 && low != 255, STATUS_INVALID_FILE, "a character is not of base64");
    bytes[k] = (unsigned char)(high << (2 + k % 3 * 2) | low >> (4 - k % 3 * 2));
  }
  in->at += length + 1;
  return NULL;
}

/* --- literals --- */

void text_put_literal(text_out *o, const literal *l, const hlo_print_options *options) {
  int64_t n = shape_elements(&l->shape), small = options && options->small_elements ? options->small_elements : 64;
  hlo_literal_form form = options ? options->literals : HLO_LITERAL_FULL;
  dtype t = (dtype)l->shape.type;
  const char *bytes = l->data;
  if (l->shape.rank == 0) {
    put_element(o, t, bytes);
  } else if (n > 1 && literal_is_splat(l)) {
    text_puts(o, "splat ");
    put_element(o, t, bytes);
  } else if (n <= small) {
    text_puts(o, "{");
    for (int64_t k = 0; k < n; k++) {
      text_puts(o, k ? ", " : "");
      put_element(o, t, bytes + (size_t)k * dtype_bytes(t));
    }
    text_puts(o, "}");
  } else if (form == HLO_LITERAL_BLOB && options->blob) {
    uint64_t number = 0;
    status s = options->blob(options->blob_data, l, &number);
    o->error = o->error ? o->error : s;
    text_printf(o, "blob(%" PRIu64 ")", number);
  } else if (form == HLO_LITERAL_ELIDE) {
    text_puts(o, "...");
  } else {
    put_base64(o, (const unsigned char *)bytes, (size_t)shape_bytes(&l->shape));
  }
}

/* Refuses bytes that no other code expects: a pred other than 0 and 1, or bits that an element of fewer than 8 bits
 * cannot have. */
static status check_canonical(const shape *s, const unsigned char *bytes) {
  dtype t = (dtype)s->type;
  if (dtype_bytes(t) != 1 || dtype_get_info(t)->bits == 8) {
    return NULL;
  }
  int64_t n = shape_elements(s);
  for (int64_t k = 0; k < n; k++) {
    unsigned char again = bytes[k] & ((1 << dtype_get_info(t)->bits) - 1);
    if (!dtype_is_float(t)) {
      dtype_store_i64(t, &again, dtype_load_i64(t, &bytes[k]));
    }
    CHECK_THAT(again == bytes[k], STATUS_INVALID_FILE, "element %" PRId64 " of %s has bits that are no %s", k,
               SHAPE_STR(NULL, s), dtype_name(t));
  }
  return NULL;
}

static status read_list(text_in *in, const shape *s, char *data) {
  int64_t n = shape_elements(s);
  for (int64_t k = 0; k < n; k++) {
    if (k) {
      TRY(text_expect(in, ","));
    }
    TRY(read_element(in, (dtype)s->type, data + (size_t)k * dtype_bytes(s->type)));
  }
  return text_expect(in, "}");
}

static status read_splat(text_in *in, const shape *s, int64_t *budget, void **data) {
  int64_t total = shape_bytes(s);
  size_t size = dtype_bytes(s->type);
  CHECK_THAT(total <= *budget, STATUS_RESOURCE, "%s: the constants take more bytes than allowed", SHAPE_STR(NULL, s));
  *budget -= total;
  char *bytes = arena_alloc_aligned(in->arena, (size_t)total, 64);
  *data = bytes;
  char first[16];
  TRY(read_element(in, (dtype)s->type, first));
  for (int64_t k = 0; k < total; k += (int64_t)size) {
    memcpy(bytes + k, first, size);
  }
  return NULL;
}

static status read_blob(text_in *in, const shape *s, const hlo_parse_options *options, const void **data) {
  uint64_t number = 0;
  TRY(read_unsigned(in, &number));
  TRY(text_expect(in, ")"));
  CHECK_THAT(options && options->blob, STATUS_INVALID_FILE, "blob(%" PRIu64 ") stands for bytes that are not here",
             number);
  TRY(options->blob(options->blob_data, number, s, data));
  return check_canonical(s, *data);
}

/* Allocates memory for elements that the text lists one by one.  First refuses a text that is too short to list so
 * many: one character of it stands for at most per_character bytes. */
static status spelled_out(text_in *in, const shape *s, int64_t per_character, void **data) {
  int64_t left = in->end - in->at + 2;
  CHECK_THAT(shape_bytes(s) / per_character <= left, STATUS_INVALID_FILE, "%s needs more elements than there is text",
             SHAPE_STR(NULL, s));
  *data = arena_alloc_aligned(in->arena, (size_t)shape_bytes(s), 64);
  return NULL;
}

static status read_elements(text_in *in, const shape *s, const hlo_parse_options *options, int64_t *budget,
                            const void **out) {
  void *data = NULL;
  if (text_accept(in, "...")) {
    return status_error(STATUS_INVALID_FILE, "%s ... is a constant whose value was left out; print with full literals",
                        SHAPE_STR(NULL, s));
  }
  if (text_accept(in, "blob(")) {
    return read_blob(in, s, options, out);
  }
  if (text_accept_word(in, "splat")) {
    TRY(read_splat(in, s, budget, &data));
  } else if (text_accept_word(in, "base64")) {
    TRY(spelled_out(in, s, 1, &data));
    TRY(read_base64(in, s, data, (size_t)shape_bytes(s)));
    TRY(check_canonical(s, data));
  } else if (s->rank == 0) {
    TRY(spelled_out(in, s, 16, &data));
    TRY(read_element(in, (dtype)s->type, data));
  } else {
    TRY(text_expect(in, "{"));
    TRY(spelled_out(in, s, (int64_t)dtype_bytes(s->type), &data));
    TRY(read_list(in, s, data));
  }
  *out = data;
  return NULL;
}

status text_read_literal(text_in *in, dim_table *dims, const hlo_parse_options *options, int64_t *budget,
                         const literal **out) {
  shape s;
  text_skip(in);
  TRY(shape_parse(dims, &in->at, &s));
  CHECK_THAT(s.kind == SHAPE_ARRAY && shape_is_static(&s), STATUS_INVALID_FILE,
             "a literal must be an array of constant extents, not %s", SHAPE_STR(dims, &s));
  TRY(shape_check(&s, "literal"));
  const void *data = NULL;
  TRY(read_elements(in, &s, options, budget, &data));
  literal l = literal_make(s, data);
  *out = arena_memdup(in->arena, &l, sizeof l);
  return NULL;
}
