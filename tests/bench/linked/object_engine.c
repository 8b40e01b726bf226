/* object_engine.c - an object of onnx-xla (net.h, net.o), linked to the client.  bench_sizes.h, which objects.py
 * writes, has the sizes of its open dimensions.  One of them may be `past`, the number of rows that have been carried
 * so far; GROWS is 1 then, and otherwise 0. */
#define ONNX_XLA_POOL
#include "net.h"

#include <string.h>

#include "bench_sizes.h"
#include "client.h"
#include "object_memory.h"

enum { PAST_AXIS = 2 };

static net object;
static onnx_xla_pool pool;
static void *memory;
static int64_t past, bound_past;

static void check(int error) {
  if (error) {
    die("%s", net_error_text(error));
  }
}

/* Sets an input.  A carried input cannot be in the caller's memory: its contents are copied, or if it grows, only its
 * length is noted in `past`. */
static void set_input(const tensor *t) {
  for (uint32_t k = 0; k < NET_INPUTS; k++) {
    const onnx_xla_value *v = &net_inputs[k];
    if (strcmp(v->name, t->name) != 0 || net_set_input(&object, k, t->data) == NET_OK) {
      continue;
    }
    if (v->rank > PAST_AXIS && v->dims[PAST_AXIS] < 0) {
      past = t->dims[PAST_AXIS];
    } else {
      memcpy(net_input(&object, k), t->data, t->bytes);
    }
  }
}

static void set_inputs(int n, tensor *inputs) {
  for (int i = 0; i < n; i++) {
    set_input(&inputs[i]);
  }
}

/* The object itself carries its outputs, but must be told how many rows there are if they grow. */
static void carry(int output, const char *input) {
  (void)output;
  (void)input;
  past = bound_past + GROWS;
}

static void load(const char *library, const char *weights, int threads, int n, tensor *inputs) {
  (void)library;
  check(net_init(&object, *weights ? map_weights(weights) : NULL));
  memory = arena_of(MOST_BYTES);
  check(BIND(&object, memory));
  set_inputs(n, inputs);
  if (threads > 1) {
    onnx_xla_pool_start(&pool, threads);
    net_set_parallel(&object, onnx_xla_pool_run, &pool);
  }
}

static void execute(void) {
  if (past != bound_past) {
    bound_past = past;
    check(BIND(&object, memory));
  }
  check(net_run(&object));
}

static int outputs(tensor *out) {
  for (uint32_t k = 0; k < NET_OUTPUTS; k++) {
    const onnx_xla_value *v = &net_outputs[k];
    out[k] = (tensor){
        .type = v->onnx_type, .rank = v->rank, .data = net_output(&object, k), .bytes = (size_t)v->element_bytes};
    check(net_output_dims(&object, k, out[k].dims));
    for (int d = 0; d < v->rank; d++) {
      out[k].bytes *= (size_t)out[k].dims[d];
    }
  }
  return NET_OUTPUTS;
}

const engine engine_linked = {"linked", load, set_inputs, carry, execute, outputs, NULL, NULL};
