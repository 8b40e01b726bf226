/* random_stream.h - streams of random numbers for Dropout and the operators of random.c.
 *
 * A stream is a state of HLO's rng-bit-generator: a key and a number.  If the node has no attribute `seed`, the key is
 * the seed of the run and the number identifies the node.  If the node has the attribute, the key is its value, so that
 * the random numbers are the same in every run.  In the body of a loop, the iteration numbers of all enclosing loops
 * are hashed into the number, so that every iteration draws different random numbers. */
#ifndef FRONTEND_IMPORT_RANDOM_STREAM_H
#define FRONTEND_IMPORT_RANDOM_STREAM_H

#include "frontend/import/importer.h"

typedef struct onnx_stream {
  hlo_value key, number; /* u64[] */
  bool in_loop;
} onnx_stream;

/* Makes the stream of a node with the key `seed`, u64[]; if its def is NULL, the seed of the run is the key. */
onnx_stream onnx_stream_make(onnx_node *n, hlo_value seed);
/* Makes the stream of a node, with the float attribute `seed` as its key if the node has it. */
STATUS_MUST_USE status onnx_stream_attr(onnx_node *n, onnx_stream *out);
/* Returns a seed, u64[1], for a random number generator other than rng-bit-generator's Philox (Dropout's Mersenne
 * Twister).  Outside of loops it is the stream's key. */
hlo_value onnx_stream_seed(hlo_builder *b, const onnx_stream *s);

/* Returns random bits of the shape `bits`, whose type is u32 or u64.  Different values of `part`, 0 to 3, give
 * independent bits of one stream. */
hlo_value onnx_stream_bits(hlo_builder *b, const onnx_stream *s, int part, shape bits);
/* Returns uniformly distributed numbers in [0, 1) of the shape x, whose type is f32 (multiples of 2^-24) or f64
 * (multiples of 2^-53). */
hlo_value onnx_stream_uniform(hlo_builder *b, const onnx_stream *s, shape x);
/* Converts random bits to numbers in [0, 1) like those of onnx_stream_uniform: u32 to f32 and u64 to f64. */
hlo_value onnx_unit_interval(hlo_builder *b, hlo_value bits);
/* Returns normally distributed numbers of mean 0 and standard deviation 1, by the method of Box and Muller.  The type
 * of x is f32 or f64. */
hlo_value onnx_stream_normal(hlo_builder *b, const onnx_stream *s, shape x);

#endif
