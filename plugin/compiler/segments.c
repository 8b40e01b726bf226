#include "plugin/compiler/segments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "frontend/import/frame.h"
#include "frontend/import/import.h"
#include "plugin/compiler/interpreter.h"
#include "plugin/compiler/backend.h"
#include "runtime/exec/executable.h"

/* More pieces of one place than these, and the one that was not used for longest goes. */
enum { SEGMENTS_PER_SITE = 64 };

/* What a piece was made for. */
typedef struct used_array {
  const char *name;
  literal value; /* data NULL: any content of that shape */
  uint32_t n;    /* elements of a sequence */
} used_array;

typedef struct segment {
  struct segment *next;
  mem_budget budget; /* while it is made, with the run's deadline */
  arena *arena;
  uint8_t *before; /* states of the frame's nodes that it was made for */
  onnx_segment info;
  uint32_t n_uses;
  used_array *uses;
  literal *literals;    /* by result: its value if that is a constant, data NULL otherwise */
  hlo_module *imported; /* as it was before it was compiled, for segments_run_options.watch; NULL: nobody looks, or has
                           looked already */
  rt_program *program;  /* NULL: there is nothing to compute */
  rt_executable *executable;
  uint32_t n_results, runs; /* visible results; runs of it right now */
  uint64_t last_used;
} segment;

static const double MOST_TUNING = 1; /* seconds, after which further pieces are not timed */

struct segmented_model {
  const compiler_model *source;
  const onnx_model *model;
  compile_request request;
  const rt_backend *backend;
  mem_budget *budget;
  pthread_mutex_t lock; /* guards sites, pieces, and importing and compiling */
  arena *arena;         /* of the sites */
  interpreter_site main;
  uint64_t clock;
  double seconds_tuning; /* of all pieces together */
};

/* --- sites --- */

/* Running out of memory inside leaves the lock open again. */
static status locked(segmented_model *p, status (*fn)(void *), void *data) {
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
  TRY(locked(run->segments, find_site, &x));
  *out = x.found;
  return NULL;
}

/* --- finding and making pieces --- */

static bool fits(const segment *p, const onnx_frame *f, arena *scratch) {
  if (memcmp(p->before, f->states, f->n_nodes) != 0) {
    return false;
  }
  for (uint32_t k = 0; k < p->n_uses; k++) {
    onnx_array *array;
    literal *initializer;
    status failed = onnx_frame_find(f, scratch, p->uses[k].name, &array, &initializer);
    status_free(failed);
    const literal *want = &p->uses[k].value;
    if (failed || !array || !shape_equal(&array->value.shape, &want->shape) || array->n != p->uses[k].n ||
        (want->data && !literal_equal(&array->value, want))) {
      return false;
    }
  }
  return true;
}

static segment *find(segmented_model *p, const interpreter_site *site, const onnx_frame *f, arena *scratch) {
  for (segment *x = site->segments; x; x = x->next) {
    if (fits(x, f, scratch)) {
      x->last_used = ++p->clock;
      return x;
    }
  }
  return NULL;
}

static void destroy_segment(segment *x) {
  if (x) {
    rt_executable_destroy(x->executable);
    arena_destroy(x->arena);
    free(x);
  }
}

static void drop_oldest(interpreter_site *site) {
  segment **oldest = NULL;
  uint32_t n = 0;
  for (segment **at = &site->segments; *at; at = &(*at)->next, n++) {
    if ((*at)->runs == 0 && (!oldest || (*at)->last_used < (*oldest)->last_used)) {
      oldest = at;
    }
  }
  if (n > SEGMENTS_PER_SITE && oldest) {
    segment *x = *oldest;
    *oldest = x->next;
    destroy_segment(x);
  }
}

typedef struct making {
  segmented_model *segments;
  const mem_budget *run; /* may be NULL */
  const onnx_frame *frame;
  segment *out;
  bool watched; /* segments_run_options.watch */
} making;

/* Once more with what the import asks for: each round knows at least one array more. */
static status import_segment(making *m) {
  segment *x = m->out;
  for (bool again = true; again;) {
    TRY(onnx_import_segment(x->arena, m->frame, false, ref_fold, &x->info));
    again = false;
    for (uint32_t k = 0; k < x->info.module->entry->n_params; k++) {
      onnx_array *a = x->info.params[k];
      again |= a->asked;
      a->known |= a->asked;
      a->asked = false;
    }
  }
  return NULL;
}

static void note_uses(segment *x) {
  arena *a = x->arena;
  const hlo_module *m = x->info.module;
  const onnx_segment *info = &x->info;
  x->uses = ARENA_NEW_N(a, used_array, m->entry->n_params + info->constants.n + info->sequences.n);
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    x->uses[x->n_uses++] = (used_array){m->param_names[k], literal_make(info->params[k]->value.shape, NULL), 0};
  }
  for (uint32_t k = 0; k < info->constants.n; k++) {
    const onnx_array_use *u = &info->constants.items[k];
    const literal *l = &u->array->value;
    void *copy = arena_memdup(a, l->data, (size_t)shape_bytes(&l->shape));
    x->uses[x->n_uses++] = (used_array){arena_strdup(a, u->name), literal_make(l->shape, copy), 0};
  }
  for (uint32_t k = 0; k < info->sequences.n; k++) {
    const onnx_array_use *u = &info->sequences.items[k];
    x->uses[x->n_uses++] =
        (used_array){arena_strdup(a, u->name), literal_make(u->array->value.shape, NULL), u->array->n};
  }
}

