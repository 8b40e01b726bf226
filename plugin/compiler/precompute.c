/* precompute.c - computes what depends on constants alone and is too much work for the reference evaluator, which folds
 * constants during the import and in the passes (ref_fold): products of weights, such as the projections of a table of
 * relative positions.  They are compiled for this machine as a module of their own, which runs once, and its results
 * become constants.  (IREE evaluates constants in this way, too.) */
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/ir/bind.h"
#include "plugin/compiler/backend.h"
#include "plugin/compiler/internal.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"

/* The most multiplications that are done, some seconds of work for an old processor. */
static const double MOST_WORK = 1e11;

typedef struct precomputing {
  hlo_computation *entry;
  /* By the number of an instruction: whether it depends on constants alone; whether it does and needs a product that
   * the evaluator does not compute; and whether it is in the module that runs once. */
  bool *known, *costly, *needed;
  double work;
  int64_t constant_bytes, wanted_bytes; /* of the constants that there are, and of those that are to be made */
  uint32_t n_wanted;
  hlo_instr **wanted; /* the costly instructions that others use: results of the module that runs once */
} precomputing;

/* --- what is computed --- */

/* Returns true if the result is an array of constant size, not much larger than what it is computed from, so that it
 * can become a constant. */
static bool stays_small(const hlo_instr *i) {
  enum { SMALL = 1 << 16 };
  if (i->n_results != 1 || i->shapes[0].kind != SHAPE_ARRAY || !shape_is_static(&i->shapes[0])) {
    return false;
  }
  int64_t largest = SMALL;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    int64_t bytes = shape_bytes(hlo_shape(i->operands[k]));
    largest = bytes > largest ? bytes : largest;
  }
  return shape_bytes(&i->shapes[0]) <= 2 * largest;
}

/* Returns true if i depends on constants alone and its result can become a constant, or is one already.  `costly` is
 * whether an operand is. */
static bool is_known(const precomputing *p, const hlo_instr *i, bool costly) {
  bool source = i->op == HLO_CONSTANT || i->op == HLO_IOTA;
  bool known = source || (i->n_operands > 0 && hlo_n_callees(i) == 0 && i->op != HLO_RNG && hlo_instr_is_static(i));
  for (uint32_t k = 0; k < i->n_operands && known; k++) {
    known = p->known[i->operands[k].def->id];
  }
  if (!known || i->op == HLO_CONSTANT) {
    return known;
  }
  bool spreads = i->op == HLO_BROADCAST || i->op == HLO_IOTA; /* costs nothing in the middle of other work */
  return spreads ? !costly && shape_is_static(&i->shapes[0]) : stays_small(i);
}

static void examine(precomputing *p, const hlo_instr *i) {
  bool costly = false;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    costly |= p->costly[i->operands[k].def->id];
  }
  bool known = is_known(p, i, costly);
  double work = known && hlo_info(i)->kind == HLO_CONTRACTION ? ref_contraction_work(i) : 0;
  p->known[i->id] = known;
  p->costly[i->id] = known && (costly || work > REF_MOST_WORK);
  p->work += work;
  p->constant_bytes += i->op == HLO_CONSTANT ? shape_bytes(&i->shapes[0]) : 0;
}

static bool is_wanted(const precomputing *p, const hlo_instr *i) {
  bool wanted = hlo_is_root(hlo_result((hlo_instr *)i, 0));
  for (uint32_t k = 0; k < i->n_uses && !wanted; k++) {
    wanted = !p->known[i->uses[k].user->id];
  }
  return wanted && p->costly[i->id];
}

/* Finds what is computed.  Returns false if there is nothing, or too much: work, or memory, since a small file could
 * have very many products. */
static bool find(precomputing *p, arena *a) {
  hlo_number(p->entry);
  p->known = ARENA_NEW_N(a, bool, p->entry->n_ids);
  p->costly = ARENA_NEW_N(a, bool, p->entry->n_ids);
  p->needed = ARENA_NEW_N(a, bool, p->entry->n_ids);
  p->wanted = ARENA_NEW_N(a, hlo_instr *, p->entry->n_ids);
  HLO_FOR_EACH(i, p->entry) { examine(p, i); }
  for (hlo_instr *i = p->entry->last; i; i = i->prev) { /* operands come before their users in the list */
    bool wanted = is_wanted(p, i);
    if (wanted) {
      p->wanted[p->n_wanted++] = i;
      p->wanted_bytes += shape_bytes(&i->shapes[0]);
    }
    p->needed[i->id] |= wanted;
    for (uint32_t k = 0; k < i->n_operands && p->needed[i->id]; k++) {
      p->needed[i->operands[k].def->id] = true;
    }
  }
  return p->n_wanted > 0 && p->work <= MOST_WORK && p->wanted_bytes <= p->constant_bytes;
}

