/* value_range.c - see value_range.h. */
#include "hlo/analysis/value_range.h"

#include <float.h>
#include <math.h>

#include "hlo/analysis/queries.h"

enum { MOST_ELEMENTS = 1 << 14 };

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

static double largest_of(const hlo_value_range *r) { return fmax(fabs(r->low), fabs(r->high)); }

static hlo_value_range between(double low, double high, bool whole) {
  return (hlo_value_range){low, high, whole, true};
}

static bool of_literal(const literal *l, hlo_value_range *out) {
  int64_t n = shape_elements(&l->shape);
  if (n == 0 || n > MOST_ELEMENTS) {
    return false;
  }
  *out = between(INFINITY, -INFINITY, true);
  for (int64_t k = 0; k < n; k++) {
    double x = literal_f64(l, k);
    if (!isfinite(x)) {
      return false;
    }
    *out = between(least(out->low, x), most(out->high, x), out->whole && rint(x) == x);
  }
  return true;
}

static hlo_value_range of_conversion(const hlo_value_range *x, dtype to) {
  return dtype_is_int(to) ? between(floor(x->low), ceil(x->high), true) : *x;
}

static hlo_value_range of_product(const hlo_value_range *x, const hlo_value_range *y) {
  double a = x->low * y->low, b = x->low * y->high, c = x->high * y->low, d = x->high * y->high;
  return between(least(least(a, b), least(c, d)), most(most(a, b), most(c, d)), x->whole && y->whole);
}

static bool of_quotient(const hlo_value_range *x, const hlo_value_range *y, hlo_value_range *out) {
  hlo_value_range inverse = between(1 / y->high, 1 / y->low, false);
  *out = of_product(x, &inverse);
  return y->low > 0 || y->high < 0;
}

/* Returns the number of products in a sum of the contraction, or infinity if it is not a constant. */
static double products_of(const hlo_instr *i) {
  const shape *w = hlo_shape(i->operands[1]);
  double n = 1;
  for (int k = 0; k < w->rank; k++) {
    bool summed = i->op == HLO_CONVOLUTION ? k > 0 : hlo_has_int(i, HLO_ATTR_RHS_CONTRACT, k);
    n *= !summed ? 1 : dim_is_const(w->dims[k]) ? (double)w->dims[k] : INFINITY;
  }
  return n;
}

/* Sums of integers in f32 are integers, too, however they are rounded.  Other sums are less than twice as large if each
 * addition rounds. */
static bool of_contraction(const hlo_instr *i, const hlo_value_range *x, const hlo_value_range *y,
                           hlo_value_range *out) {
  bool whole = x->whole && y->whole;
  double most_sum = products_of(i) * largest_of(x) * largest_of(y) * (whole ? 1 : 2);
  *out = between(-most_sum, most_sum, whole);
  return isfinite(most_sum);
}

static bool of_operation(const hlo_instr *i, const hlo_value_range r[3], hlo_value_range *out) {
  const hlo_value_range *x = &r[0], *y = &r[1];
  bool whole = x->whole && y->whole;
  switch (i->op) {
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_COPY: *out = *x; return true;
    case HLO_ROUND: *out = between(rint(x->low), rint(x->high), true); return true;
    case HLO_NEG: *out = between(-x->high, -x->low, x->whole); return true;
    case HLO_CONVERT: *out = of_conversion(x, (dtype)i->shapes[0].type); return true;
    case HLO_ADD: *out = between(x->low + y->low, x->high + y->high, whole); return true;
    case HLO_SUB: *out = between(x->low - y->high, x->high - y->low, whole); return true;
    case HLO_MUL: *out = of_product(x, y); return true;
    case HLO_DOT:
    case HLO_CONVOLUTION: return of_contraction(i, x, y, out);
    case HLO_DIV: return i->shapes[0].type == DTYPE_F32 && of_quotient(x, y, out);
    case HLO_MAX: *out = between(most(x->low, y->low), most(x->high, y->high), whole); return true;
    case HLO_MIN: *out = between(least(x->low, y->low), least(x->high, y->high), whole); return true;
    case HLO_CLAMP: /* min(max(low, x), high) */
      *out =
          between(least(most(x->low, y->low), r[2].low), least(most(x->high, y->high), r[2].high), whole && r[2].whole);
      return true;
    default: return false;
  }
}

/* Rounds bounds as the operation that computes the elements rounds.  Returns false if the bounds are beyond those of
 * the type, where numbers wrap, saturate or become infinite. */
static bool round_to_type(dtype t, hlo_value_range *r) {
  if (t == DTYPE_F32 && r->low >= -FLT_MAX && r->high <= FLT_MAX) {
    r->low = (float)r->low;
    r->high = (float)r->high;
    return true;
  }
  return dtype_is_int(t) && r->low >= dtype_lowest_f64(t) && r->high <= dtype_max_f64(t);
}

/* Returns what is known of all arrays of this type. */
static hlo_value_range of_type(dtype t) {
  return dtype_is_int(t) ? (hlo_value_range){dtype_lowest_f64(t), dtype_max_f64(t), true, true} : (hlo_value_range){0};
}

/* Returns the range of the instruction's only result, from the ranges of the instructions before it. */
static hlo_value_range range_of(const hlo_instr *i, const hlo_value_range *ranges) {
  hlo_value_range r[3] = {{0}}, out;
  const literal *l = i->op == HLO_CONSTANT ? hlo_literal(hlo_result((hlo_instr *)i, 0)) : NULL;
  dtype t = (dtype)i->shapes[0].type;
  bool found = (t == DTYPE_F32 || dtype_is_int(t)) && i->n_operands <= 3;
  for (uint32_t k = 0; found && k < i->n_operands; k++) {
    r[k] = ranges[i->operands[k].def->id];
    found = r[k].known;
  }
  found = found && (l ? of_literal(l, &out) : of_operation(i, r, &out)) && round_to_type(t, &out);
  return found ? out : of_type(t);
}

hlo_value_ranges hlo_value_ranges_make(hlo_computation *c, arena *scratch) {
  hlo_number(c);
  hlo_value_range *items = ARENA_NEW_N(scratch, hlo_value_range, c->n_ids + 1);
  const hlo_instr **instrs = ARENA_NEW_N(scratch, const hlo_instr *, c->n_ids + 1);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    instrs[i->id] = i;
    items[i->id] = i->n_results == 1 ? range_of(i, items) : (hlo_value_range){0};
  }
  return (hlo_value_ranges){items, instrs, c->n_ids};
}

hlo_value_range hlo_value_range_of(const hlo_value_ranges *ranges, hlo_value v) {
  bool is_noted = v.def->n_results == 1 && v.def->id < ranges->n && ranges->instrs[v.def->id] == v.def;
  return is_noted ? ranges->items[v.def->id] : of_type(hlo_type(v));
}

double hlo_largest_magnitude(const hlo_value_ranges *ranges, hlo_value v) {
  hlo_value_range r = hlo_value_range_of(ranges, v);
  return r.known ? largest_of(&r) : INFINITY;
}
