/* engine_ours.c - onnx-xla through its public header.  Environment variables set its options: ONNX_XLA_CACHE is the
 * cache folder, as for the command line; BENCH_DETERMINISTIC, set to anything, switches on `deterministic`;
 * BENCH_SPECIALISE is `specialise`; BENCH_CARRIED lists the outputs that are carried, "OUTPUT=INPUT:AXIS ...", which
 * must be known when the model is loaded. */
#include "client.h"
#include "onnx-xla.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define FUNCTIONS(F) \
  F(oxla_load) \
  F(oxla_run_create) \
  F(oxla_set_input) \
  F(oxla_execute) \
  F(oxla_output_count) \
  F(oxla_output_name) \
  F(oxla_get_output) \
  F(oxla_error_message) \
  F(oxla_run_destroy) \
  F(oxla_model_destroy)
/* clang-format on */
#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)

/* NULL in builds that tune before the first run. */
static __typeof__(oxla_await_tuned) *p_oxla_await_tuned;

/* In builds that cannot carry outputs, an output belongs to the run that computed it, so two runs execute by turns. */
static oxla_model *model;
static oxla_run *run, *other;
static bool carries, carries_itself;

static void check(oxla_error *error) {
  if (error) {
    die("%s", p_oxla_error_message(error));
  }
}

static void set_inputs(int n, tensor *inputs) {
  for (int i = 0; i < n; i++) {
    const tensor *t = &inputs[i];
    check(p_oxla_set_input(run, t->name, (oxla_type)t->type, t->rank, t->dims, t->data));
    check(p_oxla_set_input(other, t->name, (oxla_type)t->type, t->rank, t->dims, t->data));
  }
}

static void carry(int output, const char *input) {
  oxla_tensor t;
  if (carries_itself) {
    return;
  }
  check(p_oxla_get_output(run, p_oxla_output_name(model, (size_t)output), &t));
  check(p_oxla_set_input(other, input, t.type, t.rank, t.dims, t.data));
  carries = true;
}

/* Opens the model again with the outputs that are carried. */
static void load_carrying(const char *path, oxla_options *options, char *text) {
  static oxla_carried list[MAX_TENSORS];
  oxla_model *first = model;
  for (char *word = strtok(text, " "); word && options->n_carried < MAX_TENSORS; word = strtok(NULL, " ")) {
    char *input = strchr(word, '='), *axis = input ? strchr(input, ':') : NULL;
    if (!axis) {
      die("%s is no OUTPUT=INPUT:AXIS", word);
    }
    *input++ = *axis++ = 0;
    list[options->n_carried++] = (oxla_carried){p_oxla_output_name(first, (size_t)atoi(word)), input, atoi(axis)};
  }
  options->carried = list;
  check(p_oxla_load(path, options, &model));
  p_oxla_model_destroy(first);
  carries_itself = true;
}

static void load(const char *library, const char *path, int threads, int n, tensor *inputs) {
  void *lib = open_library(library);
#define FIND(name) p_##name = (__typeof__(p_##name))need_symbol(lib, #name);
  FUNCTIONS(FIND)
  p_oxla_await_tuned = (__typeof__(p_oxla_await_tuned))dlsym(lib, "oxla_await_tuned");
  oxla_options options = {.size = sizeof options,
                          .threads = threads,
                          .cache = getenv("ONNX_XLA_CACHE"),
                          .specialise = getenv("BENCH_SPECIALISE"),
                          .deterministic = getenv("BENCH_DETERMINISTIC") != NULL};
  check(p_oxla_load(path, &options, &model));
  const char *carried = dlsym(lib, "oxla_rewind") ? getenv("BENCH_CARRIED") : NULL;
  if (carried) {
    load_carrying(path, &options, strdup(carried));
  }
  check(p_oxla_run_create(model, &run));
  check(p_oxla_run_create(model, &other));
  set_inputs(n, inputs);
}

static void execute(void) {
  if (carries) {
    oxla_run *next = other;
    other = run;
    run = next;
    carries = false;
  }
  check(p_oxla_execute(run));
}

static int outputs(tensor *out) {
  size_t n = p_oxla_output_count(model);
  for (size_t k = 0; k < n && k < MAX_TENSORS; k++) {
    oxla_tensor t;
    check(p_oxla_get_output(run, p_oxla_output_name(model, k), &t));
    out[k] = (tensor){.type = (int)t.type, .rank = t.rank, .data = t.data, .bytes = t.bytes};
    memcpy(out[k].dims, t.dims, sizeof out[k].dims);
  }
  return (int)n;
}

static void settle(void) {
  if (p_oxla_await_tuned) {
    p_oxla_await_tuned(model);
  }
}

static void close_model(void) {
  p_oxla_run_destroy(run);
  p_oxla_run_destroy(other);
  p_oxla_model_destroy(model);
}

const engine engine_ours = {"ours", load, set_inputs, carry, execute, outputs, settle, close_model};