/* Results that are constants need no program; a module of nothing else needs none at all. */
static bool note_literals(segment *x) {
  const hlo_computation *entry = x->info.module->entry;
  const hlo_size_of *size_of = x->info.module->size_of;
  bool all = true;
  while (x->n_results < entry->n_roots && !(size_of && size_of[x->n_results].axis >= 0)) {
    x->n_results++;
  }
  x->literals = ARENA_NEW_N(x->arena, literal, x->n_results + 1);
  for (uint32_t k = 0; k < x->n_results; k++) {
    const literal *l = hlo_literal(entry->roots[k]);
    if (l) {
      x->literals[k] = *l;
      x->literals[k].data = l->data ? l->data : "";
    }
    all &= l != NULL;
  }
  return all;
}

static status make_guarded(void *data) {
  making *m = data;
  segmented_model *p = m->segments;
  segment *x = m->out;
  x->budget.outer = p->budget;
  x->budget.deadline = m->run ? m->run->deadline : 0;
  x->budget.stopped = m->run ? m->run->stopped : NULL;
  x->arena = arena_create(&x->budget);
  x->before = arena_memdup(x->arena, m->frame->states, m->frame->n_nodes);
  TRY(import_segment(m));
  note_uses(x);
  if (note_literals(x)) {
    return NULL;
  }
  rt_report report = {0};
  x->imported = m->watched ? hlo_module_clone(x->arena, x->info.module) : NULL;
  rt_compile_options options = p->request.options;
  options.eval = ref_fold;
  options.keep_text = false;
  if (options.tune == RT_TUNE_FAST && p->seconds_tuning > MOST_TUNING) {
    options.tune = RT_TUNE_KNOWN;
  }
  TRY(p->backend->compiler->compile((struct hlo_module *)x->info.module, &options, x->arena, &x->program, &report));
  p->seconds_tuning += report.seconds_tuning;
  return rt_executable_create(x->program, p->backend->target, &x->budget, &x->executable);
}

typedef struct search {
  interpreter_run *run;
  interpreter_site *site;
  const onnx_frame *frame;
  segment *out;
} search;

static status find_or_make(void *data) {
  search *r = data;
  segmented_model *p = r->run->segments;
  segment *x = find(p, r->site, r->frame, r->run->scratch);
  if (!x) {
    x = calloc(1, sizeof *x);
    CHECK_THAT(x, STATUS_RESOURCE, "out of memory");
    status failed =
        guard_run(make_guarded, &(making){p, r->run->options->budget, r->frame, x, r->run->options->watch != NULL});
    if (failed) {
      destroy_segment(x);
      return failed;
    }
    x->budget.deadline = 0;
    x->budget.stopped = NULL;
    x->last_used = ++p->clock;
    x->next = r->site->segments;
    r->site->segments = x;
  }
  x->runs++; /* from here on nobody drops it */
  drop_oldest(r->site);
  r->out = x;
  return NULL;
}

/* Held until release_segment. */
static status get_segment(interpreter_run *run, interpreter_site *site, const onnx_frame *f, segment **out) {
  search r = {.run = run, .site = site, .frame = f};
  TRY(locked(run->segments, find_or_make, &r));
  *out = r.out;
  return NULL;
}

static void release_segment(segmented_model *p, segment *x) {
  pthread_mutex_lock(&p->lock);
  x->runs--;
  pthread_mutex_unlock(&p->lock);
}

/* --- running one --- */

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

/* Cuts results to the sizes that came with them. */
static void cut(const rt_program *p, host_array **results, uint32_t n_results, void *const *addresses) {
  int64_t extents[SHAPE_MAX_RANK];
  for (uint32_t k = 0; k < n_results; k++) {
    if (rt_program_extents(p, k, addresses, extents)) {
      literal_compact(&results[k]->base.value.shape, addresses[k], extents);
    }
  }
}

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

