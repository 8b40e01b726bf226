/* emx_engine.c - C source that emx-onnx-cgen has written for a model with one input and one output, linked to the
 * client. bench_sizes.h has OUTPUT_DIMS, the output's dimensions. */
#include "bench_sizes.h"
#include "client.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FLOAT = 1 };

void model(const void *input, void *output);
bool model_load(const char *path);

static const int64_t dims[] = {OUTPUT_DIMS};
static const void *input;
static tensor output;

static void set_inputs(int n, tensor *inputs) { input = inputs[n - 1].data; }

static void load(const char *library, const char *weights, int threads, int n, tensor *inputs) {
  (void)library;
  if (threads != 1 || n != 1 || !model_load(weights)) {
    die("the C source of emx-onnx-cgen takes one input and one thread");
  }
  output = (tensor){.type = FLOAT, .rank = sizeof dims / sizeof *dims, .bytes = sizeof(float)};
  for (int d = 0; d < output.rank; d++) {
    output.dims[d] = dims[d];
    output.bytes *= (size_t)dims[d];
  }
  output.data = malloc(output.bytes);
  set_inputs(n, inputs);
}

static void carry(int number, const char *name) { die("output %d cannot become input %s", number, name); }

static void execute(void) { model(input, output.data); }

static int outputs(tensor *out) {
  out[0] = output;
  return 1;
}

const engine engine_linked = {"linked", load, set_inputs, carry, execute, outputs, NULL, NULL};
