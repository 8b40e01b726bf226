"""make_cases.py FOLDER: cases for attributes, types and shapes that none of ONNX's own cases has.

What is expected is written out in numpy after the specification's text, or comes from ONNX Runtime or ONNX's
reference, as each module says.
"""
import sys

import attention
import windows
from cases import Writer

w = Writer(sys.argv[1])
attention.write_attention(w)
attention.write_flex_attention(w)
windows.write_convolutions(w)
windows.write_pools(w)
windows.write_sampling(w)
windows.write_determinants(w)
