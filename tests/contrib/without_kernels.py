"""Operators of which ONNX Runtime has no kernels for CPUs: what is expected comes from numpy, or from ONNX Runtime's other operators."""
import itertools

import numpy as np

from quantised import KINDS, params, quantised, rest, scale
from runtime_cases import F16, F32, TensorProto, floats, rng

F64, BOOL = TensorProto.DOUBLE, TensorProto.BOOL
FLOATS = ((F32, np.float32), (F16, np.float16))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def write_sums(w):
    def flat_softmax(x, bias, axis):
        y = x.astype(float) + bias.astype(float)
        return [softmax(y.reshape(int(np.prod(y.shape[:axis])), -1)).reshape(y.shape).astype(x.dtype)]

    for kind, dtype in FLOATS:
        for bias, axis, inner in (((0, 1, 1, 5), 3, 1), ((0, 3, 1, 5), 3, 1), ((0, 3, 4, 5), 3, 0), ((1, 1, 4, 5), 3, 0), ((4, 5), 3, 0),
                                  ((5,), 3, 1), ((5,), 3, 0), ((1, 3, 4, 5), 1, 0), ((0, 1, 4, 5), 2, 1), ((4, 5), -2, 0)):
            sets = [[floats(n, 3, 4, 5, dtype=dtype), floats(*[d or n for d in bias], dtype=dtype)] for n in (2, 6)]
            w.add("BiasSoftmax", sets, [kind], {"axis": axis, "is_inner_broadcast": inner},
                  expected=lambda x, bias, axis=axis: flat_softmax(x, bias, axis % 4))
        for full, added in itertools.product((0, 1), repeat=2):
            sets = [[floats(n, 3, 8, dtype=dtype), floats(*((n, 3, 8) if full else (8,)), dtype=dtype)] for n in (2, 5)]
            for s in sets:
                s += [floats(*s[0].shape, dtype=dtype)] if added else []

            def summed(x, bias, residual=None, *_):
                y = x.astype(float) + bias + (0 if residual is None else residual.astype(float))
                return [y.astype(x.dtype), np.ones(x.shape, bool)]

            w.add("BiasDropout", sets, [kind, BOOL], expected=summed)
            sets = [(s + [None])[:3] + [np.array(0.7, dtype), np.array(False)] for s in sets]
            w.add("BiasDropout", sets, [kind, None], {"seed": 3}, constants=[3, 4], expected=lambda *x: summed(*x)[:1])


def write_products(w):
    def wide_gelu(x, m, bias=None):
        y = x.astype(np.float64) @ m.astype(np.float64) + (0 if bias is None else bias.astype(np.float64))
        return [(0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))).astype(x.dtype)]

    for biased in (0, 1):
        sets = [[floats(n, 3, 7), floats(7, 5)] + [floats(5)] * biased for n in (2, 4)]
        w.add("GemmFastGelu", sets, [F32], expected=wide_gelu)
    for spatial, biased in itertools.product((1, 2), (0, 1)):
        weights = [floats(4, 3, *[3] * spatial)] + [floats(4)] * biased
        attributes = {"pads": [1, 0] * spatial, "group": 2, "strides": [2] * spatial}
        sets = [[floats(n, *d[:spatial], 6)] + weights for n, d in ((2, (5, 4)), (1, (8, 7)))]

        def convolved(x, *others, attributes=attributes):
            others = [np.moveaxis(v, -1, 1) if k == 2 else v for k, v in enumerate(others)]
            y = w.run("FusedConv", [np.moveaxis(x, -1, 1), *others], [F32], attributes)[0]
            return [np.moveaxis(y, 1, -1)]

        w.add("NhwcConv", sets, [F32], attributes, constants=[1, 2], expected=convolved)
        if biased:
            fused = attributes | {"activation": "LeakyRelu", "activation_params": [0.3]}
            sets = [s + [floats(*convolved(*s)[0].shape)] for s in sets]
            w.add("NhwcFusedConv", sets, [F32], fused, constants=[1, 2], one_program=False,  # the size of Z follows from that of X
                  expected=lambda *x, fused=fused: convolved(*x, attributes=fused))


