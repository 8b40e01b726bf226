/* npy.c - reads and writes .npy files. */
#include "base/tensor/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* The header of a .npy file: the magic, the version, the length of a Python dictionary, and the dictionary.  NumPy and
 * npy_format pad the header to a multiple of HEADER_ALIGN bytes.  Longer dictionaries than HEADER_MAX bytes are
 * refused. */
enum { MAGIC_SIZE = 6, HEADER_MAX = 65536, HEADER_ALIGN = 64 };
static const char MAGIC[MAGIC_SIZE + 1] = "\x93NUMPY";

typedef struct header {
  dtype type, raw; /* raw: the type to assume if the code, such as "<V2", states only the size (npy_parse) */
  bool swap, fortran;
  size_t unit, length; /* for strings: the bytes of a character, 1 or 4, and the number of characters */
  int rank;
  dim dims[SHAPE_MAX_RANK];
  bool has_type, has_order, has_shape;
} header;

/* --- the dictionary --- */

typedef struct reader {
  const char *at, *end;
} reader;

static void skip_spaces(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) {
    r->at++;
  }
}

/* If `token` comes next in the text, moves past it and returns true. */
static bool accept(reader *r, const char *token) {
  size_t n = strlen(token);
  skip_spaces(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, token, n) != 0) {
    return false;
  }
  r->at += n;
  return true;
}

static status expect(reader *r, const char *token) {
  CHECK_THAT(accept(r, token), STATUS_INVALID_FILE, "its header lacks a '%s' where one belongs", token);
  return NULL;
}

/* Reads a quoted string without escapes into (*text, *n). */
static status read_quoted(reader *r, const char **text, size_t *n) {
  skip_spaces(r);
  CHECK_THAT(r->at < r->end && (*r->at == '\'' || *r->at == '"'), STATUS_INVALID_FILE,
             "its header lacks a string where one belongs");
  char quote = *r->at++;
  const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
  CHECK_THAT(close, STATUS_INVALID_FILE, "its header ends inside a string");
  *text = r->at;
  *n = (size_t)(close - r->at);
  r->at = close + 1;
  return NULL;
}

static status read_dim(reader *r, dim *out) {
  int64_t value = 0;
  const char *start = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    value = value > DIM_MAX ? value : value * 10 + (*r->at - '0');
  }
  CHECK_THAT(r->at > start, STATUS_INVALID_FILE, "its shape has something else than a number");
  (void)accept(r, "L"); /* Python 2 wrote long numbers with a final L */
  *out = value <= DIM_MAX ? value : DIM_OVERFLOW;
  return NULL;
}

static status read_dims(reader *r, header *h) {
  TRY(expect(r, "("));
  while (!accept(r, ")")) {
    CHECK_THAT(h->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "it has more than %d dimensions", SHAPE_MAX_RANK);
    TRY(read_dim(r, &h->dims[h->rank++]));
    if (!accept(r, ",")) {
      TRY(expect(r, ")"));
      break;
    }
  }
  return NULL;
}

/* --- element types: byte order, kind and size, as in "<f4"; or a name of ml_dtypes --- */

static const struct {
  const char *code;
  dtype type;
} codes[] = {
    {"b1", DTYPE_PRED}, {"i1", DTYPE_S8},  {"i2", DTYPE_S16}, {"i4", DTYPE_S32},   {"i8", DTYPE_S64},
    {"u1", DTYPE_U8},   {"u2", DTYPE_U16}, {"u4", DTYPE_U32}, {"u8", DTYPE_U64},   {"f2", DTYPE_F16},
    {"f4", DTYPE_F32},  {"f8", DTYPE_F64}, {"c8", DTYPE_C64}, {"c16", DTYPE_C128},
};

