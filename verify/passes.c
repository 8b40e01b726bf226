/* passes.c - keeps the module as it is after each pass, and searches for the first wrong one; see passes.h. */
#include "verify/passes.h"

#include <inttypes.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/clock.h"
#include "hlo/text/text.h"
#include "verify/evaluate.h"
#include "verify/outline.h"
#include "verify/program.h"
#include "verify/write.h"

/* The module as it is after one application of a pass. */
typedef struct stage {
  const char *file; /* the name that a dump of this stage has, such as "012-simplify.hlo" */
  hlo_module *m;
} stage;

typedef struct stages {
  arena *a;
  stage *items;
  uint32_t n, cap;
} stages;

static status keep_stage(void *data, const char *file, const struct hlo_module *m) {
  stages *s = data;
  stage *one = ARENA_PUSH(s->a, s->items, s->n, s->cap);
  one->file = arena_strdup(s->a, file);
  one->m = hlo_module_clone(s->a, (const hlo_module *)m);
  return NULL;
}

static status collect(const verify_options *o, arena *a, hlo_module *m, stages *s) {
  rt_compile_options options = o->compile;
  rt_executable *e;
  rt_report report = {0};
  *s = (stages){.a = a};
  options.dump = keep_stage;
  options.dump_data = s;
  options.origins = NULL;
  return verify_make(o, &options, a, m, &e, &report);
}

typedef struct search {
  arena *a;
  const verify_options *o;
  const hlo_module *first;
  const literal *inputs, *want;
  verify_difference difference;
} search;

static status is_wrong(search *s, const hlo_module *m, bool *wrong) {
  arena *scratch = arena_create(arena_budget(s->a));
  literal *got = ARENA_NEW_N(scratch, literal, m->entry->n_roots + 1);
  verify_difference d;
  status failed = ref_eval_computation(m->entry, s->inputs, scratch, got);
  failed = failed ? failed : verify_results_differ(scratch, s->first, s->inputs, s->want, got, wrong, &d);
  if (!failed && *wrong) {
    s->difference = d;
  }
  arena_destroy(scratch);
  return failed;
}

/* Finds by bisection the first stage that computes wrong results, provided that the last one does.  Otherwise *out is
 * the number of stages. */
static status first_wrong(search *s, const stages *all, uint32_t *out) {
  bool wrong;
  uint32_t right = 0, bad = all->n - 1;
  *out = all->n;
  TRY(is_wrong(s, all->items[bad].m, &wrong));
  if (!wrong) {
    return NULL;
  }
  while (right < bad) { /* the stages before `right` are right, and stage `bad` is wrong */
    uint32_t middle = (right + bad) / 2;
    if (s->o->progress) {
      s->o->progress(s->o->progress_data, "looking for the pass", 1 - (double)(bad - right) / (double)all->n);
    }
    TRY(is_wrong(s, all->items[middle].m, &wrong));
    bad = wrong ? middle : bad;
    right = wrong ? right : middle + 1;
  }
  *out = bad;
  return NULL;
}

/* --- the smallest module that shows the difference --- */

/* Sets *change to whether any pass changes what this small module computes. */
static status passes_change(const verify_options *o, arena *a, hlo_module *m, const literal *inputs, bool *change) {
  stages s;
  literal *want = ARENA_NEW_N(a, literal, m->entry->n_roots + 1);
  *change = false;
  TRY(ref_eval_computation(m->entry, inputs, a, want));
  search one = {.a = a, .o = o, .first = hlo_module_clone(a, m), .inputs = inputs, .want = want};
  TRY(collect(o, a, m, &s));
  for (uint32_t k = 0; k < s.n && !*change; k++) {
    TRY(is_wrong(&one, s.items[k].m, change));
  }
  return NULL;
}

typedef struct trial {
  const verify_options *o;
  arena *a;
  const hlo_instr *root;
  int depth;
  literal *const *values;
  bool change;
} trial;

/* Compiles one outline (a part of the module) and sets t->change to whether a pass changes its results.  A failure
 * means that it cannot be compiled alone. */
static status try_outline(void *data) {
  trial *t = data;
  literal *inputs;
  hlo_module *m = verify_outline(t->a, t->root, t->depth, t->values, &inputs);
  return passes_change(t->o, t->a, m, inputs, &t->change);
}

static bool shows_it(const verify_options *o, arena *a, const hlo_instr *root, int depth, literal *const *values) {
  trial t = {.o = o, .a = arena_create(arena_budget(a)), .root = root, .depth = depth, .values = values};
  status failed = guard_run(try_outline, &t);
  status_free(failed);
  arena_destroy(t.a);
  return !failed && t.change;
}

/* Makes modules of parts of the module (verify_outline), the smallest first, and writes the first one whose results a
 * pass changes.  Gives up after most_seconds seconds. */
static status write_smallest(search *s, const hlo_module *m, verify_finding *out) {
  enum { DEEPEST = 6 };
  const double most_seconds = 120;
  literal **values;
  double start = clock_seconds();
  arena *a = arena_create(arena_budget(s->a));
  status failed = verify_values(a, m->entry, s->inputs, NULL, &values);
  bool done = false;
  for (int depth = 0; depth < DEEPEST && !failed && !done; depth++) {
    for (const hlo_instr *i = m->entry->first; i && !done && clock_seconds() - start < most_seconds; i = i->next) {
      bool computes = i->op != HLO_PARAMETER && i->op != HLO_CONSTANT && !hlo_is_control(i);
      done = computes && shows_it(s->o, a, i, depth, values);
      if (done) {
        literal *inputs;
        hlo_module *small = verify_outline(a, i, depth, values, &inputs);
        out->node = arena_strdup(s->a, i->source);
        failed = verify_write(s->a, s->o->folder, small, inputs, out);
      }
    }
  }
  arena_destroy(a);
  return failed;
}

static const char *pass_of(arena *a, const char *file) {
  const char *name = strchr(file, '-') ? strchr(file, '-') + 1 : file;
  return arena_strndup(a, name, strcspn(name, "."));
}

status verify_passes(arena *a, const hlo_module *imported, verify_import_fn *import, void *import_data,
                     const literal *inputs, const literal *want, const verify_options *o, bool *found,
                     verify_finding *out) {
  hlo_module *m;
  stages all;
  uint32_t bad;
  *found = false;
  TRY(import(import_data, a, &m));
  TRY(collect(o, a, m, &all));
  search s = {.a = a, .o = o, .first = imported, .inputs = inputs, .want = want};
  if (all.n == 0) {
    return NULL;
  }
  TRY(first_wrong(&s, &all, &bad));
  if (bad == all.n) {
    return NULL;
  }
  *found = true;
  const char *const *names = imported->result_names;
  const char *name = names && names[s.difference.result] ? names[s.difference.result] : "";
  *out = (verify_finding){.cause = VERIFY_PASS,
                          .node = "",
                          .instruction = arena_printf(a, "output %" PRIu32 " '%s'", s.difference.result, name),
                          .thunk = "",
                          .algorithm = "",
                          .difference = verify_difference_text(a, &s.difference),
                          .why = arena_printf(a, "pass %s changes what the module computes (dump %s, %u of %u)",
                                              pass_of(a, all.items[bad].file), all.items[bad].file, bad + 1, all.n)};
  return bad > 0 && o->folder ? write_smallest(&s, all.items[bad - 1].m, out) : NULL;
}
