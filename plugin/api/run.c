/* run.c - implements onnx-xla.h: runs and their outputs. */
#include <stdlib.h>
#include <string.h>

#include "plugin/api/internal.h"

static session *session_of(const oxla_run *run) { return run->model->session; }
static const compiler_model *source_of(const oxla_run *run) { return session_source(session_of(run)); }

static size_t n_carried(const oxla_model *model) {
  uint32_t n;
  (void)session_carried(model->session, &n);
  return n;
}

static status create(oxla_model *model, oxla_run **out) {
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  *out = NULL;
  CHECK_THAT(model, STATUS_INVALID_ARGUMENT, "no model");
  const compiler_model *s = session_source(model->session);
  oxla_run *r = calloc(1, sizeof *r);
  if (r) {
    r->model = model;
    r->shapes = calloc(s->n_inputs + 1, sizeof *r->shapes);
    r->set = calloc(s->n_inputs + 1, sizeof *r->set);
    r->data = calloc(s->n_inputs + 1, sizeof *r->data);
    r->device_data = calloc(s->n_inputs + 1, sizeof *r->device_data);
    r->lists = calloc(s->n_inputs + 1, sizeof *r->lists);
    r->tensors = calloc(s->n_inputs + 1, sizeof *r->tensors);
    r->kept = calloc(s->n_inputs + 1, sizeof *r->kept);
    r->outputs = calloc(s->n_outputs + 1, sizeof *r->outputs);
    r->carried = calloc(n_carried(model) + 1, sizeof *r->carried);
    r->spans = calloc((size_t)s->n_inputs + s->n_outputs + 1, sizeof *r->spans);
  }
  if (!r || !r->shapes || !r->set || !r->data || !r->device_data || !r->lists || !r->tensors || !r->kept ||
      !r->outputs || !r->spans || !r->carried) {
    oxla_run_destroy(r);
    return status_error(STATUS_RESOURCE, "out of memory");
  }
  *out = r;
  return NULL;
}

oxla_error *oxla_run_create(oxla_model *model, oxla_run **out) { return api_error(create(model, out)); }

static void forget_program(oxla_run *run) {
  session_release(session_of(run), run->compiled);
  run->compiled = NULL;
}

static void finish_all(oxla_run *run, session_output *buffers, uint32_t n) {
  for (uint32_t k = 0; buffers && k < n; k++) {
    session_output_finish(session_of(run), &buffers[k]);
  }
  free(buffers);
}

void oxla_run_destroy(oxla_run *run) {
  if (!run) {
    return;
  }
  oxla_cancel(run, 1);
  api_worker_destroy(run->worker);
  finish_all(run, run->kept, source_of(run)->n_inputs);
  finish_all(run, run->outputs, source_of(run)->n_outputs);
  forget_program(run);
  oxla_forget_strings(run);
  api_free_carried(run);
  for (uint32_t k = 0; run->tensors && k < source_of(run)->n_inputs; k++) {
    api_drop_tensor(run, k);
  }
  for (uint32_t k = 0; run->lists && k < source_of(run)->n_inputs; k++) {
    api_drop_list(run, k);
  }
  free(run->lists);
  free(run->shapes);
  free(run->set);
  free(run->data);
  free(run->device_data);
  free(run->tensors);
  free(run->spans);
  free(run->carried);
  free(run);
}

/* --- inputs and outputs by name or index --- */

