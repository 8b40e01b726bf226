/* fold.c - constant folding.
 *
 * Requires: nothing; without an evaluator (context.eval) it does nothing.  Keeps: results, as the reference evaluator
 * computes them.  Breaks: nothing.  Small constants that are not used any more are left for dce.
 *
 * Splats (arrays of equal elements) become broadcast(scalar constant), and elementwise operations on splats are
 * computed on scalars, so a splat of any size costs nothing.  Vectors of indices stay constants, since gather,
 * dynamic-slice and others need their elements; so do weights of contractions.  Quantised weights that a dot of the
 * target scales itself are not dequantised.
 *
 * Limits: results have at most context.fold_bytes bytes, or at most twice as many as the largest operand
 * (such as a transposed weight).  In all, folding reads and writes at most MAX_WORK bytes.  A large constant
 * without users is removed at once with its memory, so that of a chain of index arithmetic only the last
 * result remains. */
#include <string.h>

#include "hlo/analysis/quantized.h"
#include "hlo/passes/pass.h"

/* A constant whose elements are in an arena of their own. */
typedef struct large_result {
  const hlo_instr *constant; /* NULL while the constant is being made */
  arena *memory;
} large_result;

typedef struct folding {
  pass_context *context;
  int64_t work; /* the bytes that may still be read and written */
  bool changed;
  arena *memory;   /* the arena for the instruction that is being folded */
  hlo_instr *made; /* the first constant that replaced the last folded instruction */
  uint32_t n_large, cap_large;
  large_result *large;
} folding;

static const int64_t MAX_WORK = (int64_t)1 << 31;

/* --- known values --- */

/* Returns true for small vectors of integers, which are indices and sizes. */
static bool is_index_vector(const shape *s) {
  return s->rank == 1 && s->dims[0] <= 16 && (s->type == DTYPE_S64 || s->type == DTYPE_S32);
}

/* Writes n copies of an element. */
static void fill(char *to, const char *element, size_t size, size_t n) {
  memcpy(to, element, size);
  for (size_t done = 1; done < n; done *= 2) {
    memcpy(to + done * size, to, (done < n - done ? done : n - done) * size);
  }
}

/* Returns the first of the last dimensions whose elements are one element of the operand (*same), or stand next to each
 * other in it, if `step` has the operand's strides. */
static int first_of_run(const shape *to, const int64_t *step, int64_t *run, bool *same) {
  int d = to->rank;
  *run = 1;
  *same = d > 0 && step[d - 1] == 0;
  while (d > 0 && (to->dims[d - 1] == 1 || step[d - 1] == (*same ? 0 : *run))) {
    *run *= to->dims[--d];
  }
  return d;
}

static literal broadcast_literal(const literal *x, const hlo_instr *i, arena *a) {
  const int64_t *dims = hlo_ints(i, HLO_ATTR_DIMENSIONS);
  const shape *to = &i->shapes[0];
  size_t size = dtype_bytes((dtype)to->type);
  int64_t from[SHAPE_MAX_RANK], step[SHAPE_MAX_RANK] = {0}, index[SHAPE_MAX_RANK] = {0}, at = 0, run;
  bool same;
  shape_strides(&x->shape, from);
  for (int k = 0; k < x->shape.rank; k++) {
    step[dims[k]] = x->shape.dims[k] == 1 ? 0 : from[k];
  }
  void *data;
  literal l = literal_new(a, *to, &data);
  int outer = first_of_run(to, step, &run, &same);
  int64_t n = shape_elements(to);
  for (int64_t e = 0; e < n; e += run) {
    const char *source = (const char *)x->data + (size_t)at * size;
    if (same) {
      fill((char *)data + (size_t)e * size, source, size, (size_t)run);
    } else {
      memcpy((char *)data + (size_t)e * size, source, (size_t)run * size);
    }
    for (int k = outer; k-- > 0;) { /* advances `index` and `at` to the next run */
      at += step[k];
      if (++index[k] < to->dims[k]) {
        break;
      }
      at -= step[k] * to->dims[k];
      index[k] = 0;
    }
  }
  return l;
}

