/* wire_scan.h - checks protobuf bytes, in bounded time and memory, before protobuf-c unpacks them (the wire scan).
 *
 * protobuf-c recurses as deep as the messages in a file are nested, may need many times the memory of the file, and
 * reports an error without its place or reason.  The scan reads the wire format without recursion, driven by
 * protobuf-c's own descriptors.  It does two things:
 * - It refuses damaged or hostile bytes, with a message that names the place: varints of more than 64 bits, lengths
 *   beyond the enclosing message, field number 0, groups, known fields with a wrong wire type, submessages that are
 *   given twice but are not repeated fields, nesting deeper than ONNX_WIRE_MAX_DEPTH, strings that are not UTF-8 or
 *   contain NUL (except doc_string), and contents that would need more memory than the arena's budget has left.
 * - It makes a copy without unknown fields and without the large payloads of tensors.  In the place of its payload, a
 *   TensorProto of the copy has the fields span_field, span_offset and span_length, which say where the payload is in
 *   the scanned bytes. */
#ifndef FRONTEND_MODEL_WIRE_SCAN_H
#define FRONTEND_MODEL_WIRE_SCAN_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

enum {
  ONNX_WIRE_MAX_DEPTH = 100,
  /* The payload of a tensor (raw_data, packed float_data or packed double_data) is left out of the copy if it has this
   * many bytes or more. */
  ONNX_WIRE_MIN_CUT = 1024,
  ONNX_WIRE_PRIVATE_FIELD = 100000 /* fields from this number on are not in the standard but added by this project's
                                      onnx.proto; the scan drops them if a file contains them */
};

/* Scans `size` bytes, which should be a message of the given type, and returns the copy, which is on the arena and at
 * most as large as the input.  span_offset counts from `bytes`.  Errors: INVALID_FILE, RESOURCE. */
STATUS_MUST_USE status onnx_wire_scan(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                      uint8_t **copy, size_t *copy_size);

/* Unpacks onto `a` the copy that the scan returned, or other bytes that protobuf-c has packed.  Nothing needs to be
 * freed.  The result is NULL only if there is a bug in the scan. */
ProtobufCMessage *onnx_wire_unpack(arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *copy, size_t size);

/* Scans and unpacks the bytes, with a temporary arena for the copy; the message is on `a`. */
STATUS_MUST_USE status onnx_wire_parse(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                                       ProtobufCMessage **out);

#endif