static status find_name(const model_value *values, uint32_t n, const char *what, const char *name, uint32_t *out) {
  CHECK_THAT(name, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "no %s name is given", what);
  for (uint32_t k = 0; k < n; k++) {
    if (strcmp(values[k].name, name) == 0) {
      *out = k;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT | STATUS_ABOUT_NAME, "the model has no %s '%s'", what, name);
}

status api_find_input(const oxla_run *run, const char *name, uint32_t *out) {
  TRY(api_check_idle(run));
  return find_name(source_of(run)->inputs, source_of(run)->n_inputs, "input", name, out);
}

status api_find_output(const oxla_run *run, const char *name, uint32_t *out) {
  TRY(api_check_idle(run));
  return find_name(source_of(run)->outputs, source_of(run)->n_outputs, "output", name, out);
}

static status check_index(size_t index, uint32_t n, const char *what) {
  CHECK_THAT(index < n, STATUS_INVALID_ARGUMENT, "there is no %s %zu", what, index);
  return NULL;
}

/* --- inputs --- */

/* Checks type, kind and rank against the declaration.  Compiling checks the dims, including symbolic dimensions that
 * must have the same size in several places. */
static status check_input(const model_value *v, const shape *s) {
  CHECK_THAT(model_value_takes(v, s), STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "input '%s' is %s; the model needs %s", v->name, SHAPE_STR(NULL, s), SHAPE_STR(NULL, &v->shape));
  CHECK_THAT(s->type == v->shape.type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "input '%s' is %s; the model needs %s", v->name, dtype_name((dtype)s->type),
             dtype_name((dtype)v->shape.type));
  CHECK_THAT(v->shape.kind != SHAPE_ARRAY || s->rank == v->shape.rank, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
             "input '%s' has rank %d; the model needs %d", v->name, s->rank, v->shape.rank);
  return NULL;
}

status api_put_input(oxla_run *run, size_t k, const shape *s, const void *data, bool on_device) {
  const model_value *v = &source_of(run)->inputs[k];
  on_device &= session_device(session_of(run)) != NULL; /* a backend without a device computes in the host's
                                                           memory */
  CHECK_THAT(!on_device || api_carried_input(run, k) == n_carried(run->model), STATUS_INVALID_ARGUMENT,
             "input '%s' is carried, so it is set in host memory", v->name);
  TRY(check_input(v, s));
  if (!run->set[k] || !shape_equal(&run->shapes[k], s)) {
    forget_program(run);
    run->executed = false;
  }
  api_drop_carried(run, k);
  api_drop_tensor(run, k);
  api_drop_list(run, k);
  run->shapes[k] = *s;
  run->set[k] = &run->shapes[k];
  run->data[k] = on_device ? NULL : data;
  run->device_data[k] = on_device ? data : NULL;
  return NULL;
}

status api_set_input(oxla_run *run, size_t k, oxla_type type, int rank, const int64_t *dims, const void *data,
                     bool on_device) {
  shape given;
  TRY(api_check_idle(run));
  TRY(check_index(k, source_of(run)->n_inputs, "input"));
  TRY(status_prefix(api_shape(source_of(run)->inputs[k].name, type, rank, dims, &given), "input"));
  return api_put_input(run, k, &given, data, on_device);
}

oxla_error *oxla_set_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                           const void *data) {
  uint32_t k = 0;
  status failed = api_find_input(run, name, &k);
  return api_error(failed ? failed : api_set_input(run, k, type, rank, dims, data, false));
}

oxla_error *oxla_set_device_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                                  const void *data) {
  uint32_t k = 0;
  status failed = api_find_input(run, name, &k);
  return api_error(failed ? failed : api_set_input(run, k, type, rank, dims, data, true));
}

oxla_error *oxla_set_input_at(oxla_run *run, size_t index, oxla_type type, int rank, const int64_t *dims,
                              const void *data) {
  return api_error(api_set_input(run, index, type, rank, dims, data, false));
}

oxla_error *oxla_set_device_input_at(oxla_run *run, size_t index, oxla_type type, int rank, const int64_t *dims,
                                     const void *data) {
  return api_error(api_set_input(run, index, type, rank, dims, data, true));
}

static status keep_inputs(oxla_run *run) {
  TRY(api_check_idle(run));
  for (uint32_t k = 0; k < source_of(run)->n_inputs; k++) {
    session_output *kept = &run->kept[k];
    if (run->data[k] && run->data[k] != kept->own && !api_is_carried(run, k)) {
      literal l = literal_make(*run->set[k], run->data[k]);
      TRY(session_output_reserve(session_of(run), kept, literal_packed_bytes(&l), "input",
                                 source_of(run)->inputs[k].name));
      literal_pack(&l, kept->own);
      run->data[k] = kept->own;
    }
  }
  return NULL;
}