static const struct {
  const char *name;
  dtype type;
} names[] = {
    {"bfloat16", DTYPE_BF16},
    {"float8_e4m3fn", DTYPE_F8E4M3FN},
    {"float8_e4m3fnuz", DTYPE_F8E4M3FNUZ},
    {"float8_e5m2", DTYPE_F8E5M2},
    {"float8_e5m2fnuz", DTYPE_F8E5M2FNUZ},
    {"float8_e8m0fnu", DTYPE_F8E8M0FNU},
    {"float6_e2m3fn", DTYPE_F6E2M3FN},
    {"float6_e3m2fn", DTYPE_F6E3M2FN},
    {"float4_e2m1fn", DTYPE_F4E2M1FN},
    {"int4", DTYPE_S4},
    {"uint4", DTYPE_U4},
    {"int2", DTYPE_S2},
    {"uint2", DTYPE_U2},
    {"<f1", DTYPE_F8E5M2}, /* the name that np.save writes for this type */
};

static bool is_text(const char *text, size_t n, const char *want) {
  return strlen(want) == n && memcmp(text, want, n) == 0;
}

/* Returns true if `raw` is a type of 1 or 2 bytes, and the code is "<V" or "|V" and that number.  Such a code means
 * elements of that many bytes whose type has no name. */
static bool is_raw(const char *text, size_t n, dtype raw) {
  return n == 3 && strchr("<|", text[0]) && text[1] == 'V' && raw != DTYPE_INVALID &&
         (size_t)(text[2] - '0') == dtype_bytes(raw) && dtype_bytes(raw) <= 2;
}

/* Reads a code such as "<U5" or "|S5".  Returns false if it is another one. */
static bool find_string(const char *text, size_t n, header *h) {
  enum { LONGEST = 1 << 24 };
  bool is_string = n > 2 && (text[1] == 'U' || text[1] == 'S');
  for (size_t k = 2; k < n && is_string; k++) {
    is_string = text[k] >= '0' && text[k] <= '9' && h->length < LONGEST;
    h->length = 10 * h->length + (size_t)(text[k] - '0');
  }
  h->unit = is_string ? (text[1] == 'U' ? 4 : 1) : 0;
  return is_string;
}

static status find_type(const char *text, size_t n, header *h) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (is_text(text, n, names[i].name)) {
      h->type = names[i].type;
      return NULL;
    }
  }
  CHECK_THAT(n >= 2 && strchr("<>=|", *text), STATUS_INVALID_FILE, "its element type is \"%.*s\"",
             (int)(n < 40 ? n : 40), text);
  h->swap = *text == '>';
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (is_text(text + 1, n - 1, codes[i].code)) {
      h->type = codes[i].type;
      return NULL;
    }
  }
  if (find_string(text, n, h)) {
    h->type = DTYPE_STR;
    return NULL;
  }
  h->type = h->raw;
  CHECK_THAT(is_raw(text, n, h->raw), STATUS_UNSUPPORTED, "its element type \"%.*s\" has no equal here",
             (int)(n < 40 ? n : 40), text);
  return NULL;
}

static status read_type(reader *r, header *h) {
  const char *text;
  size_t n;
  skip_spaces(r);
  CHECK_THAT(r->at == r->end || *r->at != '[', STATUS_UNSUPPORTED, "its elements are records");
  TRY(read_quoted(r, &text, &n));
  return find_type(text, n, h);
}

static status read_bool(reader *r, bool *out) {
  *out = accept(r, "True");
  CHECK_THAT(*out || accept(r, "False"), STATUS_INVALID_FILE, "its fortran_order is neither True nor False");
  return NULL;
}

static status read_entry(reader *r, header *h) {
  const char *key;
  size_t n;
  TRY(read_quoted(r, &key, &n));
  TRY(expect(r, ":"));
  bool *seen = n == 5 && !memcmp(key, "descr", n)            ? &h->has_type
               : n == 13 && !memcmp(key, "fortran_order", n) ? &h->has_order
               : n == 5 && !memcmp(key, "shape", n)          ? &h->has_shape
                                                             : NULL;
  CHECK_THAT(seen && !*seen, STATUS_INVALID_FILE, "its header has the key \"%.*s\"%s", (int)(n < 40 ? n : 40), key,
             seen ? " twice" : "");
  *seen = true;
  return seen == &h->has_type ? read_type(r, h) : seen == &h->has_order ? read_bool(r, &h->fortran) : read_dims(r, h);
}

