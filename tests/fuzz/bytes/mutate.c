#include "tests/fuzz/bytes/mutate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/protobuf_wire.h"

uint64_t mutate_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Returns a random number below n, or 0 if n is 0. */
static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(mutate_random(state) % n) : 0; }

/* Returns a number that code which reads files may handle wrongly. */
static int64_t odd_number(uint64_t *state) {
  static const int64_t numbers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    7,
                                    8,
                                    16,
                                    17,
                                    64,
                                    100,
                                    255,
                                    256,
                                    65535,
                                    65536,
                                    1 << 20,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 40,
                                    (int64_t)1 << 56,
                                    (int64_t)1 << 62,
                                    INT64_MAX,
                                    INT64_MIN};
  size_t n = sizeof numbers / sizeof *numbers, k = below(state, 2 * n);
  return k < n ? numbers[k] : (int64_t)below(state, 32) - 4;
}

/* Makes room for `new` bytes in place of the `old` bytes that begin at bytes[at], by moving what follows, and sets
 * *size. Returns false and changes nothing if more than `most` bytes would result. */
static bool resize(uint8_t *bytes, size_t *size, size_t most, size_t at, size_t old, size_t new) {
  if (*size - old + new > most) {
    return false;
  }
  memmove(bytes + at + new, bytes + at + old, *size - at - old);
  *size = *size - old + new;
  return true;
}

size_t mutate_bytes(uint8_t *bytes, size_t size, size_t most, uint64_t seed) {
  uint64_t s = seed;
  for (size_t n = 1 + below(&s, 4); n > 0; n--) {
    size_t at = below(&s, size), length = 1 + below(&s, 16);
    length = length < size - at ? length : size - at;
    switch (below(&s, 6)) {
      case 0:
        if (size) {
          bytes[at] ^= (uint8_t)(1u << below(&s, 8));
        }
        break;
      case 1:
        if (size) {
          bytes[at] = (uint8_t)mutate_random(&s);
        }
        break;
      case 2: resize(bytes, &size, most, at, length, 0); break;
      case 3:
        if (resize(bytes, &size, most, at, 0, length)) {
          memmove(bytes + at, bytes + below(&s, size - length + 1), length);
        }
        break;
      case 4: {
        int64_t v = odd_number(&s);
        size_t room = size - at < 8 ? size - at : 8;
        memcpy(bytes + at, &v, room < length ? room : length);
        break;
      }
      default: size = below(&s, 20) ? size : at; break;
    }
  }
  return size;
}

/* --- protobuf --- */

typedef struct span {
  size_t at, size;
} span;

/* A field of a message: `whole` begins with its tag, `value` is its value only.  Both count from the beginning of the
 * file. */
typedef struct field {
  span whole, value;
  int wire_type;
} field;

/* Reads the field at *at and moves *at to its end. */
static bool read_field(const uint8_t *bytes, size_t end, size_t *at, field *out) {
  pb_cursor c = {bytes + *at, bytes + end};
  pb_field f;
  if (!pb_next(&c, &f)) {
    return false;
  }
  size_t behind = (size_t)(c.at - bytes);
  *out = (field){{*at, behind - *at}, {(size_t)(f.value - bytes), (size_t)f.size}, f.wire_type};
  *at = behind;
  return true;
}

enum { MAX_FIELDS = 4096, MAX_DEPTH = 24 };

/* Returns how many fields the message has, or 0 if the bytes are no message. */
static size_t count_fields(const uint8_t *bytes, span message) {
  size_t at = message.at, n = 0;
  field f;
  while (at < message.at + message.size && n < MAX_FIELDS) {
    if (!read_field(bytes, message.at + message.size, &at, &f)) {
      return 0;
    }
    n++;
  }
  return n;
}

static const char *const words[] = {"Add",
                                    "Conv",
                                    "Gemm",
                                    "MatMul",
                                    "Loop",
                                    "If",
                                    "Scan",
                                    "Reshape",
                                    "Expand",
                                    "Slice",
                                    "Split",
                                    "Concat",
                                    "Gather",
                                    "ScatterND",
                                    "Einsum",
                                    "LSTM",
                                    "Resize",
                                    "Pad",
                                    "Tile",
                                    "Range",
                                    "TopK",
                                    "OneHot",
                                    "Constant",
                                    "ConstantOfShape",
                                    "QuantizeLinear",
                                    "Attention",
                                    "Cast",
                                    "Where",
                                    "Shape",
                                    "Squeeze",
                                    "Unsqueeze",
                                    "Transpose",
                                    "ReduceSum",
                                    "x",
                                    "y",
                                    "w",
                                    "axis",
                                    "axes",
                                    "body",
                                    "then_branch",
                                    "value",
                                    "perm",
                                    "to",
                                    "",
                                    "ai.onnx",
                                    "location",
                                    "../x",
                                    "ij,jk->ik",
                                    "\xff"};

/* Replaces a length-delimited value by a word, a packed list of numbers, or its first bytes with some of them changed.
 * Returns the value's new size. */
