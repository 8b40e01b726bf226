/* segment_compile.c - imports the segment of a frame that runs next, and compiles it: for all sizes if that is
 * possible, otherwise for those at hand. */
#include <inttypes.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/clock.h"
#include "frontend/import/import.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/bind.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/internal.h"
#include "plugin/compiler/segments_internal.h"
#include "runtime/program/sizes.h"

static const double MOST_TUNING = 1; /* After this many seconds of tuning, nothing is measured for further segments. */

/* The most programs for all sizes that one segment gets.  Each further program of the segment is for the
 * sizes at hand. */
enum { MOST_GENERALS = 4 };

/* The least hint of a size (onnx_import_open_segment) in the first and the second attempt: first 2, since a
 * program for 0 or 1 elements may serve no other sizes, then 0, so that the hints are exactly the sizes at
 * hand. */
static const int64_t LEAST_HINTS[] = {2, 0};

typedef struct making {
  interpreter_run *run;
  const onnx_frame *frame;
  segment *out;
  onnx_segment info;  /* of the last attempt, on out->compiling */
  bool open;          /* whether the segment is to be for all sizes */
  int64_t least_hint; /* see onnx_import_open_segment */
  double start;
  rt_report report; /* of the last attempt */
  const char *why;  /* why the last attempt did not make a program for all sizes; on the run's arena */
} making;

/* --- what is open --- */

/* Marks dimensions and elements of an array as open if they differ from those of `before`, the array for which a
 * segment was compiled.  So a segment that is needed again with other sizes is compiled for all of them. */
static void mark_differences(onnx_array *array, const literal *before) {
  const shape *s = &array->value.shape, *t = &before->shape;
  for (int d = 0; s->rank == t->rank && d < s->rank; d++) {
    array->open_dims |= (uint32_t)(s->dims[d] != t->dims[d]) << d;
  }
  bool lists = before->data && shape_equal(s, t) && onnx_holds_sizes(s);
  for (int k = 0; lists && k < shape_elements(s); k++) {
    array->open_elements |= (uint64_t)(literal_i64(&array->value, k) != literal_i64(before, k)) << k;
  }
}

/* Marks what differs between the frame's arrays and those of the segments that were compiled for the same states of the
 * frame's nodes.  Returns how many of these segments are for all sizes. */
static uint32_t learn(const interpreter_site *site, const onnx_frame *f, arena *scratch) {
  uint32_t n_generals = 0;
  for (const segment *x = site->segments; x; x = x->next) {
    bool same = memcmp(x->before, f->states, f->n_nodes) == 0;
    n_generals += same && x->general;
    for (uint32_t k = 0; same && k < x->n_uses; k++) {
      onnx_array *array = segment_array(f, scratch, x->uses[k].name);
      if (array && !x->uses[k].elements) {
        mark_differences(array, &x->uses[k].value);
      }
    }
  }
  return n_generals;
}

/* --- importing --- */

static status import_once(making *m) {
  arena *a = m->out->compiling;
  return m->open ? onnx_import_open_segment(a, m->frame, m->least_hint, ref_fold, &m->info)
                 : onnx_import_segment(a, m->frame, false, ref_fold, &m->info);
}

/* Imports the segment.  If the import asks for the contents of arrays, these become known and the segment is imported
 * again; each round makes at least one more array known, so the loop ends. */
static status import_segment(making *m) {
  for (bool again = true; again;) {
    TRY(import_once(m));
    again = false;
    for (uint32_t k = 0; k < m->info.params.n; k++) {
      onnx_array *a = m->info.params.items[k].array;
      if (a->asked) {
        again |= !a->known;
        a->open_elements = onnx_holds_sizes(&a->value.shape) ? UINT64_MAX : 0;
        a->known = true;
        a->asked = false;
      }
    }
  }
  return NULL;
}

/* Notes an array that the segment uses; `contents` says whether it must have the same contents again. */
static void note_use(segment *x, const onnx_array_use *u, bool contents) {
  const literal *l = &u->array->value;
  void *copy = contents ? arena_memdup(x->arena, l->data, (size_t)shape_bytes(&l->shape)) : NULL;
  x->uses[x->n_uses++] =
      (used_array){arena_strdup(x->arena, u->name), literal_make(l->shape, copy), u->array->n, u->elements};
}

