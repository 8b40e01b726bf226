/* protobuf_wire.h - protobuf's wire format: reads the fields of a message within bounds, and writes them.
 *
 * A message is a sequence of fields, each a tag (the field's number and its wire type) and a value.  The caller must
 * know what a field means.  Messages with a schema are packed and unpacked by protobuf-c.  The functions here are for
 * code that looks at the bytes before protobuf-c does, or that changes or writes them where protobuf-c is not linked.
 *
 * The header includes no other file of this project, so that clients of the C API, which link nothing of base/, may
 * include it. */
#ifndef BASE_PROTOBUF_WIRE_H
#define BASE_PROTOBUF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Wire types.  Groups (3 and 4) are obsolete and not supported. */
enum { PB_VARINT = 0, PB_I64 = 1, PB_LEN = 2, PB_I32 = 5 };

enum {
  PB_VARINT_MAX = 10,           /* the most bytes of a varint */
  PB_NUMBER_MAX = (1 << 29) - 1 /* the largest number of a field */
};

/* --- reading --- */

/* The bytes of a message that are still to be read.  Reading accesses no bytes outside of them, allocates and copies
 * nothing, and skips a value of any length in constant time. */
typedef struct pb_cursor {
  const uint8_t *at, *end;
} pb_cursor;

typedef struct pb_field {
  uint64_t number;
  int wire_type;
  const uint8_t *value; /* for PB_LEN, the bytes after the length */
  uint64_t size;        /* the size of the value in bytes */
} pb_field;

/* What is wrong with the bytes.  After an error the position of the cursor within the message is not specified. */
typedef enum pb_error {
  PB_OK,
  PB_TRUNCATED, /* the message ends inside of a varint */
  PB_OVERFLOW,  /* a varint has more than 64 bits */
  PB_NUMBER,    /* the number of a field is 0 or larger than PB_NUMBER_MAX; pb_field.number has it */
  PB_TYPE,      /* the wire type is a group or does not exist; pb_field.wire_type has it */
  PB_LENGTH     /* a value is longer than the rest of the message; pb_field.size has the length that it claims */
} pb_error;

/* Reads a varint, which may have more bytes than its value needs (protobuf allows that).  Returns PB_TRUNCATED if the
 * bytes end before the varint does or if there are none, PB_OVERFLOW if it is too long, otherwise PB_OK. */
static inline pb_error pb_read_varint(pb_cursor *c, uint64_t *value) {
  uint64_t bits = 0;
  const uint8_t *at = c->at;
  for (unsigned shift = 0; shift < 7 * PB_VARINT_MAX; shift += 7) {
    if (at == c->end) {
      return PB_TRUNCATED;
    }
    uint8_t byte = *at++;
    if (shift == 63 && byte > 1) {
      break;
    }
    bits |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      c->at = at;
      *value = bits;
      return PB_OK;
    }
  }
  return PB_OVERFLOW;
}

/* Reads a tag: the field's number and wire type.  May return all errors except PB_LENGTH. */
static inline pb_error pb_read_tag(pb_cursor *c, pb_field *f) {
  uint64_t tag;
  pb_error wrong = pb_read_varint(c, &tag);
  if (wrong) {
    return wrong;
  }
  f->number = tag >> 3;
  f->wire_type = (int)(tag & 7);
  if (f->number == 0 || f->number > PB_NUMBER_MAX) {
    return PB_NUMBER;
  }
  bool known = f->wire_type == PB_VARINT || f->wire_type == PB_I64 || f->wire_type == PB_LEN || f->wire_type == PB_I32;
  return known ? PB_OK : PB_TYPE;
}

/* Finds the value that belongs to the tag in *f, which was read last, and moves to the end of the value.  May return
 * PB_TRUNCATED, PB_OVERFLOW and PB_LENGTH. */
static inline pb_error pb_read_value(pb_cursor *c, pb_field *f) {
  uint64_t number;
  pb_error wrong = PB_OK;
  f->value = c->at;
  if (f->wire_type == PB_VARINT) {
    wrong = pb_read_varint(c, &number);
    f->size = (uint64_t)(c->at - f->value);
    return wrong;
  }
  f->size = f->wire_type == PB_I64 ? 8 : 4;
  if (f->wire_type == PB_LEN) {
    wrong = pb_read_varint(c, &f->size);
    f->value = c->at;
  }
  if (wrong) {
    return wrong;
  }
  if (f->size > (uint64_t)(c->end - c->at)) {
    return PB_LENGTH;
  }
  c->at += f->size;
  return PB_OK;
}