oxla_error *oxla_keep_inputs(oxla_run *run) { return api_error(keep_inputs(run)); }

/* --- outputs, seed, limits, cancelling --- */

static status set_output(oxla_run *run, size_t k, void *data, size_t bytes, bool on_device) {
  TRY(api_check_idle(run));
  TRY(check_index(k, source_of(run)->n_outputs, "output"));
  on_device &= session_device(session_of(run)) != NULL;
  CHECK_THAT((!data && !on_device) || api_carried_output(run, k) == n_carried(run->model), STATUS_INVALID_ARGUMENT,
             "output '%s' is carried, so the run keeps it in memory of its own", source_of(run)->outputs[k].name);
  run->outputs[k].given = data;
  run->outputs[k].given_bytes = data ? bytes : 0;
  run->outputs[k].on_device = on_device;
  return NULL;
}

oxla_error *oxla_set_output(oxla_run *run, const char *name, void *data, size_t bytes) {
  uint32_t k = 0;
  status failed = api_find_output(run, name, &k);
  return api_error(failed ? failed : set_output(run, k, data, bytes, false));
}

oxla_error *oxla_set_device_output(oxla_run *run, const char *name, void *data, size_t bytes) {
  uint32_t k = 0;
  status failed = api_find_output(run, name, &k);
  return api_error(failed ? failed : set_output(run, k, data, bytes, true));
}

oxla_error *oxla_set_output_at(oxla_run *run, size_t index, void *data, size_t bytes) {
  return api_error(set_output(run, index, data, bytes, false));
}

oxla_error *oxla_set_device_output_at(oxla_run *run, size_t index, void *data, size_t bytes) {
  return api_error(set_output(run, index, data, bytes, true));
}

static status set_seed(oxla_run *run, uint64_t seed) {
  TRY(api_check_idle(run));
  run->has_seed = true;
  run->seed = seed;
  return NULL;
}

oxla_error *oxla_set_seed(oxla_run *run, uint64_t seed) { return api_error(set_seed(run, seed)); }

static status set_max_seconds(oxla_run *run, double seconds) {
  TRY(api_check_idle(run));
  CHECK_THAT(seconds >= 0, STATUS_INVALID_ARGUMENT, "the time limit is %g seconds; it must not be negative", seconds);
  run->max_seconds = seconds;
  return NULL;
}

oxla_error *oxla_set_max_seconds(oxla_run *run, double seconds) { return api_error(set_max_seconds(run, seconds)); }

void oxla_cancel(oxla_run *run, int on) {
  if (run && on) {
    atomic_fetch_or(&run->cancelled, API_CANCEL_ON | API_CANCEL_MET);
  } else if (run) {
    atomic_fetch_and(&run->cancelled, ~API_CANCEL_ON);
  }
}

status api_begin(oxla_run *run) {
  TRY(api_check_idle(run));
  /* If cancelling was switched on and off again before this execution, only API_CANCEL_MET is still set; it is cleared,
   * so that this execution is not cancelled.  If API_CANCEL_ON is set, both bits stay. */
  int met = API_CANCEL_MET;
  atomic_compare_exchange_strong(&run->cancelled, &met, 0);
  return NULL;
}

/* --- compiling, executing --- */

static session_inputs inputs_of(oxla_run *run) {
  return (session_inputs){run->set,   run->data,   run->device_data, &run->cancelled, deadline_after(run->max_seconds),
                          &run->room, run->strings};
}

static status compile(oxla_run *run, const session_inputs *inputs) {
  if (run->compiled && !run->resized && !session_program_needs_contents(run->compiled) &&
      !session_program_is_replaced(run->compiled)) {
    return NULL;
  }
  forget_program(run);
  run->resized = false;
  return session_compile(session_of(run), inputs, &run->compiled);
}

