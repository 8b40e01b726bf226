/* fake_cuda_state.h - the state of the fake driver: failures on demand, handles, contexts.  Only module_fake_cuda.c
 * includes it, since a module of the tests is built from one source. */
#ifndef TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_STATE_H
#define TESTS_UNIT_BACKEND_GPU_FAKE_CUDA_STATE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_gpu/runtime/cuda_driver.h"
#include "runtime/block_abi.h"
#include "runtime/host/code_loader.h"
#include "tests/ptx/ptx.h"
#include "tests/unit/backend_gpu/fake_cuda.h"

/* --- what tests ask --- */

static _Atomic uint64_t calls, breaches, graph_launches, compilations;
static _Atomic CUresult sticky; /* the error with which a device was lost */

uint64_t fake_cuda_calls(void) { return calls; }
uint64_t fake_cuda_breaches(void) { return breaches; }
uint64_t fake_cuda_graph_launches(void) { return graph_launches; }
uint64_t fake_cuda_compilations(void) { return compilations; }

static void STATUS_PRINTF(2, 3) breach(const char *function, const char *format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "fake CUDA: %s: %s\n", function, text);
  breaches++;
}

/* --- failures on demand --- */

typedef struct rule {
  char function[40];
  unsigned nth, seen;
  int error;
} rule;

static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static rule rules[8];
static unsigned n_rules;

static void read_rules(const char *text) {
  for (; text && *text && n_rules < sizeof rules / sizeof *rules; text += *text == ',') {
    rule *r = &rules[n_rules++];
    if (sscanf(text, "%39[^:]:%u:%d", r->function, &r->nth, &r->error) != 3) {
      breach("FAKE_CUDA_FAIL", "what is '%s'?", text);
    }
    text += strcspn(text, ",");
  }
}

static CUresult wanted_failure(const char *function) {
  CUresult error = CUDA_SUCCESS;
  pthread_mutex_lock(&rules_lock);
  for (rule *r = rules; r < rules + n_rules; r++) {
    bool any = strcmp(r->function, "any") == 0 && strcmp(function, "work") != 0;
    if ((any || strcmp(r->function, function) == 0) && ++r->seen == r->nth) {
      error = r->error;
    }
  }
  pthread_mutex_unlock(&rules_lock);
  return error;
}

static bool loses_device(CUresult r) { return r >= CUDA_ERROR_ILLEGAL_ADDRESS && r <= CUDA_ERROR_LAUNCH_FAILED; }

static void lose(CUresult r) {
  CUresult none = CUDA_SUCCESS;
  atomic_compare_exchange_strong(&sticky, &none, r);
}

/* A lock that streams hold for reading while they work; they do nothing if the device is lost. */
static pthread_rwlock_t working = PTHREAD_RWLOCK_INITIALIZER;

/* Waits until no stream works any more, so that nothing touches memory once a caller knows that the device is lost, and
 * returns the error. */
static CUresult stop_working(CUresult error) {
  pthread_rwlock_wrlock(&working);
  pthread_rwlock_unlock(&working);
  return error;
}

/* --- the state --- */

struct CUctx_st {
  CUdevice device;
};

typedef enum object_kind {
  MEMORY,
  HOST_MEMORY,
  STREAM,
  MODULE,
  FUNCTION,
  GRAPH,
  GRAPH_EXEC,
  EVENT,
  LINKER
} object_kind;

/* What the driver makes.  Handles are addresses of objects, which stay in the list when they are destroyed, so that a
 * stale handle is known as such. */
typedef struct object {
  struct object *next;
  object_kind kind;
  bool alive;
  CUcontext context;
} object;

typedef struct memory {
  object object;
  void *address;
  size_t bytes;
} memory;

struct CUstream_st {
  object object;
  rt_stream *queue;
  _Atomic int64_t left; /* pieces of work that are not done */
  CUgraph capture;      /* the graph to which submitted work is added; NULL if the stream is not captured */
  bool is_invalid;      /* whether a call that cannot be captured was made */
};

struct CUevent_st {
  object object;
  rt_event *event;
};

struct CUmod_st {
  object object;
  arena *arena;
  rt_code *code; /* NULL if it is PTX that is interpreted */
  ptx_module *ptx;
};

struct CUfunc_st {
  object object;
  CUmodule module;
  rt_block_fn *code;
  const ptx_function *ptx;   /* if it is interpreted; otherwise NULL */
  const int32_t *parameters; /* how many buffers and arguments it takes; NULL: unknown */
  unsigned most_shared_bytes;
};

static _Thread_local CUcontext current;
static _Thread_local CUstream capturing;                 /* the stream that this thread captures */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static _Atomic pid_t home;                               /* the process that called cuInit */
static object *objects;

static void *new_object(object_kind kind, size_t bytes) {
  object *o = calloc(1, bytes);
  if (!o) {
    abort();
  }
  *o = (object){.kind = kind, .alive = true, .context = current};
  return o;
}

/* Adds an object that is complete to the list, in which other threads find it. */
static void begin_object(object *o) {
  pthread_mutex_lock(&lock);
  o->next = objects;
  objects = o;
  pthread_mutex_unlock(&lock);
}

static void end_object(object *o) {
  pthread_mutex_lock(&lock);
  o->alive = false;
  pthread_mutex_unlock(&lock);
}

uint64_t fake_cuda_live(void) {
  uint64_t n = 0;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o; o = o->next) {
    n += o->alive && o->kind != FUNCTION;
  }
  pthread_mutex_unlock(&lock);
  return n;
}

/* Returns true if the handle is of a living object of this kind, in the current context. */
static bool is_alive(const char *function, const void *handle, object_kind kind) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const object *o = objects; o && !found; o = o->next) {
    found = o == handle && o->kind == kind && o->alive && o->context == current;
  }
  pthread_mutex_unlock(&lock);
  if (!found) {
    breach(function, "a handle that is unknown, destroyed, or of another context");
  }
  return found;
}

/* Begins a call.  Returns the error with which the call must end at once, or CUDA_SUCCESS. */
static CUresult begin(const char *function, bool in_context) {
  calls++;
  if (home && home != getpid()) {
    breach(function, "called in a child of the process that called cuInit");
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  CUresult wanted = wanted_failure(function);
  if (loses_device(wanted)) {
    lose(wanted);
  }
  if (wanted || (in_context && sticky)) {
    return sticky ? stop_working(wanted ? wanted : sticky) : wanted;
  }
  if (in_context && !current) {
    breach(function, "no context is current in this thread");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

#define BEGIN(in_context)                           \
  do {                                              \
    CUresult at_once = begin(__func__, in_context); \
    if (at_once != CUDA_SUCCESS) {                  \
      return at_once;                               \
    }                                               \
  } while (0)

/* Notes a breach of the rules by a call that cannot be captured, makes the capture of s invalid, and returns the
 * error. */
static CUresult refuse_in_capture(const char *function, CUstream s) {
  breach(function, "called while a stream is captured");
  s->is_invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* For calls that a thread which captures must not make. */
#define NOT_IN_CAPTURE()                             \
  do {                                               \
    if (capturing) {                                 \
      return refuse_in_capture(__func__, capturing); \
    }                                                \
  } while (0)

#define CHECK_HANDLE(handle, kind)             \
  do {                                         \
    if (!is_alive(__func__, (handle), kind)) { \
      return CUDA_ERROR_INVALID_HANDLE;        \
    }                                          \
  } while (0)

#endif
