"""make_cases.py FOLDER: cases of the operators that ONNX Runtime defines, with its results."""
import sys

import attention
import fused
import general
import hybrid
import images
import machine_learning
import maps
import products
import quantised
import sequences
import strings
import trees
import without_kernels
from runtime_cases import Writer

w = Writer(sys.argv[1])
fused.write_activations(w)
fused.write_products(w)
fused.write_norms(w)
fused.write_embeddings(w)
attention.write_group_query_attention(w)
attention.write_normalised_heads(w)
attention.write_decoder(w)
attention.write_decoding(w)
attention.write_half(w)
attention.write_multi_head_attention(w)
attention.write_attention(w)
attention.write_rotary(w)
attention.write_rotary_of_three_positions(w)
products.write_matmul_nbits(w)
products.write_bytes(w)
quantised.write_elementwise(w)
quantised.write_reductions(w)
quantised.write_products(w)
quantised.write_quantisation(w)
quantised.write_attention(w)
quantised.write_recurrent(w)
quantised.write_embeddings(w)
quantised.write_tables(w)
quantised.write_tables_of_any_rank(w)
images.write_group_norms(w)
images.write_sums(w)
images.write_standard(w)
general.write_standard(w)
general.write_transposed_convolutions(w)
general.write_unique(w)
general.write_inverses(w)
general.write_crops(w)
general.write_arrays(w)
general.write_matmul_bnb4(w)
general.write_ngrams(w)
general.write_word_embeddings(w)
hybrid.write_linear_attention(w)
hybrid.write_gates(w)
hybrid.write_causal_convolutions(w)
hybrid.write_experts(w)
hybrid.write_quantised_experts(w)
hybrid.write_hyper_connections(w)
hybrid.write_engram_gates(w)
without_kernels.write_sums(w)
without_kernels.write_products(w)
without_kernels.write_complex(w)
without_kernels.write_positions(w)
without_kernels.write_means(w)
machine_learning.write_scaling(w)
machine_learning.write_norms(w)
machine_learning.write_thresholds(w)
machine_learning.write_missing_values(w)
machine_learning.write_features(w)
machine_learning.write_extraction(w)
machine_learning.write_labels(w)
machine_learning.write_one_hot(w)
machine_learning.write_linear_models(w)
machine_learning.write_support_vectors(w)
machine_learning.write_votes(w)
strings.write(w)
trees.write_regressors(w)
trees.write_classifiers(w)
trees.write_compact(w)
maps.write(w)
sequences.write(w)
