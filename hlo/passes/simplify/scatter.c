/* scatter.c - the rule that makes windows of scatters long.
 *
 * Where a window has all elements of a dimension, that dimension and the one before it become one dimension of the
 * operand and of the updates.  A kernel writes such a window as one row of contiguous elements. */
#include "hlo/passes/simplify/simplify.h"

/* Returns the dimension of the operand to which window dimension number k of the updates belongs. */
static int operand_dim(const hlo_instr *i, uint32_t k) {
  for (int d = 0;; d++) {
    if (hlo_is_window_dim(i, d) && k-- == 0) {
      return d;
    }
  }
}

/* Returns true if window dimension number k and the one after it can be one dimension: they are neighbours in the
 * operand and in the updates, no index moves the window along them, and the window has the whole second one. */
static bool can_merge(const hlo_instr *i, uint32_t k) {
  const int64_t *offset = hlo_ints(i, HLO_ATTR_OFFSET_DIMS);
  int d = operand_dim(i, k), next = operand_dim(i, k + 1);
  dim whole = hlo_shape(i->operands[0])->dims[next], of_window = hlo_shape(i->operands[2])->dims[offset[k + 1]];
  return next == d + 1 && offset[k + 1] == offset[k] + 1 && whole == of_window &&
         !hlo_has_int(i, HLO_ATTR_INDEX_MAP, d) && !hlo_has_int(i, HLO_ATTR_INDEX_MAP, next);
}

/* Returns v with its dimensions d and d + 1 as one. */
static hlo_value merged(hlo_builder *b, hlo_value v, int d) {
  const shape *s = hlo_shape(v);
  dim dims[SHAPE_MAX_RANK];
  for (int k = 0, n = 0; k < s->rank; k++) {
    if (k == d + 1) {
      dims[n - 1] = dim_mul(v.def->parent->module->dims, dims[n - 1], s->dims[k]);
    } else {
      dims[n++] = s->dims[k];
    }
  }
  return hlo_reshape(b, v, s->rank - 1, dims);
}

/* Copies an attribute that lists dimensions to list[], as they are counted when dimensions d and d + 1 are one.  Leaves
 * out d + 1.  Returns how many there are. */
static uint32_t renumbered(const hlo_instr *i, hlo_attr_id key, int d, int64_t *list) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < hlo_n_ints(i, key); k++) {
    int64_t from = hlo_ints(i, key)[k];
    if (from != d + 1) {
      list[n++] = from - (from > d);
    }
  }
  return n;
}

static bool scatter_long_windows(hlo_builder *b, hlo_instr *i) {
  uint32_t n = hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS), k = 0;
  while (k + 1 < n && !can_merge(i, k)) {
    k++;
  }
  if (k + 1 >= n) {
    return false;
  }
  int64_t offset[SHAPE_MAX_RANK], collapsed[SHAPE_MAX_RANK], batch[SHAPE_MAX_RANK], map[SHAPE_MAX_RANK];
  int d = operand_dim(i, k), in_updates = (int)hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[k];
  hlo_gather_dims dims = {.n_offset = renumbered(i, HLO_ATTR_OFFSET_DIMS, in_updates, offset),
                          .offset = offset,
                          .n_collapsed = renumbered(i, HLO_ATTR_COLLAPSED_DIMS, d, collapsed),
                          .collapsed = collapsed,
                          .n_batch = renumbered(i, HLO_ATTR_OPERAND_BATCH, d, batch),
                          .operand_batch = batch,
                          .indices_batch = hlo_ints(i, HLO_ATTR_INDICES_BATCH),
                          .n_map = renumbered(i, HLO_ATTR_INDEX_MAP, d, map),
                          .map = map,
                          .index_vector_dim = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM)};
  const shape *s = &i->shapes[0];
  hlo_value v = hlo_scatter(b, merged(b, i->operands[0], d), i->operands[1], merged(b, i->operands[2], in_updates),
                            &dims, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER));
  return hlo_becomes(i, hlo_reshape(b, v, s->rank, s->dims));
}

const hlo_rule_row hlo_scatter_rules[] = {{HLO_SCATTER, scatter_long_windows}, {HLO_OP_COUNT, NULL}};
