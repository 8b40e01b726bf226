/* transposed_convolution.c - replaces convolutions of an operand with zeros between its elements.
 *
 * Importers express a transposed convolution as a convolution with lhs_dilation s, which means s - 1 zeros between the
 * operand's elements.  It becomes a convolution of the operand without zeros.  For each dimension with s > 1, the new
 * convolution has s times as many output channels, next to each other in each group; a reshape and a transpose then
 * move these channels to their positions along the dimension.
 *
 * Requires: a target that sets channels_last; runs after layout.  Keeps: results up to rounding, and except for
 * products of infinities with zeros.  Breaks: nothing.  It applies only without strides and dilation of the kernel,
 * and if the kernel does not get too many zeros.
 *
 * Along one dimension, y[o] = sum over t of w[t] * x[(o + t - low) / s], for those t for which the index is an integer.
 * With o = s*u + p this is the sum over m of v[p][m] * x[u + m + first] with v[p][m] = w[s*(m + first) + low - p],
 * where w is 0 outside of its elements: an ordinary convolution for each of the s phases p.  v is w with zeros at both
 * ends, split into groups of s, each of which is reversed. */
#include "base/arith.h"
#include "hlo/passes/rewrite.h"

/* The sizes along one spatial dimension. */
typedef struct axis {
  int64_t s, k, low;     /* of the given convolution: dilation, kernel size, low padding */
  dim in, out;           /* its input and output size */
  int64_t first, taps;   /* `first` of the formula above, and the new kernel's size */
  int64_t before, after; /* the zeros at both ends of the given kernel */
  int64_t new_low, new_high;
  dim places; /* the new convolution's output size */
} axis;

static int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

/* Computes the other members from s, k, low, in and out.  Returns false if the padding would not be a
 * constant. */
static bool find_taps(dim_table *t, axis *x) {
  int64_t first = 0, end = 0;
  for (int64_t p = 0; p < x->s; p++) {
    int64_t tap = floor_mod(x->low - p, x->s); /* the first element of w that phase p reads */
    if (tap < x->k) {
      int64_t at = (p + tap - x->low) / x->s; /* the division is exact */
      first = at < first ? at : first;
      end = max_i64(end, at + (x->k - tap + x->s - 1) / x->s);
    }
  }
  x->first = first;
  x->taps = end - first;
  x->before = x->s - 1 - x->low - x->s * first;
  x->after = x->s * x->taps - x->k - x->before;
  x->new_low = -first;
  int64_t more; /* by how much out / s, rounded up, exceeds `in` */
  if (!dim_signed_value(t, dim_signed_sub(t, dim_ceildiv(t, x->out, x->s), x->in), &more)) {
    return false;
  }
  x->new_high = max_i64(0, more + x->taps - 1 - x->new_low);
  x->places = dim_add_const(t, x->in, x->new_low + x->new_high - x->taps + 1);
  return true;
}

static bool is_small(dim d, int64_t most) { return d != DIM_OVERFLOW && (!dim_is_const(d) || d <= most); }

/* Reads the sizes of convolution i along its n spatial dimensions.  Returns false if the pass does not apply to it. */
static bool read_axes(const hlo_instr *i, axis *axes, int n) {
  const shape *x = hlo_shape(i->operands[0]), *w = hlo_shape(i->operands[1]);
  const int64_t most = (int64_t)1 << 20; /* a limit for sizes, so that products do not overflow */
  double waste = 1;
  bool spread = false;
  for (int d = 0; d < n; d++) {
    axis *a = &axes[d];
    *a = (axis){.s = hlo_ints(i, HLO_ATTR_LHS_DILATION)[d],
                .k = w->dims[d + 2],
                .low = hlo_ints(i, HLO_ATTR_LOW)[d],
                .in = x->dims[d + 1],
                .out = i->shapes[0].dims[d + 1]};
    if (hlo_ints(i, HLO_ATTR_STRIDES)[d] != 1 || hlo_ints(i, HLO_ATTR_RHS_DILATION)[d] != 1 || a->s > 64 ||
        a->k > most || a->low > most || a->low < -most || !is_small(a->in, most * most) ||
        !is_small(a->out, most * most) || !find_taps(i->parent->module->dims, a)) {
      return false;
    }
    spread = spread || a->s > 1;
    waste *= (double)(a->s * a->taps) / (double)a->k;
  }
  return spread && waste <= 4;
}

/* Returns 1 if there are several groups, which are a dimension in the middle of the rearrangements below; otherwise 0.
 */
static int has_groups(const hlo_instr *i) { return hlo_int(i, HLO_ATTR_GROUPS) > 1; }

