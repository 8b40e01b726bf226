/* text.c - the importers of operators that look at tokens and characters. */
#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

/* --- NGramRepeatBlock --- */

/* Returns all runs of `size` tokens among the first `count + size - 1` of each row of ids, [B,count,size]. */
static hlo_value runs(hlo_builder *b, hlo_value ids, dim count, int64_t size) {
  shape s = shape_make(DTYPE_S64, 2, (dim[]){count, size});
  hlo_value at = hlo_binary(b, HLO_ADD, hlo_iota(b, s, 0), hlo_iota(b, s, 1));
  return hlo_take(b, ids, at, 1);
}

/* Returns pred[B,V], which is true at the tokens that follow an earlier occurrence of the last size - 1 tokens of ids
 * [B,S]; the first `count` runs of `size` tokens are all runs of ids.  The run fails if such a token is not in [0, V).
 */
static status repeating(const onnx_node *n, int64_t size, dim count, hlo_value *out) {
  static const int64_t last = 2, zero = 0, one = 1;
  static const hlo_gather_dims tokens = {.n_collapsed = 1,
                                         .collapsed = &one,
                                         .n_batch = 1,
                                         .operand_batch = &zero,
                                         .indices_batch = &zero,
                                         .n_map = 1,
                                         .map = &one,
                                         .index_vector_dim = 2};
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, 0), *scores = onnx_in_shape(n, 1);
  hlo_value before = runs(b, n->in[0], count, size - 1);
  hlo_value end = hlo_slice_dim(b, n->in[0], 1, count, s->dims[1]);
  if (b->error) {
    return NULL;
  }
  end = hlo_broadcast(b, end, *hlo_shape(before), (int64_t[]){0, 2});
  hlo_value same = hlo_reduce(b, hlo_compare(b, HLO_EQ, before, end), HLO_REDUCE_AND, 1, &last);
  hlo_value next = hlo_slice_dim(b, n->in[0], 1, size - 1, s->dims[1]);
  next = hlo_select(b, same, next, hlo_like(b, next, 0));
  TRY(onnx_check_below(n, next, "input_ids", scores->dims[1]));
  hlo_value none = hlo_splat(b, shape_make(DTYPE_PRED, 2, scores->dims), 0);
  next = hlo_reshape(b, next, 3, (dim[]){s->dims[0], count, 1});
  *out = hlo_scatter(b, none, next, same, &tokens, HLO_REDUCE_OR);
  return NULL;
}

/* Sets the score of each token to -inf with which the last tokens of input_ids would be a run of ngram_size tokens that
 * input_ids has already. */
status onnx_import_contrib_ngram_repeat_block(onnx_node *n) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  int64_t size;
  hlo_value repeats;
  TRY(CONTRIB_ATTRIBUTES(n, "ngram_size"));
  TRY(onnx_attr_required(n->proto, "ngram_size"));
  TRY(onnx_attr_int_in(n->proto, "ngram_size", 0, 1, INT32_MAX, &size));
  TRY(onnx_need_rank(n, 0, "input_ids", 2, 2));
  TRY(onnx_need_rank(n, 1, "scores", 2, 2));
  const dim *ids = onnx_in_shape(n, 0)->dims, *scores = onnx_in_shape(n, 1)->dims;
  TRY(onnx_need_dims(n, 1, "scores", 2, (dim[]){ids[0], scores[1]}));
  n->out[0] = n->in[1];
  if (dim_at_most(t, size, ids[1])) {
    TRY(repeating(n, size, dim_add_const(t, ids[1], 1 - size), &repeats));
    n->out[0] = hlo_select(b, repeats, hlo_like(b, n->in[1], -INFINITY), n->in[1]);
  }
  return NULL;
}

/* --- WordConvEmbedding --- */

enum { SEQUENCE, CONV_WEIGHTS, CONV_BIAS, CHAR_TABLE };

typedef struct words {
  dim count, length;              /* how many words there are, and how many characters each of them has */
  dim filters;                    /* the size of a word's embedding */
  int64_t window, embedding_size; /* the extents of the convolution's kernel */
} words;

/* Checks that the attribute, which repeats a size, has this value if it is given.  -1 means that it is not. */
static status same_size(const onnx_node *n, const char *name, dim size) {
  int64_t stated;
  TRY(onnx_attr_int(n->proto, name, -1, &stated));
  CHECK_THAT(stated == -1 || (stated >= 0 && dim_equal(onnx_dims(n), stated, size)), STATUS_INVALID_MODEL,
             "%s is %" PRId64 ", but the inputs have %s", name, stated, dim_print(n->arena, onnx_dims(n), size));
  return NULL;
}

