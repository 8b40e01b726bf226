/* segments.c - runs frames segment by segment (segments.h). */
#include "plugin/compiler/segments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/compiler/backend.h"
#include "plugin/compiler/internal.h"
#include "plugin/compiler/segments_internal.h"
#include "runtime/exec/executable.h"

/* --- sites --- */

status segmented_model_locked(segmented_model *p, status (*fn)(void *), void *data) {
  pthread_mutex_lock(&p->lock);
  status s = guard_run(fn, data);
  pthread_mutex_unlock(&p->lock);
  return s;
}

typedef struct site_search {
  segmented_model *segments;
  interpreter_site *parent, *found;
  size_t node;
  int which;
} site_search;

static status find_site(void *data) {
  site_search *x = data;
  interpreter_site *s = x->parent->children;
  while (s && (s->node != x->node || s->which != x->which)) {
    s = s->next;
  }
  if (!s) {
    s = ARENA_NEW(x->segments->arena, interpreter_site);
    *s = (interpreter_site){.next = x->parent->children, .node = x->node, .which = x->which};
    x->parent->children = s;
  }
  x->found = s;
  return NULL;
}

status interpreter_site_below(interpreter_run *run, interpreter_site *parent, size_t node, int which,
                              interpreter_site **out) {
  site_search x = {.segments = run->segments, .parent = parent, .node = node, .which = which};
  TRY(segmented_model_locked(run->segments, find_site, &x));
  *out = x.found;
  return NULL;
}

/* --- running a segment --- */

static void define(onnx_frame *f, const char *name, host_array *a) {
  void **slot = str_map_put(&f->arrays, name);
  host_array_release(*slot);
  *slot = a;
}

void interpreter_define(onnx_frame *f, const char *name, host_array *a) {
  if (*name) {
    define(f, arena_strdup(f->arena, name), a);
  } else {
    host_array_release(a);
  }
}

/* Makes results of dynamic size, whose shapes are upper bounds, as small as the sizes that the program computed. */
static void cut(const rt_program *p, host_array **results, uint32_t n_results, void *const *addresses) {
  int64_t extents[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < n_results; k++) {
    if (rt_program_extents(p, k, addresses, extents)) {
      literal_compact(&results[k]->base.value.shape, addresses[k], extents);
    }
  }
}

/* Calls segments_run_options.watch.  Segments that are watched are for one set of sizes, so the shapes of
 * their parameters are numbers. */
static status let_watch(interpreter_run *run, const onnx_frame *f, segment *x, const void *const *params) {
  const rt_program *p = x->program;
  literal *inputs = ARENA_NEW_N(f->arena, literal, p->n_params + 1);
  hlo_module *imported = x->imported;
  for (uint32_t k = 0; k < p->n_params; k++) {
    inputs[k] = literal_make(p->params[k].shape, params[k]);
  }
  x->imported = NULL;
  return run->options->watch(run->options->watch_data, imported, inputs);
}

static status execute(interpreter_run *run, const onnx_frame *f, const segment_use *u, host_array **results) {
  segment *x = u->segment;
  const rt_program *p = u->binding->program;
  const void **params = arena_calloc(f->arena, p->n_params + 1, sizeof *params);
  void **addresses = arena_calloc(f->arena, p->n_results + 1, sizeof *addresses);
  for (uint32_t k = 0; k < p->n_params; k++) {
    onnx_array *array;
    literal *initializer;
    TRY(onnx_frame_find(f, f->arena, x->uses[k].name, &array, &initializer));
    params[k] = array->value.data;
  }
  for (uint32_t k = 0; k < p->n_results; k++) {
    TRY(host_array_new(run, &p->results[k].shape, &results[k]));
    addresses[k] = host_array_data(results[k]);
  }
  if (x->imported && run->options->watch) {
    TRY(let_watch(run, f, x, params));
  }
  rt_run_options options = {.pool = run->options->pool,
                            .budget = run->options->budget,
                            .seed = run->options->seed,
                            .profiler = run->options->profiler,
                            .check_memory = run->options->check_memory};
  TRY(rt_execute(u->binding, &options, params, addresses));
  cut(p, results, x->n_results, addresses);
  return NULL;
}

