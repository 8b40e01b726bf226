/* program.c - the programs of a .oxla file: which one serves the inputs, and how it is loaded and run. */
#include <inttypes.h>
#include <string.h>

#include "backend_cpu/runtime/target.h"
#include "plugin/runner/runner.h"
#include "runtime/exec/binding.h"
#include "runtime/host/stack.h"
#include "runtime/program/sizes.h"
#include "runtime/program/told.h"

enum { ALIGN = 64 }; /* the alignment of results; less aligned ones would be copied */

/* --- files --- */

static model_value *describe_values(arena *a, const rt_io *ios, uint32_t n) {
  model_value *values = ARENA_NEW_N(a, model_value, n);
  for (uint32_t k = 0; k < n; k++) {
    values[k] = (model_value){.name = ios[k].name, .shape = rt_any_sizes(ios[k].shape)};
  }
  return values;
}

/* Describes the model.  All programs of a file are of one model, so the first one has the names and types. */
static compiler_model *describe(arena *a, const rt_image *image) {
  const rt_program *p = image->programs[0];
  compiler_model *source = ARENA_NEW(a, compiler_model);
  source->name = image->model;
  source->strings = image->strings;
  source->n_inputs = rt_program_inputs(p);
  source->inputs = describe_values(a, p->params, source->n_inputs);
  source->n_outputs = rt_program_outputs(p);
  source->outputs = describe_values(a, p->results, source->n_outputs);
  return source;
}

status runner_open(arena *a, const char *path, bool verify, runner_file *out) {
  rt_image *image;
  TRY(rt_image_open(a, path, verify, &image));
  CHECK_THAT(image->source.size == 0, STATUS_UNSUPPORTED,
             "this model runs segment by segment and is compiled while it runs, which onnx-xla-run cannot do: use "
             "onnx-xla run");
  CHECK_THAT(image->n_programs > 0, STATUS_INVALID_FILE, "the file holds no program");
  CHECK_THAT(strcmp(image->target, cpu_target.name) == 0, STATUS_UNSUPPORTED | STATUS_ABOUT_BACKEND,
             "the file is for the backend '%s', but onnx-xla-run has only '%s'", image->target, cpu_target.name);
  *out = (runner_file){image, describe(a, image)};
  for (uint32_t k = 0; k < image->n_programs; k++) {
    CHECK_THAT(rt_program_takes_inputs(image->programs[k], out->source->n_inputs), STATUS_INVALID_FILE,
               "program %" PRIu32 " has other inputs", k);
  }
  return NULL;
}

status runner_shape_inputs(const runner_file *f, literal *inputs) {
  for (uint32_t k = 0; k < f->source->n_inputs; k++) {
    const model_value *v = &f->source->inputs[k];
    shape *s = &inputs[k].shape;
    if (!s->type) {
      *s = v->shape;
      for (int d = 0; d < s->rank; d++) {
        s->dims[d] = s->dims[d] < 0 ? 1 : s->dims[d];
      }
    }
    unsigned about = s->type == v->shape.type ? STATUS_ABOUT_SHAPE : STATUS_ABOUT_TYPE;
    CHECK_THAT(s->type == v->shape.type && s->rank == v->shape.rank, STATUS_INVALID_ARGUMENT | about,
               "input '%s' is %s, but the model needs %s", v->name, SHAPE_STR(NULL, s), SHAPE_STR(NULL, &v->shape));
    TRY(shape_check(s, v->name));
  }
  return NULL;
}

/* --- finding and loading --- */

/* Sets the shapes of the program's parameters.  Returns false if a parameter tells an element of an input
 * (rt_io.told) that cannot be a size, such as a negative number. */
static bool shapes_of(const rt_program *p, uint32_t n_inputs, const literal *inputs, shape *shapes) {
  bool known = true;
  for (uint32_t k = 0; k < p->n_params; k++) {
    shapes[k] = k < n_inputs ? inputs[k].shape : rt_told_shape(&p->params[k], &inputs[p->params[k].told - 1]);
    known = known && (k < n_inputs || shapes[k].dims[0] >= 0);
  }
  return known;
}

static bool serves(const rt_program *p, const shape *shapes) {
  bool same = true;
  for (uint32_t k = 0; same && k < p->n_params; k++) {
    same = shape_equal(&shapes[k], &p->params[k].shape);
  }
  return same;
}

static void destroy_executable(void *data) { rt_executable_destroy(data); }
static void destroy_binding(void *data) { rt_binding_destroy(data); }

static status load(arena *a, const rt_program *p, rt_executable **out) {
  TRY(cpu_target.check_cpu(NULL, p->cpu));
  TRY(rt_executable_create(p, &cpu_target, &(rt_load_options){.budget = arena_budget(a)}, out));
  arena_cleanup(a, destroy_executable, *out);
  return NULL;
}

