/* epilogue.c - output fusions: bias, normalisation, activation and residual run in the kernel of the convolution or
 * dot before them.
 *
 * Order: best after simplify, batch_norm and transpose_sinking, before the other fusion passes.  Keeps: results (a
 * target may round once at the end instead of after each step).  Breaks: the assumption that every contraction is
 * outside of a fusion.  A fusion has kind output, one contraction, and one result, which is the last of a chain.  Each
 * step of the chain is the only user of the step before it.  A step is one operation that target->takes_epilogue
 * accepts, or an activation of several operations (hlo/analysis/activation.h) that target->takes_activation accepts.
 * The operands of the contraction are operands of the fusion, except weights of small integers that the target scales
 * in the same kernel; their scales and zero points are stored as that kernel reads them.  If two contractions are
 * added, the addition goes to the later one. */
#include <string.h>

#include "base/arith.h"
#include "hlo/passes/fusion/fuse.h"
#include "hlo/analysis/quantized.h"

static bool takes(const pass_context *c, const hlo_instr *contraction, const hlo_instr *consumer, hlo_value v) {
  for (uint32_t k = 0; k < consumer->n_operands; k++) {
    if (hlo_value_equal(consumer->operands[k], v)) {
      return c->target->takes_epilogue(c->target->data, contraction, consumer, k);
    }
  }
  return false;
}

static bool any_taken(const bool *taken, uint32_t n, hlo_instr *const *members) {
  for (uint32_t k = 0; k < n; k++) {
    if (taken[members[k]->id]) {
      return true;
    }
  }
  return false;
}

/* Appends the instructions of the activation that reads `x` to the list members[], whose length is *n.  Returns false
 * if there is no activation, if the target does not support it, if one of its instructions is in another chain already,
 * or if the list would become too long. */
static bool follow_activation(const pass_context *c, hlo_instr *contraction, hlo_instr *x, const bool *taken,
                              hlo_instr **members, uint32_t *n) {
  const hlo_target *t = c->target;
  hlo_activation a;
  if (!t->takes_activation || !hlo_find_activation(x, NULL, NULL, &a) || *n + a.n > FUSE_MAX_MEMBERS ||
      any_taken(taken, a.n, a.members) || !t->takes_activation(t->data, contraction, x, &a)) {
    return false;
  }
  memcpy(members + *n, a.members, a.n * sizeof *members);
  *n += a.n;
  return true;
}

/* Writes the chain that begins with the contraction to members[FUSE_MAX_MEMBERS] and returns its length.  taken[id]
 * says that an instruction is in a chain already. */
static uint32_t follow(const pass_context *c, hlo_instr *contraction, const bool *taken, hlo_instr **members) {
  uint32_t n = 0;
  members[n++] = contraction;
  while (n < FUSE_MAX_MEMBERS) {
    hlo_value v = hlo_result(members[n - 1], 0);
    if (follow_activation(c, contraction, v.def, taken, members, &n)) {
      continue;
    }
    hlo_instr *next = hlo_only_user(v);
    if (!next || next->n_results != 1 || taken[next->id] || !takes(c, contraction, next, v)) {
      break;
    }
    members[n++] = next;
  }
  return n;
}

/* --- weights of small integers --- */

static bool are_quantized(const pass_context *c, const hlo_instr *dot, hlo_quantized_weights *w) {
  const hlo_target *t = c->target;
  return t->takes_quantized_weights && hlo_quantized_weights_of(dot, w) && hlo_literal(w->q) &&
         t->takes_quantized_weights(t->data, dot);
}

/* Returns a copy of a list or matrix in which dimension d comes last and has `padded` elements; those that are added
 * are 0. */
static literal padded_rows(arena *a, const literal *l, int d, int64_t padded) {
  int last = l->shape.rank - 1;
  int64_t strides[SHAPE_MAX_RANK], n = l->shape.dims[d], rows = last ? l->shape.dims[!d] : 1;
  size_t bytes = dtype_bytes((dtype)l->shape.type);
  shape s = l->shape;
  void *data;
  s.dims[0] = rows;
  s.dims[last] = padded;
  shape_strides(&l->shape, strides);
  literal copy = literal_new(a, s, &data);
  memset(data, 0, (size_t)(rows * padded) * bytes);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t k = 0; k < n; k++) {
      memcpy((char *)data + (size_t)(r * padded + k) * bytes,
             (const char *)l->data + (size_t)(r * (last ? strides[!d] : 0) + k * strides[d]) * bytes, bytes);
    }
  }
  return copy;
}

/* Stores the constant of which v, a scale or zero point of quantised weights, is made so that the numbers of
 * neighbouring columns are next to each other, and that whole vectors of columns can be read.  v is operand k of
 * `user`. */