/* Defines the sequences that the segment computed, and takes over the results that are their elements. */
static status define_sequences(interpreter_run *run, onnx_frame *f, const segment *x, host_array **results) {
  for (uint32_t k = 0; k < x->n_leaving; k++) {
    const onnx_leaving *s = &x->leaving[k];
    host_array *sequence;
    TRY(host_list_new(run, s->kind, s->type, s->n, results + s->first, &sequence));
    memset(results + s->first, 0, s->n * sizeof *results);
    interpreter_define(f, s->name, sequence);
  }
  return NULL;
}

static status run_segment(interpreter_run *run, onnx_frame *f, const segment_use *u) {
  segment *x = u->segment;
  uint32_t n = x->program ? x->program->n_results : x->n_results;
  host_array **results = ARENA_NEW_N(f->arena, host_array *, n + 1);
  status failed = x->program ? execute(run, f, u, results) : NULL;
  for (uint32_t k = 0; !failed && !x->program && k < n; k++) {
    failed = host_array_copy(run, &x->results[k].value, &results[k]);
  }
  for (uint32_t k = 0; !failed && k < x->n_results; k++) {
    results[k]->base.known = x->results[k].known;
    results[k]->base.open_dims = x->results[k].open_dims;
    results[k]->base.open_elements = x->results[k].open_elements;
  }
  failed = failed ? failed : define_sequences(run, f, x, results);
  for (uint32_t k = 0; k < n; k++) {
    if (failed || k >= x->n_results) {
      host_array_release(results[k]);
    } else if (results[k]) {
      interpreter_define(f, x->results[k].name, results[k]);
    }
  }
  if (!failed) {
    memcpy(f->states, x->after, f->n_nodes);
  }
  return failed;
}

/* --- frames --- */

struct frame_list {
  struct frame_list *next;
  arena *arena;
  onnx_frame *frame;
};
typedef struct frame_list frame_list;

/* Releases the results of the frame's nodes that are not needed any more.  A result is needed if a node that is still
 * to be run reads it, or if it is an output of the frame. */
static void release_unread(onnx_frame *f) {
  onnx_names all = {0};
  str_map needed;
  arena *scratch = arena_create(NULL);
  str_map_init(&needed, scratch);
  for (size_t k = 0; k < f->n_outputs; k++) {
    *str_map_put(&needed, onnx_frame_output(f, k)) = f;
  }
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (f->states[k] != ONNX_NODE_DONE) {
      onnx_add_reads(&needed, f->nodes[k]);
    }
    for (size_t o = 0; o < f->nodes[k]->n_output; o++) {
      *ARENA_PUSH(scratch, all.items, all.n, all.cap) = f->nodes[k]->output[o];
    }
  }
  for (uint32_t k = 0; k < all.n; k++) {
    if (str_map_get(&f->arrays, all.items[k]) && !str_map_get(&needed, all.items[k])) {
      define(f, all.items[k], NULL);
    }
  }
  arena_destroy(scratch);
}

/* Runs one segment, then the nodes that are to be host-interpreted after it.  Sets *done to whether all nodes of `f`
 * are done.  Returns STATUS_UNSUPPORTED if they are not and the step has changed the state of no node and has added no
 * array to the frame, so that a further step could do no more. */
static status step(interpreter_run *run, interpreter_site *site, onnx_frame *f, bool *done) {
  segment_use u;
  uint8_t *before = arena_memdup(f->arena, f->states, f->n_nodes);
  uint32_t arrays = f->arrays.n;
  TRY(budget_check(run->options->budget));
  TRY(segment_get(run, site, f, &u));
  const char *reason = u.segment->reason ? arena_strdup(f->arena, u.segment->reason) : "no node can be imported or run";
  status failed = run_segment(run, f, &u);
  segment_release(run->segments, &u);
  TRY(failed);
  *done = true;
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (f->states[k] == ONNX_NODE_HOST_INTERPRETED) {
      TRY(interpreter_run_node(run, site, f, k));
      f->states[k] = ONNX_NODE_DONE;
    }
    *done &= f->states[k] == ONNX_NODE_DONE;
  }
  CHECK_THAT(*done || f->arrays.n > arrays || memcmp(before, f->states, f->n_nodes) != 0, STATUS_UNSUPPORTED, "%s",
             reason);
  release_unread(f);
  return NULL;
}

