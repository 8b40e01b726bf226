/* run.c - runs the programs of a session. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "plugin/session/internal.h"
#include "plugin/session/specialise.h"
#include "runtime/exec/memory.h"
#include "runtime/host/stack.h"
#include "runtime/program/sizes.h"

/* --- outputs --- */

const rt_device *session_device(const session *s) { return s->target->device; }

static const rt_device *owner_of(const session *s, const session_output *o) {
  return o->own_on_device ? s->target->device : NULL;
}

void session_output_finish(session *s, session_output *o) {
  rt_memory_give(owner_of(s, o), &s->budget, o->own, o->own_bytes);
  o->own = NULL;
  o->own_bytes = 0;
}

status session_output_reserve(session *s, session_output *o, size_t bytes, const char *what, const char *name) {
  if (!o->own || o->own_bytes < bytes || o->own_on_device != o->on_device) {
    session_output_finish(s, o);
    size_t size = bytes ? bytes : 1; /* an empty array has an address, too */
    o->own_on_device = o->on_device;
    TRY(rt_memory_take(owner_of(s, o), &s->budget, size, what, name, &o->own));
    o->own_bytes = size;
  }
  return NULL;
}

static status check_given(const session_output *o, const char *name) {
  size_t bytes = (size_t)shape_bytes(&o->shape);
  CHECK_THAT(!o->given || o->given_bytes == bytes, STATUS_INVALID_ARGUMENT,
             "output '%s' has %zu bytes, but the given memory has %zu", name, bytes, o->given_bytes);
  return NULL;
}

/* Copies an output from o->own, the session's memory, in which it was computed, to o->given, the caller's memory, if
 * there is any. */
static status deliver(session_output *o, const char *name) {
  CHECK_THAT(!o->given || o->shape.kind == SHAPE_ARRAY, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
             "output '%s' is %s, which cannot be written to memory of the caller", name, SHAPE_STR(NULL, &o->shape));
  TRY(check_given(o, name));
  if (o->given && o->given_bytes) {
    memcpy(o->given, o->own, o->given_bytes);
  }
  o->data = o->given ? o->given : o->own;
  return NULL;
}

/* --- programs --- */

static bool is_open(const rt_program *p, uint32_t k) {
  for (uint32_t i = k + 1; i < p->n_results; i++) {
    if (p->results[i].is_size && p->results[i].sized == k) {
      return true;
    }
  }
  return false;
}

/* Returns the shape of an output as the caller sees it.  If the output is kept in memory with room, this is the shape
 * of the part that has been computed, not of the whole memory. */
static shape result_shape(const rt_io *io, bool kept) {
  shape out = io->shape;
  if (io->has_room && kept) {
    out.dims[io->axis] = io->length;
  }
  return out;
}

/* Returns true if the program can write the output to the caller's memory.  It cannot do so over an input, unless it
 * computes the output in the memory of this very input. */
static bool is_written_to_given(const session_output *o, const rt_io *io, const void *const *params) {
  return o->given && (!o->is_over_input || (io->in_place && params[io->carried - 1] == o->given));
}

/* Fails if the output is to be in the device's memory but the program cannot write it there directly. */
static status check_place(const session_output *o, const rt_io *io, const void *const *params, bool open) {
  CHECK_THAT(!o->on_device || !open, STATUS_UNSUPPORTED,
             "output '%s' has a size that the model computes; it can be had in host memory only", io->name);
  CHECK_THAT(!o->on_device || !o->given || is_written_to_given(o, io, params), STATUS_UNSUPPORTED,
             "output '%s' cannot be computed in the device memory of an input that it does not update", io->name);
  return NULL;
}

/* Sets the addresses of all results.  An output whose size is known is written to the caller's memory directly, if that
 * is possible. */