/* Reads the next field.  Returns false at the end of the message, and if no complete field follows; the cursor then
 * stays where it is. */
static inline bool pb_next(pb_cursor *c, pb_field *f) {
  pb_cursor rest = *c;
  if (pb_read_tag(&rest, f) || pb_read_value(&rest, f)) {
    return false;
  }
  *c = rest;
  return true;
}

/* Returns the value's bytes, to be read as a message or as a packed list. */
static inline pb_cursor pb_value(const pb_field *f) { return (pb_cursor){f->value, f->value + f->size}; }

/* --- writing --- */

/* Writes a varint of at least `width` bytes: a shorter one is padded by bytes that do not change the value.  Returns
 * the number of bytes.  `out` must have room for the larger of PB_VARINT_MAX and `width` bytes. */
static inline size_t pb_encode_varint(uint8_t *out, uint64_t value, size_t width) {
  size_t n = 0;
  do {
    out[n++] = (uint8_t)(value | 0x80);
    value >>= 7;
  } while (value || n < width);
  out[n - 1] &= 0x7f;
  return n;
}

/* A message that is being written.  A structure of zeros is an empty message that grows on the heap (by malloc, since
 * its users have no arena) and is freed by pb_free.  With `fixed`, `bytes` is the caller's memory of size `capacity`.
 * As in snprintf, bytes that do not fit are not written but are counted in n; so with a capacity of 0 only the size is
 * computed. */
typedef struct pb_writer {
  uint8_t *bytes;
  size_t n, capacity;
  bool fixed;
  bool failed; /* the heap had no memory left, so the message is not complete */
} pb_writer;

static inline void pb_free(pb_writer *w) {
  free(w->bytes);
  *w = (pb_writer){0};
}

/* Makes room for n more bytes.  Returns false if there is no memory, now or in an earlier call. */
static inline bool pb_reserve(pb_writer *w, size_t n) {
  if (w->failed || n <= w->capacity - w->n) {
    return !w->failed;
  }
  size_t wanted = 2 * w->capacity > w->n + n ? 2 * w->capacity : w->n + n + 64;
  uint8_t *more = realloc(w->bytes, wanted);
  w->failed = !more;
  w->bytes = more ? more : w->bytes;
  w->capacity = more ? wanted : w->capacity;
  return more;
}

/* Appends bytes as they are. */
static inline void pb_put(pb_writer *w, const void *bytes, size_t n) {
  if (n == 0 || (!w->fixed && !pb_reserve(w, n))) {
    return;
  }
  if (w->n <= w->capacity && n <= w->capacity - w->n) {
    memcpy(w->bytes + w->n, bytes, n);
  }
  w->n += n;
}

static inline void pb_put_varint(pb_writer *w, uint64_t value) {
  uint8_t bytes[PB_VARINT_MAX];
  pb_put(w, bytes, pb_encode_varint(bytes, value, 0));
}

static inline void pb_put_tag(pb_writer *w, uint32_t number, int wire_type) {
  pb_put_varint(w, (uint64_t)number << 3 | (unsigned)wire_type);
}

static inline void pb_put_int(pb_writer *w, uint32_t number, int64_t value) {
  pb_put_tag(w, number, PB_VARINT);
  pb_put_varint(w, (uint64_t)value);
}

static inline void pb_put_float(pb_writer *w, uint32_t number, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
  pb_put_tag(w, number, PB_I32);
  pb_put(w, bytes, sizeof bytes);
}

static inline void pb_put_bytes(pb_writer *w, uint32_t number, const void *bytes, size_t n) {
  pb_put_tag(w, number, PB_LEN);
  pb_put_varint(w, n);
  pb_put(w, bytes, n);
}

static inline void pb_put_text(pb_writer *w, uint32_t number, const char *text) {
  pb_put_bytes(w, number, text, strlen(text));
}

/* Appends a message that was written on the heap, and frees it. */
static inline void pb_put_message(pb_writer *w, uint32_t number, pb_writer *inner) {
  w->failed = w->failed || inner->failed;
  pb_put_bytes(w, number, inner->bytes, inner->n);
  pb_free(inner);
}

#endif
