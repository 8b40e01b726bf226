/* quantized.h - recognises quantised arrays, whose integers represent real numbers by a scale and a zero point, in the
 * form that importers build. */
#ifndef HLO_ANALYSIS_QUANTIZED_H
#define HLO_ANALYSIS_QUANTIZED_H

#include "hlo/analysis/queries.h"

/* An array whose elements are all the same number, or are a list of numbers along one of its dimensions and equal along
 * the others. */
typedef struct hlo_along {
  hlo_value v; /* the array that holds the numbers: number k is element k * step */
  int axis;    /* the dimension along which the described array has the list; -1 if there is only one number */
  int64_t n;   /* how many numbers there are */
  int64_t step;
} hlo_along;

/* Describes v, whose shape may be symbolic: a scalar, a broadcast of one number or one list of numbers, or a constant
 * of at most 2^16 bytes that varies along at most one dimension.  Returns false for all other arrays, for a list of
 * symbolic length, for complex numbers, and for arrays without elements. */
bool hlo_along_of(hlo_value v, hlo_along *out);
/* Returns true if the numbers are constants.  Only then may hlo_along_at be called.  It returns number k; if there is
 * only one number, it returns that one for every k. */
bool hlo_along_is_const(const hlo_along *a);
double hlo_along_at(const hlo_along *a, int64_t k);
/* Returns true if both have equal constants along the same axis. */
bool hlo_along_equal(const hlo_along *a, const hlo_along *b);

/* A quantised array: it stands for the f32 numbers (q - zero) * scale, or for the s32 numbers q - zero. */
typedef struct hlo_quantized {
  hlo_value q; /* u8 or s8; if it is constant, any type of up to 8 bits, or s32 if it was converted already */
  bool has_zero;
  hlo_along zero, scale; /* scale is set for f32 numbers only; zero may have any integer type that fits in s32 */
} hlo_quantized;

/* Recognises multiply(convert(subtract(convert(q), zero)), scale), with or without the subtraction of the zero point.
 */
bool hlo_dequantized_of(hlo_value v, hlo_quantized *out);
/* Recognises subtract(convert(q), zero) in s32. */
bool hlo_centered_of(hlo_value v, hlo_quantized *out);

/* Returns true if x has no zero point, or one number of the type of q, so that q - zero is within 255. */
bool hlo_has_own_zero(const hlo_quantized *x);

/* Returns the only dimension of a contraction's weights (its second operand) that runs over output channels, or -1 if
 * there is none or several. */
int hlo_output_dim(const hlo_instr *contraction);
/* Returns true if the weights x have no zero point, or constant ones: one number, or one for each output channel, which
 * are numbered along dimension `outputs`. */
bool hlo_has_output_zeros(const hlo_quantized *x, int outputs);
/* Returns constant weight k of such weights, less its zero point, which is that of output channel number `output`. */
int64_t hlo_weight_at(const hlo_quantized *x, int64_t k, int64_t output);

/* The parts of convert(clamp(low, add(round(v), zero), high)) to u8 or s8.  The type has all three numbers, so that the
 * conversion neither cuts off fractions nor saturates nor wraps. */
typedef struct hlo_requantized {
  hlo_instr *round, *addition; /* `addition` adds the zero point; NULL if there is none */
  hlo_value v;                 /* the value that is rounded */
  double zero, low, high;
} hlo_requantized;
bool hlo_requantized_of(hlo_value v, hlo_requantized *out);

/* The second operand of a dot, if it is a matrix of small integers (s2, u2, s4, u4, s8 or u8) that the dot's own kernel
 * can scale:
 *
 *     reshape(multiply(convert(subtract(convert(q), zero)), scale))
 *
 * The zero point may be missing, and the matrix may be transposed.  The reshape may be missing, too; it merges a
 * dimension of blocks with the dimension of the elements in a block.  scale and zero are broadcasts whose elements are
 * equal within a block. */
typedef struct hlo_quantized_weights {
  hlo_value q;
  hlo_value scale, zero;   /* broadcasts to the dimensions of `scaled`; zero.def is NULL if there is no zero point */
  const hlo_instr *scaled; /* the multiplication by scale */
  /* The matrix is [sums, columns] or its transpose, where the dot contracts the dimension of extent `sums`.  A block
   * has `block` elements of a column, and `block` divides `sums`. */
  int64_t sums, columns, block;
  int64_t sum_step, column_step; /* the distances in q between neighbours along sums and along columns */
  /* The dimensions of `scaled` that run along sums and along columns.  If block_dim is not -1, sum_dim runs over
   * blocks, and block_dim over the elements of a block. */
  int sum_dim, column_dim, block_dim;
  uint32_t n;
  /* The instructions from convert(q) to the dot's operand, in order; each is the only user of the one before it. */
  hlo_instr *members[8];
} hlo_quantized_weights;
bool hlo_quantized_weights_of(const hlo_instr *dot, hlo_quantized_weights *out);
/* The most columns that a kernel reads at a time. */
enum { HLO_MOST_COLUMNS = 16 };
/* Returns true if a kernel that reads HLO_MOST_COLUMNS columns at a time, beyond the last one too, finds all of their
 * scales and zero points in memory, because the number of columns is a multiple of that, or because the scales are a
 * slice of an array that has as many columns. */
bool hlo_has_whole_vectors(const hlo_quantized_weights *w);
/* Returns the list or matrix of constants of which v, a scale or zero point of such weights, is a broadcast; a pass can
 * store it in another form.  Returns NULL if v is made of anything else. */
const literal *hlo_stored_numbers(hlo_value v);

#endif
