/* svm.c - the importers of support vector machines of ai.onnx.ml. */
#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/ml/coupling.h"
#include "frontend/ops/ml/linear.h"

/* --- kernels --- */

typedef enum kernel_kind { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID, N_KERNELS } kernel_kind;

typedef struct kernel {
  kernel_kind kind;
  double gamma, coef0, degree;
} kernel;

static status read_kernel(const onnx_node *n, kernel *k) {
  static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const float *params;
  size_t count;
  int kind;
  TRY(onnx_choose(n, "kernel_type", "LINEAR", names, N_KERNELS, &kind));
  TRY(onnx_attr_floats(n->proto, "kernel_params", &params, &count));
  CHECK_THAT(count == 3 || (count == 0 && kind == KERNEL_LINEAR), STATUS_INVALID_MODEL,
             "kernel_params has %zu numbers; gamma, coef0 and degree are needed", count);
  *k = (kernel){.kind = (kernel_kind)kind};
  if (count) {
    k->gamma = (double)params[0];
    k->coef0 = (double)params[1];
    k->degree = (double)params[2];
  }
  return NULL;
}

/* Returns exp(-gamma |x - v|^2) of each row and each support vector.  The distances are sums of squared differences:
 * from products, the distance of vectors that are near each other would lose digits. */
static hlo_value radial(const onnx_node *n, double gamma, hlo_value x, hlo_value vectors) {
  static const int64_t features = 2;
  hlo_builder *b = n->b;
  const shape *rows = hlo_shape(x), *all = hlo_shape(vectors);
  shape s = shape_make(DTYPE_F32, 3, (dim[]){rows->dims[0], all->dims[0], all->dims[1]});
  hlo_fail(b, shape_check(&s, "the differences"));
  x = hlo_binary(b, HLO_SUB, hlo_broadcast(b, x, s, (int64_t[]){0, 2}),
                 hlo_broadcast(b, vectors, s, (int64_t[]){1, 2}));
  x = hlo_reduce(b, hlo_binary(b, HLO_MUL, x, x), HLO_REDUCE_ADD, 1, &features);
  return hlo_unary(b, HLO_EXP, onnx_times(b, x, -gamma));
}

static hlo_value power(hlo_builder *b, hlo_value x, double degree) {
  if (degree == 2 || degree == 3) {
    hlo_value square = hlo_binary(b, HLO_MUL, x, x);
    return degree == 2 ? square : hlo_binary(b, HLO_MUL, square, x);
  }
  return onnx_binary_scalar(b, HLO_POW, x, degree);
}

/* Returns the kernel of each row of x[N][F] and each of the vectors[V][F], f32[N][V]. */
static hlo_value apply_kernel(const onnx_node *n, const kernel *k, hlo_value x, hlo_value vectors) {
  hlo_builder *b = n->b;
  if (b->error || k->kind == KERNEL_RBF) {
    return b->error ? x : radial(n, k->gamma, x, vectors);
  }
  hlo_value y = ml_products(b, x, vectors);
  if (k->kind == KERNEL_LINEAR) {
    return y;
  }
  y = onnx_plus(b, onnx_times(b, y, k->gamma), k->coef0);
  return k->kind == KERNEL_SIGMOID ? hlo_unary(b, HLO_TANH, y) : power(b, y, k->degree);
}

/* Returns the kernels of the rows and the `count` vectors in the attribute support_vectors. */
static status read_kernels(const onnx_node *n, hlo_value rows, int64_t count, hlo_value *out) {
  const float *values;
  int64_t n_values;
  kernel k;
  TRY(read_kernel(n, &k));
  TRY(ml_need_floats(n, "support_vectors", &values, &n_values));
  TRY(ml_check_vectors(n, "support_vectors", n_values, count, rows));
  *out = apply_kernel(n, &k, rows, onnx_f32_array(n, values, 2, (dim[]){count, n_values / count}));
  return NULL;
}

/* --- SVMRegressor --- */

