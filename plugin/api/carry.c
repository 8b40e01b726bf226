/* carry.c - outputs that become inputs of a run's next execution (oxla_options.carried).
 *
 * The value of such an input is in memory of the run.  If the program writes the output in place, this memory has room
 * along the dimension along which the output grows, and larger memory replaces it when it is full.  Otherwise the
 * memories of the output and of the input change places after each execution. */
#include <string.h>

#include "plugin/api/internal.h"

static const compiler_carry *pairs_of(const oxla_run *run, uint32_t *n) {
  return session_carried(run->model->session, n);
}

/* Returns the index of the first pair with this output or this input, or the number of pairs if there is none.  Callers
 * look for one of the two and pass SIZE_MAX for the other, which no pair has. */
static uint32_t find_pair(const oxla_run *run, size_t output, size_t input) {
  uint32_t n, k = 0;
  const compiler_carry *pairs = pairs_of(run, &n);
  while (k < n && pairs[k].output != output && pairs[k].input != input) {
    k++;
  }
  return k;
}

uint32_t api_carried_output(const oxla_run *run, size_t output) { return find_pair(run, output, SIZE_MAX); }

uint32_t api_carried_input(const oxla_run *run, size_t input) { return find_pair(run, SIZE_MAX, input); }

bool api_is_carried(const oxla_run *run, size_t input) {
  uint32_t n, k = api_carried_input(run, input);
  (void)pairs_of(run, &n);
  return k < n && run->carried[k].memory.own;
}

static void drop(oxla_run *run, uint32_t k) { session_output_finish(run->model->session, &run->carried[k].memory); }

void api_drop_carried(oxla_run *run, size_t input) {
  if (api_is_carried(run, input)) {
    drop(run, api_carried_input(run, input));
  }
}

void api_free_carried(oxla_run *run) {
  uint32_t n;
  (void)pairs_of(run, &n);
  for (uint32_t k = 0; run->carried && k < n; k++) {
    drop(run, k);
  }
}

/* --- memory with room --- */

/* An array that grows along dimension `axis`, seen as `n` lines, each of dims[axis] rows of `row_bytes` bytes.  There
 * is one line for each index of the dimensions before `axis`.  An array of shape [2,5,8] with axis 1 has 2 lines of 5
 * rows. */
typedef struct lines {
  size_t n, row_bytes;
} lines;

/* Returns the lines of an array, or one line with one row if it does not grow (axis is -1). */
static lines lines_of(const shape *s, int axis) {
  if (axis < 0) {
    return (lines){1, (size_t)shape_bytes(s)};
  }
  return (lines){(size_t)shape_product(s, 0, axis),
                 (size_t)shape_product(s, axis + 1, s->rank) * dtype_bytes((dtype)s->type)};
}

static int64_t rows_of(const shape *s, int axis) { return axis < 0 ? 1 : s->dims[axis]; }

/* Copies the first `rows` rows of each line.  `from_room` and `to_room` are the numbers of rows from the start of one
 * line to the start of the next one in `from` and in `to`. */
static void copy_rows(const lines *l, int64_t rows, const void *from, int64_t from_room, void *to, int64_t to_room) {
  for (size_t k = 0; k < l->n && rows && l->row_bytes; k++) {
    memcpy((char *)to + k * (size_t)to_room * l->row_bytes, (const char *)from + k * (size_t)from_room * l->row_bytes,
           (size_t)rows * l->row_bytes);
  }
}

/* Makes sure that the value of the input of pair k is in run->carried[k].memory, and that this memory has room for
 * exactly `room` rows in each line.  If the value is elsewhere, for example in the caller's memory, or if the room is
 * another one, the value is copied to new memory. */
static status place(oxla_run *run, uint32_t k, const compiler_carry *pair, int64_t room) {
  session *s = run->model->session;
  api_carried *c = &run->carried[k];
  const shape *value = &run->shapes[pair->input];
  lines l = lines_of(value, pair->axis);
  if (!c->memory.own || c->room != room) {
    int64_t rows = rows_of(value, pair->axis);
    session_output larger = {0};
    TRY(session_output_reserve(s, &larger, l.n * (size_t)room * l.row_bytes, "carried input",
                               session_source(s)->inputs[pair->input].name));
    copy_rows(&l, rows, run->data[pair->input], c->memory.own ? c->room : rows, larger.own, room);
    drop(run, k);
    c->memory = larger;
    c->room = room;
  }
  run->data[pair->input] = c->memory.own;
  return NULL;
}

