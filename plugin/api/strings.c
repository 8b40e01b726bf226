/* strings.c - the numbers of strings, which arrays of OXLA_STRING have. */
#include "base/tensor/string_table.h"
#include "plugin/api/internal.h"

static status create_table(void *data) {
  oxla_run *run = data;
  run->string_memory = run->string_memory ? run->string_memory : session_create_arena(run->model->session);
  run->strings = string_table_create(run->string_memory, session_source(run->model->session)->strings);
  return NULL;
}

static bool holds_strings(uint32_t n, const model_value *values) {
  bool found = false;
  for (uint32_t k = 0; k < n; k++) {
    found |= values[k].shape.type == DTYPE_STR || values[k].key == DTYPE_STR;
  }
  return found;
}

status api_need_strings(oxla_run *run) {
  const compiler_model *m = session_source(run->model->session);
  bool has_strings = !run->compiled->program || string_table_count(m->strings) > 1 ||
                     holds_strings(m->n_inputs, m->inputs) || holds_strings(m->n_outputs, m->outputs);
  return has_strings && !run->strings ? guard_run(create_table, run) : NULL;
}

typedef struct adding {
  string_table *table;
  const void *bytes;
  size_t n;
  uint64_t number;
} adding;

static status add(void *data) {
  adding *x = data;
  x->number = string_table_add(x->table, x->bytes, x->n);
  return NULL;
}

static status number_of(oxla_run *run, const char *bytes, size_t n, uint64_t *out) {
  TRY(api_check_idle(run));
  CHECK_THAT(bytes || n == 0, STATUS_INVALID_ARGUMENT, "no string is given");
  TRY(run->strings ? NULL : guard_run(create_table, run));
  adding x = {.table = run->strings, .bytes = bytes, .n = n};
  TRY(guard_run(add, &x));
  *out = x.number;
  return NULL;
}

oxla_error *oxla_string_number(oxla_run *run, const char *bytes, size_t n, uint64_t *out) {
  return api_error(number_of(run, bytes, n, out));
}

const char *oxla_string_bytes(const oxla_run *run, uint64_t number, size_t *n) {
  const string_table *t = run->strings ? run->strings : session_source(run->model->session)->strings;
  size_t size = 0;
  const char *bytes = string_table_text(t, number, &size);
  if (n) {
    *n = size;
  }
  return bytes;
}

void oxla_forget_strings(oxla_run *run) {
  arena_destroy(run->string_memory);
  run->string_memory = NULL;
  run->strings = NULL;
}