static status read_words(const onnx_node *n, words *w) {
  TRY(CONTRIB_ATTRIBUTES(n, "embedding_size", "conv_window_size", "char_embedding_size"));
  TRY(onnx_need_rank(n, SEQUENCE, "Sequence", 2, 2));
  TRY(onnx_need_rank(n, CONV_WEIGHTS, "W", 4, 4));
  TRY(onnx_need_rank(n, CHAR_TABLE, "C", 2, 2));
  const shape *s = onnx_in_shape(n, SEQUENCE), *kernel = onnx_in_shape(n, CONV_WEIGHTS);
  *w = (words){.count = s->dims[0], .length = s->dims[1], .filters = kernel->dims[0]};
  TRY(onnx_const_dim(n, kernel->dims[2], "dimension 2 of W", &w->window));
  TRY(onnx_const_dim(n, kernel->dims[3], "dimension 3 of W", &w->embedding_size));
  TRY(onnx_need_dims(n, CONV_WEIGHTS, "W", 4, (dim[]){w->filters, 1, w->window, w->embedding_size}));
  TRY(onnx_need_dims(n, CONV_BIAS, "B", 1, &w->filters));
  TRY(onnx_need_dims(n, CHAR_TABLE, "C", 2, (dim[]){onnx_in_shape(n, CHAR_TABLE)->dims[0], w->embedding_size}));
  TRY(same_size(n, "embedding_size", w->filters));
  TRY(same_size(n, "conv_window_size", w->window));
  TRY(same_size(n, "char_embedding_size", w->embedding_size));
  CHECK_THAT(w->window >= 1 && dim_at_most(onnx_dims(n), w->window, w->length), STATUS_INVALID_MODEL,
             "Sequence is %s, whose words are shorter than the window of %" PRId64, SHAPE_STR(onnx_dims(n), s),
             w->window);
  return NULL;
}

/* Returns pred[count, n], which is true at the positions below the word's length; `lengths` is s32[count]. */
static hlo_value within(hlo_builder *b, hlo_value lengths, dim count, dim n) {
  static const int64_t word = 0;
  shape s = shape_make(DTYPE_S32, 2, (dim[]){count, n});
  return hlo_compare(b, HLO_LT, hlo_iota(b, s, 1), hlo_broadcast(b, lengths, s, &word));
}

/* A word has as many characters as are above 0, and is filled to the length of the window; it has none if its first
 * character is not above 0.  Its embedding is the maximum of tanh of the convolution at all positions of the window
 * within the word.  ONNX Runtime leaves the embedding of a word without characters undefined; here it is 0. */
status onnx_import_contrib_word_conv_embedding(onnx_node *n) {
  static const int64_t last = 1, position = 2, channels_first[] = {0, 2, 1}, zero = 0;
  hlo_builder *b = n->b;
  words w;
  TRY(read_words(n, &w));
  dim places = dim_add_const(onnx_dims(n), w.length, 1 - w.window);
  hlo_value chars = n->in[SEQUENCE], present = onnx_compare_scalar(b, HLO_GT, chars, 0);
  hlo_value lengths = hlo_reduce(b, hlo_convert(b, present, DTYPE_S32), HLO_REDUCE_ADD, 1, &last);
  hlo_value blank = hlo_unary(b, HLO_NOT, onnx_pick(b, present, 1, 0));
  lengths = onnx_binary_scalar(b, HLO_MAX, lengths, (double)w.window);
  lengths = hlo_select(b, blank, hlo_like(b, lengths, 0), lengths);
  chars = hlo_select(b, within(b, lengths, w.count, w.length), chars, hlo_like(b, chars, 0));
  TRY(onnx_check_below(n, chars, "Sequence", onnx_in_shape(n, CHAR_TABLE)->dims[0]));
  hlo_value x = hlo_transpose(b, hlo_take(b, n->in[CHAR_TABLE], chars, 0), channels_first);
  hlo_value kernel = hlo_reshape(b, n->in[CONV_WEIGHTS], 3, (dim[]){w.filters, w.window, w.embedding_size});
  hlo_conv_dims d = {.groups = 1, .layout = HLO_CHANNELS_FIRST};
  x = hlo_convolution(b, x, hlo_transpose(b, kernel, channels_first), &d);
  if (b->error) {
    return NULL;
  }
  const shape s = *hlo_shape(x);
  x = hlo_unary(b, HLO_TANH, hlo_binary(b, HLO_ADD, x, onnx_along(b, n->in[CONV_BIAS], &s, 1)));
  hlo_value starts = onnx_plus(b, lengths, 1.0 - (double)w.window);
  hlo_value inside = hlo_broadcast(b, within(b, starts, w.count, places), s, (int64_t[]){0, 2});
  x = hlo_reduce(b, hlo_select(b, inside, x, hlo_like(b, x, -1)), HLO_REDUCE_MAX, 1, &position);
  blank = hlo_broadcast(b, blank, *hlo_shape(x), &zero);
  n->out[0] = hlo_select(b, blank, hlo_like(b, x, 0), x);
  return NULL;
}