/* Without support vectors, the coefficients are those of the features. */
status onnx_import_ml_svm_regressor(onnx_node *n) {
  hlo_builder *b = n->b;
  const float *coefficients, *rho;
  int64_t n_supports, n_coefficients, n_rho;
  bool one_class;
  ml_transform transform;
  hlo_value x;
  TRY(onnx_attr_int_in(n->proto, "n_supports", 0, 0, INT32_MAX, &n_supports));
  TRY(onnx_attr_bool(n->proto, "one_class", false, &one_class));
  TRY(ml_read_transform(n, &transform));
  CHECK_THAT(transform == ML_NONE, STATUS_UNSUPPORTED,
             "post_transform of a regression, which ONNX Runtime ignores, is "
             "not supported");
  TRY(ml_need_floats(n, "coefficients", &coefficients, &n_coefficients));
  TRY(ml_need_floats(n, "rho", &rho, &n_rho));
  TRY(ml_rows(n, DTYPE_F32, &x));
  if (n_supports) {
    CHECK_THAT(n_coefficients == n_supports, STATUS_INVALID_MODEL,
               "coefficients has %" PRId64 " numbers; n_supports is %" PRId64, n_coefficients, n_supports);
    TRY(read_kernels(n, x, n_supports, &x));
  } else {
    TRY(ml_check_vectors(n, "coefficients", n_coefficients, 1, x));
  }
  x = ml_products(b, x, onnx_f32_array(n, coefficients, 2, (dim[]){1, n_coefficients}));
  x = onnx_plus(b, x, (double)rho[0]);
  if (one_class) {
    x = hlo_select(b, onnx_compare_scalar(b, HLO_GT, x, 0), hlo_like(b, x, 1), hlo_like(b, x, -1));
  }
  n->out[0] = x;
  return NULL;
}

/* --- SVMClassifier --- */

/* A program has a product for each class, and a matrix for each two. */
enum { CLASSES_MAX = 1024 };

typedef struct classifier {
  const int64_t *labels;
  int64_t n_classes;
  const float *coefficients, *rho, *prob_a, *prob_b;
  int64_t n_coefficients, n_rho;
  size_t n_prob;
  ml_transform transform;
} classifier;

static status read_classifier(const onnx_node *n, classifier *c) {
  size_t n_prob_b;
  TRY(ml_read_labels(n, "classlabels_ints", "classlabels_strings", &c->labels, &c->n_classes));
  TRY(ml_need_floats(n, "coefficients", &c->coefficients, &c->n_coefficients));
  TRY(ml_need_floats(n, "rho", &c->rho, &c->n_rho));
  TRY(onnx_attr_floats(n->proto, "prob_a", &c->prob_a, &c->n_prob));
  TRY(onnx_attr_floats(n->proto, "prob_b", &c->prob_b, &n_prob_b));
  CHECK_THAT(c->n_prob == n_prob_b, STATUS_INVALID_MODEL, "prob_a has %zu numbers, but prob_b has %zu", c->n_prob,
             n_prob_b);
  return ml_read_transform(n, &c->transform);
}

/* Returns the labels of two classes whose scores are those of a linear model, as ONNX Runtime chooses them: the second
 * one if the largest score is above 0, or at least 0.5 if no coefficient is negative. */
static hlo_value label_of_two(const onnx_node *n, const classifier *c, hlo_value scores, hlo_value first) {
  static const int64_t one = 1;
  hlo_builder *b = n->b;
  bool positive = true;
  for (int64_t k = 0; k < c->n_coefficients; k++) {
    positive = positive && c->coefficients[k] >= 0;
  }
  /* The largest score is the one that `first` has found, which matters if there are NaNs. */
  hlo_value second_wins = onnx_compare_scalar(b, HLO_EQ, first, 1);
  hlo_value largest = hlo_select(b, second_wins, onnx_pick(b, scores, one, 1), onnx_pick(b, scores, one, 0));
  hlo_value above = onnx_compare_scalar(b, positive ? HLO_GE : HLO_GT, largest, positive ? 0.5 : 0);
  return ml_either_label(n, hlo_binary(b, HLO_OR, above, second_wins), c->labels[1], c->labels[0]);
}

/* A classifier without support vectors: each class has coefficients for the features. */
static status classify_linearly(onnx_node *n, const classifier *c, hlo_value x) {
  hlo_builder *b = n->b;
  TRY(ml_check_vectors(n, "coefficients", c->n_coefficients, c->n_classes, x));
  dim each[] = {c->n_classes, c->n_coefficients / c->n_classes};
  hlo_value scores = onnx_plus(b, ml_products(b, x, onnx_f32_array(n, c->coefficients, 2, each)), (double)c->rho[0]);
  hlo_value first = ml_first_largest(b, scores);
  n->out[0] = c->n_classes == 2 && !c->n_prob ? label_of_two(n, c, scores, first)
                                              : ml_labels_of(n, c->labels, c->n_classes, first);
  return ml_final_scores(n, scores, c->n_classes, c->transform, ML_ALONE, &n->out[1]);
}