static bool applies(const hlo_instr *i) {
  const shape *y = &i->shapes[0];
  const dim_table *t = i->parent->module->dims;
  return hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_LAST && shape_is_static(hlo_shape(i->operands[1])) &&
         shape_is_exact(t, y) && shape_is_exact(t, hlo_shape(i->operands[0])) && !shape_is_empty(y) &&
         !shape_is_empty(hlo_shape(i->operands[0])) && 2 * y->rank - 2 + has_groups(i) <= SHAPE_MAX_RANK;
}

/* Rearranges the kernel [groups O, I, k...] to [groups, s..., O, I, taps...] and merges the first dimensions with O. */
static hlo_value new_kernel(hlo_builder *b, const hlo_instr *i, const axis *axes, int n) {
  hlo_value w = i->operands[1];
  const shape *old = hlo_shape(w);
  int g = has_groups(i), first = 2 + g; /* the dimension of the first axis in `apart` */
  int64_t low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0}, phases[SHAPE_MAX_RANK], order[SHAPE_MAX_RANK] = {0};
  dim apart[SHAPE_MAX_RANK] = {hlo_int(i, HLO_ATTR_GROUPS)}, merged[SHAPE_MAX_RANK] = {old->dims[0], old->dims[1]};
  apart[g] = old->dims[0] / hlo_int(i, HLO_ATTR_GROUPS);
  apart[g + 1] = old->dims[1];
  for (int d = 0; d < n; d++) {
    low[d + 2] = axes[d].before;
    high[d + 2] = axes[d].after;
    apart[first + 2 * d] = merged[d + 2] = axes[d].taps;
    apart[first + 2 * d + 1] = axes[d].s;
    phases[d] = order[g + d] = first + 2 * d + 1;
    order[first + n + d] = first + 2 * d;
    merged[0] *= axes[d].s;
  }
  order[g + n] = g;
  order[g + n + 1] = g + 1;
  w = hlo_pad(b, w, hlo_scalar(b, (dtype)old->type, 0), low, high, NULL);
  w = hlo_reverse(b, hlo_reshape(b, w, first + 2 * n, apart), (uint32_t)n, phases);
  return hlo_reshape(b, hlo_transpose(b, w, order), n + 2, merged);
}

/* Rearranges the result [N, places..., groups s... C] to [N, out..., groups C]. */
static hlo_value place_phases(hlo_builder *b, hlo_value y, const hlo_instr *i, const axis *axes, int n) {
  dim batch = hlo_shape(y)->dims[0], channels = i->shapes[0].dims[n + 1];
  int g = has_groups(i);
  int64_t order[SHAPE_MAX_RANK] = {0};
  dim apart[SHAPE_MAX_RANK] = {batch}, merged[SHAPE_MAX_RANK] = {batch}, starts[SHAPE_MAX_RANK] = {0};
  dim limits[SHAPE_MAX_RANK] = {batch};
  apart[1 + n] = hlo_int(i, HLO_ATTR_GROUPS); /* overwritten by a phase if there is only one */
  for (int d = 0; d < n; d++) {
    apart[1 + d] = axes[d].places;
    apart[1 + n + g + d] = axes[d].s;
    merged[1 + d] = dim_mul(b->computation->module->dims, axes[d].places, axes[d].s);
    limits[1 + d] = axes[d].out;
    order[1 + 2 * d] = 1 + d;
    order[2 + 2 * d] = 1 + n + g + d;
  }
  apart[1 + 2 * n + g] = channels / hlo_int(i, HLO_ATTR_GROUPS);
  merged[1 + n] = limits[1 + n] = channels;
  order[1 + 2 * n] = 1 + n;
  order[1 + 2 * n + g] = 1 + 2 * n + g;
  y = hlo_transpose(b, hlo_reshape(b, y, 2 + 2 * n + g, apart), order);
  return hlo_slice(b, hlo_reshape(b, y, n + 2, merged), starts, limits, NULL);
}

static bool spread_to_phases(hlo_builder *b, hlo_instr *i) {
  axis axes[SHAPE_MAX_RANK];
  int n = i->shapes[0].rank - 2;
  int64_t ones[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  if (!applies(i) || !read_axes(i, axes, n)) {
    return false;
  }
  for (int d = 0; d < n; d++) {
    ones[d] = 1;
    low[d] = axes[d].new_low;
    high[d] = axes[d].new_high;
  }
  b->source = i->source;
  hlo_conv_dims dims = {ones, low, high, ones, ones, hlo_int(i, HLO_ATTR_GROUPS), HLO_CHANNELS_LAST};
  hlo_value y = hlo_convolution(b, i->operands[0], new_kernel(b, i, axes, n), &dims);
  return !b->error && hlo_becomes(i, place_phases(b, y, i, axes, n));
}

status pass_transposed_convolution(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_CONVOLUTION, spread_to_phases}, {HLO_OP_COUNT, NULL}};
  return c->target && c->target->channels_last ? hlo_sweep_module(m, c, rules, changed) : NULL;
}
