/* inputs.c - see inputs.h. */
#include "plugin/cli/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plugin/cli/tensor.h"

static const char *list_inputs(const compiler_model *source, arena *a) {
  const char *text = source->n_inputs ? source->inputs[0].name : "none";
  for (uint32_t k = 1; k < source->n_inputs; k++) {
    text = arena_printf(a, "%s, %s", text, source->inputs[k].name);
  }
  return text;
}

/* Finds the value that NAME=VALUE names, and sets *file to VALUE.  Names may contain '=', so the longest name that fits
 * is taken.  Returns false if there is none. */
static bool find_value(const model_value *values, uint32_t n_values, const char *text, uint32_t *out,
                       const char **file) {
  size_t longest = 0;
  for (uint32_t k = 0; k < n_values; k++) {
    const char *name = values[k].name;
    size_t n = strlen(name);
    if (n >= longest && strncmp(text, name, n) == 0 && text[n] == '=') {
      longest = n;
      *out = k;
      *file = text + n + 1;
    }
  }
  return longest;
}

static status find_input(const compiler_model *source, const char *option, const char *text, arena *a, uint32_t *out,
                         const char **file) {
  CHECK_THAT(find_value(source->inputs, source->n_inputs, text, out, file), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME,
             "--%s %s: the model has no such input; its inputs: %s", option, text, list_inputs(source, a));
  return NULL;
}

/* Finds the input with a default that an argument of --input replaces.  Returns false if it gives another input. */
static bool find_default(const compiler_model *source, const char *text, uint32_t *out, const char **file) {
  return !find_value(source->inputs, source->n_inputs, text, out, file) &&
         find_value(source->defaults, source->n_defaults, text, out, file);
}

status cli_read_constants(const cli_args *args, const compiler_model *source, arena *a, compiler_constant **out,
                          uint32_t *n) {
  *n = 0;
  *out = ARENA_NEW_N(a, compiler_constant, args->inputs.n);
  for (uint32_t i = 0; i < args->inputs.n; i++) {
    const char *file;
    uint32_t k;
    if (find_default(source, args->inputs.items[i], &k, &file)) {
      compiler_constant *c = &(*out)[(*n)++];
      c->name = source->defaults[k].name;
      TRY(cli_read_value(a, file, &source->defaults[k], NULL, &c->value));
    }
  }
  return NULL;
}

/* Reads a shape such as AxBxC for an input with the type of `declared`. */
static status read_shape(const char *text, const shape *declared, shape *out) {
  const char *at = text;
  *out = shape_make((dtype)declared->type, 0, NULL);
  do {
    char *end;
    int64_t size = strtoll(at, &end, 10);
    CHECK_THAT(end != at && size >= 0 && size <= DIM_MAX && out->rank < SHAPE_MAX_RANK && strchr("x,", *end),
               STATUS_INVALID_ARGUMENT, "--shape: '%s' is not written as 1x3x224x224", text);
    out->dims[out->rank++] = size;
    at = *end ? end + 1 : end;
  } while (*at);
  return NULL;
}

static status read_shapes(const cli_args *args, const compiler_model *source, arena *a, literal *told) {
  for (uint32_t n = 0; n < args->shapes.n; n++) {
    const char *text;
    uint32_t k;
    TRY(find_input(source, "shape", args->shapes.items[n], a, &k, &text));
    TRY(read_shape(text, &source->inputs[k].shape, &told[k].shape));
  }
  return NULL;
}

status cli_tell_inputs(const cli_args *args, const compiler_model *source, string_table *strings, arena *a,
                       literal **out) {
  literal *told = *out = ARENA_NEW_N(a, literal, source->n_inputs);
  TRY(read_shapes(args, source, a, told));
  for (uint32_t n = 0; n < args->inputs.n; n++) {
    const char *file;
    uint32_t k;
    if (find_default(source, args->inputs.items[n], &k, &file)) {
      continue; /* the session was opened with it (cli_read_constants) */
    }
    TRY(find_input(source, "input", args->inputs.items[n], a, &k, &file));
    CHECK_THAT(!told[k].data, STATUS_INVALID_ARGUMENT, "--input %s: this input is given twice", args->inputs.items[n]);
    TRY(cli_read_value(a, file, &source->inputs[k], strings, &told[k]));
  }
  return NULL;
}

status cli_fill_inputs(const cli_args *args, const compiler_model *source, int64_t bytes, arena *a, literal *inputs) {
  const mem_budget time = {.deadline = deadline_after(args->max_seconds)};
  uint64_t seed = args->seed < 0 ? 0 : (uint64_t)args->seed;
  for (uint32_t k = 0; k < source->n_inputs; k++) {
    bool array = inputs[k].shape.kind == SHAPE_ARRAY; /* an optional that is not given has no element */
    if (array && !inputs[k].data && shape_bytes(&inputs[k].shape) <= bytes) {
      status failed = cli_random_tensor(a, &inputs[k].shape, seed + (uint64_t)k * 0x100000001u, &time, &inputs[k]);
      TRY(status_prefix(failed, "input '%s'", source->inputs[k].name));
    }
  }
  return NULL;
}
