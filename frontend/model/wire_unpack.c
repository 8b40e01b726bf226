/* wire_unpack.c - unpacks a message with protobuf-c, which allocates from an arena. */
#include <string.h>

#include "frontend/model/wire_scan.h"

/* While protobuf-c unpacks a message, it keeps temporary lists of the message's fields, which can be larger than the
 * message itself, and frees them afterwards.  Memory of an arena is not freed before the arena is.  So that such lists
 * do not stay as long as the model, each allocation of LARGE_MIN bytes or more gets an arena of its own, which
 * release destroys.  release recognises these allocations by their addresses: a large allocation starts 8 bytes
 * after a multiple of 16, all other memory of an arena at a multiple of 16.  (Multiples of 8 suffice, since nothing
 * that protobuf-c stores needs a larger alignment.) */
enum { LARGE_MIN = 8 * 1024, LARGE_OFFSET = 24 };

typedef struct large {
  struct large *next, *previous;
  arena *memory;
} large;

typedef struct unpack_memory {
  arena *arena;
  large first; /* the head of a circular list of the large allocations; it is not an allocation itself */
} unpack_memory;

static void destroy_larges(void *data) {
  unpack_memory *m = data;
  while (m->first.next != &m->first) {
    large *l = m->first.next;
    m->first.next = l->next;
    arena_destroy(l->memory); /* l itself is on m->arena */
  }
}

static void *take(void *data, size_t size) {
  unpack_memory *m = data;
  if (size < LARGE_MIN || size > SIZE_MAX / 2) {
    return arena_alloc(m->arena, size);
  }
  large *l = ARENA_NEW(m->arena, large);
  l->memory = arena_create(arena_budget(m->arena));
  l->next = m->first.next;
  l->previous = &m->first;
  l->next->previous = m->first.next = l;
  char *block = arena_alloc(l->memory, LARGE_OFFSET + size);
  memcpy(block, &l, sizeof l);
  return block + LARGE_OFFSET;
}

static void release(void *data, void *pointer) {
  (void)data;
  if ((uintptr_t)pointer % 16 == LARGE_OFFSET % 16) {
    large *l;
    memcpy(&l, (char *)pointer - LARGE_OFFSET, sizeof l);
    l->previous->next = l->next;
    l->next->previous = l->previous;
    arena_destroy(l->memory);
  }
}

ProtobufCMessage *onnx_wire_unpack(arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *copy, size_t size) {
  unpack_memory *m = ARENA_NEW(a, unpack_memory);
  m->arena = a;
  m->first.next = m->first.previous = &m->first;
  arena_cleanup(a, destroy_larges, m);
  ProtobufCAllocator allocator = {.alloc = take, .free = release, .allocator_data = m};
  return protobuf_c_message_unpack(type, &allocator, size, copy);
}

static void destroy_scratch(void *data) {
  arena **scratch = data;
  arena_destroy(*scratch);
  *scratch = NULL;
}

status onnx_wire_parse(arena *a, const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                       ProtobufCMessage **out) {
  arena **scratch = ARENA_NEW(a, arena *);
  arena_cleanup(a, destroy_scratch, scratch);
  *scratch = arena_create(arena_budget(a));
  uint8_t *copy;
  size_t copy_size;
  status failed = onnx_wire_scan(*scratch, type, bytes, size, &copy, &copy_size);
  if (!failed) {
    *out = onnx_wire_unpack(a, type, copy, copy_size);
    if (!*out) {
      failed = status_error(STATUS_INTERNAL, "protobuf-c refuses a message that the scan of its bytes accepts");
    }
  }
  destroy_scratch(scratch);
  return failed;
}