static literal iota_literal(const hlo_instr *i, arena *a) {
  const shape *s = &i->shapes[0];
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION), inner = shape_product(s, (int)d + 1, s->rank), n = shape_elements(s);
  size_t size = dtype_bytes((dtype)s->type);
  void *data;
  literal l = literal_new(a, *s, &data);
  for (int64_t e = 0; e < n; e++) {
    int64_t v = e / inner % s->dims[d];
    dtype_convert(DTYPE_S64, &v, (dtype)s->type, (char *)data + (size_t)e * size, 1, true, DTYPE_ROUND_NEAREST);
  }
  return l;
}

/* Returns true if the elements of v are known: v is a constant, or it has at most max_bytes bytes and is an iota or the
 * broadcast of a constant. */
static bool is_known(hlo_value v, int64_t max_bytes) {
  const shape *s = hlo_shape(v);
  if (s->kind != SHAPE_ARRAY || !shape_is_static(s)) {
    return false;
  }
  if (hlo_literal(v)) {
    return true;
  }
  bool source = v.def->op == HLO_IOTA || (v.def->op == HLO_BROADCAST && hlo_literal(v.def->operands[0]));
  return source && shape_bytes(s) <= max_bytes;
}

static literal known_literal(hlo_value v, arena *a) {
  const literal *l = hlo_literal(v);
  return l                       ? *l
         : v.def->op == HLO_IOTA ? iota_literal(v.def, a)
                                 : broadcast_literal(hlo_literal(v.def->operands[0]), v.def, a);
}

static hlo_value constant_before(hlo_instr *at, literal l) {
  hlo_builder b = hlo_builder_make(at->parent);
  b.before = at;
  b.source = at->source;
  return hlo_constant(&b, l);
}

/* --- large results, which have arenas of their own --- */

static void destroy_arena(void *memory) { arena_destroy(memory); }

static void destroy_memory(void *data) {
  folding *f = data;
  arena_destroy(f->memory);
  while (f->n_large) {
    arena_destroy(f->large[--f->n_large].memory);
  }
}

/* Gives the arenas of the large constants that still exist to the module's arena, which frees them. */
static void hand_over(folding *f, arena *module) {
  while (f->n_large) {
    arena_cleanup(module, destroy_arena, f->large[--f->n_large].memory);
  }
}

static bool is_large(const shape *s) {
  enum { LARGE = 1 << 16 };
  return shape_bytes(s) >= LARGE;
}

static bool is_owned(const folding *f, const void *data) {
  for (uint32_t k = 0; k < f->n_large; k++) {
    if (arena_holds(f->large[k].memory, data)) {
      return true;
    }
  }
  return false;
}

/* Frees the memory of a removed constant if it has an arena of its own. */
static void release(folding *f, const hlo_instr *constant) {
  for (uint32_t k = f->n_large; k-- > 0 && is_large(&constant->shapes[0]);) {
    if (f->large[k].constant == constant) {
      arena_destroy(f->large[k].memory);
      f->large[k] = f->large[--f->n_large];
      return;
    }
  }
}

/* Removes v, an operand of a folded instruction, if it has no users and is large; then does the same for the operand
 * of a broadcast. */
static void drop(folding *f, hlo_value v) {
  while (v.def->parent && is_large(hlo_shape(v)) && v.def->n_uses == 0 && !hlo_is_root(v) &&
         (v.def->op == HLO_CONSTANT || v.def->op == HLO_BROADCAST)) {
    hlo_value below = v.def->n_operands ? v.def->operands[0] : v;
    hlo_remove(v.def);
    release(f, v.def);
    v = below;
  }
}

/* Returns a literal with a copy of l's elements on the arena. */
static literal keep(const literal *l, arena *a) {
  return literal_make(l->shape, arena_memdup(a, l->data, (size_t)shape_bytes(&l->shape)));
}

/* Inserts a constant before i.  Elements that live as long as the module are not copied.  A large result takes over the
 * arena f->memory if that holds little else. */