status interpreter_run_frame(interpreter_run *run, interpreter_site *site, onnx_frame *f, host_array **outputs) {
  for (bool done = false; !done;) {
    TRY(step(run, site, f, &done));
  }
  for (size_t k = 0; k < f->n_outputs; k++) {
    TRY(interpreter_find(run, f, onnx_frame_output(f, k), &outputs[k]));
  }
  return NULL;
}

status interpreter_find(interpreter_run *run, const onnx_frame *f, const char *name, host_array **out) {
  onnx_array *array;
  literal *initializer;
  TRY(onnx_frame_find(f, f->arena, name, &array, &initializer));
  CHECK_THAT(array || initializer, STATUS_INVALID_MODEL, "'%s' is not defined", name);
  if (!array) {
    TRY(host_array_copy(run, initializer, out));
    (*out)->base.known = true;
    return NULL;
  }
  *out = host_array_retain((host_array *)array);
  return NULL;
}

onnx_frame *interpreter_frame(interpreter_run *run, const onnx_frame *outer, const Onnx__GraphProto *graph,
                              const onnx_function *function, const Onnx__NodeProto *call) {
  frame_list *l = calloc(1, sizeof *l);
  if (!l) {
    guard_fail("out of memory");
  }
  l->next = run->frames;
  run->frames = l; /* the end of the run frees the frame if anything fails from here on */
  l->arena = arena_create(run->segments->budget);
  l->frame = onnx_frame_create(l->arena, run->segments->model, outer, graph, function, call);
  l->frame->unchecked = run->segments->request.options.unchecked;
  return l->frame;
}

static void free_frame(frame_list *l) {
  arena_destroy(l->arena);
  free(l);
}

void interpreter_frame_end(interpreter_run *run, onnx_frame *f) {
  uint32_t at = 0;
  const char *name;
  void *array;
  while (str_map_next(&f->arrays, &at, &name, &array)) {
    host_array_release(array);
  }
  frame_list **at_frame = &run->frames, *ended;
  while ((*at_frame)->frame != f) {
    at_frame = &(*at_frame)->next;
  }
  ended = *at_frame;
  *at_frame = ended->next;
  free_frame(ended);
}

/* --- the whole model --- */

typedef struct whole {
  interpreter_run *run;
  compiler_array *outputs;
} whole;

static bool has_value(const compile_request *r, const char *name) {
  bool has = false;
  for (uint32_t k = 0; name && k < r->n_dims; k++) {
    has |= strcmp(r->dims[k].name, name) == 0;
  }
  return has;
}

/* Returns a mask of the dimensions whose sizes neither the model nor the request fixes. */
static uint32_t open_dims(const compile_request *r, const model_value *v) {
  uint32_t bits = v->shape.kind == SHAPE_UNRANKED ? UINT32_MAX : 0;
  for (int d = 0; d < v->shape.rank; d++) {
    bits |= (uint32_t)(v->shape.dims[d] < 0 && !has_value(r, v->dim_names[d])) << d;
  }
  return bits;
}

/* Makes the frame of the main graph, with copies of the model's inputs. */
static status main_frame(interpreter_run *run, onnx_frame **out) {
  segmented_model *p = run->segments;
  onnx_frame *f = *out = interpreter_frame(run, NULL, p->model->graph, NULL, NULL);
  for (uint32_t k = 0; k < p->source->n_inputs; k++) {
    host_array *a;
    CHECK_THAT(run->options->shapes[k], STATUS_INVALID_ARGUMENT, "input '%s' has no shape", p->source->inputs[k].name);
    literal l = literal_make(*run->options->shapes[k], run->options->values[k]);
    TRY(host_array_from(run, &l, &a));
    a->base.open_dims = open_dims(&p->request, &p->source->inputs[k]);
    interpreter_define(f, p->source->inputs[k].name, a);
  }
  return NULL;
}