/* Returns a module without parameters whose results are the wanted values. */
static hlo_module *extract(const precomputing *p, arena *a) {
  hlo_module *m = hlo_module_create(a, "constants");
  m->entry = hlo_computation_create(m, "main");
  hlo_instr **copies = ARENA_NEW_N(a, hlo_instr *, p->entry->n_ids);
  hlo_value *roots = ARENA_NEW_N(a, hlo_value, p->n_wanted);
  HLO_FOR_EACH(i, p->entry) {
    if (p->needed[i->id]) {
      hlo_value *operands = ARENA_NEW_N(a, hlo_value, i->n_operands + 1);
      for (uint32_t k = 0; k < i->n_operands; k++) {
        operands[k] = (hlo_value){copies[i->operands[k].def->id], i->operands[k].index};
      }
      copies[i->id] = hlo_instr_clone(m->entry, NULL, i, operands);
    }
  }
  for (uint32_t k = 0; k < p->n_wanted; k++) {
    roots[k] = hlo_result(copies[p->wanted[k]->id], 0);
  }
  hlo_set_roots(m->entry, p->n_wanted, roots);
  return m;
}

/* --- computing it --- */

typedef struct execution {
  const rt_compile_options *given;
  precomputing *p;
  arena *kept, *scratch; /* for the results, and for all else */
  literal *results;
  rt_executable *executable;
  rt_thread_pool *pool;
} execution;

static status run(execution *e, const rt_backend *backend, const rt_program *program, void *const *results) {
  rt_load_options loading = {.budget = arena_budget(e->kept)};
  TRY(rt_executable_create(program, backend->target, &loading, &e->executable));
  TRY(rt_thread_pool_create(e->given->threads ? e->given->threads : 1, &e->pool));
  rt_run_options options = {.pool = e->pool, .budget = arena_budget(e->kept)};
  return rt_execute(rt_executable_binding(e->executable), &options, NULL, results);
}

/* Compiles the module and runs it. */
static status compute(void *data) {
  execution *e = data;
  const rt_backend *backend;
  rt_program *program;
  rt_report unused = {0};
  rt_compile_options options = {
      .numerics = e->given->numerics, .threads = e->given->threads, .tune = RT_TUNE_KNOWN, .eval = ref_fold};
  if (!find(e->p, e->scratch)) {
    return NULL;
  }
  uint32_t n = e->p->n_wanted;
  void **addresses = ARENA_NEW_N(e->scratch, void *, n);
  e->results = ARENA_NEW_N(e->scratch, literal, n);
  for (uint32_t k = 0; k < n; k++) {
    e->results[k] = literal_new(e->kept, e->p->wanted[k]->shapes[0], &addresses[k]);
  }
  TRY(compiler_backend("cpu", &backend));
  struct hlo_module *m = (struct hlo_module *)extract(e->p, e->scratch);
  TRY(backend->compiler->compile(m, &options, e->scratch, &program, &unused));
  return run(e, backend, program, addresses);
}

static void replace(hlo_instr *i, literal l) {
  hlo_builder b = hlo_builder_make(i->parent);
  b.before = i;
  b.source = i->source;
  hlo_replace(hlo_result(i, 0), hlo_constant(&b, l));
}

/* Removes the instructions of which only the wanted values were computed. */
static void remove_unused(const precomputing *p) {
  for (hlo_instr *i = p->entry->last, *before; i; i = before) {
    before = i->prev;
    if (p->needed[i->id] && i->n_uses == 0 && !hlo_is_root(hlo_result(i, 0))) {
      hlo_remove(i);
    }
  }
}

status compiler_precompute(hlo_module *m, const rt_backend *b, const rt_compile_options *options, arena *a) {
  if (strcmp(b->compiler->name, "ref") == 0) {
    return NULL;
  }
  precomputing p = {.entry = m->entry};
  execution e = {.given = options, .p = &p, .kept = a, .scratch = arena_create(arena_budget(a))};
  status failed = guard_run(compute, &e);
  bool done = !failed && e.results;
  for (uint32_t k = 0; k < p.n_wanted && done; k++) {
    replace(p.wanted[k], e.results[k]);
  }
  if (done) {
    remove_unused(&p);
  }
  rt_thread_pool_destroy(e.pool);
  rt_executable_destroy(e.executable);
  arena_destroy(e.scratch);
  return failed;
}
