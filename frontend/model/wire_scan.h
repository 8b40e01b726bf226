/* wire_scan.h - a bounded look at protobuf bytes before protobuf-c unpacks them.
 *
 * protobuf-c recurses as deep as the bytes say, multiplies memory and says only "no".  The scan goes over the
 * wire format once without recursion, driven by protobuf-c's own descriptors, and
 * - refuses what is damaged or hostile, naming where: varints of more than 10 bytes, lengths beyond the
 * enclosing message, field number 0, groups, known fields with a wrong wire type, submessages given twice,
 * nesting deeper than ONNX_WIRE_MAX_DEPTH, strings that are not UTF-8 or contain NUL (documentation
 * excepted), and contents that would need more memory than the arena's budget has left;
 * - makes a compacted copy in which unknown fields are gone and the large payloads of tensors are cut out:
 * instead of them, a TensorProto has span_field, span_offset and span_length. */
#ifndef FRONTEND_MODEL_WIRE_SCAN_H
#define FRONTEND_MODEL_WIRE_SCAN_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

enum {
  ONNX_WIRE_MAX_DEPTH = 100,
  ONNX_WIRE_MIN_CUT = 1024,        /* raw_data, packed float_data and double_data from this many bytes on are cut */
  ONNX_WIRE_PRIVATE_FIELD = 100000 /* fields of onnx.proto from this number on are ours: dropped when a file has them */
};

/* Scans `size` bytes that claim to be a message of that type.  The copy is on the arena, at most as large as
 * the input; span offsets count from `bytes`.  Errors: INVALID_FILE, RESOURCE. */
STATUS_MUST_USE status onnx_wire_scan(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                      uint8_t **copy, size_t *copy_size);

/* Unpacks what the scan gave onto `a`.  NULL only for a bug of ours.  Nothing to free. */
ProtobufCMessage *onnx_wire_unpack(arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *copy, size_t size);

/* Both, by way of a scratch arena: the message on `a`. */
STATUS_MUST_USE status onnx_wire_parse(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                       ProtobufCMessage **out);

#endif
