/* verify.c - the order of the searches: a run in lockstep, then experiments for each instruction that differs; see
 * verify.h. */
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/hash.h"
#include "hlo/text/text.h"
#include "verify/lockstep.h"
#include "verify/outline.h"
#include "verify/passes.h"
#include "verify/program.h"
#include "verify/write.h"

enum { MOST_FINDINGS = 10 };

/* Identifies an instruction by its computation and id.  These remain the same if the module is compiled again in the
 * same way. */
typedef struct place {
  const char *computation;
  uint32_t id;
} place;

typedef struct verifier {
  arena *a;
  verify_import_fn *import;
  void *import_data;
  const literal *inputs;
  const verify_options *o;
  verify_report *out;
  uint32_t cap_findings;
  /* the instructions to which the findings belong, in the order of the findings; findings about passes come last and
   * have none */
  place *places;
  uint32_t n_places, cap_places;
  uint32_t n_results; /* the number of results of the module */
  /* whether the cause of a finding may be that a result shares an operand's buffer, which a second run must check */
  bool waiting;
} verifier;

static void tell(const verifier *v, const char *what, double share) {
  if (v->o->progress) {
    v->o->progress(v->o->progress_data, what, share);
  }
}

/* --- one instruction alone --- */

typedef struct lone {
  const verifier *v;
  const hlo_instr *i;
  const literal *operands, *want;
  uint32_t algorithm;
  arena *a;
  /* Set by run_alone. */
  bool right, built; /* built: false if the backend cannot build this algorithm; then nothing else but n_algorithms is
                        set */
  uint32_t n_algorithms;
  const char *config; /* the config that computed the instruction, on the verifier's arena; "" if it has none */
  const char *how;    /* the note of the last thunk with a note, on the verifier's arena */
} lone;

static hlo_module *outline_of(arena *a, const hlo_instr *i, const literal *operands, literal **inputs) {
  literal **values = ARENA_NEW_N(a, literal *, i->parent->n_ids);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = i->operands[k];
    values[v.def->id] = values[v.def->id] ? values[v.def->id] : ARENA_NEW_N(a, literal, v.def->n_results);
    values[v.def->id][v.index] = operands[k];
  }
  return verify_outline(a, i, 0, values, inputs);
}

static const char *how_of(arena *a, const rt_program *p) {
  const char *how = "";
  for (uint32_t k = 0; k < p->body.n; k++) {
    const rt_thunk *t = &p->body.thunks[k];
    how = t->note && *t->note ? t->note : how;
  }
  return arena_strdup(a, how);
}

/* Returns the config that a backend has given to an instruction of the module, which has no more than one. */
static const char *config_of(arena *a, const hlo_module *m) {
  const char *config = "";
  HLO_FOR_EACH(i, m->entry) { config = *i->config ? i->config : config; }
  return arena_strdup(a, config);
}

static status run_alone(void *data) {
  lone *l = data;
  literal *inputs, *got = ARENA_NEW_N(l->a, literal, l->i->n_results + 1);
  hlo_module *m = outline_of(l->a, l->i, l->operands, &inputs);
  rt_compile_options options = l->v->o->compile;
  rt_executable *e;
  rt_report report = {0};
  verify_difference d;
  bool differ;
  options.algorithm = l->algorithm;
  /* an algorithm that is chosen by its number need not be timed */
  options.tune = l->algorithm ? RT_TUNE_OFF : options.tune;
  status failed = verify_make(l->v->o, &options, l->a, m, &e, &report);
  l->n_algorithms = report.n_algorithms;
  if (l->algorithm && status_get_code(failed) == STATUS_UNSUPPORTED) {
    status_free(failed);
    return NULL;
  }
  TRY(failed);
  TRY(verify_run(l->v->o, e, inputs, NULL, NULL, l->a, got));
  verify_tolerance t = verify_tolerance_of(l->i, options.numerics.reduced_precision);
  verify_evaluation evaluation = {l->i, l->operands};
  TRY(verify_compare(l->a, &t, l->i->n_results, l->want, got, NULL, NULL, verify_move_instr, &evaluation, &differ, &d));
  l->right = !differ;
  l->built = true;
  l->config = config_of(l->v->a, m);
  l->how = how_of(l->v->a, rt_executable_program(e));
  return NULL;
}

