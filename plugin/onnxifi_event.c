/* onnxifi_event.c - events: signalled once, never taken back. */
#include <pthread.h>
#include <stdlib.h>

#include "plugin/onnxifi_parts.h"

struct ifi_event {
  ifi_object object;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool promised, signalled, abandoned;
};

static void destroy(ifi_object *o) {
  ifi_event *e = (ifi_event *)o;
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->lock);
  free(e);
}

ifi_event *ifi_event_create(bool promised) {
  ifi_event *e = calloc(1, sizeof *e);
  if (e) {
    ifi_object_init(&e->object, IFI_EVENT, destroy);
    e->promised = promised;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
  }
  return e;
}

ifi_object *ifi_event_object(ifi_event *e) { return e ? &e->object : NULL; }

bool ifi_event_signal(ifi_event *e) {
  pthread_mutex_lock(&e->lock);
  bool first = !e->signalled;
  e->signalled = true;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  return first;
}

bool ifi_event_wait(ifi_event *e) {
  pthread_mutex_lock(&e->lock);
  while (!e->signalled && !e->abandoned) {
    pthread_cond_wait(&e->changed, &e->lock);
  }
  bool signalled = e->signalled;
  pthread_mutex_unlock(&e->lock);
  return signalled;
}

/* --- the interface --- */

onnxStatus onnxInitEvent(onnxBackend backend, onnxEvent *event) {
  if (!event) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *event = NULL;
  ifi_backend *b = ifi_handle_get(backend, IFI_BACKEND);
  if (!b) {
    return ONNXIFI_STATUS_INVALID_BACKEND;
  }
  ifi_release(&b->object);
  ifi_event *e = ifi_event_create(false);
  *event = e ? ifi_handle_create(&e->object) : NULL;
  if (!*event) {
    ifi_release(ifi_event_object(e));
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus onnxSignalEvent(onnxEvent event) {
  ifi_event *e = ifi_handle_get(event, IFI_EVENT);
  if (!e) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  bool first = ifi_event_signal(e);
  ifi_release(&e->object);
  return first ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_STATE;
}

onnxStatus onnxGetEventState(onnxEvent event, onnxEventState *state) {
  if (!state) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *state = ONNXIFI_EVENT_STATE_INVALID;
  ifi_event *e = ifi_handle_get(event, IFI_EVENT);
  if (!e) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  pthread_mutex_lock(&e->lock);
  *state = e->signalled ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
  pthread_mutex_unlock(&e->lock);
  ifi_release(&e->object);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus onnxWaitEvent(onnxEvent event) {
  ifi_event *e = ifi_handle_get(event, IFI_EVENT);
  if (!e) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  bool signalled = ifi_event_wait(e);
  ifi_release(&e->object);
  return signalled ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_EVENT;
}

/* Whoever waits for an event that is released without a signal would wait for ever, unless a run still signals it. */
onnxStatus onnxReleaseEvent(onnxEvent event) {
  ifi_event *e = ifi_handle_take(event, IFI_EVENT);
  if (!e) {
    return ONNXIFI_STATUS_INVALID_EVENT;
  }
  pthread_mutex_lock(&e->lock);
  e->abandoned = !e->promised;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  ifi_release(&e->object);
  return ONNXIFI_STATUS_SUCCESS;
}