static status compile_idle(oxla_run *run) {
  TRY(api_begin(run));
  session_inputs inputs = inputs_of(run);
  run->executed = false; /* sizes may differ from those of the last execution */
  return compile(run, &inputs);
}

oxla_error *oxla_compile(oxla_run *run) { return api_error(compile_idle(run)); }

static status compile_ranges(oxla_run *run) {
  TRY(api_begin(run));
  session_inputs inputs = inputs_of(run);
  run->executed = false;
  forget_program(run);
  return session_compile_ranges(session_of(run), &inputs, &run->compiled);
}

oxla_error *oxla_compile_ranges(oxla_run *run) { return api_error(compile_ranges(run)); }

/* Lists the memory of the inputs, and the memory that callers have given for outputs (oxla_set_output).  The member
 * `index` of a span is the number of the input, or for an output its number plus the number of inputs.  Returns the
 * length of the list run->spans; 0 if no output is in memory of a caller. */
static uint32_t list_spans(const oxla_run *run) {
  uint32_t n_inputs = source_of(run)->n_inputs, n = n_inputs;
  for (uint32_t k = 0; k < source_of(run)->n_outputs; k++) {
    const session_output *o = &run->outputs[k];
    if (o->given) {
      run->spans[n++] =
          (memory_span){.data = o->given, .bytes = o->given_bytes, .is_written = true, .index = n_inputs + k};
    }
  }
  for (uint32_t k = 0; n > n_inputs && k < n_inputs; k++) {
    const void *data = run->data[k] ? run->data[k] : run->device_data[k];
    /* a model with sequences copies its inputs before it writes outputs, so they may overlap */
    size_t bytes = run->set[k]->kind == SHAPE_ARRAY ? (size_t)shape_bytes(run->set[k]) : 0;
    run->spans[k] = (memory_span){.data = data, .bytes = bytes, .index = k};
  }
  return n > n_inputs ? n : 0;
}

static const char *span_name(const oxla_run *run, const memory_span *s) {
  const compiler_model *m = source_of(run);
  return s->is_written ? m->outputs[s->index - m->n_inputs].name : m->inputs[s->index].name;
}

/* Sets session_output.is_over_input of the outputs whose given memory is exactly that of an input.  Fails if the given
 * memory of an output overlaps an input in any other way, or overlaps another output, since thunks write outputs while
 * inputs are still read. */
static status check_memory(const oxla_run *run) {
  memory_span pair[2];
  uint32_t n = list_spans(run);
  CHECK_THAT(!memory_spans_overlap(n, run->spans, pair), STATUS_INVALID_ARGUMENT, MEMORY_SPANS_OVERLAP,
             memory_span_side(&pair[0]), span_name(run, &pair[0]), memory_span_side(&pair[1]),
             span_name(run, &pair[1]));
  for (uint32_t k = 0; k < n; k++) {
    const memory_span *s = &run->spans[k];
    if (s->is_written) {
      run->outputs[s->index - source_of(run)->n_inputs].is_over_input = s->is_both;
    }
  }
  return NULL;
}

status api_prepare(oxla_run *run, session_inputs *inputs) {
  for (uint32_t k = 0; k < source_of(run)->n_inputs; k++) {
    const shape *s = run->set[k];
    bool given = s && (run->data[k] || run->device_data[k] || s->kind == SHAPE_OPTIONAL || shape_elements(s) == 0);
    CHECK_THAT(given, STATUS_INVALID_ARGUMENT, "input '%s' is not set", source_of(run)->inputs[k].name);
  }
  TRY(check_memory(run));
  run->executed = false;
  *inputs = inputs_of(run);
  TRY(compile(run, inputs));
  TRY(api_need_strings(run));
  inputs->strings = run->strings;
  return api_place_carried(run);
}