/* Compiles and runs the instruction alone.  `algorithm` is the number for rt_compile_options.algorithm. */
static status try_alone(const verifier *v, const hlo_instr *i, const literal *operands, const literal *want,
                        uint32_t algorithm, lone *out) {
  *out = (lone){.v = v,
                .i = i,
                .operands = operands,
                .want = want,
                .algorithm = algorithm,
                .a = arena_create(arena_budget(v->a)),
                .config = "",
                .how = ""};
  status failed = guard_run(run_alone, out);
  arena_destroy(out->a);
  return failed;
}

/* --- findings --- */

static bool is_same(place x, place y) { return x.id == y.id && strcmp(x.computation, y.computation) == 0; }

static place place_of(const hlo_instr *i) { return (place){i->parent->name, i->id}; }

static bool has_finding(const verifier *v, const hlo_instr *i) {
  for (uint32_t k = 0; k < v->n_places; k++) {
    if (is_same(v->places[k], place_of(i))) {
      return true;
    }
  }
  return false;
}

/* Finds out why i is wrong when it runs alone, and sets f->cause and f->why.  Tries one algorithm after the other: if
 * one gives right results, the cause is the chosen algorithm, otherwise the kernel. */
static status blame_algorithm(verifier *v, const hlo_instr *i, const literal *operands, const literal *want,
                              verify_finding *f) {
  lone one;
  uint32_t n = 1;
  f->cause = VERIFY_KERNEL;
  f->why = "it is wrong alone, too, with every algorithm: the kernel is wrong";
  for (uint32_t k = 1; k <= n; k++) {
    TRY(try_alone(v, i, operands, want, k, &one));
    n = one.n_algorithms;
    if (n && one.built && one.right) {
      f->cause = VERIFY_ALGORITHM;
      f->why = arena_printf(v->a, "it is wrong alone, too, but right with '%s': its algorithm is wrong", one.how);
      return NULL;
    }
  }
  return NULL;
}

static status write_alone(const verifier *v, const hlo_instr *i, const literal *operands, verify_finding *f) {
  literal *inputs;
  hlo_module *m = outline_of(v->a, i, operands, &inputs);
  return verify_write(v->a, v->o->folder, m, inputs, f);
}

static status find_cause(verifier *v, const hlo_instr *i, const literal *operands, const literal *want,
                         verify_finding *f) {
  lone one;
  f->cause = VERIFY_UNKNOWN;
  f->why = "the results of the control flow are not those of its body";
  if (!operands) {
    return NULL;
  }
  TRY(try_alone(v, i, operands, want, v->o->compile.algorithm, &one));
  if (one.right) {
    v->waiting = true;
    f->why = "it is right alone, but wrong in the program even if no result shares an operand's buffer";
    return NULL;
  }
  TRY(blame_algorithm(v, i, operands, want, f));
  return write_alone(v, i, operands, f);
}

static status differs(void *data, const hlo_instr *i, const literal *operands, const literal *want, const rt_program *p,
                      const rt_thunk *t, const verify_difference *d) {
  verifier *v = data;
  if (has_finding(v, i)) { /* the difference is known from another iteration of the loop */
    return NULL;
  }
  *ARENA_PUSH(v->a, v->places, v->n_places, v->cap_places) = (place){arena_strdup(v->a, i->parent->name), i->id};
  v->out->n_different++;
  if (v->out->n_findings == MOST_FINDINGS) {
    return NULL;
  }
  verify_finding *f = ARENA_PUSH(v->a, v->out->findings, v->out->n_findings, v->cap_findings);
  *f = (verify_finding){.node = arena_strdup(v->a, i->source),
                        .instruction = hlo_instr_text(v->a, i),
                        .thunk = arena_printf(v->a, "%s [%s]", rt_thunk_label(v->a, p, t), t->kind),
                        .algorithm = arena_strdup(v->a, t->note ? t->note : ""),
                        .difference = verify_difference_text(v->a, d)};
  verify_name_sources(v->a, i, f);
  return find_cause(v, i, operands, want, f);
}

