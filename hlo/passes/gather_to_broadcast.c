/* gather_to_broadcast.c - a gather along one dimension that repeats each element equally often becomes a broadcast;
 * such gathers come from nearest-neighbour resizing by integer factors.  If the second operand of a dot has repeated
 * matrices (key heads that several query heads share), each distinct matrix is read once: the matrices of the first
 * operand that are multiplied by the same matrix are stacked to one matrix.
 *
 * Order: after layout, which moves transposes across gathers but not across broadcasts, and after transpose_sinking,
 * which moves transposes of operands into dots; before attention.  Keeps: results, bit for bit.  Breaks: nothing. */
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/passes/rewrite.h"

/* Returns t, at least 2, if indices[k] = k / t for all k, so that the indices name each of n elements t times.  Returns
 * 0 if there is no such t. */
static int64_t times_of_literal(const literal *indices, int64_t n) {
  int64_t all = shape_elements(&indices->shape), times = n > 0 ? all / n : 0;
  if (times < 2 || times * n != all) {
    return 0;
  }
  for (int64_t k = 0; k < all; k++) {
    if (literal_i64(indices, k) != k / times) {
      return 0;
    }
  }
  return times;
}

/* Does what times_of_literal does, for indices that are a constant or an iota divided by t, and a number of elements n
 * that may be symbolic. */
static int64_t times_of(dim_table *t, hlo_value indices, dim n) {
  const hlo_instr *i = indices.def;
  literal by;
  if (hlo_rank(indices) != 1) {
    return 0;
  }
  if (hlo_literal(indices)) {
    return dim_is_const(n) ? times_of_literal(hlo_literal(indices), n) : 0;
  }
  if (i->op != HLO_DIV || i->operands[0].def->op != HLO_IOTA || !hlo_splat_of(i->operands[1], &by)) {
    return 0;
  }
  int64_t times = literal_i64(&by, 0);
  return times >= 2 && dim_happens_equal(t, dim_mul(t, n, times), hlo_shape(indices)->dims[0]) ? times : 0;
}

/* An array as a broadcast of `source`, whose neighbouring dimensions the array merges.  That may be no broadcast at
 * all.
 */
typedef struct stretched {
  hlo_value source;
  shape s;                      /* the shape of the broadcast */
  int64_t from[SHAPE_MAX_RANK]; /* the dimensions of s that are those of `source` */
  int end[SHAPE_MAX_RANK];      /* the dimensions of s before number end[d] are those that the array's dimensions 0 to d
                                   consist of */
} stretched;

/* Sets out->end for an array of shape s.  Returns false if the array does not merge neighbouring dimensions of out->s.
 */
static bool find_ends(dim_table *t, const shape *s, stretched *out) {
  int next = 0;
  for (int d = 0; d < s->rank; d++) {
    dim n = 1;
    while (n != s->dims[d] && next < out->s.rank) {
      n = dim_mul(t, n, out->s.dims[next++]);
    }
    if (n != s->dims[d]) {
      return false;
    }
    out->end[d] = next;
  }
  return next == out->s.rank;
}

static void find_stretched(hlo_value x, stretched *out) {
  dim_table *t = x.def->parent->module->dims;
  const hlo_instr *b = x.def->op == HLO_RESHAPE ? x.def->operands[0].def : NULL;
  if (b && b->op == HLO_BROADCAST) {
    *out = (stretched){.source = b->operands[0], .s = b->shapes[0]};
    memcpy(out->from, hlo_ints(b, HLO_ATTR_DIMENSIONS), (size_t)hlo_rank(b->operands[0]) * sizeof *out->from);
    if (find_ends(t, hlo_shape(x), out)) {
      return;
    }
  }
  *out = (stretched){.source = x, .s = *hlo_shape(x)};
  for (int d = 0; d < out->s.rank; d++) {
    out->from[d] = d;
    out->end[d] = d + 1;
  }
}

/* Broadcasts x[..., n, ...] to [..., n, times, ...], and merges the two dimensions.  If x was made in this way itself,
 * as when an image is resized along both dimensions, one broadcast repeats along both, so that x need not be written.
 */
