/* wire.c - writes protobuf's wire format. */
#include "plugin/onnxruntime/wire.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 }; /* protobuf's wire types */

static void put(ort_wire *w, const void *bytes, size_t n) {
  if (w->failed || n == 0) {
    return;
  }
  if (w->capacity - w->n < n) {
    size_t wanted = 2 * w->capacity > w->n + n ? 2 * w->capacity : w->n + n + 64;
    uint8_t *more = realloc(w->bytes, wanted);
    if (!more) {
      w->failed = true;
      return;
    }
    w->bytes = more;
    w->capacity = wanted;
  }
  memcpy(w->bytes + w->n, bytes, n);
  w->n += n;
}

static void put_varint(ort_wire *w, uint64_t v) {
  uint8_t bytes[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) {
    bytes[n++] = (uint8_t)(v | 0x80);
  }
  bytes[n++] = (uint8_t)v;
  put(w, bytes, n);
}

static void put_tag(ort_wire *w, uint32_t field, unsigned type) { put_varint(w, (uint64_t)field << 3 | type); }

void ort_wire_free(ort_wire *w) {
  free(w->bytes);
  *w = (ort_wire){0};
}

void ort_put_int(ort_wire *w, uint32_t field, int64_t value) {
  put_tag(w, field, VARINT);
  put_varint(w, (uint64_t)value);
}

void ort_put_float(ort_wire *w, uint32_t field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
  put_tag(w, field, FIXED32);
  put(w, bytes, sizeof bytes);
}

void ort_put_bytes(ort_wire *w, uint32_t field, const void *bytes, size_t n) {
  put_tag(w, field, LENGTH_DELIMITED);
  put_varint(w, n);
  put(w, bytes, n);
}

void ort_put_text(ort_wire *w, uint32_t field, const char *text) { ort_put_bytes(w, field, text, strlen(text)); }

void ort_put_message(ort_wire *w, uint32_t field, ort_wire *inner) {
  w->failed = w->failed || inner->failed;
  ort_put_bytes(w, field, inner->bytes, inner->n);
  ort_wire_free(inner);
}

/* --- reading --- */

static bool take_varint(ort_span *s, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; s->n && shift < 64; shift += 7) {
    uint8_t byte = *s->bytes++;
    s->n--;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      return true;
    }
  }
  return false;
}

bool ort_wire_next(ort_span *message, uint32_t *field, ort_span *content) {
  uint64_t tag, n = 0;
  *content = (ort_span){0};
  if (!take_varint(message, &tag)) {
    return false;
  }
  *field = (uint32_t)(tag >> 3);
  switch (tag & 7) {
    case VARINT: return take_varint(message, &n);
    case FIXED64: n = 8; break;
    case FIXED32: n = 4; break;
    case LENGTH_DELIMITED:
      if (!take_varint(message, &n) || n > message->n) {
        return false;
      }
      *content = (ort_span){message->bytes, (size_t)n};
      break;
    default: return false;
  }
  if (n > message->n) {
    return false;
  }
  message->bytes += n;
  message->n -= (size_t)n;
  return true;
}
