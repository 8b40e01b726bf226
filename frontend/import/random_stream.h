/* random_stream.h - the source of random numbers for random operators, for Dropout and random.c.
 *
 * A stream is a state of rng-bit-generator.  Without an attribute `seed`, its key is the seed of the run and its number
 * identifies the node.  With that attribute its key is the attribute, so that its numbers are the same in every run.
 * In the body of a loop the numbers of the steps, of all loops around it, are part of the state, so that every step
 * draws different numbers. */
#ifndef FRONTEND_IMPORT_RANDOM_STREAM_H
#define FRONTEND_IMPORT_RANDOM_STREAM_H

#include "frontend/import/importer.h"

typedef struct onnx_stream {
  hlo_value key, number; /* u64[] */
  bool in_loop;
} onnx_stream;

/* `seed` is u64[]; if it is no value, the run's seed is used. */
onnx_stream onnx_stream_make(onnx_node *n, hlo_value seed);
/* Makes a stream by the float attribute `seed`. */
STATUS_MUST_USE status onnx_stream_attr(onnx_node *n, onnx_stream *out);
/* Returns a seed for another generator, u64[1].  Outside of loops it is the given seed. */
hlo_value onnx_stream_seed(hlo_builder *b, const onnx_stream *s);

/* Returns Philox's bits, u32 or u64.  Different values of `part` give independent bits of a stream. */
hlo_value onnx_stream_bits(hlo_builder *b, const onnx_stream *s, int part, shape bits);
/* Returns numbers that are uniform in [0, 1): multiples of 2^-24 for f32 and of 2^-53 for f64, the two types that x may
 * have. */
hlo_value onnx_stream_uniform(hlo_builder *b, const onnx_stream *s, shape x);
/* Does the same with given random bits, u32 or u64. */
hlo_value onnx_unit_interval(hlo_builder *b, hlo_value bits);
/* Returns normally distributed numbers of mean 0 and deviation 1, by the method of Box and Muller; f32 or f64. */
hlo_value onnx_stream_normal(hlo_builder *b, const onnx_stream *s, shape x);

#endif