/* Returns for each class the sums of its support vectors' kernels times their coefficients, f64[N][C][C-1]: entry
 * [i][r] is the part that class i has in the decision between it and the r-th of the other classes. */
static hlo_value class_parts(const onnx_node *n, const classifier *c, const int64_t *per_class, int64_t n_vectors,
                             hlo_value kernels) {
  hlo_builder *b = n->b;
  int64_t start = 0, others = c->n_classes - 1;
  hlo_value *parts = ARENA_NEW_N(n->arena, hlo_value, (size_t)c->n_classes);
  hlo_value weights = hlo_convert(b, onnx_f32_array(n, c->coefficients, 2, (dim[]){others, n_vectors}), DTYPE_F64);
  kernels = hlo_convert(b, kernels, DTYPE_F64);
  for (int64_t k = 0; k < c->n_classes; start += per_class[k++]) {
    hlo_value own = hlo_slice_dim(b, kernels, 1, start, start + per_class[k]);
    parts[k] = onnx_insert_dim(b, ml_products(b, own, hlo_slice_dim(b, weights, 1, start, start + per_class[k])), 1);
  }
  return hlo_concatenate(b, (uint32_t)c->n_classes, parts, 1);
}

/* Returns the decision between each two classes i < j, f64[N][C(C-1)/2]; class i wins if it is above 0. */
static hlo_value decisions(const onnx_node *n, const classifier *c, hlo_value parts, int64_t n_pairs) {
  hlo_builder *b = n->b;
  int64_t others = c->n_classes - 1, pair = 0;
  int64_t *of_first = ARENA_NEW_N(n->arena, int64_t, (size_t)n_pairs);
  int64_t *of_second = ARENA_NEW_N(n->arena, int64_t, (size_t)n_pairs);
  for (int64_t i = 0; i < others; i++) {
    for (int64_t j = i + 1; j <= others; j++, pair++) {
      of_first[pair] = i * others + j - 1;
      of_second[pair] = j * others + i;
    }
  }
  if (b->error) {
    return parts;
  }
  parts = hlo_reshape(b, parts, 2, (dim[]){hlo_shape(parts)->dims[0], c->n_classes * others});
  hlo_value sum = hlo_binary(b, HLO_ADD, onnx_take_known(b, parts, 1, of_first, n_pairs),
                             onnx_take_known(b, parts, 1, of_second, n_pairs));
  hlo_value rho = hlo_convert(b, onnx_f32_array(n, c->rho, 1, &n_pairs), DTYPE_F64);
  return b->error ? sum : hlo_binary(b, HLO_ADD, sum, onnx_along(b, rho, hlo_shape(sum), 1));
}

/* Returns the class that wins most of its decisions, s64[N]; of several, the first. */
static hlo_value most_votes(const onnx_node *n, int64_t n_classes, hlo_value decided, int64_t n_pairs) {
  static const int64_t last = 2;
  hlo_builder *b = n->b;
  int64_t count = n_classes * (n_classes - 1), *from = ARENA_NEW_N(n->arena, int64_t, (size_t)count);
  hlo_value first = onnx_compare_scalar(b, HLO_GT, decided, 0), second = hlo_unary(b, HLO_NOT, first);
  hlo_value won = hlo_convert(b, hlo_concatenate(b, 2, (hlo_value[]){first, second}, 1), DTYPE_S32);
  for (int64_t i = 0, pair = 0; i < n_classes; i++) {
    for (int64_t j = i + 1; j < n_classes; j++, pair++) {
      from[i * (n_classes - 1) + j - 1] = pair;
      from[j * (n_classes - 1) + i] = n_pairs + pair;
    }
  }
  won = onnx_take_known(b, won, 1, from, count);
  if (b->error) {
    return won;
  }
  won = hlo_reshape(b, won, 3, (dim[]){hlo_shape(won)->dims[0], n_classes, n_classes - 1});
  return hlo_arg_reduce(b, hlo_reduce(b, won, HLO_REDUCE_ADD, 1, &last), 1, true, false);
}

