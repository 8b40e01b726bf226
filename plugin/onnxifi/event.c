/* event.c - events, which are signalled once and never reset. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plugin/onnxifi/internal.h"

struct ifi_event {
  ifi_object object;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool promised, signalled, abandoned;
  onnxStatus outcome;
  char message[IFI_MESSAGE];
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
    pthread_condattr_t steady; /* the timeout of a wait must not depend on changes of the system time */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&e->changed, &steady);
    pthread_condattr_destroy(&steady);
  }
  return e;
}

ifi_object *ifi_event_object(ifi_event *e) { return e ? &e->object : NULL; }

bool ifi_event_signal(ifi_event *e, onnxStatus outcome, const char *message) {
  pthread_mutex_lock(&e->lock);
  bool first = !e->signalled;
  if (first) {
    e->outcome = outcome;
    snprintf(e->message, sizeof e->message, "%s", message ? message : "");
  }
  e->signalled = true;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  return first;
}

static struct timespec after(uint32_t milliseconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += milliseconds / 1000;
  t.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

ifi_waited ifi_event_wait(ifi_event *e, uint32_t milliseconds) {
  struct timespec end = after(milliseconds);
  bool late = false;
  pthread_mutex_lock(&e->lock);
  while (!e->signalled && !e->abandoned && !late) {
    late = (milliseconds ? pthread_cond_timedwait(&e->changed, &e->lock, &end)
                         : pthread_cond_wait(&e->changed, &e->lock)) == ETIMEDOUT;
  }
  ifi_waited result = e->signalled ? IFI_SIGNALLED : e->abandoned ? IFI_ABANDONED : IFI_LATE;
  pthread_mutex_unlock(&e->lock);
  return result;
}

onnxStatus ifi_event_outcome(ifi_event *e, char *message) {
  pthread_mutex_lock(&e->lock);
  onnxStatus outcome = e->outcome;
  snprintf(message, IFI_MESSAGE, "%s", e->message);
  pthread_mutex_unlock(&e->lock);
  return outcome;
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
  bool first = ifi_event_signal(e, ONNXIFI_STATUS_SUCCESS, NULL);
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
  ifi_waited waited = ifi_event_wait(e, 0);
  ifi_release(&e->object);
  return waited == IFI_SIGNALLED ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_EVENT;
}

/* An event that no run will signal is marked as abandoned, so that those who wait for it do not wait without end. */
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