static hlo_value constant_of(folding *f, hlo_instr *i, literal l) {
  bool is_new = arena_holds(f->memory, l.data);
  if (!is_new && !is_owned(f, l.data)) {
    return constant_before(i, l);
  }
  if (!is_large(&l.shape)) {
    return constant_before(i, keep(&l, i->parent->module->arena));
  }
  large_result *own = ARENA_PUSH(f->context->scratch, f->large, f->n_large, f->cap_large);
  if (is_new && i->n_results == 1 && arena_used(f->memory) <= 2 * (size_t)shape_bytes(&l.shape)) {
    own->memory = f->memory;
    f->memory = NULL;
  } else {
    own->memory = arena_create(arena_budget(f->context->scratch));
    l = keep(&l, own->memory);
  }
  hlo_value constant = constant_before(i, l);
  own->constant = constant.def;
  return constant;
}

/* Evaluates i with the operands `args` and the result shapes `shapes`.  For that, a copy of i is inserted and removed
 * again.  The results are in f->memory or in the memory of an operand.  Returns false if the evaluator fails. */
static bool evaluate(folding *f, const hlo_instr *i, const hlo_value *args, const shape *shapes, literal *results) {
  hlo_instr *copy = hlo_instr_clone(i->parent, (hlo_instr *)i, i, args);
  memcpy(copy->shapes, shapes, i->n_results * sizeof *shapes);
  status s = f->context->eval(copy, f->memory, results);
  hlo_remove(copy);
  bool done = s == NULL;
  status_free(s);
  return done;
}

/* Folds an elementwise operation on splats: computes it on scalars and replaces i by a splat of the result. */
static bool fold_splats(folding *f, hlo_instr *i) {
  if (hlo_info(i)->kind != HLO_ELEMENTWISE || i->shapes[0].rank == 0) {
    return false;
  }
  hlo_value args[3];
  literal scalars[3], result;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!hlo_splat_of(i->operands[k], &scalars[k])) {
      return false;
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    args[k] = constant_before(i, scalars[k]);
  }
  shape s = shape_scalar((dtype)i->shapes[0].type);
  bool done = evaluate(f, i, args, &s, &result);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_remove(args[k].def);
  }
  if (done) {
    hlo_builder b = hlo_pass_builder(f->context, i->parent, i);
    b.eval = NULL; /* otherwise the builder would fold the broadcast to a constant */
    hlo_replace(hlo_result(i, 0), hlo_splat_literal(&b, i->shapes[0], keep(&result, i->parent->module->arena)));
    hlo_remove(i);
    f->changed = true;
  }
  return done;
}

/* Returns the bytes that folding i reads and writes, or -1 if it must not be folded. */
static int64_t cost_of(const folding *f, const hlo_instr *i) {
  int64_t in = 0, out = 0, largest = 0, max = f->context->fold_bytes;
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (i->shapes[k].kind != SHAPE_ARRAY || !shape_is_static(&i->shapes[k])) {
      return -1;
    }
    out += shape_bytes(&i->shapes[k]);
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!is_known(i->operands[k], max)) {
      return -1;
    }
    int64_t bytes = shape_bytes(hlo_shape(i->operands[k]));
    in += bytes;
    largest = bytes > largest ? bytes : largest;
  }
  bool fits = out <= max || out <= 2 * largest;
  return fits && in + out <= f->work ? in + out : -1;
}

static bool fold_constants(folding *f, hlo_instr *i) {
  arena *scratch = f->context->scratch;
  if (i->op == HLO_CONSTANT || i->op == HLO_BROADCAST || i->op == HLO_IOTA) {
    return false; /* constants, broadcasts and iotas are compact already */
  }
  int64_t cost = cost_of(f, i);
  if (cost < 0) {
    return false;
  }
  f->work -= cost;
  hlo_value *args = ARENA_NEW_N(scratch, hlo_value, i->n_operands + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value x = i->operands[k];
    args[k] = hlo_literal(x) ? x : constant_before(i, known_literal(x, f->memory));
  }
  literal *results = ARENA_NEW_N(scratch, literal, i->n_results + 1);
  bool done = evaluate(f, i, args, i->shapes, results);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (args[k].def != i->operands[k].def && args[k].def->n_uses == 0) {
      hlo_remove(args[k].def);
    }
  }
  for (uint32_t k = 0; k < i->n_results && done; k++) {
    hlo_value constant = constant_of(f, i, results[k]);
    hlo_replace(hlo_result(i, k), constant);
    f->made = k ? f->made : constant.def;
  }
  if (done) {
    hlo_remove(i);
    f->changed = true;
  }
  for (uint32_t k = 0; k < i->n_operands && done; k++) {
    drop(f, i->operands[k]);
  }
  return done;
}

