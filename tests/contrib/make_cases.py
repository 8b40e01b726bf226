"""make_cases.py FOLDER: cases of the operators that ONNX Runtime defines, with its results."""
import sys

import attention
import fused
import products
from runtime_cases import Writer

w = Writer(sys.argv[1])
fused.write_activations(w)
fused.write_products(w)
fused.write_norms(w)
fused.write_embeddings(w)
attention.write_group_query_attention(w)
attention.write_decoder(w)
attention.write_multi_head_attention(w)
attention.write_attention(w)
attention.write_rotary(w)
products.write_matmul_nbits(w)
products.write_bytes(w)