/* Loads the program and sets *out if it serves these shapes.  Otherwise *out stays NULL.  A program for many sizes is
 * loaded in any case, and *refused says why it does not serve these shapes. */
static status try_program(arena *a, const rt_program *p, const shape *shapes, const rt_binding **out, status *refused) {
  rt_executable *e;
  rt_binding *b;
  if (rt_program_is_static(p)) {
    if (serves(p, shapes)) {
      TRY(load(a, p, &e));
      *out = rt_executable_binding(e);
    }
    return NULL;
  }
  TRY(load(a, p, &e));
  status failed = rt_bind(e, shapes, &b);
  if (failed && status_get_subject(failed) == STATUS_ABOUT_SHAPE) {
    status_free(*refused);
    *refused = failed;
    return NULL;
  }
  TRY(failed);
  arena_cleanup(a, destroy_binding, b);
  *out = b;
  return NULL;
}

static status no_such_program(const runner_file *f, const literal *inputs) {
  for (uint32_t k = 0; k < f->source->n_inputs; k++) {
    const model_value *v = &f->source->inputs[k];
    for (int d = 0; d < v->shape.rank; d++) {
      CHECK_THAT(v->shape.dims[d] < 0 || v->shape.dims[d] == inputs[k].shape.dims[d],
                 STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE,
                 "input '%s' is %s, for which this file holds no program (its first takes %s)", v->name,
                 SHAPE_STR(NULL, &inputs[k].shape), SHAPE_STR(NULL, &v->shape));
    }
  }
  return status_error(STATUS_INVALID_ARGUMENT, "this file holds no program for these inputs' shapes and contents");
}

/* Tries the programs for one set of sizes (is_static), or those for many, the last one in the file first, as a session
 * does. */
static status find(arena *a, const runner_file *f, const literal *inputs, bool is_static, const rt_binding **out,
                   status *refused) {
  uint32_t n = f->source->n_inputs;
  const void **values = ARENA_NEW_N(a, const void *, n);
  for (uint32_t k = 0; k < n; k++) {
    values[k] = inputs[k].data;
  }
  for (uint32_t k = f->image->n_programs; k > 0 && !*out; k--) {
    const rt_program *p = f->image->programs[k - 1];
    shape *shapes = ARENA_NEW_N(a, shape, p->n_params);
    if (rt_program_is_static(p) == is_static && rt_program_has_contents(p, values) && shapes_of(p, n, inputs, shapes)) {
      TRY(try_program(a, p, shapes, out, refused));
    }
  }
  return NULL;
}

status runner_load(arena *a, const runner_file *f, const literal *inputs, const rt_binding **out) {
  status refused = NULL;
  *out = NULL;
  status failed = find(a, f, inputs, true, out, &refused);
  failed = failed || *out ? failed : find(a, f, inputs, false, out, &refused);
  if (!failed && !*out && refused) {
    return refused;
  }
  status_free(refused);
  return failed || *out ? failed : no_such_program(f, inputs);
}

/* --- running --- */

typedef struct running {
  arena *arena;
  const runner_file *file;
  const rt_binding *binding;
  const literal *inputs;
  const rt_run_options *options;
  literal *outputs;
} running;

/* Makes memory for the results of a program: the outputs of the model, and then sizes of outputs (rt_io.is_size). */
static void **make_results(const running *r) {
  const rt_program *p = r->binding->program;
  void **results = ARENA_NEW_N(r->arena, void *, p->n_results);
  for (uint32_t k = 0; k < p->n_results; k++) {
    size_t bytes = (size_t)shape_bytes(&p->results[k].shape);
    results[k] = arena_alloc_aligned(r->arena, bytes ? bytes : 1, ALIGN); /* an empty array has an address, too */
  }
  return results;
}

static status run(void *data) {
  const running *r = data;
  const rt_program *p = r->binding->program;
  const void **params = ARENA_NEW_N(r->arena, const void *, p->n_params);
  for (uint32_t k = 0; k < p->n_params; k++) {
    params[k] = p->params[k].told ? "" : r->inputs[k].data;
  }
  void **results = make_results(r);
  TRY(rt_execute(r->binding, r->options, params, results));
  for (uint32_t k = 0; k < r->file->source->n_outputs; k++) {
    int64_t extents[SHAPE_MAX_RANK];
    shape s = p->results[k].shape;
    if (rt_program_extents(p, k, results, extents)) {
      literal_compact(&s, results[k], extents);
    }
    r->outputs[k] = literal_make(s, results[k]);
  }
  return NULL;
}

status runner_execute(arena *a, const runner_file *f, const rt_binding *b, const literal *inputs,
                      const rt_run_options *options, literal *outputs) {
  running r = {a, f, b, inputs, options, outputs};
  return run_with_stack(SESSION_RUN_STACK, run, &r);
}
