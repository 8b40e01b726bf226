/* compare.c - the tolerance of an instruction, evaluations with changed numbers, and the comparison; see compare.h. */
#include "verify/compare.h"

#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/hash.h"
#include "hlo/analysis/cost.h"
#include "verify/evaluate.h"

/* --- tolerances --- */

/* How a type rounds: by at most `unit` of a number, which is half a unit in the last place of 1, or of the least normal
 * number if that is larger.  Both are 0 for a type that is not floating. */
typedef struct rounding {
  double unit, least_normal;
} rounding;

static rounding rounding_of(dtype type) {
  const dtype_format *f = dtype_get_format(type);
  if (f) {
    return (rounding){ldexp(1, -(int)f->fraction - 1), ldexp(1, 1 - (int)f->bias)};
  }
  switch (type) {
    case DTYPE_F64:
    case DTYPE_C128: return (rounding){0x1p-53, 0x1p-1022};
    case DTYPE_F32:
    case DTYPE_C64: return (rounding){0x1p-24, 0x1p-126};
    default: return (rounding){dtype_is_float(type) ? 0.5 : 0, 0}; /* f8e8m0fnu has powers of two only */
  }
}

static double unit_of(dtype type) { return rounding_of(type).unit; }

/* Returns the largest relative error of rounding operands to the reduced precision `narrow`.  DTYPE_F32 stands for
 * tf32, whose significand has as many bits as that of f16. */
static double unit_of_operands(dtype narrow) { return unit_of(narrow == DTYPE_F32 ? DTYPE_F16 : narrow); }

static int64_t contracted(const hlo_instr *i) {
  int64_t results = shape_elements(&i->shapes[0]);
  return results ? (int64_t)(hlo_cost_of(i).operations / (2 * results)) : 1;
}

/* Returns how many terms are summed for one element of a result, or an upper bound of that number; 1 if elements are
 * not sums. */
static int64_t terms_of(const hlo_instr *i) {
  int64_t n = i->n_operands ? shape_elements(hlo_shape(i->operands[0])) : 1, results = shape_elements(&i->shapes[0]);
  switch (hlo_info(i)->kind) {
    case HLO_CONTRACTION: return contracted(i);
    case HLO_REDUCTION: return results ? n / results : 1;
    case HLO_WINDOW:
    case HLO_SCAN:
    case HLO_UPDATE: return n;
    default: return 1;
  }
}

/* What verify_tolerance_of finds out about an instruction and the instructions in its computations: the coarsest unit
 * of a result (unit_of), the most terms of a sum, how many instructions there are, and whether all are exact. */
typedef struct tolerance_facts {
  double unit;
  int64_t terms;
  int operations;
  bool exact;
} tolerance_facts;

static void look_at(const hlo_instr *i, tolerance_facts *s) {
  if (i->op == HLO_PARAMETER || i->op == HLO_CONSTANT) {
    return;
  }
  bool sums = hlo_info(i)->kind == HLO_CONTRACTION || hlo_info(i)->kind == HLO_REDUCTION ||
              hlo_info(i)->kind == HLO_WINDOW || hlo_info(i)->kind == HLO_SCAN || i->op == HLO_SCATTER;
  int64_t terms = sums ? terms_of(i) : 1;
  s->terms = terms > s->terms ? terms : s->terms;
  s->operations++;
  s->exact &= (hlo_info(i)->flags & HLO_EXACT) != 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    s->unit = fmax(s->unit, unit_of((dtype)i->shapes[k].type));
  }
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      look_at(j, s);
    }
  }
}

verify_tolerance verify_tolerance_of(const hlo_instr *i, dtype narrow) {
  tolerance_facts s = {.exact = true};
  for (uint32_t k = 0; i->op == HLO_FUSION && k < 1; k++) {
    for (const hlo_instr *j = hlo_callee(i, 0)->first; j; j = j->next) {
      look_at(j, &s);
    }
  }
  if (i->op != HLO_FUSION) {
    look_at(i, &s);
  }
  if (s.exact) {
    return (verify_tolerance){0};
  }
  double sums = fmin(s.unit, 0x1p-24) * (128 + 4 * sqrt((double)s.terms));
  return (verify_tolerance){.unit = s.unit,
                            .of_element = s.unit * (16 + 2 * s.operations),
                            .of_largest = s.terms < 2 ? 0
                                          : narrow    ? fmax(4 * unit_of_operands(narrow), sums)
                                                      : sums};
}

/* --- elements as numbers; a complex element is two numbers --- */

typedef struct numbers {
  dtype type;
  int64_t n;
  const char *data;
  size_t step;
} numbers;

static numbers numbers_of(const literal *l) {
  dtype t = (dtype)l->shape.type;
  int64_t n = shape_elements(&l->shape);
  if (dtype_is_complex(t)) {
    dtype real = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    return (numbers){real, 2 * n, l->data, dtype_bytes(real)};
  }
  return (numbers){t, n, l->data, dtype_bytes(t)};
}

