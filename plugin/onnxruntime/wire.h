/* wire.h - protobuf's wire format, written: ONNX Runtime shows a provider its graph, but gives it no ModelProto;
 * and read, as far as finding fields goes. */
#ifndef PLUGIN_ONNXRUNTIME_WIRE_H
#define PLUGIN_ONNXRUNTIME_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a message.  All zeros: empty.  Without memory it is `failed` and what is written is lost. */
typedef struct ort_wire {
  uint8_t *bytes;
  size_t n, capacity;
  bool failed;
} ort_wire;

void ort_wire_free(ort_wire *w);
void ort_put_int(ort_wire *w, uint32_t field, int64_t value);
void ort_put_float(ort_wire *w, uint32_t field, float value);
void ort_put_bytes(ort_wire *w, uint32_t field, const void *bytes, size_t n);
void ort_put_text(ort_wire *w, uint32_t field, const char *text);
/* The inner message is freed. */
void ort_put_message(ort_wire *w, uint32_t field, ort_wire *inner);

typedef struct ort_span {
  const uint8_t *bytes;
  size_t n;
} ort_span;

/* Takes the next field off the beginning of a message; *content is empty unless it has a length.  false: there is
 * none, or what comes is no field. */
bool ort_wire_next(ort_span *message, uint32_t *field, ort_span *content);

#endif
