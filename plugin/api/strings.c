/* strings.c - the numbers of strings, which arrays of OXLA_STRING have. */
#include "base/tensor/string_table.h"
#include "plugin/api/internal.h"

typedef struct adding {
  oxla_run *run;
  const void *bytes;
  size_t n;
  uint64_t number;
} adding;

static status add(void *data) {
  adding *x = data;
  if (!x->run->string_memory) {
    x->run->string_memory = session_create_arena(x->run->model->session);
  }
  if (!x->run->strings) {
    x->run->strings = string_table_create(x->run->string_memory, session_source(x->run->model->session)->strings);
  }
  x->number = string_table_add(x->run->strings, x->bytes, x->n);
  return NULL;
}

static status number_of(oxla_run *run, const char *bytes, size_t n, uint64_t *out) {
  adding x = {.run = run, .bytes = bytes, .n = n};
  TRY(api_check_idle(run));
  CHECK_THAT(bytes || n == 0, STATUS_INVALID_ARGUMENT, "no string is given");
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