static status execute(interpreter_run *run, const onnx_frame *f, segment *x, host_array **results) {
  const rt_program *p = x->program;
  const void **params = arena_calloc(f->arena, p->n_params + 1, sizeof *params);
  void **addresses = arena_calloc(f->arena, p->n_results + 1, sizeof *addresses);
  for (uint32_t k = 0; k < p->n_params; k++) {
    onnx_array *array;
    literal *initializer;
    TRY(onnx_frame_find(f, f->arena, p->params[k].name, &array, &initializer));
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
  TRY(rt_execute(x->executable, &options, params, addresses));
  cut(p, results, x->n_results, addresses);
  return NULL;
}

/* Takes those results over that are elements of sequences. */
static status define_sequences(interpreter_run *run, onnx_frame *f, const onnx_segment *info, host_array **results) {
  for (uint32_t k = 0; k < info->n_leaving; k++) {
    const onnx_leaving *s = &info->leaving[k];
    host_array *sequence;
    TRY(host_sequence_new(run, s->type, s->n, results + s->first, &sequence));
    memset(results + s->first, 0, s->n * sizeof *results);
    interpreter_define(f, s->name, sequence);
  }
  return NULL;
}

static status run_segment(interpreter_run *run, onnx_frame *f, segment *x) {
  uint32_t n = x->program ? x->program->n_results : x->n_results;
  host_array **results = ARENA_NEW_N(f->arena, host_array *, n + 1);
  status failed = x->program ? execute(run, f, x, results) : NULL;
  for (uint32_t k = 0; !failed && !x->program && k < n; k++) {
    failed = host_array_copy(run, &x->literals[k], &results[k]);
  }
  for (uint32_t k = 0; !failed && k < x->n_results; k++) {
    results[k]->base.known = x->info.known[k];
  }
  failed = failed ? failed : define_sequences(run, f, &x->info, results);
  for (uint32_t k = 0; k < n; k++) {
    if (failed || k >= x->n_results) {
      host_array_release(results[k]);
    } else if (results[k]) {
      interpreter_define(f, x->info.module->result_names[k], results[k]);
    }
  }
  if (!failed) {
    memcpy(f->states, x->info.states, f->n_nodes);
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

/* Lets go of what nothing reads any more. */
static void release_unread(onnx_frame *f) {
  onnx_names reads = {0}, all = {0};
  str_map needed;
  arena *scratch = arena_create(NULL);
  str_map_init(&needed, scratch);
  for (size_t k = 0; k < f->n_outputs; k++) {
    *str_map_put(&needed, onnx_frame_output(f, k)) = f;
  }
  for (size_t k = 0; k < f->n_nodes; k++) {
    if (f->states[k] != ONNX_NODE_DONE) {
      onnx_node_reads(scratch, f->nodes[k], &reads);
    }
    for (size_t o = 0; o < f->nodes[k]->n_output; o++) {
      *ARENA_PUSH(scratch, all.items, all.n, all.cap) = f->nodes[k]->output[o];
    }
  }
  for (uint32_t k = 0; k < reads.n; k++) {
    *str_map_put(&needed, reads.items[k]) = f;
  }
  for (uint32_t k = 0; k < all.n; k++) {
    if (str_map_get(&f->arrays, all.items[k]) && !str_map_get(&needed, all.items[k])) {
      define(f, all.items[k], NULL);
    }
  }
  arena_destroy(scratch);
}

/* One piece, then the nodes that stand apart.  *done: nothing waits any more. */
static status step(interpreter_run *run, interpreter_site *site, onnx_frame *f, bool *done) {
  segment *x;
  uint8_t *before = arena_memdup(f->arena, f->states, f->n_nodes);
  uint32_t arrays = f->arrays.n;
  TRY(budget_check(run->options->budget));
  TRY(get_segment(run, site, f, &x));
  const char *reason = x->info.reason ? arena_strdup(f->arena, x->info.reason) : "nothing can be done";
  status failed = run_segment(run, f, x);
  release_segment(run->segments, x);
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
  run->frames = l; /* from here on the end of the run frees it */
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

/* --- the whole --- */

typedef struct whole {
  interpreter_run *run;
  compiler_array *outputs;
} whole;

/* The main frame, with copies of the inputs: a piece may be compiled for what they hold. */
static status main_frame(interpreter_run *run, onnx_frame **out) {
  segmented_model *p = run->segments;
  onnx_frame *f = *out = interpreter_frame(run, NULL, p->model->graph, NULL, NULL);
  for (uint32_t k = 0; k < p->source->n_inputs; k++) {
    host_array *a;
    CHECK_THAT(run->options->shapes[k], STATUS_INVALID_ARGUMENT, "input '%s' has no shape", p->source->inputs[k].name);
    literal l = literal_make(*run->options->shapes[k], run->options->values[k]);
    TRY(host_array_copy(run, &l, &a));
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
    CHECK_THAT(!outputs[k]->base.elements, STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE,
               "output '%s' is a sequence; a model's inputs and outputs are tensors", p->source->outputs[k].name);
    if (outputs[k]->references > 1) { /* an output twice, or an input as it is */
      host_array *copy;
      TRY(host_array_copy(run, &outputs[k]->base.value, &copy));
      outputs[k]->references--;
      outputs[k] = copy;
    }
    w->outputs[k] = host_array_let_go(outputs[k]);
  }
  return NULL;
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
  return failed;
}

static void destroy_site(interpreter_site *s) { /* sites nest no deeper than graphs and calls do */
  for (segment *x = s->segments, *next; x; x = next) {
    next = x->next;
    destroy_segment(x);
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
  p->backend = backend;
  p->budget = budget;
  p->arena = arena_create(budget);
  pthread_mutex_init(&p->lock, NULL);
  *out = p;
  return NULL;
}
