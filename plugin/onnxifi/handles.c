/* handles.c - the table of live handles.  A handle consists of the number of a slot and the slot's generation, a number
 * that changes each time that the slot is used for another object. */
#include <pthread.h>
#include <stdlib.h>

#include "plugin/onnxifi/internal.h"

_Static_assert(sizeof(uintptr_t) == 8, "a handle holds two numbers of 32 bits");

typedef struct slot {
  ifi_object *object; /* NULL if the slot is free */
  uint32_t generation;
  uint32_t next_free; /* for a free slot, the number of the next free slot + 1, or 0 */
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slot *slots;
static uint32_t n_slots, capacity, first_free; /* first_free: a slot's number + 1, or 0 */

void ifi_object_init(ifi_object *o, ifi_kind kind, void (*destroy)(ifi_object *)) {
  o->kind = kind;
  o->references = 1;
  o->destroy = destroy;
}

void ifi_retain(ifi_object *o) { o->references++; }

void ifi_release(ifi_object *o) {
  if (o && --o->references == 0) {
    o->destroy(o);
  }
}

static bool grow(void) {
  uint32_t wanted = capacity ? 2 * capacity : 64;
  slot *grown = wanted > capacity ? realloc(slots, wanted * sizeof *slots) : NULL;
  if (grown) {
    slots = grown;
    capacity = wanted;
  }
  return grown;
}

/* Generations begin with a hash of an address in the library, so that handles of other libraries are not valid here. */
static uint32_t first_generation(void) { return ((uint32_t)((uintptr_t)&slots >> 4) * 0x9E3779B1u) | 1; }

/* Returns the number of a free slot + 1, or 0.  The caller holds the lock. */
static uint32_t free_slot(void) {
  if (first_free) {
    uint32_t found = first_free;
    first_free = slots[found - 1].next_free;
    return found;
  }
  if (n_slots == capacity && !grow()) {
    return 0;
  }
  slots[n_slots] = (slot){.generation = first_generation()};
  return ++n_slots;
}

void *ifi_handle_create(ifi_object *o) {
  pthread_mutex_lock(&lock);
  uint32_t number = free_slot();
  uintptr_t handle = 0;
  if (number) {
    slots[number - 1].object = o;
    handle = (uintptr_t)slots[number - 1].generation << 32 | number;
  }
  pthread_mutex_unlock(&lock);
  return (void *)handle;
}

/* Returns the slot of a live handle of that kind, or NULL.  The caller holds the lock. */
static slot *find(void *handle, ifi_kind kind) {
  uint32_t number = (uint32_t)(uintptr_t)handle, generation = (uint32_t)((uintptr_t)handle >> 32);
  if (number == 0 || number > n_slots) {
    return NULL;
  }
  slot *s = &slots[number - 1];
  return s->object && s->generation == generation && s->object->kind == kind ? s : NULL;
}

void *ifi_handle_get(void *handle, ifi_kind kind) {
  pthread_mutex_lock(&lock);
  slot *s = find(handle, kind);
  ifi_object *o = s ? s->object : NULL;
  if (o) {
    ifi_retain(o);
  }
  pthread_mutex_unlock(&lock);
  return o;
}

void *ifi_handle_take(void *handle, ifi_kind kind) {
  pthread_mutex_lock(&lock);
  slot *s = find(handle, kind);
  ifi_object *o = s ? s->object : NULL;
  if (o) {
    s->object = NULL;
    if (++s->generation != first_generation()) { /* a slot whose generations are used up is not used again */
      s->next_free = first_free;
      first_free = (uint32_t)(s - slots) + 1;
    }
  }
  pthread_mutex_unlock(&lock);
  return o;
}