static status read_dictionary(reader *r, header *h) {
  TRY(expect(r, "{"));
  while (!accept(r, "}")) {
    TRY(read_entry(r, h));
    if (!accept(r, ",")) {
      TRY(expect(r, "}"));
      break;
    }
  }
  skip_spaces(r);
  CHECK_THAT(r->at == r->end, STATUS_INVALID_FILE, "its header goes on after the dictionary");
  CHECK_THAT(h->has_type && h->has_order && h->has_shape, STATUS_INVALID_FILE,
             "its header lacks one of descr, fortran_order and shape");
  return NULL;
}

/* Reads magic, version and dictionary of a .npy file; *data is set to the offset of the array's elements. */
static status read_header(const uint8_t *bytes, size_t size, header *h, size_t *data) {
  CHECK_THAT(size >= MAGIC_SIZE + 4 && !memcmp(bytes, MAGIC, MAGIC_SIZE), STATUS_INVALID_FILE, "it is not a .npy file");
  unsigned version = bytes[6];
  CHECK_THAT(version >= 1 && version <= 3, STATUS_UNSUPPORTED, "it has version %u of the .npy format", version);
  size_t start = version == 1 ? 10 : 12;
  CHECK_THAT(size >= start, STATUS_INVALID_FILE, "it ends inside its header");
  size_t length = bytes[8] | (size_t)bytes[9] << 8;
  if (version > 1) {
    length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  }
  CHECK_THAT(length <= HEADER_MAX, STATUS_INVALID_FILE, "its header has %zu bytes", length);
  CHECK_THAT(length <= size - start, STATUS_INVALID_FILE, "it ends inside its header");
  reader r = {(const char *)bytes + start, (const char *)bytes + start + length};
  *data = start + length;
  return read_dictionary(&r, h);
}

/* --- elements --- */

/* Reverses the bytes of each number; complex elements are two numbers. */
static void swap_bytes(uint8_t *data, int64_t n, dtype type) {
  size_t width = dtype_bytes(type), count = (size_t)n;
  if (dtype_is_complex(type)) {
    width /= 2;
    count *= 2;
  }
  for (size_t i = 0; i < count; i++, data += width) {
    for (size_t k = 0; k < width / 2; k++) {
      uint8_t byte = data[k];
      data[k] = data[width - 1 - k];
      data[width - 1 - k] = byte;
    }
  }
}

/* Converts from Fortran order (the first index varies fastest) to row-major order. */
static void from_fortran(const shape *s, const uint8_t *from, uint8_t *to) {
  int64_t n = shape_elements(s), at[SHAPE_MAX_RANK] = {0}, step[SHAPE_MAX_RANK], source = 0;
  size_t width = dtype_bytes(s->type);
  int64_t stride = 1;
  for (int d = 0; d < s->rank; d++) {
    step[d] = stride;
    stride *= s->dims[d];
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(to + (size_t)i * width, from + (size_t)source * width, width);
    for (int d = s->rank - 1; d >= 0; d--) {
      source += step[d];
      if (++at[d] < s->dims[d]) {
        break;
      }
      source -= step[d] * s->dims[d];
      at[d] = 0;
    }
  }
}

/* Makes bytes valid elements: bools become 0 or 1, and the high bits of types with less than 8 bits are set as
 * dtypes.def states. */
static void normalise(uint8_t *data, int64_t n, dtype type) {
  const dtype_info *info = dtype_get_info(type);
  for (int64_t i = 0; i < n; i++) {
    if (type == DTYPE_PRED) {
      data[i] = data[i] != 0;
    } else if (dtype_is_int(type)) {
      dtype_store_i64(type, &data[i], data[i]);
    } else {
      data[i] &= (uint8_t)((1u << info->bits) - 1);
    }
  }
}