/* Notes that an algorithm is wrong alone. */
static status add_wrong_algorithm(verifier *v, const hlo_instr *i, const literal *operands, const lone *one,
                                  const char *why) {
  v->out->n_different++;
  if (v->out->n_findings == MOST_FINDINGS) {
    return NULL;
  }
  verify_finding *f = ARENA_PUSH(v->a, v->out->findings, v->out->n_findings, v->cap_findings);
  *f = (verify_finding){.cause = VERIFY_ALGORITHM,
                        .node = arena_strdup(v->a, i->source),
                        .instruction = hlo_instr_text(v->a, i),
                        .thunk = "",
                        .algorithm = one->how,
                        .difference = "",
                        .why = why};
  *ARENA_PUSH(v->a, v->places, v->n_places, v->cap_places) = (place){arena_strdup(v->a, i->parent->name), i->id};
  return write_alone(v, i, operands, f);
}

/* The callback verify_lockstep.compared for verify_options.all_algorithms.  In place of a config that it cannot build,
 * a backend may take one that was tried already.  If the config that the program uses is wrong in the program, there is
 * a finding for it. */
static status try_all_algorithms(void *data, const hlo_instr *i, const literal *operands, const literal *want) {
  verifier *v = data;
  lone one;
  str_map tried; /* by the names of configs */
  uint32_t n = 1;
  str_map_init(&tried, v->a);
  bool known = has_finding(v, i);
  for (uint32_t k = 1; k <= n; k++) {
    TRY(try_alone(v, i, operands, want, k, &one));
    n = one.n_algorithms; /* 0 if the instruction is not a contraction */
    void **before = n && one.built ? str_map_put(&tried, one.config) : NULL;
    if (!before || *before) {
      continue;
    }
    *before = v;
    bool used = strcmp(one.config, i->config) == 0;
    v->out->n_algorithms++;
    if (!one.right && !(used && known)) {
      TRY(add_wrong_algorithm(v, i, operands, &one,
                              used ? "this algorithm is wrong alone, but right in the program"
                                   : "this algorithm is wrong alone; the program uses another one"));
    }
  }
  return NULL;
}

/* --- runs --- */

static void run_progress(void *data, uint32_t done, uint32_t all) {
  tell(data, "comparing instructions", (double)done / (double)all);
}

/* Fails if the compiler did not fill rt_compile_options.origins: then nothing would be compared, and no error found.
 * Thunks of the common kinds, whose names have no dot, may have no origin, since they copy results. */
static status check_origins(const rt_program *p) {
  uint32_t n = 0, n_known = 0;
  for (uint32_t k = 0; k < p->body.n; k++) {
    n += strchr(p->body.thunks[k].kind, '.') != NULL;
    n_known += p->body.thunks[k].origin != 0;
  }
  CHECK_THAT(n == 0 || n_known, STATUS_UNSUPPORTED, "backend %s does not tell which instruction a thunk computes",
             p->target);
  return NULL;
}

/* Compiles with these options and runs the program in lockstep with the reference evaluator.  The results of the entry
 * computation and the program are on the verifier's arena. */
static status run_lockstep(verifier *v, const rt_compile_options *compile, verify_lockstep *given, literal *results) {
  hlo_module *m;
  rt_executable *e;
  rt_report report = {0};
  rt_origins origins = {0};
  rt_compile_options options = *compile;
  options.origins = &origins;
  TRY(v->import(v->import_data, v->a, &m));
  tell(v, "compiling", 0);
  TRY(verify_make(v->o, &options, v->a, m, &e, &report));
  TRY(check_origins(rt_executable_program(e)));
  given->origins = &origins;
  given->module = m;
  given->inputs = v->inputs;
  given->reduced_precision = options.numerics.reduced_precision;
  given->budget = arena_budget(v->a);
  return verify_run(v->o, e, v->inputs, verify_drive, given, v->a, results);
}