static void note_uses(segment *x, const onnx_segment *info) {
  x->uses = ARENA_NEW_N(x->arena, used_array, info->params.n + info->constants.n + info->sequences.n);
  for (uint32_t k = 0; k < info->params.n; k++) {
    note_use(x, &info->params.items[k], false);
  }
  for (uint32_t k = 0; k < info->constants.n; k++) {
    note_use(x, &info->constants.items[k], true);
  }
  for (uint32_t k = 0; k < info->sequences.n; k++) {
    note_use(x, &info->sequences.items[k], false);
  }
}

/* Notes the results, without their values.  Returns true if all are constants, so that the segment needs no program. */
static bool note_results(segment *x, const onnx_segment *info) {
  const hlo_computation *entry = info->module->entry;
  const hlo_size_of *size_of = info->module->size_of;
  bool all = true;
  while (x->n_results < entry->n_roots && !(size_of && size_of[x->n_results].axis >= 0)) {
    x->n_results++;
  }
  x->results = ARENA_NEW_N(x->arena, segment_result, x->n_results + 1);
  for (uint32_t k = 0; k < x->n_results; k++) {
    x->results[k] = (segment_result){.name = arena_strdup(x->arena, info->module->result_names[k]),
                                     .known = info->known[k],
                                     .open_dims = info->open_dims[k],
                                     .open_elements = info->open_elements[k]};
    all &= hlo_literal(entry->roots[k]) != NULL;
  }
  return all;
}

/* Copies the values of the results, which are all constants. */
static void keep_values(segment *x, const hlo_module *m) {
  for (uint32_t k = 0; k < x->n_results; k++) {
    const literal *l = hlo_literal(m->entry->roots[k]);
    const void *data = l->data ? arena_memdup(x->arena, l->data, (size_t)shape_bytes(&l->shape)) : "";
    x->results[k].value = literal_make(l->shape, data);
  }
}

/* Copies what a run needs of the import. */
static void keep_import(segment *x, const onnx_frame *f, const onnx_segment *info) {
  x->after = arena_memdup(x->arena, info->states, f->n_nodes);
  x->reason = info->reason ? arena_strdup(x->arena, info->reason) : NULL;
  x->n_leaving = info->n_leaving;
  x->leaving = arena_memdup(x->arena, info->leaving, info->n_leaving * sizeof *info->leaving);
  for (uint32_t k = 0; k < x->n_leaving; k++) {
    x->leaving[k].name = arena_strdup(x->arena, x->leaving[k].name);
  }
  note_uses(x, info);
}

/* --- compiling --- */

static status compile(making *m, bool general) {
  segmented_model *p = m->run->segments;
  segment *x = m->out;
  x->imported = m->run->options->watch ? hlo_module_clone(x->compiling, m->info.module) : NULL;
  rt_compile_options options = p->request.options;
  rt_sharing sharing = compiler_sharing(p->source, p->pool);
  options.sharing = p->pool ? &sharing : NULL;
  options.eval = ref_fold;
  options.keep_text = false;
  if (general || (options.tune == RT_TUNE_FAST && p->seconds_tuning > MOST_TUNING)) {
    options.tune = RT_TUNE_KNOWN;
  }
  TRY(compiler_precompute(m->info.module, p->backend, &options, x->compiling));
  TRY(p->backend->compiler->compile((struct hlo_module *)m->info.module, &options, x->compiling, &x->program,
                                    &m->report));
  p->seconds_tuning += m->report.seconds_tuning;
  p->new_constants += m->report.constant_bytes;
  if (p->pool) {
    x->program = rt_program_keep(x->arena, x->program, &sharing);
    rt_weight_pool_retain(p->pool, x->program);
    x->pool = p->pool;
  }
  x->general = general;
  rt_load_options loading = {.budget = &x->budget, .code_cache = p->request.code_cache};
  return rt_executable_create(x->program, p->backend->target, &loading, &x->executable);
}

/* Returns true if the module's parameters have the shapes of the frame's arrays.  The shapes may differ, since the
 * import replaces a symbol that it pins by its hint, which need not be the size at hand. */
static bool is_for_arrays(const making *m) {
  const hlo_computation *entry = m->info.module->entry;
  bool same = true;
  for (uint32_t k = 0; same && k < entry->n_params; k++) {
    shape s = segment_param_shape(m->out, k, m->frame, m->run->scratch);
    same = shape_equal(&entry->params[k]->shapes[0], &s);
  }
  return same;
}

