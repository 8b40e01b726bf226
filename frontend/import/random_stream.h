/* random_stream.h - where the numbers of random operators come from: for Dropout and random.c.
 *
 * A stream is a state of rng-bit-generator.  Without an attribute `seed` its key is the seed of the run and its number
 * tells the node; with one its key is that seed, so that its numbers are the same in every run.  In the body of a loop
 * the number of the step goes into it, of all loops around: every step draws anew. */
#ifndef FRONTEND_IMPORT_RANDOM_STREAM_H
#define FRONTEND_IMPORT_RANDOM_STREAM_H

#include "frontend/import/importer.h"

typedef struct onnx_stream {
  hlo_value key, number; /* u64[] */
  bool in_loop;
} onnx_stream;

/* seed: u64[], or no value: the run's. */
onnx_stream onnx_stream_make(onnx_node *n, hlo_value seed);
/* By the float attribute `seed`. */
STATUS_MUST_USE status onnx_stream_attr(onnx_node *n, onnx_stream *out);
/* A seed for another generator, u64[1]: the given one outside of loops. */
hlo_value onnx_stream_seed(hlo_builder *b, const onnx_stream *s);

/* Philox's bits: u32 or u64.  `part`: different ones of a stream have nothing in common. */
hlo_value onnx_stream_bits(hlo_builder *b, const onnx_stream *s, int part, shape bits);
/* Evenly in [0, 1): multiples of 2^-24 for f32, of 2^-53 for f64, which are the types of x. */
hlo_value onnx_stream_uniform(hlo_builder *b, const onnx_stream *s, shape x);
/* The same from random bits that are there, u32 or u64. */
hlo_value onnx_unit_interval(hlo_builder *b, hlo_value bits);
/* Normal with mean 0 and deviation 1, by Box and Muller; f32 or f64. */
hlo_value onnx_stream_normal(hlo_builder *b, const onnx_stream *s, shape x);

#endif