/* Checks the numbers of a classifier with support vectors, of which each class has per_class[]. */
static status check_supports(const onnx_node *n, const classifier *c, const int64_t *per_class, size_t count,
                             int64_t *n_vectors) {
  int64_t classes = c->n_classes, pairs = classes * (classes - 1) / 2, total = 0;
  CHECK_THAT((int64_t)count == classes, STATUS_INVALID_MODEL,
             "vectors_per_class has %zu numbers; there are %" PRId64 " labels", count, classes);
  CHECK_THAT(classes >= 2, STATUS_UNSUPPORTED, "a classifier of one class is not supported");
  for (size_t k = 0; k < count; k++) {
    CHECK_THAT(per_class[k] >= 0 && per_class[k] <= INT32_MAX, STATUS_INVALID_MODEL, "vectors_per_class has %" PRId64,
               per_class[k]);
    total += per_class[k];
  }
  CHECK_THAT(c->n_coefficients == (classes - 1) * total, STATUS_INVALID_MODEL,
             "coefficients has %" PRId64 " numbers; there must be %" PRId64 " for each of %" PRId64 " support vectors",
             c->n_coefficients, classes - 1, total);
  CHECK_THAT(c->n_rho == pairs, STATUS_INVALID_MODEL, "rho has %" PRId64 " numbers; there must be %" PRId64, c->n_rho,
             pairs);
  CHECK_THAT(c->n_prob == 0 || (int64_t)c->n_prob == pairs, STATUS_INVALID_MODEL,
             "prob_a has %zu numbers; there must be %" PRId64, c->n_prob, pairs);
  *n_vectors = total;
  return NULL;
}

/* Returns 1 / (1 + exp(a s + b)) for each decision s, which is the probability of the first of two classes. */
static hlo_value pair_probabilities(const onnx_node *n, const classifier *c, hlo_value scores, int64_t n_pairs) {
  hlo_builder *b = n->b;
  if (b->error) {
    return scores;
  }
  hlo_value a = onnx_along(b, onnx_f32_array(n, c->prob_a, 1, &n_pairs), hlo_shape(scores), 1);
  hlo_value term = onnx_along(b, onnx_f32_array(n, c->prob_b, 1, &n_pairs), hlo_shape(scores), 1);
  hlo_value power = hlo_binary(b, HLO_ADD, hlo_binary(b, HLO_MUL, scores, a), term);
  return hlo_unary(b, HLO_LOGISTIC, hlo_unary(b, HLO_NEG, power));
}

/* The classes vote, two by two.  The scores are the decisions or, with prob_a and prob_b, probabilities of the classes.
 */
static status classify_by_votes(onnx_node *n, const classifier *c, const int64_t *per_class, int64_t n_vectors,
                                hlo_value x) {
  hlo_builder *b = n->b;
  int64_t n_pairs = c->n_classes * (c->n_classes - 1) / 2;
  hlo_value kernels;
  TRY(read_kernels(n, x, n_vectors, &kernels));
  hlo_value decided = decisions(n, c, class_parts(n, c, per_class, n_vectors, kernels), n_pairs);
  hlo_value winner = most_votes(n, c->n_classes, decided, n_pairs), scores = hlo_convert(b, decided, DTYPE_F32);
  n->out[0] = ml_labels_of(n, c->labels, c->n_classes, winner);
  if (c->n_prob) {
    TRY(ml_coupled(n, pair_probabilities(n, c, scores, n_pairs), c->n_classes, &scores));
    return ml_final_scores(n, scores, c->n_classes, c->transform, ML_ALONE, &n->out[1]);
  }
  ml_other other = c->n_classes > 2 ? ML_ALONE : c->transform == ML_NONE ? ML_OPPOSITE : ML_COMPLEMENT;
  return ml_final_scores(n, scores, n_pairs, c->transform, other, &n->out[1]);
}

status onnx_import_ml_svm_classifier(onnx_node *n) {
  classifier c;
  const int64_t *per_class;
  size_t count;
  int64_t n_vectors;
  hlo_value x;
  TRY(read_classifier(n, &c));
  TRY(onnx_attr_ints(n->proto, "vectors_per_class", &per_class, &count));
  CHECK_THAT(c.n_classes <= CLASSES_MAX, STATUS_UNSUPPORTED,
             "classlabels_ints has %" PRId64
             " labels; at most %d are "
             "supported",
             c.n_classes, CLASSES_MAX);
  TRY(ml_rows(n, DTYPE_F32, &x));
  if (!count) {
    return classify_linearly(n, &c, x);
  }
  TRY(check_supports(n, &c, per_class, count, &n_vectors));
  return classify_by_votes(n, &c, per_class, n_vectors, x);
}