static double number(const numbers *x, int64_t k) {
  const char *at = x->data + (size_t)k * x->step;
  return dtype_is_float(x->type) ? dtype_load_f64(x->type, at) : (double)dtype_load_i64(x->type, at);
}

static bool same_bytes(const numbers *x, const numbers *y, int64_t k) {
  return memcmp(x->data + (size_t)k * x->step, y->data + (size_t)k * y->step, x->step) == 0;
}

/* Returns true if two elements are equal.  Zeros of both signs are equal, and so are all NaNs. */
static bool same(const numbers *x, const numbers *y, int64_t k) {
  if (same_bytes(x, y, k)) {
    return true;
  }
  if (!dtype_is_float(x->type)) {
    return false;
  }
  double a = number(x, k), b = number(y, k);
  return a == b || (isnan(a) && isnan(b));
}

static double largest(const numbers *x) {
  double most = 0;
  for (int64_t k = 0; k < x->n; k++) {
    double v = fabs(number(x, k));
    most = isfinite(v) && v > most ? v : most;
  }
  return most;
}

/* --- changing numbers at random --- */

/* The reference is evaluated MOVES times with slightly changed numbers.  In the first evaluation all magnitudes grow,
 * in the second all shrink; these DIRECTED evaluations count for results of integers only.  An integer that was rounded
 * from a number near a tie may differ, and random changes might miss that. */
enum { DIRECTED = 2, MOVES = 6 };
static const double reach = 4, movement_factor = 16;

/* Changes v as verify_move_fn states, up or down by `by` units.  A number that would become 0 or lose its sign grows
 * instead: what is not rounded to 0 makes no quotient infinite, and no product with an infinity NaN. */
static double moved(double v, double by, const rounding *r) {
  double d = by * fmax(fabs(v), r->least_normal), least = 2 * r->unit * r->least_normal;
  if (v == 0 || !isfinite(v)) {
    return v;
  }
  return copysign(fabs(v) + (fabs(v) + d < least ? fabs(d) : d), v);
}

literal verify_moved(arena *a, const literal *from, double unit, uint64_t seed) {
  void *data;
  numbers x = numbers_of(from);
  if (!dtype_is_float(x.type)) {
    return *from;
  }
  literal l = literal_new(a, from->shape, &data);
  rounding r = rounding_of(x.type);
  for (int64_t k = 0; k < x.n; k++) {
    double sign = seed == VERIFY_ALL_UP || hash_mix(seed, (uint64_t)k) & 1 ? 1 : -1;
    dtype_store_f64(x.type, (char *)data + (size_t)k * x.step, moved(number(&x, k), sign * reach * unit, &r), false,
                    DTYPE_ROUND_NEAREST);
  }
  return l;
}

uint64_t verify_seed(uint64_t seed, uint64_t k) { return seed == VERIFY_ALL_UP ? VERIFY_ALL_UP : hash_mix(seed, k); }

/* Returns true if the instruction rounds.  Constants and instructions that only move elements do not round. */
static bool rounds(const hlo_instr *i) {
  hlo_kind kind = hlo_info(i)->kind;
  return kind != HLO_STRUCTURE && kind != HLO_MOVEMENT && kind != HLO_SORTING;
}

typedef struct movement_of_body {
  double unit;
  uint64_t seed;
} movement_of_body;

static void move_results(void *data, const hlo_instr *i, arena *a, literal *results) {
  const movement_of_body *m = data;
  for (uint32_t k = 0; k < i->n_results && rounds(i); k++) {
    results[k] = verify_moved(a, &results[k], m->unit, verify_seed(m->seed, i->id));
  }
}

/* Evaluates the body of a fusion, and changes the result of each instruction before others read it. */
static status move_body(const hlo_computation *c, const literal *args, double unit, uint64_t seed, arena *a,
                        literal *roots) {
  movement_of_body movement = {unit, seed};
  literal **values;
  TRY(verify_values(a, c, args, &(verify_change){move_results, &movement}, &values));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    roots[k] = values[c->roots[k].def->id][c->roots[k].index];
  }
  return NULL;
}

status verify_move_instr(void *data, double unit, uint64_t seed, arena *a, literal *results) {
  const verify_evaluation *e = data;
  literal *operands = ARENA_NEW_N(a, literal, e->i->n_operands + 1);
  for (uint32_t k = 0; k < e->i->n_operands; k++) {
    operands[k] = verify_moved(a, &e->operands[k], unit, verify_seed(seed, k));
  }
  return e->i->op == HLO_FUSION ? move_body(hlo_callee(e->i, 0), operands, unit, seed, a, results)
                                : ref_eval(e->i, operands, a, results);
}

typedef struct comparison {
  arena *a;
  const verify_tolerance *t;
  uint32_t n;
  const literal *want, *got;
  bool (*checked)(const void *data, uint32_t result, int64_t element);
  const void *checked_data;
  verify_move_fn *move;
  void *move_data;
  literal *moves[MOVES]; /* the results of each evaluation with changed numbers, made when they are needed */
} comparison;