/* Folds i as an operation on splats or on constants; f->memory is the arena for the intermediate results. */
static bool fold_instr(folding *f, hlo_instr *i) {
  f->memory = arena_create(arena_budget(f->context->scratch));
  f->made = NULL;
  bool done = fold_splats(f, i) || fold_constants(f, i);
  arena_destroy(f->memory);
  f->memory = NULL;
  return done;
}

/* Returns true if i is an operand of a contraction: libraries need weights as arrays, which they pack once. */
static bool feeds_contraction(const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    if (hlo_info(i->uses[k].user)->kind == HLO_CONTRACTION) {
      return true;
    }
  }
  return false;
}

/* Replaces a constant of equal elements by a broadcast of a scalar, unless it holds indices or weights. */
static bool compact_splat(folding *f, hlo_instr *i) {
  const literal *l = hlo_literal(hlo_result(i, 0));
  if (!l || l->shape.rank == 0 || is_index_vector(&l->shape) || feeds_contraction(i) || !shape_is_static(&l->shape) ||
      !literal_is_splat(l)) {
    return false;
  }
  hlo_builder b = hlo_pass_builder(f->context, i->parent, i);
  b.eval = NULL;
  literal first = literal_make(shape_scalar((dtype)l->shape.type), l->data);
  first = keep(&first, i->parent->module->arena); /* copies the element, so that the array can be freed */
  hlo_replace(hlo_result(i, 0), hlo_splat_literal(&b, l->shape, first));
  hlo_remove(i);
  release(f, i);
  f->changed = true;
  return true;
}

/* Returns true if i is the convert(q) at the beginning of quantised weights (hlo_quantized_weights) that should stay
 * small integers. */
static bool begins_quantized_weights(const folding *f, const hlo_instr *i) {
  const hlo_target *t = f->context->target;
  hlo_quantized_weights w;
  if (!t || !t->takes_quantized_weights || i->op != HLO_CONVERT || !hlo_literal(i->operands[0]) ||
      i->shapes[0].rank < 2) {
    return false;
  }
  const hlo_instr *last = i;
  for (int k = 0; last && last->op != HLO_DOT && k < 8; k++) {
    last = last->n_uses == 1 ? last->uses[0].user : NULL;
  }
  return last && last->op == HLO_DOT && hlo_quantized_weights_of(last, &w) && w.members[0] == i &&
         t->takes_quantized_weights(t->data, last);
}

static status fold_computation(folding *f, hlo_computation *c) {
  for (hlo_instr *i = c->first; i;) {
    hlo_instr *before = i->prev;
    TRY(budget_check(arena_budget(f->context->scratch)));
    bool skip = i->op == HLO_PARAMETER || (i->n_uses == 0 && i->op == HLO_CONSTANT) || i->op == HLO_FUSION ||
                hlo_has_effect(i) || (hlo_info(i)->flags & HLO_RUN) || begins_quantized_weights(f, i);
    if (!skip && compact_splat(f, i)) {
      /* Continues with the scalar and the broadcast, which are not folded again. */
      i = before ? before->next : c->first;
    } else if (!skip && i->op != HLO_CONSTANT && fold_instr(f, i)) {
      i = f->made ? f->made : before ? before->next : c->first;
    } else {
      i = i->next;
    }
  }
  return NULL;
}

status pass_fold(hlo_module *m, pass_context *c, bool *changed) {
  if (!c->eval) {
    return NULL;
  }
  folding *f = ARENA_NEW(c->scratch, folding);
  f->context = c;
  f->work = MAX_WORK;
  arena_cleanup(c->scratch, destroy_memory, f);
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(fold_computation(f, walked[k]));
  }
  hand_over(f, m->arena);
  *changed = f->changed;
  return NULL;
}