static bool repeat(hlo_builder *b, hlo_instr *i) {
  int64_t dimension, times;
  stretched x;
  if (!hlo_is_take(i, &dimension) ||
      (times = times_of(i->parent->module->dims, i->operands[1], hlo_shape(i->operands[0])->dims[dimension])) == 0) {
    return false;
  }
  find_stretched(i->operands[0], &x);
  if (x.s.rank == SHAPE_MAX_RANK) {
    return false;
  }
  int at = x.end[dimension];
  memmove(x.s.dims + at + 1, x.s.dims + at, (size_t)(x.s.rank++ - at) * sizeof *x.s.dims);
  x.s.dims[at] = times;
  for (int d = 0; d < hlo_rank(x.source); d++) {
    x.from[d] += x.from[d] >= at;
  }
  return hlo_becomes(i, hlo_reshape(b, hlo_broadcast(b, x.source, x.s, x.from), i->shapes[0].rank, i->shapes[0].dims));
}

/* --- repeated matrices --- */

/* A value y that is a broadcast, perhaps reshaped.  Along dimension `number`, y has each element of the broadcast's
 * operand `times` times in succession. */
typedef struct repeated {
  hlo_instr *broadcast;
  int number;
  int64_t times;
} repeated;

/* Sets is_new[d] to whether the broadcast repeats elements along dimension d of its result.  Returns false if it
 * changes the order of the operand's dimensions. */
static bool find_new_dims(const hlo_instr *broadcast, bool *is_new) {
  const shape *x = hlo_shape(broadcast->operands[0]), *z = &broadcast->shapes[0];
  const int64_t *dims = hlo_ints(broadcast, HLO_ATTR_DIMENSIONS);
  for (int d = 0; d < z->rank; d++) {
    is_new[d] = z->dims[d] > 1;
  }
  for (int d = 0; d < x->rank; d++) {
    is_new[dims[d]] &= x->dims[d] == 1;
    if (d && dims[d] < dims[d - 1]) {
      return false;
    }
  }
  return true;
}

/* Returns true if y repeats elements along exactly one dimension, as `repeated` describes, and sets *r. */
static bool find_repeated(hlo_value y, repeated *r) {
  hlo_instr *b = y.def->op == HLO_RESHAPE ? y.def->operands[0].def : y.def;
  const shape *to = hlo_shape(y), *z = &b->shapes[0];
  bool is_new[SHAPE_MAX_RANK];
  if (b->op != HLO_BROADCAST || !shape_is_static(to) || shape_elements(to) == 0 || !find_new_dims(b, is_new)) {
    return false;
  }
  *r = (repeated){.broadcast = b, .times = 1};
  for (int t = 0, d = 0; t < to->rank; t++) {
    int64_t n = 1, times = 1;
    for (; n < to->dims[t]; d++) { /* such a dimension exists, since the numbers of elements are equal */
      if (times > 1 && z->dims[d] > 1 && !is_new[d]) {
        return false;
      }
      n *= z->dims[d];
      times *= is_new[d] ? z->dims[d] : 1;
    }
    if (n != to->dims[t] || (times > 1 && r->times > 1)) {
      return false;
    }
    *r = times > 1 ? (repeated){b, t, times} : *r;
  }
  return r->times > 1;
}

/* `wanted` is a dimension of the dot's second operand.  If it is a batch dimension, and only dimensions of 1 follow it
 * in the list of batch dimensions, returns its position in that list.  Otherwise returns -1. */
static int find_last_batch(const hlo_instr *dot, int wanted) {
  const shape *y = hlo_shape(dot->operands[1]);
  for (int k = (int)hlo_n_ints(dot, HLO_ATTR_RHS_BATCH); k-- > 0;) {
    int64_t d = hlo_ints(dot, HLO_ATTR_RHS_BATCH)[k];
    if (d == wanted) {
      return k;
    }
    if (y->dims[d] > 1) {
      return -1;
    }
  }
  return -1;
}

/* Transposes the dot's first operand to [batch, free dimensions, contracted dimensions]. */
static hlo_value in_order(hlo_builder *b, const hlo_instr *dot) {
  const hlo_attr *batch = hlo_attr_of(dot, HLO_ATTR_LHS_BATCH), *contract = hlo_attr_of(dot, HLO_ATTR_LHS_CONTRACT);
  int64_t order[SHAPE_MAX_RANK];
  bool taken[SHAPE_MAX_RANK] = {false}, moves = false;
  int rank = hlo_rank(dot->operands[0]), n = 0, last = rank - (int)contract->n;
  for (uint32_t k = 0; k < batch->n; k++) {
    taken[order[n++] = batch->ints[k]] = true;
  }
  for (uint32_t k = 0; k < contract->n; k++) {
    taken[order[last + (int)k] = contract->ints[k]] = true;
  }
  for (int d = 0; d < rank; d++) {
    if (!taken[d]) {
      order[n++] = d;
    }
  }
  for (int d = 0; d < rank; d++) {
    moves |= order[d] != d;
  }
  return moves ? hlo_transpose(b, dot->operands[0], order) : dot->operands[0];
}

