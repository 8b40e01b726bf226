"""make_cases.py FOLDER: cases for attributes, types and shapes that none of ONNX's own cases has.

What is expected is written out in numpy after the specification's text, or comes from ONNX Runtime or ONNX's
reference, as each module says.
"""
import sys

import algebra
import attention
import elements
import gradients
import images
import recurrent
import spectra
import training
import windows
from cases import Writer

w = Writer(sys.argv[1])
attention.write_attention(w)
attention.write_flex_attention(w)
attention.write_repeated_heads(w)
windows.write_convolutions(w)
windows.write_pools(w)
windows.write_ceil_mode(w)
windows.write_sampling(w)
windows.write_determinants(w)
recurrent.write_recurrent(w)
recurrent.write_linear_attention(w)
recurrent.write_causal_convolutions(w)
recurrent.write_rotary_embeddings(w)
spectra.write_dft(w)
spectra.write_stft(w)
spectra.write_windows(w)
spectra.write_mel(w)
elements.write_casts(w)
elements.write_quantisation(w)
elements.write_movement(w)
images.write_resize(w)
algebra.write_einsum(w)
algebra.write_gemm(w)
algebra.write_quantised_products(w)
algebra.write_norms(w)
algebra.write_losses(w)
algebra.write_ngrams(w)
algebra.write_rest(w)
elements.write_many_operands(w)
training.write_optimizers(w)
gradients.write_gradients(w)
