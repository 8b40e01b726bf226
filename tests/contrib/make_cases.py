"""make_cases.py FOLDER: cases of the operators that ONNX Runtime defines, with its results."""
import sys

import fused
from runtime_cases import Writer

w = Writer(sys.argv[1])
fused.write_activations(w)
fused.write_products(w)
fused.write_norms(w)
fused.write_embeddings(w)