/* --- buffers --- */

/* A verify_import_fn for a module that exists already: clones it. */
static status import_copy(void *data, arena *a, hlo_module **out) {
  *out = hlo_module_clone(a, data);
  return NULL;
}

/* Makes an input with random numbers from 0 to 1 if its type is floating, otherwise with zeros. */
static literal any_literal(arena *a, const shape *s) {
  void *data;
  literal l = literal_new(a, *s, &data);
  dtype t = (dtype)s->type;
  for (int64_t k = 0; k < shape_elements(s) && dtype_is_float(t); k++) {
    double x = (double)(hash_mix(1, (uint64_t)k) >> 11) * 0x1p-53;
    dtype_store_f64(t, (char *)data + (size_t)k * dtype_bytes(t), x, false, DTYPE_ROUND_NEAREST);
  }
  return l;
}

static status note_difference(void *data, const hlo_instr *i, const literal *operands, const literal *want,
                              const rt_program *p, const rt_thunk *t, const verify_difference *d) {
  (void)i, (void)operands, (void)want, (void)p, (void)t, (void)d;
  *(bool *)data = true;
  return NULL;
}

typedef struct context_trial {
  const verifier *v;
  const hlo_instr *root;
  int depth;
  verify_finding *f;
  arena *a;
  bool shown;
} context_trial;

/* Returns values without data, which only have shapes: to show a wrong buffer, the inputs may have any contents. */
static literal *const *any_values(arena *a, const hlo_computation *c) {
  literal **values = ARENA_NEW_N(a, literal *, c->n_ids);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    values[i->id] = ARENA_NEW_N(a, literal, i->n_results + 1);
    for (uint32_t k = 0; k < i->n_results; k++) {
      values[i->id][k] = literal_make(i->shapes[k], NULL);
    }
  }
  return values;
}

static status try_in_context(void *data) {
  context_trial *t = data;
  literal *inputs;
  hlo_module *m = verify_outline(t->a, t->root, t->depth, any_values(t->a, t->root->parent), &inputs);
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    inputs[k] = any_literal(t->a, &inputs[k].shape);
  }
  verifier inner = {.a = t->a, .import = import_copy, .import_data = m, .inputs = inputs, .o = t->v->o};
  verify_lockstep lockstep = {.differs = note_difference, .data = &t->shown};
  literal *results = ARENA_NEW_N(t->a, literal, m->entry->n_roots + 1);
  TRY(run_lockstep(&inner, &t->v->o->compile, &lockstep, results));
  return t->shown ? verify_write(t->v->a, t->v->o->folder, m, inputs, t->f) : NULL;
}

/* Outlines the instruction together with more and more of the instructions that it reads, until a run of the outline in
 * lockstep shows a difference, as the run of the whole module did.  Writes this outline to files.  Does nothing if
 * there is no folder for files. */
static status write_in_context(const verifier *v, const hlo_instr *i, verify_finding *f) {
  enum { DEEPEST = 8 };
  for (int depth = 1; depth <= DEEPEST && v->o->folder; depth++) {
    context_trial t = {.v = v, .root = i, .depth = depth, .f = f, .a = arena_create(arena_budget(v->a))};
    status failed = guard_run(try_in_context, &t);
    arena_destroy(t.a);
    if (failed || t.shown) {
      return failed;
    }
  }
  return NULL;
}

typedef struct second_run {
  verifier *v;
  bool *still;             /* for each finding: whether its instruction differs in the second run, too */
  const hlo_instr **where; /* for each finding: its instruction in the second run */
} second_run;