status api_execute(oxla_run *run) {
  session_inputs inputs;
  TRY(api_prepare(run, &inputs));
  TRY(session_run(session_of(run), run->compiled, run->has_seed ? &run->seed : NULL, &inputs, run->outputs));
  api_advance_carried(run);
  run->executed = true;
  return NULL;
}

oxla_error *oxla_execute(oxla_run *run) {
  status busy = api_begin(run);
  return api_error(busy ? busy : api_execute(run));
}

/* --- results --- */

status api_get_output(const oxla_run *run, size_t k, oxla_tensor *out) {
  TRY(api_check_idle(run));
  TRY(check_index(k, source_of(run)->n_outputs, "output"));
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  CHECK_THAT(run->compiled, STATUS_INVALID_ARGUMENT, "output '%s': the run has not been compiled",
             source_of(run)->outputs[k].name);
  shape result =
      run->executed ? run->outputs[k].shape : session_program_output(session_of(run), run->compiled, (uint32_t)k);
  CHECK_THAT(!run->executed || result.kind == SHAPE_ARRAY, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "output '%s' is %s; oxla_get_elements and oxla_get_element return what it has",
             source_of(run)->outputs[k].name, SHAPE_STR(NULL, &result));
  *out = api_tensor(&result);
  if (run->executed && api_carried_output(run, k) < n_carried(run->model)) {
    TRY(api_pack_carried((oxla_run *)(uintptr_t)run, (uint32_t)k, &result));
  }
  out->bytes = result.kind == SHAPE_ARRAY && shape_is_static(&result) ? (size_t)shape_bytes(&result) : 0;
  out->data = run->executed ? run->outputs[k].data : NULL;
  return NULL;
}

oxla_error *oxla_get_output(const oxla_run *run, const char *name, oxla_tensor *out) {
  uint32_t k = 0;
  status failed = api_find_output(run, name, &k);
  return api_error(failed ? failed : api_get_output(run, k, out));
}

oxla_error *oxla_get_output_at(const oxla_run *run, size_t index, oxla_tensor *out) {
  return api_error(api_get_output(run, index, out));
}

void api_remember_taken(oxla_model *m, api_taken *t) {
  pthread_mutex_lock(&m->lock);
  t->next = m->taken;
  m->taken = t;
  pthread_mutex_unlock(&m->lock);
}

status api_take_output(oxla_run *run, const oxla_tensor *output) {
  TRY(api_check_idle(run));
  for (uint32_t k = 0; output && run->executed && output->data && k < source_of(run)->n_outputs; k++) {
    session_output *o = &run->outputs[k];
    if (o->data == output->data && o->data == o->own) {
      api_taken *t = malloc(sizeof *t);
      CHECK_THAT(t, STATUS_RESOURCE, "out of memory");
      *t = (api_taken){NULL, o->own, o->own_bytes, o->own_on_device};
      o->data = o->own = NULL;
      o->own_bytes = 0;
      api_remember_taken(run->model, t);
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "this is not an output in the run's own memory");
}

oxla_error *oxla_take_output(oxla_run *run, const oxla_tensor *output) {
  return api_error(api_take_output(run, output));
}

static void free_taken(oxla_model *m, api_taken *t) {
  session_output_finish(m->session,
                        &(session_output){.own = t->data, .own_bytes = t->bytes, .own_on_device = t->on_device});
  free(t);
}

void oxla_free_output(oxla_model *model, void *data) {
  if (!model || !data) {
    return;
  }
  pthread_mutex_lock(&model->lock);
  api_taken **at = &model->taken;
  while (*at && (*at)->data != data) {
    at = &(*at)->next;
  }
  api_taken *t = *at;
  *at = t ? t->next : NULL;
  pthread_mutex_unlock(&model->lock);
  if (t) {
    free_taken(model, t);
  }
}

void api_free_taken(oxla_model *model) {
  while (model->taken) {
    api_taken *t = model->taken;
    model->taken = t->next;
    free_taken(model, t);
  }
}
