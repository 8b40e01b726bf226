/* wire_scan.c - checks bytes in protobuf's wire format and copies them without unknown fields and large payloads of
 * tensors (wire_scan.h). */
#include "frontend/model/wire_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/protobuf_wire.h"
#include "frontend/onnx.pb-c.h"

enum { MAX_FIELDS = 32, LENGTH_WIDTH_MAX = 5 };
enum { RAW_DATA = 9, FLOAT_DATA = 4, DOUBLE_DATA = 10 }; /* field numbers of TensorProto */

/* A message that has begun but not ended at the scan's current position. */
typedef struct frame {
  const ProtobufCMessageDescriptor *type;
  const uint8_t *end;
  size_t length_at;    /* the offset in the copy of the varint that holds this message's length */
  size_t length_width; /* the number of bytes of that varint; 0 for the outermost message, which has none */
  int in_field;        /* the current field: an index into type->fields and counts[], or -1 if it is unknown */
  uint32_t n_fields;
  bool cut;                    /* whether this is a tensor whose payload is left out of the copy */
  uint32_t counts[MAX_FIELDS]; /* how often each field has occurred so far, saturating */
} frame;

typedef struct scan {
  const uint8_t *start, *at;
  pb_writer out;        /* writes the copy; the first pass only counts its bytes, so it has no buffer then */
  uint64_t memory;      /* an estimate of the memory that the unpacked message needs */
  uint64_t most_fields; /* the largest number of fields in one message */
  int depth;            /* frames[depth] is the innermost message */
  frame frames[ONNX_WIRE_MAX_DEPTH];
} scan;

/* One field in the wire format. */
typedef struct item {
  const uint8_t *start; /* the first byte of its tag */
  pb_field wire;
  const ProtobufCFieldDescriptor *field; /* NULL for an unknown field */
  size_t length_width;                   /* the number of bytes of the length before the value */
} item;

/* --- errors --- */

/* Writes the path of the current field to `text`, for example "graph.node[3].attribute[1].t". */
static void write_path(const scan *s, char *text, size_t room) {
  size_t n = 0;
  text[0] = '\0';
  for (int i = 0; i <= s->depth && n < room; i++) {
    const frame *f = &s->frames[i];
    if (f->in_field < 0) {
      continue;
    }
    const ProtobufCFieldDescriptor *field = &f->type->fields[f->in_field];
    n += (size_t)snprintf(text + n, room - n, "%s%s", n ? "." : "", field->name);
    if (field->label == PROTOBUF_C_LABEL_REPEATED && n < room) {
      n += (size_t)snprintf(text + n, room - n, "[%" PRIu32 "]", f->counts[f->in_field] - 1);
    }
  }
}

static STATUS_PRINTF(3, 4) status fail(const scan *s, const uint8_t *at, const char *format, ...) {
  char path[600], rule[300];
  va_list args;
  va_start(args, format);
  c_vsnprintf(rule, sizeof rule, format, args);
  va_end(args);
  write_path(s, path, sizeof path);
  return status_error(STATUS_INVALID_FILE, "byte %zu%s%s: %s", (size_t)(at - s->start), path[0] ? ", " : "", path,
                      rule);
}

/* --- the wire format --- */

/* Returns the text of an error in a varint, or NULL for other errors. */
static const char *varint_error(pb_error wrong) {
  switch (wrong) {
    case PB_TRUNCATED: return "ends inside a number";
    case PB_OVERFLOW: return "a number of more than 64 bits";
    default: return NULL;
  }
}

static int wire_of(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return PB_I32;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return PB_I64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return PB_LEN;
    default: return PB_VARINT;
  }
}

static status read_tag(scan *s, item *it) {
  const frame *f = &s->frames[s->depth];
  pb_cursor rest = {s->at, f->end};
  it->start = s->at;
  pb_error wrong = pb_read_tag(&rest, &it->wire);
  s->at = rest.at;
  if (wrong == PB_NUMBER) {
    return fail(s, it->start, "field number %" PRIu64 " of %s is not a legal one", it->wire.number,
                f->type->short_name);
  }
  if (wrong == PB_TYPE) {
    return fail(s, it->start, "field %" PRIu64 " of %s has wire type %d, which ONNX does not use", it->wire.number,
                f->type->short_name, it->wire.wire_type);
  }
  if (wrong) {
    return fail(s, it->start, "%s", varint_error(wrong));
  }
  it->field = it->wire.number < ONNX_WIRE_PRIVATE_FIELD
                  ? protobuf_c_message_descriptor_get_field(f->type, (unsigned)it->wire.number)
                  : NULL;
  return NULL;
}

/* Finds where the value begins and ends, checks that it ends within the message, and moves s->at to its beginning. */
static status read_extent(scan *s, item *it) {
  const frame *f = &s->frames[s->depth];
  const char *name = it->field ? it->field->name : "an unknown field";
  pb_cursor rest = {s->at, f->end};
  pb_error wrong = pb_read_value(&rest, &it->wire);
  if (wrong == PB_LENGTH) {
    return fail(s, it->start, "%s is %" PRIu64 " bytes long, but only %" PRIu64 " are left in %s", name, it->wire.size,
                (uint64_t)(f->end - it->wire.value), f->type->short_name);
  }
  if (wrong) {
    return fail(s, it->start, "%s: %s", name, varint_error(wrong));
  }
  it->length_width = (size_t)(it->wire.value - s->at);
  s->at = it->wire.value;
  return NULL;
}

