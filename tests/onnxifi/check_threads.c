/* check_threads.c - eight threads with twenty graphs: runs in flight, graphs that other threads replace meanwhile,
 * events and graphs released in any order, and stale handles.  It is also run with TSan and ASan. */
#include <pthread.h>

#include "../api/write_model.h"
#include "../suite.h"
#include "onnxifi_client.h"

enum { THREADS = 8, GRAPHS = 20, RUNS = 10000, IN_FLIGHT = 4, N = 4 };

/* A place for a graph.  Whoever holds the lock may set the graph's inputs and outputs and start a run; that run goes on
 * after the lock is released. */
typedef struct place {
  pthread_mutex_t lock;
  onnxGraph graph;
  float w[N], b[N];
} place;

static place places[GRAPHS];

static uint32_t random_below(uint64_t *state, uint32_t n) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % n;
}

/* --- graphs --- */

/* Returns a graph of a backend that is released at once: the graph keeps what it needs. */
static onnxGraph make_graph(uint64_t *state, place *p) {
  onnxBackend own;
  onnxGraph g;
  for (int k = 0; k < N; k++) {
    p->w[k] = (float)random_below(state, 100) - 50;
    p->b[k] = (float)random_below(state, 100);
  }
  message m = affine_model(p->w, p->b);
  ck_assert_int_eq(lib.onnxInitBackend(ids[random_below(state, 4) == 0], NULL, &own), OK);
  ck_assert_int_eq(lib.onnxInitGraph(own, NULL, m.n, m.bytes, 0, NULL, &g), OK);
  ck_assert_int_eq(lib.onnxReleaseBackend(own), OK);
  return g;
}

/* Replaces the graph at the place.  Runs of the old graph may be under way, and releasing it waits for them. */
static void replace_graph(uint64_t *state, place *p) {
  pthread_mutex_lock(&p->lock);
  onnxGraph old = p->graph;
  p->graph = make_graph(state, p);
  pthread_mutex_unlock(&p->lock);
  ck_assert_int_eq(lib.onnxReleaseGraph(old), OK);
  onnxMemoryFenceV1 in = fence(NULL), out = fence(NULL);
  IS(INVALID_GRAPH, lib.onnxRunGraph(old, &in, &out));
  IS(INVALID_GRAPH, lib.onnxReleaseGraph(old));
  IS(INVALID_EVENT, lib.onnxSignalEvent(old));
}

/* --- runs --- */

typedef struct flight {
  onnxEvent before, after;
  float x[N], y[N], want[N];
} flight;

static void start(uint64_t *state, flight *f) {
  place *p = &places[random_below(state, GRAPHS)];
  uint64_t shape[] = {1, N};
  onnxTensorDescriptorV1 in = describe("x", 2, shape, f->x), out = describe("y", 2, shape, f->y);
  ck_assert_int_eq(lib.onnxInitEvent(backend, &f->before), OK);
  onnxMemoryFenceV1 first = fence(f->before), last = fence(NULL);
  pthread_mutex_lock(&p->lock);
  ck_assert_int_eq(lib.onnxSetGraphIO(p->graph, 1, &in, 1, &out), OK);
  ck_assert_int_eq(lib.onnxRunGraph(p->graph, &first, &last), OK);
  for (int k = 0; k < N; k++) { /* the inputs may still be written */
    f->x[k] = (float)random_below(state, 1000);
  }
  affine(1, f->x, p->w, p->b, f->want);
  pthread_mutex_unlock(&p->lock);
  f->after = last.event;
  ck_assert_int_eq(lib.onnxSignalEvent(f->before), OK);
  ck_assert_int_eq(lib.onnxReleaseEvent(f->before), OK); /* the run no longer needs the event */
  IS(INVALID_EVENT, lib.onnxSignalEvent(f->before));
}

static void finish(flight *f) {
  onnxEventState state;
  ck_assert_int_eq(lib.onnxWaitEvent(f->after), OK);
  ck_assert_int_eq(lib.onnxGetEventState(f->after, &state), OK);
  ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_SIGNALLED);
  ck_assert_mem_eq(f->y, f->want, sizeof f->y);
  ck_assert_int_eq(lib.onnxReleaseEvent(f->after), OK);
  IS(INVALID_EVENT, lib.onnxWaitEvent(f->after));
}

typedef struct work {
  pthread_t thread;
  uint64_t state;
  int runs;
} work;

/* Starts some runs at a time, and finishes them in any order. */
static void *client(void *data) {
  work *w = data;
  flight flights[IN_FLIGHT];
  uint32_t order[IN_FLIGHT];
  for (int done = 0; done < w->runs; done += IN_FLIGHT) {
    for (int k = 0; k < IN_FLIGHT; k++) {
      start(&w->state, &flights[k]);
      order[k] = (uint32_t)k;
    }
    if (random_below(&w->state, 20) == 0) {
      replace_graph(&w->state, &places[random_below(&w->state, GRAPHS)]);
    }
    for (int left = IN_FLIGHT; left > 0; left--) {
      uint32_t at = random_below(&w->state, (uint32_t)left);
      finish(&flights[order[at]]);
      order[at] = order[left - 1];
    }
  }
  return NULL;
}

START_TEST(random_orders) {
  open_backend(0);
  uint64_t state = 1;
  work works[THREADS];
  for (int k = 0; k < GRAPHS; k++) {
    pthread_mutex_init(&places[k].lock, NULL);
    places[k].graph = make_graph(&state, &places[k]);
  }
  for (int k = 0; k < THREADS; k++) {
    works[k] = (work){.state = (uint64_t)k + 7, .runs = RUNS / THREADS};
    ck_assert_int_eq(pthread_create(&works[k].thread, NULL, client, &works[k]), 0);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(works[k].thread, NULL);
  }
  for (int k = GRAPHS; k-- > 0;) {
    ck_assert_int_eq(lib.onnxReleaseGraph(places[k].graph), OK);
    pthread_mutex_destroy(&places[k].lock);
  }
  ck_assert_int_eq(lib.onnxReleaseBackend(backend), OK);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 500);
  tcase_add_test(t, random_orders);
  return run_suite("onnxifi threads", t);
}