static const void *decode(arena *a, const header *h, const shape *s, const uint8_t *from) {
  size_t width = dtype_bytes(h->type), total = (size_t)shape_bytes(s);
  bool reorder = h->fortran && s->rank > 1, narrow = dtype_get_info(h->type)->bits < 8;
  if (!h->swap && !reorder && !narrow && (uintptr_t)from % width == 0) {
    return from;
  }
  uint8_t *data = arena_alloc(a, total);
  if (reorder) {
    from_fortran(s, from, data);
  } else if (total) {
    memcpy(data, from, total);
  }
  if (h->swap) {
    swap_bytes(data, shape_elements(s), h->type);
  }
  if (narrow) {
    normalise(data, shape_elements(s), h->type);
  }
  return data;
}

/* --- strings --- */

/* Writes a character in UTF-8, at most 4 bytes.  Returns their number, or 0 if Unicode has no such character. */
static size_t put_utf8(uint32_t c, uint8_t *out) {
  if (c < 0x80) {
    out[0] = (uint8_t)c;
    return 1;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
    return 0;
  }
  out[0] = (uint8_t)(0xFF00u >> (more + 1) | c >> 6 * more);
  for (int k = 1; k <= more; k++) {
    out[k] = (uint8_t)(0x80 | (c >> 6 * (more - k) & 0x3F));
  }
  return (size_t)more + 1;
}

static uint32_t character(const header *h, const uint8_t *at) {
  uint32_t c = at[0];
  if (h->unit == 4) {
    c = h->swap ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
  }
  return c;
}

/* Adds one element to the table, as NumPy reads it: without the NULs at its end. */
static status add_string(const header *h, const uint8_t *from, uint8_t *scratch, string_table *strings, uint64_t *out) {
  size_t n = 0, length = h->length;
  while (length && !character(h, from + (length - 1) * h->unit)) {
    length--;
  }
  for (size_t k = 0; k < length; k++) {
    uint32_t c = character(h, from + k * h->unit);
    size_t more = h->unit == 1 ? 1 : put_utf8(c, scratch + n);
    CHECK_THAT(more, STATUS_INVALID_FILE, "a string has the character 0x%" PRIx32 ", which Unicode lacks", c);
    scratch[n] = h->unit == 1 ? (uint8_t)c : scratch[n];
    n += more;
  }
  *out = string_table_add(strings, scratch, n);
  return NULL;
}

static status parse_strings(arena *a, const header *h, const shape *s, const uint8_t *from, size_t size,
                            string_table *strings, literal *out) {
  size_t n = (size_t)shape_elements(s), each = h->unit * h->length;
  CHECK_THAT(strings, STATUS_UNSUPPORTED, "its elements are strings");
  CHECK_THAT(each ? n <= size / each && size == n * each : size == 0, STATUS_INVALID_FILE,
             "it has %zu bytes of elements, but %zu strings of %zu", size, n, each);
  uint64_t *numbers = ARENA_NEW_N(a, uint64_t, n);
  uint8_t *scratch = arena_alloc(a, 4 * h->length + 1);
  for (size_t k = 0; k < n; k++) {
    TRY(add_string(h, from + k * each, scratch, strings, &numbers[k]));
  }
  header plain = *h;
  plain.swap = false;
  *out = literal_make(*s, decode(a, &plain, s, (const uint8_t *)numbers));
  return NULL;
}

static status parse(arena *a, const uint8_t *bytes, size_t size, dtype raw, string_table *strings, literal *out) {
  header h = {.raw = raw};
  size_t start;
  TRY(read_header(bytes, size, &h, &start));
  shape s = shape_make(h.type, h.rank, h.dims);
  TRY(shape_check(&s, "its shape"));
  if (h.type == DTYPE_STR) {
    return parse_strings(a, &h, &s, bytes + start, size - start, strings, out);
  }
  uint64_t total = (uint64_t)shape_bytes(&s);
  CHECK_THAT(size - start == total, STATUS_INVALID_FILE, "it has %zu bytes of elements, but %s has %" PRIu64,
             size - start, SHAPE_STR(NULL, &s), total);
  *out = literal_make(s, decode(a, &h, &s, bytes + start));
  return NULL;
}