/* --- the copy --- */

/* Copies a field that is not a submessage. */
static void put_field(scan *s, const item *it) {
  pb_put_tag(&s->out, (uint32_t)it->wire.number, it->wire.wire_type);
  if (it->wire.wire_type == PB_LEN) {
    pb_put_varint(&s->out, it->wire.size);
  }
  pb_put(&s->out, it->wire.value, it->wire.size);
}

/* Instead of a tensor's payload, writes to the copy its field number and its position in the scanned bytes
 * (span_field, span_offset and span_length). */
static void put_span(scan *s, const item *it) {
  pb_put_int(&s->out, 100001, (int64_t)it->wire.number);
  pb_put_int(&s->out, 100002, it->wire.value - s->start);
  pb_put_int(&s->out, 100003, (int64_t)it->wire.size);
}

/* --- values --- */

/* Returns the offset of the first byte that a string must not contain (NUL, or not UTF-8), or n if there is none. */
static size_t valid_text(const uint8_t *p, size_t n) {
  enum { NO_CHARACTER = 4 };
  size_t i = 0;
  while (i < n) {
    uint32_t c = p[i];
    size_t more = c < 0x80                ? 0
                  : c >= 0xc2 && c < 0xe0 ? 1
                  : c >= 0xe0 && c < 0xf0 ? 2
                  : c >= 0xf0 && c < 0xf5 ? 3
                                          : NO_CHARACTER;
    if (c == 0 || more == NO_CHARACTER || more > n - 1 - i) {
      return i;
    }
    c &= more ? 0x3fu >> more : 0x7f;
    for (size_t k = 1; k <= more; k++) {
      if ((p[i + k] & 0xc0) != 0x80) {
        return i;
      }
      c = c << 6 | (p[i + k] & 0x3f);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
      return i;
    }
    i += more + 1;
  }
  return n;
}

static status check_text(const scan *s, const item *it) {
  if (!strcmp(it->field->name, "doc_string")) {
    return NULL; /* documentation is only displayed, never compared with other strings, so it may have any bytes */
  }
  size_t bad = valid_text(it->wire.value, it->wire.size);
  if (bad < it->wire.size) {
    return fail(s, it->wire.value + bad, "the string is not UTF-8 or contains NUL");
  }
  return NULL;
}

/* Checks that a packed repeated field consists of whole elements, and counts them. */
static status check_packed(const scan *s, const item *it, uint64_t *count) {
  int wire = wire_of(it->field->type);
  if (wire != PB_VARINT) {
    unsigned width = wire == PB_I64 ? 8 : 4;
    if (it->wire.size % width) {
      return fail(s, it->start, "a list of %" PRIu64 " bytes does not hold whole elements of %u", it->wire.size, width);
    }
    *count = it->wire.size / width;
    return NULL;
  }
  *count = 0;
  for (pb_cursor list = pb_value(&it->wire); list.at < list.end; ++*count) {
    uint64_t number;
    pb_error wrong = pb_read_varint(&list, &number);
    if (wrong) {
      return fail(s, it->start, "element %" PRIu64 " of the list: %s", *count, varint_error(wrong));
    }
  }
  return NULL;
}

/* Returns true if the field holds the elements of a tensor as one contiguous sequence of bytes. */
static bool is_payload(const frame *f, const item *it) {
  return f->type == &onnx__tensor_proto__descriptor && it->wire.wire_type == PB_LEN &&
         (it->wire.number == RAW_DATA || it->wire.number == FLOAT_DATA || it->wire.number == DOUBLE_DATA);
}

static status scan_payload(scan *s, frame *f, const item *it) {
  bool cut = it->wire.size >= ONNX_WIRE_MIN_CUT;
  if (f->cut || (f->counts[f->in_field] > 1 && (cut || it->wire.number == RAW_DATA))) {
    return fail(s, it->start, "the tensor has its elements in more than one piece");
  }
  f->cut = cut;
  if (cut) {
    put_span(s, it);
    return NULL;
  }
  put_field(s, it);
  s->memory += it->wire.size + 32;
  return NULL;
}

static status enter(scan *s, const item *it) {
  frame *f = &s->frames[s->depth];
  if (it->field->label != PROTOBUF_C_LABEL_REPEATED && f->counts[f->in_field] > 1) {
    return fail(s, it->start, "the message is given twice");
  }
  if (s->depth + 1 >= ONNX_WIRE_MAX_DEPTH) {
    return status_error(STATUS_INVALID_FILE, "byte %zu: messages are nested more than %d deep",
                        (size_t)(it->start - s->start), ONNX_WIRE_MAX_DEPTH);
  }
  pb_put_tag(&s->out, (uint32_t)it->wire.number, PB_LEN);
  frame *inner = &s->frames[++s->depth];
  *inner = (frame){.type = it->field->descriptor, .end = pb_value(&it->wire).end, .in_field = -1};
  inner->length_at = s->out.n;
  inner->length_width = it->length_width < LENGTH_WIDTH_MAX ? it->length_width : LENGTH_WIDTH_MAX;
  pb_put(&s->out, (uint8_t[LENGTH_WIDTH_MAX]){0}, inner->length_width);
  s->memory += inner->type->sizeof_message + 40;
  return NULL;
}