/* Returns the program's result for the output of `pair` if the program writes it into the memory with room of its
 * input, otherwise NULL. */
static const rt_io *result_with_room(const oxla_run *run, const compiler_carry *pair) {
  const rt_program *p = run->compiled->program;
  return p && session_keeps_output(run->model->session, p, pair->output) ? &p->results[pair->output] : NULL;
}

status api_place_carried(oxla_run *run) {
  uint32_t n;
  const compiler_carry *pairs = pairs_of(run, &n);
  for (uint32_t k = 0; k < n; k++) {
    const rt_io *result = result_with_room(run, &pairs[k]);
    TRY(place(run, k, &pairs[k], rows_of(result ? &result->shape : &run->shapes[pairs[k].input], pairs[k].axis)));
  }
  return NULL;
}

/* --- after an execution --- */

static void advance(oxla_run *run, uint32_t k, const compiler_carry *pair) {
  session_output *o = &run->outputs[pair->output], *c = &run->carried[k].memory;
  if (!result_with_room(run, pair)) {
    session_output computed = *o;
    o->own = c->own;
    o->own_bytes = c->own_bytes;
    c->own = computed.own;
    c->own_bytes = computed.own_bytes;
    run->carried[k].room = rows_of(&o->shape, pair->axis);
  }
  o->data = NULL; /* api_pack_carried sets it to a copy when the output is asked for */
  run->data[pair->input] = c->own;
  run->resized |= !shape_equal(&run->shapes[pair->input], &o->shape);
  run->shapes[pair->input] = o->shape;
}

void api_advance_carried(oxla_run *run) {
  uint32_t n;
  const compiler_carry *pairs = pairs_of(run, &n);
  for (uint32_t k = 0; k < n; k++) {
    advance(run, k, &pairs[k]);
  }
}

status api_pack_carried(oxla_run *run, uint32_t k, const shape *s) {
  uint32_t n, j = api_carried_output(run, k);
  const compiler_carry *pair = &pairs_of(run, &n)[j];
  session_output *o = &run->outputs[k];
  if (o->data) {
    return NULL;
  }
  CHECK_THAT(run->carried[j].memory.own, STATUS_INVALID_ARGUMENT,
             "output '%s' was carried, and its input has been set anew",
             session_source(run->model->session)->outputs[k].name);
  TRY(session_output_reserve(run->model->session, o, (size_t)shape_bytes(s), "output",
                             session_source(run->model->session)->outputs[k].name));
  lines l = lines_of(s, pair->axis);
  int64_t rows = rows_of(s, pair->axis);
  copy_rows(&l, rows, run->carried[j].memory.own, run->carried[j].room, o->own, rows);
  o->data = o->own;
  return NULL;
}

/* --- rewinding --- */

static status rewind_input(oxla_run *run, const char *name, int64_t length) {
  TRY(api_check_idle(run));
  CHECK_THAT(name, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "no input name is given");
  uint32_t n;
  const compiler_carry *pairs = pairs_of(run, &n);
  const model_value *inputs = session_source(run->model->session)->inputs;
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(inputs[pairs[k].input].name, name) != 0 || pairs[k].axis < 0) {
      continue;
    }
    int64_t *rows = &run->shapes[pairs[k].input].dims[pairs[k].axis];
    CHECK_THAT(run->carried[k].memory.own, STATUS_INVALID_ARGUMENT, "input '%s' has not been computed yet", name);
    CHECK_THAT(length >= 0 && length <= *rows, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
               "input '%s' cannot be rewound to %lld: it has %lld elements along dimension %d", name, (long long)length,
               (long long)*rows, pairs[k].axis);
    run->resized |= *rows != length;
    *rows = length;
    return NULL;
  }
  return status_error(STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "no output that grows is carried in an input '%s'",
                      name);
}

oxla_error *oxla_rewind(oxla_run *run, const char *input, int64_t length) {
  return api_error(rewind_input(run, input, length));
}