static status still_differs(void *data, const hlo_instr *i, const literal *operands, const literal *want,
                            const rt_program *p, const rt_thunk *t, const verify_difference *d) {
  second_run *s = data;
  (void)operands, (void)want, (void)p, (void)t, (void)d;
  for (uint32_t k = 0; k < s->v->out->n_findings; k++) {
    s->still[k] |= is_same(s->v->places[k], place_of(i));
  }
  return NULL;
}

static status find_place(void *data, const hlo_instr *i, const literal *operands, const literal *want) {
  second_run *s = data;
  (void)operands, (void)want;
  for (uint32_t k = 0; k < s->v->out->n_findings; k++) {
    s->where[k] = is_same(s->v->places[k], place_of(i)) ? i : s->where[k];
  }
  return NULL;
}

static void second_progress(void *data, uint32_t done, uint32_t all) {
  tell(((second_run *)data)->v, "comparing again with no result in an operand's buffer", (double)done / (double)all);
}

/* Runs the program again with no result in an operand's buffer, to find out whether sharing is the cause of findings
 * about instructions that give right results alone. */
static status blame_buffers(verifier *v) {
  uint32_t n = v->out->n_findings;
  second_run s = {v, ARENA_NEW_N(v->a, bool, n + 1), ARENA_NEW_N(v->a, const hlo_instr *, n + 1)};
  verify_lockstep again = {.differs = still_differs, .compared = find_place, .progress = second_progress, .data = &s};
  rt_compile_options options = v->o->compile;
  literal *results = ARENA_NEW_N(v->a, literal, v->n_results + 1);
  options.out_of_place = true;
  TRY(run_lockstep(v, &options, &again, results));
  for (uint32_t k = 0; k < v->out->n_findings; k++) {
    verify_finding *f = &v->out->findings[k];
    if (f->cause == VERIFY_UNKNOWN && *f->thunk && !s.still[k]) {
      f->cause = VERIFY_BUFFER;
      f->why = "it is right if no result shares an operand's buffer: its result overwrites what is still read";
      TRY(s.where[k] ? write_in_context(v, s.where[k], f) : NULL);
    }
  }
  return NULL;
}

/* Compares the results of the target with those of the module as it was imported, and searches for the wrong pass if
 * they differ. */
static status check_passes(verifier *v, const hlo_module *m, const literal *got) {
  verify_difference d;
  verify_finding f;
  bool differ, found = false;
  tell(v, "evaluating the model as imported", 0);
  literal *want = ARENA_NEW_N(v->a, literal, m->entry->n_roots + 1);
  TRY(ref_eval_computation(m->entry, v->inputs, v->a, want));
  TRY(verify_results_differ(v->a, m, v->inputs, want, got, &differ, &d));
  if (differ) {
    TRY(verify_passes(v->a, m, v->import, v->import_data, v->inputs, want, v->o, &found, &f));
  }
  if (found) {
    v->out->n_different++;
    *ARENA_PUSH(v->a, v->out->findings, v->out->n_findings, v->cap_findings) = f;
  }
  return NULL;
}

status verify_module(arena *a, verify_import_fn *import, void *import_data, const literal *inputs,
                     const verify_options *o, verify_report *out) {
  *out = (verify_report){0};
  CHECK_THAT(o->backend->compiler, STATUS_UNSUPPORTED, "the backend runs programs but compiles none");
  verifier v = {.a = a, .import = import, .import_data = import_data, .inputs = inputs, .o = o, .out = out};
  verify_lockstep lockstep = {.differs = differs,
                              .compared = o->all_algorithms ? try_all_algorithms : NULL,
                              .progress = run_progress,
                              .data = &v};
  hlo_module *m;
  TRY(import(import_data, a, &m));
  v.n_results = m->entry->n_roots;
  literal *results = ARENA_NEW_N(a, literal, v.n_results + 1);
  TRY(run_lockstep(&v, &o->compile, &lockstep, results));
  out->n_instructions = lockstep.n_compared;
  out->seconds_target = lockstep.seconds_target;
  out->seconds_reference = lockstep.seconds_reference;
  if (v.waiting) {
    TRY(blame_buffers(&v));
  }
  return check_passes(&v, m, results);
}
