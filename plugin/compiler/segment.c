/* segment.c - finds a segment among those that were compiled for the same body (interpreter_site), or imports and
 * compiles it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "frontend/import/import.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/segments_internal.h"
#include "runtime/exec/executable.h"

/* If more segments than this were compiled for a body (interpreter_site), the one that was not used for the longest
 * time is freed. */
enum { SEGMENTS_PER_SITE = 64 };

static const double MOST_TUNING = 1; /* After this many seconds of tuning, nothing is measured for further segments. */

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

void segment_destroy(segment *x) {
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
    segment_destroy(x);
  }
}

typedef struct making {
  segmented_model *segments;
  const mem_budget *run; /* the budget of the run; may be NULL */
  const onnx_frame *frame;
  segment *out;
  bool watched; /* whether segments_run_options.watch is set */
} making;

/* Imports the segment.  If the import asks for the contents of arrays, these become known and the segment is imported
 * again; each round makes at least one more array known, so the loop ends. */
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

/* Notes which results are constants.  Returns true if all are, so that the segment needs no program. */
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
      segment_destroy(x);
      return failed;
    }
    x->budget.deadline = 0;
    x->budget.stopped = NULL;
    x->last_used = ++p->clock;
    x->next = r->site->segments;
    r->site->segments = x;
  }
  x->runs++; /* drop_oldest frees no segment that is running */
  drop_oldest(r->site);
  r->out = x;
  return NULL;
}

status segment_get(interpreter_run *run, interpreter_site *site, const onnx_frame *f, segment **out) {
  search r = {.run = run, .site = site, .frame = f};
  TRY(segmented_model_locked(run->segments, find_or_make, &r));
  *out = r.out;
  return NULL;
}

void segment_release(segmented_model *p, segment *x) {
  pthread_mutex_lock(&p->lock);
  x->runs--;
  pthread_mutex_unlock(&p->lock);
}