static size_t change_text(uint8_t *bytes, size_t *size, size_t most, span old, uint64_t *s) {
  uint8_t new[64];
  size_t n = 0;
  switch (below(s, 3)) {
    case 0: {
      const char *w = words[below(s, sizeof words / sizeof *words)];
      n = strlen(w);
      memcpy(new, w, n);
      break;
    }
    case 1:
      for (size_t k = below(s, 5); k > 0; k--) {
        n += pb_encode_varint(new + n, (uint64_t)odd_number(s), 0);
      }
      break;
    default:
      n = old.size < sizeof new ? old.size : sizeof new;
      memcpy(new, bytes + old.at, n);
      for (size_t k = 0; k < n; k += 1 + below(s, 8)) {
        new[k] = (uint8_t)mutate_random(s);
      }
      break;
  }
  if (!resize(bytes, size, most, old.at, old.size, n)) {
    return old.size;
  }
  memcpy(bytes + old.at, new, n);
  return n;
}

typedef struct editing {
  uint8_t *bytes;
  size_t size, most;
  uint64_t s;
} editing;

/* Changes the field, and returns its new size. */
static size_t change_field(editing *e, const field *f) {
  span whole = f->whole, value = f->value;
  uint8_t number[PB_VARINT_MAX];
  size_t kind = below(&e->s, 8), head_size = value.at - whole.at;
  if (kind == 0) { /* the field is removed */
    resize(e->bytes, &e->size, e->most, whole.at, whole.size, 0);
    return 0;
  }
  if (kind == 1 && resize(e->bytes, &e->size, e->most, whole.at, 0, whole.size)) { /* the field is doubled */
    memcpy(e->bytes + whole.at, e->bytes + whole.at + whole.size, whole.size);
    return 2 * whole.size;
  }
  if (kind == 2) { /* the field gets the number of another one */
    e->bytes[whole.at] = (uint8_t)((below(&e->s, 16) << 3) | (unsigned)f->wire_type);
    return whole.size;
  }
  if (f->wire_type == PB_VARINT) {
    size_t n = pb_encode_varint(number, (uint64_t)odd_number(&e->s), 0);
    if (resize(e->bytes, &e->size, e->most, value.at, value.size, n)) {
      memcpy(e->bytes + value.at, number, n);
      return head_size + n;
    }
    return whole.size;
  }
  if (f->wire_type != PB_LEN) {
    e->bytes[value.at + below(&e->s, value.size)] = (uint8_t)mutate_random(&e->s);
    return whole.size;
  }
  size_t n = change_text(e->bytes, &e->size, e->most, value, &e->s);
  return whole.size + n - value.size;
}

/* Changes one field of the message, or a field within a field, and returns the message's new size. */
static size_t change_message(editing *e, span message, int depth) {
  size_t n = count_fields(e->bytes, message), pick = below(&e->s, n), at = message.at, end = message.at + message.size;
  field f;
  if (n == 0) {
    return message.size;
  }
  for (size_t k = 0; k <= pick; k++) {
    if (!read_field(e->bytes, end, &at, &f)) {
      return message.size;
    }
  }
  if (f.wire_type != PB_LEN || depth == MAX_DEPTH || !count_fields(e->bytes, f.value) || below(&e->s, 8) == 0) {
    return message.size - f.whole.size + change_field(e, &f);
  }
  size_t inner = change_message(e, f.value, depth + 1);
  /* The tag stays; the length is written anew. */
  uint8_t length[PB_VARINT_MAX];
  pb_cursor c = {e->bytes + f.whole.at, e->bytes + f.value.at};
  pb_field tag;
  pb_read_tag(&c, &tag);
  size_t behind_tag = (size_t)(c.at - e->bytes), old = f.value.at - behind_tag;
  size_t new = pb_encode_varint(length, inner, 0);
  if (!resize(e->bytes, &e->size, e->most, behind_tag, old, new)) {
    return message.size - f.value.size + inner;
  }
  memcpy(e->bytes + behind_tag, length, new);
  return message.size - f.value.size + inner - old + new;
}

size_t mutate_protobuf(uint8_t *bytes, size_t size, size_t most, uint64_t seed) {
  editing e = {bytes, size, most, seed};
  if (below(&e.s, 10) == 0) {
    return mutate_bytes(bytes, size, most, e.s);
  }
  for (size_t n = 1 + below(&e.s, 3); n > 0; n--) {
    change_message(&e, (span){0, e.size}, 0);
  }
  return e.size;
}

/* --- text --- */