static status run_guarded(void *data) {
  whole *w = data;
  interpreter_run *run = w->run;
  segmented_model *p = run->segments;
  onnx_frame *f;
  TRY(main_frame(run, &f));
  host_array **outputs = ARENA_NEW_N(run->scratch, host_array *, p->source->n_outputs + 1);
  TRY(interpreter_run_frame(run, &p->main, f, outputs));
  interpreter_frame_end(run, f);
  for (uint32_t k = 0; k < p->source->n_outputs; k++) {
    const model_value *declared = &p->source->outputs[k];
    const shape *s = host_array_shape(outputs[k]);
    CHECK_THAT(!declared->shape.type || model_value_takes(declared, s), STATUS_INVALID_MODEL | STATUS_ABOUT_TYPE,
               "output '%s' is %s but declared as %s", declared->name, SHAPE_STR(NULL, s),
               SHAPE_STR(NULL, &declared->shape));
    if (outputs[k]->base.elements || outputs[k]->references > 1) { /* another output may be the same array */
      TRY(host_array_pack(outputs[k], &w->outputs[k]));
      host_array_release(outputs[k]);
    } else {
      w->outputs[k] = host_array_let_go(outputs[k]);
    }
  }
  return NULL;
}

/* Gives memory back to the system, if the run has compiled segments. */
static void give_memory_back(segmented_model *p) {
  pthread_mutex_lock(&p->lock);
  compiler_give_memory_back(p->source, p->new_constants);
  p->new_constants = 0;
  pthread_mutex_unlock(&p->lock);
}

status segmented_model_run(segmented_model *p, const segments_run_options *options, compiler_array *outputs) {
  interpreter_run run = {.segments = p, .budget = p->budget, .options = options, .scratch = arena_create(NULL)};
  memset(outputs, 0, p->source->n_outputs * sizeof *outputs);
  status failed = guard_run(run_guarded, &(whole){&run, outputs});
  while (run.frames) {
    frame_list *l = run.frames;
    run.frames = l->next;
    free_frame(l);
  }
  host_arrays_free(&run);
  for (uint32_t k = 0; failed && k < p->source->n_outputs; k++) {
    host_memory_free(p->budget, outputs[k]);
    outputs[k] = (compiler_array){0};
  }
  arena_destroy(run.scratch);
  give_memory_back(p);
  return failed;
}

static void destroy_site(interpreter_site *s) { /* recursion is as deep as subgraphs and calls are nested */
  for (segment *x = s->segments, *next; x; x = next) {
    next = x->next;
    segment_destroy(x);
  }
  for (interpreter_site *c = s->children; c; c = c->next) {
    destroy_site(c);
  }
}

void segmented_model_destroy(segmented_model *p) {
  if (p) {
    destroy_site(&p->main);
    arena_destroy(p->arena);
    pthread_mutex_destroy(&p->lock);
    free(p);
  }
}

status segmented_model_create(const compiler_model *s, const onnx_model *m, const compile_request *request,
                              mem_budget *budget, segmented_model **out) {
  const rt_backend *backend;
  TRY(compiler_backend(request->backend, &backend));
  segmented_model *p = calloc(1, sizeof *p);
  CHECK_THAT(p, STATUS_RESOURCE, "out of memory");
  p->source = s;
  p->model = m;
  p->request = *request;
  p->pool = request->options.sharing ? request->options.sharing->weight_pool : NULL;
  p->request.options.sharing = NULL; /* belongs to the caller, who may free it */
  p->backend = backend;
  p->budget = budget;
  p->arena = arena_create(budget);
  pthread_mutex_init(&p->lock, NULL);
  *out = p;
  return NULL;
}