static status make_guarded(void *data) {
  making *m = data;
  const mem_budget *run = m->run->options->budget;
  segment *x = m->out;
  x->budget.outer = m->run->segments->budget;
  x->budget.deadline = run ? run->deadline : 0;
  x->budget.stopped = run ? run->stopped : NULL;
  x->arena = arena_create(&x->budget);
  x->compiling = arena_create(&x->budget);
  m->info = (onnx_segment){0};
  x->before = arena_memdup(x->arena, m->frame->states, m->frame->n_nodes);
  TRY(import_segment(m));
  keep_import(x, m->frame, &m->info);
  bool general = !hlo_is_static(m->info.module);
  bool nothing = note_results(x, &m->info);
  /* a segment that computes nothing gets no binding, so nothing would check its guards */
  CHECK_THAT(!general || !nothing, STATUS_UNSUPPORTED, "the segment computes nothing");
  CHECK_THAT(general || is_for_arrays(m), STATUS_UNSUPPORTED, "the segment is for other sizes");
  if (nothing) {
    keep_values(x, m->info.module);
    return NULL;
  }
  return compile(m, general);
}

/* Compiles the segment, and binds it if it is for all sizes.  *made is whether there is then a segment that serves the
 * sizes at hand.  If m->open is set, the function fails only if memory or time runs out; other failures are only noted
 * in m->why. */
static status attempt(making *m, segment_binding **bound, bool *made) {
  segment *x = m->out;
  m->report = (rt_report){0};
  status failed = guard_run(make_guarded, m);
  if (failed && m->run->segments->pool) {
    rt_weight_pool_abandon(m->run->segments->pool);
  }
  if (!failed && x->general) {
    failed = segment_bind(m->run->segments, x, m->frame, m->run->scratch, bound);
  }
  *made = !failed && (!x->general || *bound);
  if (failed && m->open && status_get_code(failed) != STATUS_RESOURCE) {
    m->why = arena_strdup(m->run->scratch, status_message(failed));
    status_free(failed);
    failed = NULL;
  }
  if (*made) {
    x->budget.deadline = 0;
    x->budget.stopped = NULL;
  } else {
    segment_clear(x);
  }
  return failed;
}

/* Tells the log of the run what was compiled. */
static void tell(const making *m) {
  const segments_run_options *o = m->run->options;
  const segment *x = m->out;
  if (!o->log || !x->program) {
    return;
  }
  bool exact = !x->general && m->why;
  const char *sizes = x->general ? "all sizes" : exact ? "the sizes at hand" : "constant sizes";
  const char *line = arena_printf(m->run->scratch,
                                  "a segment was compiled for %s: %.3f seconds, %" PRIu32 " kernels written, %" PRIu32
                                  " found, %" PRIu32 " of %" PRIu32 " contractions measured%s%s",
                                  sizes, clock_seconds() - m->start, m->report.kernels_unique - m->report.kernels_found,
                                  m->report.kernels_found, m->report.n_timed, m->report.n_tuned, exact ? "; " : "",
                                  exact ? m->why : "");
  o->log(o->log_data, false, line);
  for (uint32_t k = 0; k < m->info.definitions.n; k++) {
    const onnx_definition *d = &m->info.definitions.items[k];
    line = arena_printf(m->run->scratch, "it is for sizes with %s = %s (%s)", d->symbol, d->equals, d->source);
    o->log(o->log_data, true, line);
  }
  for (uint32_t k = 0; k < x->program->n_guards; k++) {
    const rt_guard *g = &x->program->guards[k];
    line = arena_printf(m->run->scratch, "it is for sizes with %s (%s)", g->text, g->source);
    o->log(o->log_data, true, line);
  }
}

status segment_compile(interpreter_run *run, const interpreter_site *site, const onnx_frame *f, segment *x,
                       segment_binding **bound) {
  making m = {.run = run, .frame = f, .out = x, .open = true, .start = clock_seconds()};
  bool made = false, open = run->segments->request.all_sizes && !run->options->watch;
  open = open && learn(site, f, run->scratch) < MOST_GENERALS;
  for (size_t k = 0; open && !made && k < sizeof LEAST_HINTS / sizeof *LEAST_HINTS; k++) {
    m.least_hint = LEAST_HINTS[k];
    TRY(attempt(&m, bound, &made));
  }
  m.open = false;
  TRY(made ? NULL : attempt(&m, bound, &made));
  const compile_request *r = &run->segments->request;
  if (r->compiled && m.report.new_code) {
    r->compiled(r->compiled_data, x->program, m.report.new_code);
  }
  tell(&m);
  if (!x->imported && (!x->program || x->pool)) { /* without a pool, the program is not copied */
    arena_destroy(x->compiling);
    x->compiling = NULL;
  }
  return NULL;
}