static const char *const text_words[] = {"add",
                                         "subtract",
                                         "multiply",
                                         "divide",
                                         "maximum",
                                         "negate",
                                         "dot",
                                         "convolution",
                                         "reduce",
                                         "reduce-window",
                                         "gather",
                                         "scatter",
                                         "slice",
                                         "pad",
                                         "broadcast",
                                         "reshape",
                                         "transpose",
                                         "concatenate",
                                         "while",
                                         "conditional",
                                         "fusion",
                                         "composite",
                                         "constant",
                                         "iota",
                                         "sort",
                                         "select",
                                         "compare",
                                         "convert",
                                         "cumulative",
                                         "clamp",
                                         "dynamic-slice",
                                         "return",
                                         "entry",
                                         "computation",
                                         "module",
                                         "f32",
                                         "f64",
                                         "s64",
                                         "s32",
                                         "u8",
                                         "s4",
                                         "pred",
                                         "c64",
                                         "bf16",
                                         "f8e4m3fn",
                                         "str",
                                         "splat",
                                         "blob(1)",
                                         "[]",
                                         "{}",
                                         "(",
                                         ")",
                                         "%0",
                                         "%1",
                                         "@\"x\"",
                                         "nan",
                                         "inf",
                                         "-0",
                                         "true",
                                         "dimensions=[0]",
                                         "value="};

static bool is_word(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '%';
}

static size_t replace(uint8_t *bytes, size_t size, size_t most, size_t at, size_t old, const char *text) {
  size_t n = strlen(text);
  if (resize(bytes, &size, most, at, old, n)) {
    memcpy(bytes + at, text, n);
  }
  return size;
}

static size_t change_word(uint8_t *bytes, size_t size, size_t most, uint64_t *s) {
  size_t at = below(s, size), end;
  char text[32];
  while (at < size && !is_word(bytes[at])) {
    at++;
  }
  for (end = at; end < size && is_word(bytes[end]); end++) {
  }
  if (below(s, 2)) {
    snprintf(text, sizeof text, "%" PRId64, odd_number(s));
  } else {
    snprintf(text, sizeof text, "%s", text_words[below(s, sizeof text_words / sizeof *text_words)]);
  }
  return replace(bytes, size, most, at, end - at, text);
}

/* Removes a line, or copies it to another place. */
static size_t change_line(uint8_t *bytes, size_t size, size_t most, uint64_t *s) {
  char line[256];
  size_t at = below(s, size), end = at;
  while (at > 0 && bytes[at - 1] != '\n') {
    at--;
  }
  while (end < size && bytes[end++] != '\n') {
  }
  if (end - at >= sizeof line || below(s, 2)) {
    resize(bytes, &size, most, at, end - at, 0);
    return size;
  }
  memcpy(line, bytes + at, end - at);
  size_t n = end - at, to = below(s, size + 1);
  while (to > 0 && bytes[to - 1] != '\n') {
    to--;
  }
  if (resize(bytes, &size, most, to, 0, n)) {
    memcpy(bytes + to, line, n);
  }
  return size;
}

size_t mutate_text(uint8_t *bytes, size_t size, size_t most, uint64_t seed) {
  uint64_t s = seed;
  if (below(&s, 10) == 0) {
    return mutate_bytes(bytes, size, most, s);
  }
  for (size_t n = 1 + below(&s, 4); n > 0; n--) {
    size = below(&s, 4) ? change_word(bytes, size, most, &s) : change_line(bytes, size, most, &s);
  }
  return size;
}

/* --- .oxla (runtime/program/image.c describes the layout) --- */

static uint64_t get64(const uint8_t *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static void put64(uint8_t *p, uint64_t v) { memcpy(p, &v, sizeof v); }

size_t mutate_image(uint8_t *bytes, size_t size, size_t most, uint64_t seed) {
  enum { MAGIC = 8, HEADER = 40, ROW = 32, SECTIONS = 5, TABLE_END = HEADER + SECTIONS * ROW, HASHED = 3 };
  uint64_t s = seed;
  size = below(&s, 4) ? size : mutate_bytes(bytes, size, most, s);
  if (size < TABLE_END) {
    return size;
  }
  /* Mostly changes the section of programs, since changed constants are always valid. */
  for (size_t n = 1 + below(&s, 3); n > 0; n--) {
    uint64_t offset = get64(bytes + HEADER + ROW + 8), length = get64(bytes + HEADER + ROW + 16);
    size_t at = offset < size && length <= size - offset && length && below(&s, 8) ? offset + below(&s, length)
                                                                                   : below(&s, size);
    int64_t v = odd_number(&s);
    size_t room = size - at < 8 ? size - at : 8;
    memcpy(bytes + at, &v, below(&s, 2) ? room : 1);
  }
  for (size_t k = 0; k < HASHED; k++) {
    uint8_t *row = bytes + HEADER + ROW * k;
    uint64_t offset = get64(row + 8), length = get64(row + 16);
    if (offset <= size && length <= size - offset) {
      put64(row + 24, hash_bytes(bytes + offset, length, 0));
    }
  }
  put64(bytes + MAGIC + 16, size);
  uint64_t header = hash_bytes(bytes + MAGIC, HEADER - MAGIC - 8, 0);
  put64(bytes + MAGIC + 24, hash_bytes(bytes + HEADER, SECTIONS * ROW, header));
  return size;
}