static void store_by_columns(pass_context *c, const hlo_quantized_weights *w, hlo_instr *user, uint32_t k) {
  hlo_instr *broadcast = user->operands[k].def;
  const literal *l = hlo_stored_numbers(user->operands[k]);
  int d = hlo_find_int(broadcast, HLO_ATTR_DIMENSIONS, w->column_dim);
  int64_t padded = round_up(w->columns, HLO_MOST_COLUMNS);
  if (!l || d < 0 || l->shape.dims[d] != w->columns || (d == l->shape.rank - 1 && padded == w->columns)) {
    return;
  }
  hlo_builder b = hlo_pass_builder(c, broadcast->parent, broadcast);
  b.eval = NULL; /* the slice and the transpose become a part of the kernel */
  hlo_value x = hlo_constant(&b, padded_rows(broadcast->parent->module->arena, l, d, padded));
  x = padded != w->columns ? hlo_slice_dim(&b, x, hlo_rank(x) - 1, 0, w->columns) : x;
  x = d < l->shape.rank - 1 ? hlo_transpose(&b, x, (int64_t[]){1, 0}) : x;
  hlo_set_operand(user, k, hlo_result(hlo_instr_clone(broadcast->parent, broadcast, broadcast, &x), 0));
}

/* Prepares the scales and zero points of the weights of a dot for its kernel. */
static void store_numbers(pass_context *c, hlo_instr *dot) {
  hlo_quantized_weights w;
  if (!are_quantized(c, dot, &w)) {
    return;
  }
  for (uint32_t m = 0; m < w.n; m++) {
    for (uint32_t k = 0; k < w.members[m]->n_operands; k++) {
      hlo_value v = w.members[m]->operands[k];
      if (hlo_value_equal(v, w.scale) || (w.zero.def && hlo_value_equal(v, w.zero))) {
        store_by_columns(c, &w, w.members[m], k);
      }
    }
  }
}

/* Appends the instructions that store_by_columns has put between a constant and v, a scale or zero point.  What else
 * leads to v stays outside of the fusion. */
static void add_readers(hlo_value v, hlo_instr **members, uint32_t *n) {
  hlo_value x = v.def->operands[0];
  hlo_instr *transpose = x.def->op == HLO_TRANSPOSE && hlo_used_once(x) ? x.def : NULL;
  hlo_value y = transpose ? transpose->operands[0] : x;
  hlo_instr *slice = y.def->op == HLO_SLICE && hlo_used_once(y) ? y.def : NULL;
  if (!hlo_literal(slice ? slice->operands[0] : y)) {
    return;
  }
  if (slice) {
    members[(*n)++] = slice;
  }
  if (transpose) {
    members[(*n)++] = transpose;
  }
}

/* If the target dequantises the contraction's weights in the same kernel, inserts the instructions that do this at the
 * beginning of members[n].  Returns the new number of members. */
static uint32_t precede(const pass_context *c, hlo_instr **members, uint32_t n) {
  enum { READERS = 4 }; /* the most that add_readers appends in two calls */
  hlo_instr *before[FUSE_MAX_MEMBERS];
  hlo_quantized_weights w;
  uint32_t n_before = 0;
  if (!are_quantized(c, members[0], &w) || n + w.n + READERS > FUSE_MAX_MEMBERS) {
    return n;
  }
  add_readers(w.scale, before, &n_before);
  if (w.zero.def) {
    add_readers(w.zero, before, &n_before);
  }
  memcpy(before + n_before, w.members, w.n * sizeof *before);
  n_before += w.n;
  memmove(members + n_before, members, n * sizeof *members);
  memcpy(members, before, n_before * sizeof *members);
  return n + n_before;
}

static status fuse_epilogues(hlo_computation *c, pass_context *context, bool *changed) {
  arena *scratch = context->scratch;
  HLO_FOR_EACH(i, c) {
    if (i->op == HLO_DOT) {
      store_numbers(context, i);
    }
  }
  hlo_number(c);
  hlo_fuser f = hlo_fuser_make(c, scratch);
  bool *taken = ARENA_NEW_N(scratch, bool, 2 * (size_t)f.n_ids + 1); /* fusions get new ids */
  hlo_instr *members[FUSE_MAX_MEMBERS], **contractions = ARENA_NEW_N(scratch, hlo_instr *, f.n_ids + 1);
  uint32_t n_contractions = 0;
  HLO_FOR_EACH(i, c) {
    if (hlo_info(i)->kind == HLO_CONTRACTION) {
      contractions[n_contractions++] = i;
    }
  }
  while (n_contractions) { /* the contractions are visited from the last to the first */
    TRY(budget_check(arena_budget(scratch)));
    uint32_t n = follow(context, contractions[--n_contractions], taken, members);
    n = precede(context, members, n);
    if (n == 1) {
      continue;
    }
    for (uint32_t k = 0; k < n; k++) {
      taken[members[k]->id] = true;
    }
    hlo_instr *fusion = hlo_fuse(&f, HLO_FUSION_OUTPUT, n, members);
    taken[fusion->id] = true;
    *changed = true;
    hlo_pass_note(context, "fusions", 1);
    hlo_pass_note(context, "instructions in them", n);
  }
  return NULL;
}

status pass_epilogue(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target->takes_epilogue; k++) {
    TRY(fuse_epilogues(walked[k], c, changed));
  }
  return NULL;
}
