/* forest_walk.h - the walk of rows from the roots of trees to leaves (forest.h), in instructions. */
#ifndef FRONTEND_OPS_ML_FOREST_WALK_H
#define FRONTEND_OPS_ML_FOREST_WALK_H

#include "frontend/ops/ml/forest.h"

/* Where the nodes of a forest are in tables.  A node may have several places, whose children are the same. */
typedef struct ml_layout {
  const ml_forest *forest;
  int64_t size;  /* the number of places */
  int64_t *node; /* for each place: its node, or -1 */
  /* For each place: that of the child where the walk stays if nothing says otherwise; the other child is at the next
   * place.  For a leaf it is the place itself. */
  int32_t *next;
} ml_layout;

/* Returns the node at a place. */
const ml_tree_node *ml_node_at(const ml_layout *l, int64_t place);
/* Gives places to the nodes; place k is that of root k.  A root of -1 is a leaf that votes for nothing. */
STATUS_MUST_USE status ml_lay_out(const onnx_node *n, const ml_forest *f, int64_t n_roots, const int64_t *roots,
                                  ml_layout *out);
/* Sets *out to the places of the leaves that each row of rows[N][F] reaches from the first n_roots places,
 * s32[N][n_roots]. */
STATUS_MUST_USE status ml_walk(const onnx_node *n, const ml_layout *l, int64_t n_roots, hlo_value rows, hlo_value *out);

#endif