static status place_results(session *s, const rt_program *p, const void *const *params, session_output *outputs,
                            int64_t *sizes, void **results) {
  for (uint32_t k = 0; k < p->n_results; k++) {
    const rt_io *io = &p->results[k];
    if (io->is_size) {
      results[k] = &sizes[k];
      continue;
    }
    session_output *o = &outputs[k];
    bool kept = session_keeps_output(s, p, k);
    o->shape = result_shape(io, kept);
    if (kept) {
      /* the memory of the carried input, which the caller has passed; o->data does not return it */
      results[k] = (void *)(uintptr_t)params[io->carried - 1];
      o->data = NULL;
      continue;
    }
    TRY(check_place(o, io, params, is_open(p, k)));
    bool open = o->given && is_open(p, k);
    TRY(open ? NULL : check_given(o, io->name));
    if (!open && is_written_to_given(o, io, params)) {
      results[k] = o->given;
    } else {
      TRY(session_output_reserve(s, o, (size_t)shape_bytes(&io->shape), "output", io->name));
      results[k] = o->own;
    }
    o->data = results[k];
  }
  return NULL;
}

/* Makes outputs of dynamic size as small as the sizes that the run computed, and copies to the caller's memory the
 * outputs that could not be written there directly. */
static status deliver_outputs(const rt_program *p, session_output *outputs, void *const *results) {
  int64_t extents[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < p->n_results && !p->results[k].is_size; k++) {
    session_output *o = &outputs[k];
    if (rt_program_extents(p, k, results, extents)) {
      literal_compact(&o->shape, o->own, extents);
    }
    if (o->data && o->data != o->given) {
      TRY(deliver(o, p->results[k].name));
    }
  }
  return NULL;
}

/* Sets the addresses of the parameters, and says which of them, and which results, are in the device's memory. */
static void place_params(session *s, const rt_program *p, const session_inputs *inputs, const session_output *outputs,
                         const void **params, bool *on_device) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    params[k] = session_param_data(s, inputs, p, k);
    on_device[k] = k < s->source->n_inputs && inputs->device_values && inputs->device_values[k];
    params[k] = on_device[k] ? inputs->device_values[k] : params[k];
  }
  for (uint32_t k = 0; k < p->n_results; k++) {
    on_device[p->n_params + k] = !p->results[k].is_size && outputs[k].on_device;
  }
}

static status run_program(session *s, const session_program *c, const rt_run_options *given,
                          const session_inputs *inputs, session_output *outputs) {
  const rt_program *p = c->program;
  TRY(status_copy(c->elsewhere));
  void **results = calloc(p->n_results + 1, sizeof *results);
  int64_t *sizes = calloc(p->n_results + 1, sizeof *sizes);
  const void **params = calloc(p->n_params + 1, sizeof *params);
  bool *on_device = calloc((size_t)p->n_params + p->n_results + 1, sizeof *on_device);
  status failed = results && sizes && params && on_device ? NULL : status_error(STATUS_RESOURCE, "out of memory");
  if (!failed) {
    place_params(s, p, inputs, outputs, params, on_device);
  }
  failed = failed ? failed : place_results(s, p, params, outputs, sizes, results);
  rt_run_options options = *given;
  options.params_on_device = on_device;
  options.results_on_device = on_device ? on_device + p->n_params : NULL;
  failed = failed ? failed : rt_execute(c->binding, &options, params, results);
  failed = failed ? failed : deliver_outputs(p, outputs, results);
  free(results);
  free(sizes);
  free(params);
  free(on_device);
  return failed;
}

/* --- models that run segment by segment --- */

static void log_segment(void *data, bool is_detail, const char *line) {
  session_log(data, is_detail ? SESSION_LOG_DEBUG : SESSION_LOG_INFO, "%s", line);
}

/* Fails if an array is in the device's memory: between segments all of them are on the host. */
static status check_on_host(const session *s, const session_inputs *inputs, const session_output *outputs) {
  bool on_device = false;
  for (uint32_t k = 0; k < s->source->n_inputs; k++) {
    on_device |= inputs->device_values && inputs->device_values[k];
  }
  for (uint32_t k = 0; k < s->source->n_outputs; k++) {
    on_device |= outputs[k].on_device;
  }
  CHECK_THAT(!on_device, STATUS_UNSUPPORTED,
             "the model's sizes depend on what it computes, so its inputs and outputs can be in host memory only");
  return NULL;
}

