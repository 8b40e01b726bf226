/* forest.h - decision trees as the importers of ai.onnx.ml read them from attributes, and walk them. */
#ifndef FRONTEND_OPS_ML_FOREST_H
#define FRONTEND_OPS_ML_FOREST_H

#include "frontend/ops/ml/scores.h"

/* The comparison of a node, in the order of the numbers that TreeEnsemble gives them. */
typedef enum ml_mode { ML_LEQ, ML_LT, ML_GTE, ML_GT, ML_EQ, ML_NEQ, ML_MEMBER, ML_LEAF } ml_mode;

typedef struct ml_tree_node {
  ml_mode mode;
  bool missing_true;         /* whether NaN takes the true branch; NaN also takes it if the comparison holds (ML_NEQ) */
  int64_t feature;           /* the column of X that is compared; 0 for a leaf */
  double value;              /* what it is compared with, unless the mode is ML_MEMBER */
  int64_t on_true, on_false; /* the numbers of the nodes that follow; a leaf has none */
  const double *members;     /* for ML_MEMBER: n_members numbers, of which the feature must be one */
  int64_t n_members;
} ml_tree_node;

/* The vote of a leaf for a target or class. */
typedef struct ml_vote {
  int64_t node, target;
  double weight;
  int64_t position; /* in the list of votes */
} ml_vote;

/* What the targets get from the trees, for each row: the sums, or other aggregates, of the weights in the leaves that
 * the row reaches. */
typedef enum ml_aggregate { ML_AVERAGE, ML_SUM, ML_MIN, ML_MAX, ML_AGGREGATES } ml_aggregate;

/* The trees of a model.  A node may have several parents, also in different trees, but no walk comes to a node twice,
 * and the walk from a root to a leaf takes at most `depth` steps. */
typedef struct ml_forest {
  int64_t n_nodes, n_trees, n_votes, n_targets, depth;
  ml_tree_node *nodes;
  int64_t *roots;
  ml_vote *votes;    /* of leaves only, sorted by the leaf, then by the target */
  bool wide;         /* whether an attribute gives numbers in f64 */
  bool all_positive; /* whether no weight is negative, those of inner nodes included */
  bool *used;        /* [n_targets]: whether there is a weight for the target, at a leaf or elsewhere */
  ml_aggregate how;  /* what several weights of a leaf for one target count */
  bool repeated;     /* whether there were such weights */
} ml_forest;

/* The names of the attributes that say what leaves vote for in TreeEnsembleRegressor and TreeEnsembleClassifier. */
typedef struct ml_vote_names {
  const char *trees, *nodes, *targets, *weights, *weights_tensor;
} ml_vote_names;

/* Reads the trees of TreeEnsembleRegressor and TreeEnsembleClassifier, which have n_targets targets or classes.  `how`
 * is what several weights of a leaf for one target count. */
STATUS_MUST_USE status ml_read_forest(const onnx_node *n, const ml_vote_names *names, int64_t n_targets,
                                      ml_aggregate how, ml_forest *out);
/* Reads the trees of TreeEnsemble, whose numbers must be of the type. */
STATUS_MUST_USE status ml_read_compact_forest(const onnx_node *n, dtype type, int64_t n_targets, ml_forest *out);

/* Sets *values to the numbers of the attribute `floats` or, if that is absent, of the tensor in the attribute `tensor`,
 * which must be an array of one dimension of f32 or f64; *count is 0 if both are absent.  *wide becomes true if the
 * tensor is f64. */
STATUS_MUST_USE status ml_read_numbers(const onnx_node *n, const char *floats, const char *tensor,
                                       const double **values, int64_t *count, bool *wide);
/* Returns an error unless all walks from the roots end at leaves and come to all nodes.  Replaces nodes that test for
 * members by nodes that search the members, computes the depth, and sorts the votes.  `lone_leaves`: no walk needs to
 * come to a leaf. */
STATUS_MUST_USE status ml_finish_forest(const onnx_node *n, ml_forest *f, bool lone_leaves);

/* Sets *scores to the aggregates [N][n_targets] of rows[N][F], in the type of the rows.  *voted tells which targets got
 * a vote at all, pred[N][n_targets]; its def is NULL if that is so for all.  The aggregate of no vote is 0. */
STATUS_MUST_USE status ml_aggregated(const onnx_node *n, const ml_forest *f, hlo_value rows, ml_aggregate how,
                                     hlo_value *scores, hlo_value *voted);

#endif
