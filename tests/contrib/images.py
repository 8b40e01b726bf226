"""Operators of diffusion models, which ONNX Runtime computes on GPUs only: the expected values come from the text of ONNX Runtime's
documentation, written out in numpy.  Also operators that the standard has, too."""
import itertools
import math

import numpy as np
from onnx import TensorProto

from runtime_cases import F16, F32, floats, ints, rng


def group_norm(x, gamma, beta, groups, epsilon, silu):
    """x: channels last."""
    n, h, v, c = x.shape
    y = x.astype(np.float64).reshape(n, h * v, groups, c // groups)
    y = (y - y.mean((1, 3), keepdims=True)) / np.sqrt(y.var((1, 3), keepdims=True) + epsilon)
    y = y.reshape(x.shape) * gamma + beta
    return (y / (1 + np.exp(-y)) if silu else y).astype(x.dtype)


def write_group_norms(w):
    gamma, beta, bias = floats(6), floats(6), floats(6)
    for groups, silu, last in itertools.product((1, 3), (0, 1), (0, 1)):
        attributes = {"groups": groups, "activation": silu, "channels_last": last, "epsilon": 1e-3}

        def put(x, last=last):
            return x if last else np.ascontiguousarray(x.transpose(0, 3, 1, 2))

        def back(x, last=last):
            return x if last else x.transpose(0, 2, 3, 1)

        def norm(x, g, b, groups=groups, silu=silu):
            return [put(group_norm(back(x), g, b, groups, 1e-3, silu))]

        def skip_norm(x, g, b, skip, more=0):
            skip = skip[:, None, None] if skip.ndim == 2 else back(skip)
            s = back(x) + skip + more
            return norm(put(s), g, b) + [put(s)]

        x = [put(floats(2, 3, 4, 6)), put(floats(1, 5, 2, 6))]
        w.add("GroupNorm", [[v, gamma, beta] for v in x], [F32], attributes, constants=[1, 2], expected=norm)
        for skip in ([put(floats(2, 3, 4, 6)), put(floats(1, 5, 2, 6))], [floats(2, 6), floats(1, 6)], [put(floats(2, 1, 1, 6))]):
            for more in ([], [bias]):
                w.add("SkipGroupNorm", [[v, gamma, beta, s] + more for v, s in zip(x, skip)], [F32, F32], attributes,
                      constants=[1, 2, 4], expected=skip_norm)
        row = [put(floats(2, 1, 4, 6)) for _ in range(2)]  # images of one row
        w.add("SkipGroupNorm", [[row[0], gamma, beta, row[1]]], [F32, F32], attributes, constants=[1, 2], expected=skip_norm)


def write_sums(w):
    bias, wide = floats(6), floats(8)
    erf = np.vectorize(math.erf)
    w.add("BiasAdd", [[floats(n, 3, 6), bias, floats(n, 3, 6)] for n in (2, 5)], [F32], constants=[1], expected=lambda x, b, s: [x + b + s])

    def split(x, b):
        y, gate = np.split(x.astype(np.float64) + b, 2, -1)
        return [(y * gate * 0.5 * (1 + erf(gate / np.sqrt(2)))).astype(x.dtype)]

    w.add("BiasSplitGelu", [[floats(2, s, 8), wide] for s in (3, 4)], [F32], constants=[1], expected=split)
    w.add("BiasSplitGelu", [[floats(2, 3, 8, dtype=np.float16), wide.astype(np.float16)]], [F16], expected=split)


def write_standard(w):
    for upper, k in ((1, None), (0, None), (1, 1), (0, -1)):
        given = [] if k is None else [np.array(k)]
        w.add("Trilu", [[floats(2, n, 4)] + given for n in (3, 5)], [F32], {"upper": upper}, constants=[1])
    w.add("Trilu", [[ints(0, 9, 3, 3, dtype=np.int64)]], [TensorProto.INT64])
    for dtype, index in itertools.product((np.int64, np.int32), ([[0, 1], [2, 3]], [[2], [0]], [[[0, 1, 1]], [[2, 0, 0]]])):
        w.add("GatherND", [[floats(3, 4, 2), np.array(index, dtype)]], [F32])
    for mode, padding, align in itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (0, 1)):
        grids = [rng.uniform(-1.3, 1.3, (2, n, 3, 2)).astype(np.float32) for n in (4, 2)]
        w.add("GridSample", [[floats(2, 3, n, 5), g] for n, g in zip((6, 7), grids)], [F32],
              {"mode": mode, "padding_mode": padding, "align_corners": align})
