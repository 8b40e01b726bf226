#include "tests/fuzz/bytes/mutate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

uint64_t mutate_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Below n; n may be 0. */
static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(mutate_random(state) % n) : 0; }

/* Numbers that readers get wrong. */
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

/* Makes the `old` bytes at `at` into `new` ones; false where there is no room. */
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

/* False for what is no varint of at most 10 bytes. */
static bool read_varint(const uint8_t *bytes, size_t end, size_t *at, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
    uint8_t b = bytes[(*at)++];
    *value |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
    if (b < 0x80) {
      return true;
    }
  }
  return false;
}

static size_t write_varint(uint8_t *out, uint64_t value) {
  size_t n = 0;
  do {
    out[n++] = (uint8_t)(value | 0x80);
    value >>= 7;
  } while (value);
  out[n - 1] &= 0x7f;
  return n;
}

/* The field at *at: the whole of it, its payload (of wire type 2) and wire type; moves *at behind it. */
static bool read_field(const uint8_t *bytes, size_t end, size_t *at, span *whole, span *payload, unsigned *wire) {
  uint64_t key, n;
  whole->at = *at;
  if (!read_varint(bytes, end, at, &key)) {
    return false;
  }
  *wire = (unsigned)(key & 7);
  payload->at = *at;
  if (*wire == 0) {
    if (!read_varint(bytes, end, at, &n)) {
      return false;
    }
  } else if (*wire == 2) {
    if (!read_varint(bytes, end, at, &n) || n > end - *at) {
      return false;
    }
    payload->at = *at;
    *at += n;
  } else {
    n = *wire == 1 ? 8 : 4;
    if ((*wire != 1 && *wire != 5) || n > end - *at) {
      return false;
    }
    *at += n;
  }
  payload->size = *at - payload->at;
  whole->size = *at - whole->at;
  return true;
}

enum { MAX_FIELDS = 4096, MAX_DEPTH = 24 };

/* How many fields the message has; 0 if it is none. */
static size_t count_fields(const uint8_t *bytes, span message) {
  size_t at = message.at, n = 0;
  span whole, payload;
  unsigned wire;
  while (at < message.at + message.size && n < MAX_FIELDS) {
    if (!read_field(bytes, message.at + message.size, &at, &whole, &payload, &wire)) {
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

/* Another payload of wire type 2: a word, a packed list, fewer or more bytes. */
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
        n += write_varint(new + n, (uint64_t)odd_number(s));
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

/* Changes the field; gives what it is then long. */
static size_t change_field(editing *e, span whole, span payload, unsigned wire) {
  uint8_t head[20];
  size_t kind = below(&e->s, 8), head_size = payload.at - whole.at;
  if (kind == 0) { /* away */
    resize(e->bytes, &e->size, e->most, whole.at, whole.size, 0);
    return 0;
  }
  if (kind == 1 && resize(e->bytes, &e->size, e->most, whole.at, 0, whole.size)) { /* twice */
    memcpy(e->bytes + whole.at, e->bytes + whole.at + whole.size, whole.size);
    return 2 * whole.size;
  }
  if (kind == 2) { /* of another field */
    e->bytes[whole.at] = (uint8_t)((below(&e->s, 16) << 3) | wire);
    return whole.size;
  }
  if (wire == 0) {
    size_t n = write_varint(head, (uint64_t)odd_number(&e->s));
    if (resize(e->bytes, &e->size, e->most, payload.at, payload.size, n)) {
      memcpy(e->bytes + payload.at, head, n);
      return head_size + n;
    }
    return whole.size;
  }
  if (wire != 2) {
    e->bytes[payload.at + below(&e->s, payload.size)] = (uint8_t)mutate_random(&e->s);
    return whole.size;
  }
  size_t n = change_text(e->bytes, &e->size, e->most, payload, &e->s);
  return whole.size + n - payload.size;
}

/* Changes one field of the message, or within one; gives the message's new size. */
static size_t change_message(editing *e, span message, int depth) {
  size_t n = count_fields(e->bytes, message), pick = below(&e->s, n), at = message.at, end = message.at + message.size;
  span whole, payload;
  unsigned wire;
  if (n == 0) {
    return message.size;
  }
  for (size_t k = 0; k <= pick; k++) {
    if (!read_field(e->bytes, end, &at, &whole, &payload, &wire)) {
      return message.size;
    }
  }
  if (wire != 2 || depth == MAX_DEPTH || !count_fields(e->bytes, payload) || below(&e->s, 8) == 0) {
    return message.size - whole.size + change_field(e, whole, payload, wire);
  }
  size_t inner = change_message(e, payload, depth + 1);
  /* The key stays; the length is written anew. */
  uint64_t key;
  uint8_t head[10];
  size_t behind_key = whole.at;
  read_varint(e->bytes, end, &behind_key, &key);
  size_t old = payload.at - behind_key, new = write_varint(head, inner);
  if (!resize(e->bytes, &e->size, e->most, behind_key, old, new)) {
    return message.size - payload.size + inner;
  }
  memcpy(e->bytes + behind_key, head, new);
  return message.size - payload.size + inner - old + new;
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

/* --- .oxla (the layout stands in runtime/program/image.c) --- */

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
  for (size_t n = 1 + below(&s, 3); n > 0; n--) { /* mostly in the programs: constants mean nothing */
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