static status move(comparison *c) {
  for (uint32_t m = 0; m < MOVES; m++) {
    double unit = m == 1 ? -c->t->unit : c->t->unit;
    uint64_t seed = m < DIRECTED ? VERIFY_ALL_UP : hash_mix(m - DIRECTED, 1);
    c->moves[m] = ARENA_NEW_N(c->a, literal, c->n + 1);
    TRY(c->move(c->move_data, unit, seed, c->a, c->moves[m]));
  }
  return NULL;
}

/* Returns by how much element k of the reference's result r changes at most when the reference is evaluated with
 * slightly changed numbers (MOVES).  It is infinite if the element becomes or ceases to be NaN or infinite, or becomes
 * another integer. */
static double movement(const comparison *c, uint32_t r, int64_t k) {
  numbers want = numbers_of(&c->want[r]);
  double most = 0;
  for (uint32_t m = dtype_is_float(want.type) ? DIRECTED : 0; m < MOVES; m++) {
    numbers x = numbers_of(&c->moves[m][r]);
    double d = same(&x, &want, k) ? 0 : fabs(number(&x, k) - number(&want, k));
    most = fmax(most, isnan(d) || !dtype_is_float(x.type) ? (d == 0 ? 0 : INFINITY) : d);
  }
  return most;
}

static double largest_movement(const comparison *c, uint32_t r) {
  double most = 0;
  numbers want = numbers_of(&c->want[r]);
  for (int64_t k = 0; k < want.n; k++) {
    double d = movement(c, r, k);
    most = isfinite(d) && d > most ? d : most;
  }
  return most;
}

/* --- comparing --- */

/* Returns the element of result r to which number k belongs: a complex element consists of two numbers. */
static int64_t element_of(const comparison *c, uint32_t r, int64_t k) {
  return dtype_is_complex((dtype)c->want[r].shape.type) ? k / 2 : k;
}

static bool means_something(const comparison *c, uint32_t r, int64_t k) {
  return !c->checked || c->checked(c->checked_data, r, element_of(c, r, k));
}

static bool within(double got, double want, double allowed) {
  return got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= allowed;
}

static void note(verify_difference *d, uint32_t r, int64_t element, double got, double want, double allowed) {
  bool worse = d->n_wrong == 0 || isnan(got - want) || fabs(got - want) - allowed > fabs(d->got - d->want) - d->allowed;
  if (worse && !(d->n_wrong && isnan(d->got - d->want))) {
    d->result = r;
    d->element = element;
    d->got = got;
    d->want = want;
    d->allowed = allowed;
  }
}

/* Compares result r with the reference.  If `moving` is set, an element may also differ by movement_factor times the
 * change of that element of the reference when the operands are changed slightly (movement).  If elements are sums, the
 * largest change of any element counts for all of them. */
static verify_difference compare_result(const comparison *c, uint32_t r, bool moving) {
  numbers want = numbers_of(&c->want[r]), got = numbers_of(&c->got[r]);
  double most = largest(&want), floor = c->t->unit * 0x1p-126;
  double sideways = moving && c->t->of_largest > 0 ? largest_movement(c, r) : 0;
  verify_difference d = {.result = r, .n_elements = shape_elements(&c->want[r].shape), .largest = most};
  for (int64_t k = 0, last_wrong = -1; k < want.n; k++) {
    if (same(&want, &got, k) || !means_something(c, r, k)) {
      continue;
    }
    double x = number(&want, k), y = number(&got, k);
    bool is_number = dtype_is_float(want.type) && c->t->unit > 0;
    double allowed = is_number ? c->t->of_element * fabs(x) + c->t->of_largest * most + floor : 0;
    allowed += moving ? movement_factor * fmax(sideways, movement(c, r, k)) : 0;
    if (!within(y, x, allowed)) {
      int64_t element = element_of(c, r, k);
      note(&d, r, element, y, x, allowed);
      d.n_wrong += element != last_wrong;
      last_wrong = element;
    }
  }
  return d;
}

status verify_compare(arena *a, const verify_tolerance *t, uint32_t n, const literal *want, const literal *got,
                      bool (*checked)(const void *data, uint32_t result, int64_t element), const void *checked_data,
                      verify_move_fn *move_fn, void *move_data, bool *differ, verify_difference *out) {
  comparison c = {.a = a,
                  .t = t,
                  .n = n,
                  .want = want,
                  .got = got,
                  .checked = checked,
                  .checked_data = checked_data,
                  .move = move_fn,
                  .move_data = move_data};
  *differ = false;
  for (uint32_t r = 0; r < n && !*differ; r++) {
    *out = compare_result(&c, r, false);
    if (out->n_wrong && t->unit > 0) {
      TRY(c.moves[0] ? NULL : move(&c));
      *out = compare_result(&c, r, true);
    }
    *differ = out->n_wrong > 0;
  }
  return NULL;
}
