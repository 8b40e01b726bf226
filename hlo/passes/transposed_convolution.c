/* transposed_convolution.c - replaces convolutions of an operand with zeros between its elements.
 *
 * Importers express a transposed convolution as a convolution with lhs_dilation s, which means s - 1 zeros between the
 * operand's elements.  It becomes a convolution of the operand without zeros.  For each dimension with s > 1, the new
 * convolution has s times as many output channels, next to each other in each group; a reshape and a transpose then
 * move these channels to their positions along the dimension.
 *
 * Requires: a target that sets channels_last; runs after layout, and before fold, which computes the new kernels.
 * Keeps: results up to rounding, and except for products of infinities with zeros.  Breaks: nothing.  It applies only
 * without strides and dilation of the kernel, and if the kernel does not get too many zeros.
 *
 * The kernels of the phases may have different numbers of elements, so that some elements of v are zeros of no use.  If
 * v has at most two elements along each dimension, as for a kernel of 3 and a distance of 2, there is one convolution
 * for each phase instead, without such zeros, and the channels of their results are concatenated.  Larger kernels stay
 * one convolution, since Winograd's algorithm saves more than that.
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

/* Returns how many elements of w phase p reads, and sets *at to the least m + first of the formula above, if there are
 * any. */
static int64_t phase_taps(const axis *x, int64_t p, int64_t *at) {
  int64_t tap = floor_mod(x->low - p, x->s); /* the first element of w that the phase reads */
  *at = (p + tap - x->low) / x->s;           /* the division is exact */
  return tap < x->k ? (x->k - tap + x->s - 1) / x->s : 0;
}

/* Computes the other members from s, k, low, in and out.  Returns false if the padding would not be a
 * constant. */
static bool find_taps(dim_table *t, axis *x) {
  int64_t first = 0, end = 0;
  for (int64_t p = 0; p < x->s; p++) {
    int64_t at, n = phase_taps(x, p, &at);
    if (n) {
      first = at < first ? at : first;
      end = max_i64(end, at + n);
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

/* --- a convolution for each phase --- */

/* The part of the new kernel that a phase needs, and the padding of its convolution. */
typedef struct phase {
  int64_t from[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
} phase;

static int64_t count_phases(const axis *axes, int n) {
  int64_t phases = 1;
  for (int d = 0; d < n; d++) {
    phases *= axes[d].s;
  }
  return phases;
}

/* Describes phase number k in the order in which the new kernel has their channels.  Returns false if it has nothing to
 * add, or would need an operand that is cut. */
static bool find_phase(const axis *axes, int n, int64_t k, phase *out) {
  bool fine = true;
  for (int d = n - 1; d >= 0; d--) {
    const axis *a = &axes[d];
    int64_t at, taps = phase_taps(a, k % a->s, &at);
    out->from[d] = at - a->first;
    out->to[d] = out->from[d] + taps;
    out->low[d] = -at;
    out->high[d] = a->new_high - (a->taps - out->to[d]);
    fine = fine && taps && out->low[d] >= 0 && out->high[d] >= 0;
    k /= a->s;
  }
  return fine;
}

/* Returns true if a convolution for each phase multiplies much less than one for all, whose kernel is too small for
 * Winograd's algorithm.  Their channels must be whole vectors, since phases with a rest would take more vectors than
 * all channels together, and the phases would be joined element by element. */
static bool splits(const hlo_instr *i, const axis *axes, int n) {
  enum { MOST_TAPS = 2, MOST_PHASES = 8, LANES = 16 };
  int64_t phases = count_phases(axes, n);
  double one = (double)phases, each = 0;
  if (has_groups(i) || phases > MOST_PHASES || i->shapes[0].dims[n + 1] % LANES != 0) {
    return false;
  }
  for (int d = 0; d < n; d++) {
    one *= (double)axes[d].taps;
    if (axes[d].taps > MOST_TAPS) {
      return false;
    }
  }
  for (int64_t k = 0; k < phases; k++) {
    phase p;
    double taps = 1;
    if (!find_phase(axes, n, k, &p)) {
      return false;
    }
    for (int d = 0; d < n; d++) {
      taps *= (double)(p.to[d] - p.from[d]);
    }
    each += taps;
  }
  return each < 0.8 * one;
}

/* Returns the convolution of phase number k with its part of the new kernel w. */
static hlo_value convolve_phase(hlo_builder *b, const hlo_instr *i, hlo_value w, const axis *axes, int n, int64_t k) {
  int64_t channels = i->shapes[0].dims[n + 1], ones[SHAPE_MAX_RANK];
  dim starts[SHAPE_MAX_RANK] = {k * channels}, limits[SHAPE_MAX_RANK] = {(k + 1) * channels, hlo_shape(w)->dims[1]};
  phase p;
  (void)find_phase(axes, n, k, &p);
  for (int d = 0; d < n; d++) {
    ones[d] = 1;
    starts[d + 2] = p.from[d];
    limits[d + 2] = p.to[d];
  }
  hlo_conv_dims dims = {ones, p.low, p.high, ones, ones, 1, HLO_CHANNELS_LAST};
  return hlo_convolution(b, i->operands[0], hlo_slice(b, w, starts, limits, NULL), &dims);
}

static hlo_value convolve_phases(hlo_builder *b, const hlo_instr *i, hlo_value w, const axis *axes, int n) {
  int64_t phases = count_phases(axes, n);
  hlo_value *parts = ARENA_NEW_N(b->computation->module->arena, hlo_value, phases);
  for (int64_t k = 0; k < phases; k++) {
    parts[k] = convolve_phase(b, i, w, axes, n, k);
  }
  return hlo_concatenate(b, (uint32_t)phases, parts, n + 1);
}

static hlo_value convolve(hlo_builder *b, const hlo_instr *i, hlo_value w, const axis *axes, int n) {
  int64_t ones[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK];
  for (int d = 0; d < n; d++) {
    ones[d] = 1;
    low[d] = axes[d].new_low;
    high[d] = axes[d].new_high;
  }
  hlo_conv_dims dims = {ones, low, high, ones, ones, hlo_int(i, HLO_ATTR_GROUPS), HLO_CHANNELS_LAST};
  return hlo_convolution(b, i->operands[0], w, &dims);
}

static bool spread_to_phases(hlo_builder *b, hlo_instr *i) {
  axis axes[SHAPE_MAX_RANK];
  int n = i->shapes[0].rank - 2;
  if (!applies(i) || !read_axes(i, axes, n)) {
    return false;
  }
  b->source = i->source;
  b->eval = NULL; /* fold frees what the new kernel was rearranged from, at once; the builder would keep it */
  hlo_value w = new_kernel(b, i, axes, n);
  hlo_value y = splits(i, axes, n) ? convolve_phases(b, i, w, axes, n) : convolve(b, i, w, axes, n);
  return !b->error && hlo_becomes(i, place_phases(b, y, i, axes, n));
}

status pass_transposed_convolution(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_CONVOLUTION, spread_to_phases}, {HLO_OP_COUNT, NULL}};
  return c->target && c->target->channels_last ? hlo_sweep_module(m, c, rules, changed) : NULL;
}
