/* wire_scan.h - a bounded look at protobuf bytes before protobuf-c unpacks them.
 *
 * protobuf-c recurses as deep as the bytes say, multiplies memory and says only "no".  The scan goes over the
 * wire format once without recursion, driven by protobuf-c's own descriptors, and
 * - refuses what is damaged or hostile, naming where: varints of more than 64 bits, lengths beyond the
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
  /* Raw_data, packed float_data and double_data are cut out if they have this many bytes or more. */
  ONNX_WIRE_MIN_CUT = 1024,
  ONNX_WIRE_PRIVATE_FIELD =
      100000 /* the fields of onnx.proto from this number on are added by us; they are dropped if a file has them */
};

/* Scans `size` bytes that should be a message of that type.  The copy is on the arena and at most as large as the
 * input. span_offset counts from `bytes`.  Errors: INVALID_FILE, RESOURCE. */
STATUS_MUST_USE status onnx_wire_scan(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                      uint8_t **copy, size_t *copy_size);

/* Unpacks the copy that the scan returned onto `a`.  Nothing needs to be freed.  It returns NULL only if there is a bug
 * in the scan. */
ProtobufCMessage *onnx_wire_unpack(arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *copy, size_t size);

/* Does both, with a temporary arena for the copy; the message is on `a`. */
STATUS_MUST_USE status onnx_wire_parse(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                       ProtobufCMessage **out);

#endif