static status run_segments(session *s, const rt_run_options *options, const session_inputs *inputs,
                           session_output *outputs) {
  const compiler_api *compiler;
  uint32_t n = s->source->n_outputs;
  TRY(check_on_host(s, inputs, outputs));
  TRY(session_open_compiler(&compiler));
  compiler_array *arrays = calloc(n + 1, sizeof *arrays);
  CHECK_THAT(arrays, STATUS_RESOURCE, "out of memory");
  segments_run_options run = {.shapes = inputs->shapes,
                              .values = inputs->values,
                              .pool = options->pool,
                              .budget = options->budget,
                              .seed = options->seed,
                              .strings = inputs->strings,
                              .profiler = options->profiler,
                              .check_memory = options->check_memory,
                              .log = s->options.log ? log_segment : NULL,
                              .log_data = s};
  status failed = compiler->segments_run(s->segments, &run, arrays);
  for (uint32_t k = 0; k < n; k++) {
    session_output *o = &outputs[k];
    session_output_finish(s, o);
    o->shape = arrays[k].shape;
    o->own = arrays[k].data;
    o->own_bytes = arrays[k].bytes;
    o->own_on_device = false;
    failed = failed ? failed : deliver(o, s->source->outputs[k].name);
  }
  free(arrays);
  return failed;
}

/* --- runs --- */

/* Makes a seed from the session's entropy and the number of the run. */
static uint64_t fresh_seed(session *s) {
  uint32_t block[PHILOX_WORDS];
  philox_block(s->entropy, atomic_fetch_add(&s->n_fresh_seeds, 1), 0, block);
  return (uint64_t)block[1] << 32 | block[0];
}

typedef struct running {
  session *s;
  const session_program *c;
  const rt_run_options *options;
  const session_inputs *inputs;
  session_output *outputs;
} running;

static status run_either(const running *r) {
  return r->c->program ? run_program(r->s, r->c, r->options, r->inputs, r->outputs)
                       : run_segments(r->s, r->options, r->inputs, r->outputs);
}

/* Runs, and then checks that the mapped file has not changed, since a change while it was read may have changed the
 * outputs. */
static status run_guarded(void *data) {
  const running *r = data;
  if (!r->c->reads_file) {
    return run_either(r);
  }
  TRY(file_check(r->s->arena));
  TRY(run_either(r));
  return file_check(r->s->arena);
}

status session_run(session *s, const session_program *c, const uint64_t *seed, const session_inputs *inputs,
                   session_output *outputs) {
  return session_run_watched(s, c, seed, inputs, outputs, NULL);
}

status session_run_watched(session *s, const session_program *c, const uint64_t *seed, const session_inputs *inputs,
                           session_output *outputs, struct rt_profiler *profiler) {
  const bool logs = session_logs(s, SESSION_LOG_DEBUG);
  double start = logs ? clock_seconds() : 0;
  uint64_t deadline = inputs->deadline ? inputs->deadline : deadline_after(s->options.max_seconds);
  mem_budget budget = {.deadline = deadline, .outer = &s->budget, .stopped = inputs->stopped};
  rt_run_options options = {.pool = s->pool,
                            .budget = &budget,
                            .seed = seed ? *seed : fresh_seed(s),
                            .profiler = profiler,
                            .check_memory = s->options.check_memory};
  running r = {s, c, &options, inputs, outputs};
  session_begin_work(s);
  status failed = run_with_stack(c->program ? SESSION_RUN_STACK : SESSION_COMPILE_STACK, run_guarded, &r);
  session_end_work(s);
  if (c->general && !failed) {
    specialise_after_run(s, (session_program *)(uintptr_t)c);
  }
  if (logs) {
    session_log(s, SESSION_LOG_DEBUG, "%s in %.6f seconds", failed ? status_message(failed) : "executed",
                clock_seconds() - start);
  }
  return failed;
}

shape session_program_output(const session *s, const session_program *c, uint32_t k) {
  if (!c->program) {
    return s->source->outputs[k].shape;
  }
  /* if only another machine can bind the program, its sizes may be expressions, which rt_any_sizes replaces by -1 */
  shape out = rt_any_sizes(result_shape(&c->program->results[k], session_keeps_output(s, c->program, k)));
  for (uint32_t i = k + 1; i < c->program->n_results; i++) {
    if (c->program->results[i].is_size && c->program->results[i].sized == k) {
      out.dims[c->program->results[i].axis] = -1;
    }
  }
  return out;
}