def write_complex(w):
    def as_complex(x):
        return x[..., 0].astype(float) + 1j * x[..., 1].astype(float)

    def as_pairs(z, dtype):
        return [np.stack([z.real, z.imag], -1).astype(dtype)]

    for kind, dtype in FLOATS + ((F64, np.float64),):
        for conjugate, (a, b) in itertools.product((0, 1), (((3, 4), (3, 4)), ((3, 1), (1, 5)), ((2, 3, 4), (4,)), ((), (2, 3)))):
            w.add("ComplexMulConj" if conjugate else "ComplexMul", [[floats(*a, 2, dtype=dtype), floats(*b, 2, dtype=dtype)]], [kind],
                  expected=lambda x, y, c=conjugate: as_pairs(as_complex(x) * (as_complex(y).conj() if c else as_complex(y)), x.dtype))
        for dims, axes in (((8,), 1), ((3, 7), 1), ((6, 5), 2), ((4, 3, 10), 3)):
            sets = [[floats(*lead, *dims, dtype=dtype)] for lead in ((2,), (5,))]
            over = tuple(range(-axes, 0))
            w.add("Rfft", sets, [kind], {"signal_ndim": axes, "normalized": 0, "onesided": 1},
                  expected=lambda x, over=over: as_pairs(np.fft.rfftn(x.astype(float), axes=over), x.dtype))
            # the parts of a spectrum of real numbers, whose last dimension is even
            sets = [[as_pairs(np.fft.rfftn(s[0][..., :-1] if dims[-1] % 2 else s[0], axes=over), dtype)[0]] for s in sets]
            w.add("Irfft", sets, [kind], {"signal_ndim": axes}, expected=lambda x, over=over: [
                np.fft.irfftn(as_complex(x), axes=over).astype(x.dtype)])


def bucket(position, buckets, farthest, both):
    """The bucket of T5, with exact bounds."""
    first = 0
    if both:
        buckets //= 2
        first, position = (buckets if position > 0 else 0), abs(position)
    else:
        position = max(-position, 0)
    exact = buckets // 2
    if position < exact:
        return first + position
    wide = buckets - exact
    k = 0
    # position >= exact * (farthest / exact) ** (k / wide), in integers
    while k + 1 < wide and position ** wide * exact ** (k + 1) >= exact ** wide * farthest ** (k + 1):
        k += 1
    return first + exact + k


def write_positions(w):
    def relative(table, queries, keys, farthest, both):
        buckets, heads = table.shape
        rows = table.reshape(heads, buckets)
        index = [[bucket(c - r, buckets, farthest, both) for c in range(int(keys[0]))] for r in range(int(queries[0]))]
        return [rows[:, np.array(index)][None]]

    for kind, dtype in FLOATS:
        for buckets, heads, farthest, both in ((32, 3, 128, 1), (32, 2, 128, 0), (4, 2, 128, 1), (10, 1, 20, 0), (2, 2, 7, 0)):
            table = floats(buckets, heads, dtype=dtype)
            sets = [[table, np.array([n]), np.array([n])] for n in (2, 150)]
            w.add("RelativePositionBias", sets, [kind], {"max_distance": farthest, "is_bidirectional": both}, constants=[0],
                  expected=lambda *x, f=farthest, both=both: relative(*x, f, both), one_program=False)
    table = np.array([1, 3, 5, 7, 2, 4, 6, 8], np.float32).reshape(4, 2)  # ONNX Runtime's own test
    w.add("RelativePositionBias", [[table, np.array([2]), np.array([2])]], [F32], {"max_distance": 128, "is_bidirectional": 1},
          expected=lambda *_: [np.array([1, 7, 3, 1, 2, 8, 4, 2], np.float32).reshape(1, 2, 2, 2)], one_program=False)

    def gated(x, x_bias, positions, m, bias, factor):
        heads, dtype = positions.shape[1], x.dtype
        x, x_bias, positions, m, bias, factor = (v.astype(float) for v in (x, x_bias, positions, m, bias, factor))
        q = (x + x_bias).reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) @ m + bias
        u, r = np.split(1 / (1 + np.exp(-q.reshape(*q.shape[:3], 2, -1).sum(-1))), 2, -1)
        return [((u * (r * factor - 1) + 2) * positions).astype(dtype)]

    for kind, dtype in FLOATS:
        sets = [[floats(n, s, 12), floats(12), floats(1, 3, s, s), floats(4, 8), floats(8), floats(1, 3, 1, 1)] for n, s in ((2, 5), (3, 7))]
        w.add("GatedRelativePositionBias", [[v.astype(dtype) for v in s] for s in sets], [kind], {"num_heads": 3}, expected=gated)


def write_means(w):
    def mean(x, s, z, to, point=None, axes=None, keep=1):
        y = ((x.astype(float) - (0 if z is None else float(z))) * float(s)).mean(axes, keepdims=bool(keep)) / float(to)
        info = np.iinfo(x.dtype)
        return [np.clip(np.rint(y) + (0 if point is None else float(point)), info.min, info.max).astype(x.dtype)]

    for dtype, kind in KINDS:
        for axes, keep, pointed in (([1], 1, 1), ([-1, 1], 0, 1), ([0, 2], 1, 0)):
            tail = [*params(dtype, 0.05, pointed), scale(0.02117)] + ([quantised(dtype)[()].reshape(())] if pointed else [])
            sets = [[quantised(dtype, n, 3, 7)] + tail for n in (2, 5)]
            w.add("QLinearReduceMean", sets, [kind], {"axes": axes, "keepdims": keep}, constants=rest(5, 0),
                  expected=lambda *x, a=tuple(axes), k=keep: mean(*x, axes=a, keep=k))