/* Handles the end of a message: writes its length to the copy, into the bytes that `enter` reserved.  These bytes
 * suffice, since a message is never longer in the copy than in the file. */
static status leave(scan *s) {
  const frame *f = &s->frames[s->depth];
  size_t length = s->out.n - f->length_at - f->length_width;
  if (length > INT32_MAX) {
    return fail(s, s->at, "more than 2 GiB without the tensors' data");
  }
  if (s->out.bytes) {
    pb_encode_varint(s->out.bytes + f->length_at, length, f->length_width);
  }
  s->most_fields = f->n_fields > s->most_fields ? f->n_fields : s->most_fields;
  s->depth--;
  return NULL;
}

static status scan_scalar(scan *s, const item *it) {
  uint64_t count = 1;
  bool has_length = it->wire.wire_type == PB_LEN, is_bytes = wire_of(it->field->type) == PB_LEN;
  if (has_length && !is_bytes) {
    TRY(check_packed(s, it, &count));
  } else if (it->field->type == PROTOBUF_C_TYPE_STRING) {
    TRY(check_text(s, it));
  }
  s->memory += is_bytes ? it->wire.size + 32 : 8 * count;
  put_field(s, it);
  return NULL;
}

static status scan_field(scan *s) {
  frame *f = &s->frames[s->depth];
  item it = {0};
  f->in_field = -1;
  TRY(read_tag(s, &it));
  if (!it.field) {
    TRY(read_extent(s, &it));
    s->at = pb_value(&it.wire).end;
    return NULL;
  }
  f->in_field = (int)(it.field - f->type->fields);
  f->counts[f->in_field] += f->counts[f->in_field] < UINT32_MAX;
  f->n_fields += f->n_fields < UINT32_MAX;
  int wire = wire_of(it.field->type);
  if (it.wire.wire_type != wire && !(it.wire.wire_type == PB_LEN && it.field->label == PROTOBUF_C_LABEL_REPEATED)) {
    return fail(s, it.start, "wire type %d, but the field has wire type %d", it.wire.wire_type, wire);
  }
  TRY(read_extent(s, &it));
  if (it.field->type == PROTOBUF_C_TYPE_MESSAGE) {
    return enter(s, &it);
  }
  if (is_payload(f, &it)) {
    uint64_t count;
    if (it.wire.number != RAW_DATA) {
      TRY(check_packed(s, &it, &count));
    }
    TRY(scan_payload(s, f, &it));
  } else {
    TRY(scan_scalar(s, &it));
  }
  s->at = pb_value(&it.wire).end;
  return NULL;
}

/* Scans all bytes, and writes the copy into the `room` bytes at `out`.  If `out` is NULL, it only counts the bytes of
 * the copy, in s->out.n. */
static status run(scan *s, const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size, uint8_t *out,
                  size_t room) {
  s->start = s->at = bytes;
  s->out = (pb_writer){.bytes = out, .capacity = room, .fixed = true};
  s->memory = type->sizeof_message;
  s->depth = 0;
  s->frames[0] = (frame){.type = type, .end = bytes + size, .in_field = -1};
  for (;;) {
    if (s->at < s->frames[s->depth].end) {
      TRY(scan_field(s));
    } else if (s->depth > 0) {
      TRY(leave(s));
    } else {
      break;
    }
  }
  s->most_fields = s->frames[0].n_fields > s->most_fields ? s->frames[0].n_fields : s->most_fields;
  return NULL;
}

/* Returns an error unless the rest of the budget suffices for the unpacked message, the copy, and protobuf-c's
 * temporary list of the fields of one message, whose capacity it doubles when it is full. */
static status check_memory(const scan *s, const mem_budget *b) {
  uint64_t need = s->memory + s->out.n + s->most_fields * 96;
  if (b && b->limit) {
    uint64_t used = b->used;
    uint64_t left = used < b->limit ? b->limit - used : 0;
    CHECK_THAT(need <= left, STATUS_RESOURCE,
               "the memory limit is used up: unpacking needs about %" PRIu64 " bytes, %" PRIu64 " are left", need,
               left);
  }
  return NULL;
}

status onnx_wire_scan(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size, uint8_t **copy,
                      size_t *copy_size) {
  scan *s = ARENA_NEW(a, scan);
  TRY(run(s, type, bytes, size, NULL, 0));
  TRY(check_memory(s, arena_budget(a)));
  size_t n = s->out.n;
  CHECK_THAT(n <= INT32_MAX, STATUS_INVALID_FILE, "more than 2 GiB without the tensors' data");
  *copy = arena_alloc(a, n);
  TRY(run(s, type, bytes, size, *copy, n));
  assert(s->out.n == n);
  *copy_size = n;
  return NULL;
}