status npy_parse(arena *a, const char *what, const void *bytes, size_t size, dtype raw, string_table *strings,
                 literal *out) {
  return status_prefix(parse(a, bytes, size, raw, strings, out), "%s", what);
}

status npy_read(arena *a, const char *path, dtype raw, literal *out) {
  const uint8_t *bytes;
  size_t size;
  TRY(file_map(a, path, &bytes, &size));
  return npy_parse(a, path, bytes, size, raw, NULL, out);
}

/* --- writing --- */

static const char *code_of(arena *a, dtype type) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (codes[i].type == type) {
      return arena_printf(a, "%c%s", dtype_bytes(type) == 1 ? '|' : '<', codes[i].code);
    }
  }
  size_t i = 0;
  while (names[i].type != type) {
    i++;
  }
  return names[i].name;
}

/* Returns the strings as bytes of one length, with NULs at their ends, and sets *length. */
static status flat_strings(arena *a, const literal *l, const string_table *strings, const uint8_t **out,
                           size_t *length) {
  int64_t n = shape_elements(&l->shape);
  size_t size;
  CHECK_THAT(strings, STATUS_UNSUPPORTED, "strings cannot be written here");
  *length = 1;
  for (int64_t k = 0; k < n; k++) {
    const char *text = string_table_text(strings, (uint64_t)literal_i64(l, k), &size);
    CHECK_THAT(text && (!size || text[size - 1]), STATUS_UNSUPPORTED,
               "element %" PRId64 " is no string that .npy can hold", k);
    *length = size > *length ? size : *length;
  }
  CHECK_THAT(n == 0 || *length <= SIZE_MAX / (size_t)n, STATUS_RESOURCE, "the strings are too long");
  uint8_t *all = arena_calloc(a, (size_t)n * *length + 1, 1);
  for (int64_t k = 0; k < n; k++) {
    const char *text = string_table_text(strings, (uint64_t)literal_i64(l, k), &size);
    memcpy(all + (size_t)k * *length, text, size);
  }
  *out = all;
  return NULL;
}

static const char *dictionary(arena *a, const shape *s, const char *code) {
  const char *dims = "";
  for (int d = 0; d < s->rank; d++) {
    dims = arena_printf(a, "%s%s%" PRId64, dims, d ? ", " : "", s->dims[d]);
  }
  return arena_printf(a, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", code, dims,
                      s->rank == 1 ? "," : "");
}

status npy_format(arena *a, const literal *l, const string_table *strings, uint8_t **bytes, size_t *size) {
  bool is_string = l->shape.type == DTYPE_STR;
  const uint8_t *data = l->data;
  size_t length = 0;
  TRY(is_string ? flat_strings(a, l, strings, &data, &length) : NULL);
  const char *text = dictionary(a, &l->shape, is_string ? arena_printf(a, "|S%zu", length) : code_of(a, l->shape.type));
  unsigned bits = dtype_get_info((dtype)l->shape.type)->bits;
  size_t n = strlen(text),
         total = is_string ? (size_t)shape_elements(&l->shape) * length : (size_t)shape_bytes(&l->shape);
  /* The header is padded with spaces and a newline, so that the elements begin at a multiple of 64. */
  size_t start = (MAGIC_SIZE + 4 + n + 1 + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
  size_t header_bytes = start - MAGIC_SIZE - 4;
  uint8_t *file = arena_alloc_aligned(a, start + total, HEADER_ALIGN);
  memcpy(file, MAGIC, MAGIC_SIZE);
  file[6] = 1;
  file[8] = (uint8_t)header_bytes;
  file[9] = (uint8_t)(header_bytes >> 8);
  memset(file + 10, ' ', header_bytes);
  memcpy(file + 10, text, n);
  file[start - 1] = '\n';
  if (total) {
    memcpy(file + start, data, total);
  }
  for (size_t i = 0; dtype_is_int((dtype)l->shape.type) && bits < 8 && i < total; i++) {
    /* ml_dtypes stores types of less than 8 bits without sign extension */
    file[start + i] &= (uint8_t)((1u << bits) - 1);
  }
  *bytes = file;
  *size = start + total;
  return NULL;
}