/* Reshapes x, which is [batch, free dimensions, contracted dimensions] (in_order), so that `times` successive matrices
 * become one: divides the extent of dimension `batch` by `times`, and multiplies that of the first free dimension by
 * it.  If there is no free dimension, adds one of extent `times`. */
static hlo_value repeats_as_rows(hlo_builder *b, const hlo_instr *dot, hlo_value x, int batch, int64_t times) {
  int n_batch = (int)hlo_n_ints(dot, HLO_ATTR_LHS_BATCH), rank = 0;
  int n_free = hlo_rank(x) - n_batch - (int)hlo_n_ints(dot, HLO_ATTR_LHS_CONTRACT);
  dim dims[SHAPE_MAX_RANK + 1];
  for (int d = 0; d < hlo_rank(x); d++) {
    if (d == n_batch && n_free == 0) {
      dims[rank++] = times;
    }
    dims[rank++] = d == batch               ? hlo_shape(x)->dims[d] / times
                   : d == n_batch && n_free ? hlo_shape(x)->dims[d] * times
                                            : hlo_shape(x)->dims[d];
  }
  return hlo_reshape(b, x, rank, dims);
}

static bool share_matrices(hlo_builder *b, hlo_instr *i) {
  hlo_value y = i->operands[1];
  repeated r;
  if (!shape_is_static(&i->shapes[0]) || shape_elements(&i->shapes[0]) == 0 ||
      hlo_rank(i->operands[0]) == SHAPE_MAX_RANK || !find_repeated(y, &r)) {
    return false;
  }
  int batch = find_last_batch(i, r.number);
  if (batch < 0) {
    return false;
  }
  int64_t batches[SHAPE_MAX_RANK], contract[SHAPE_MAX_RANK];
  uint32_t n_batch = hlo_n_ints(i, HLO_ATTR_LHS_BATCH), n_contract = hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT);
  hlo_value x = repeats_as_rows(b, i, in_order(b, i), batch, r.times);
  shape few = *hlo_shape(y);
  few.dims[r.number] /= r.times;
  y = hlo_reshape(b, r.broadcast->operands[0], few.rank, few.dims);
  for (uint32_t k = 0; k < n_batch; k++) {
    batches[k] = k;
  }
  for (uint32_t k = 0; k < n_contract; k++) {
    contract[k] = hlo_rank(x) - (int)n_contract + (int)k;
  }
  hlo_dot_dims d = {.n_batch = n_batch,
                    .lhs_batch = batches,
                    .rhs_batch = hlo_ints(i, HLO_ATTR_RHS_BATCH),
                    .n_contract = n_contract,
                    .lhs_contract = contract,
                    .rhs_contract = hlo_ints(i, HLO_ATTR_RHS_CONTRACT)};
  return hlo_becomes_noted(b, i, hlo_reshape(b, hlo_dot(b, x, y, &d), i->shapes[0].rank, i->shapes[0].dims),
                           "shared matrices");
}

/* If an operand of a dot is the product or quotient of a number and a repeated array, computes the product or quotient
 * before the repetition. */
static bool scale_before(hlo_builder *b, hlo_instr *i) {
  hlo_instr *user = hlo_only_user(hlo_result(i, 0));
  for (uint32_t k = 0; k < 2 && user && user->op == HLO_DOT; k++) {
    literal number;
    repeated r;
    if (!hlo_splat_of(i->operands[1 - k], &number) || !find_repeated(i->operands[k], &r)) {
      continue;
    }
    hlo_value operands[2], x = r.broadcast->operands[0];
    operands[k] = x;
    operands[1 - k] = hlo_splat_literal(b, *hlo_shape(x), number);
    hlo_value scaled = hlo_binary(b, i->op, operands[0], operands[1]);
    scaled = hlo_broadcast(b, scaled, r.broadcast->shapes[0], hlo_ints(r.broadcast, HLO_ATTR_DIMENSIONS));
    return hlo_becomes(i, hlo_reshape(b, scaled, i->shapes[0].rank, i->shapes[0].dims));
  }
  return false;
}

status pass_gather_to_broadcast(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_GATHER, repeat},
                                       {HLO_MUL, scale_before},
                                       {HLO_DIV, scale_before},
                                       {HLO_DOT, share_matrices},
                                       {HLO_OP_COUNT, NULL}};
  return hlo_sweep_module(m, c, rules, changed);
}
