"""Operators on quantised arrays, as the quantiser writes them."""
import itertools

import ml_dtypes
import numpy as np
from onnx import TensorProto

from runtime_cases import F16, F32, S8, U8, floats, ints, rng

KINDS = ((np.uint8, U8), (np.int8, S8))


def quantised(dtype, *dims):
    info = np.iinfo(dtype)
    return ints(info.min, info.max + 1, *dims, dtype=dtype)


def scale(x):
    return np.array(x, np.float32)


def point(dtype):
    return quantised(dtype)[()].reshape(())


def params(dtype, x, pointed=True):
    return [scale(x), point(dtype) if pointed else None]


def trimmed(x):
    while x[-1] is None:
        x.pop()
    return x


def rest(n, *others):
    """Returns the numbers of the initializers: those of all n inputs but `others`."""
    return [k for k in range(n) if k not in others]


def write_elementwise(w):
    for dtype, kind in KINDS:
        for pointed in (1, 0):
            for op in ("QLinearAdd", "QLinearMul"):
                tail = params(dtype, 0.07041, pointed)
                for dims in (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((1,), (2, 5)), ((3, 1, 4), (2, 1))):
                    x = [quantised(dtype, *dims[0]), *params(dtype, 0.03137), quantised(dtype, *dims[1]), *params(dtype, 0.01739)]
                    w.add(op, [trimmed(x + tail)], [kind])
                a, b, c = params(dtype, 0.03137), params(dtype, 0.01739), params(dtype, 0.09117)
                w.add(op, [[quantised(dtype, n, 4), *a, quantised(dtype, n, 4), *b, *c] for n in (3, 6)], [kind], constants=rest(8, 0, 3))
            for op, attributes, to in (("QLinearSigmoid", {}, 1 / 256), ("QLinearLeakyRelu", {}, 0.03), ("QLinearLeakyRelu", {"alpha": 0.3}, 0.05)):
                tail = [*params(dtype, 0.04), *params(dtype, to, pointed)]
                w.add(op, [[quantised(dtype, *d)] + tail for d in ((3, 40), (2, 300))], [kind], attributes, constants=rest(5, 0))
        for dims in (((2, 3), (2, 3), (2, 3)), ((3, 1), (2, 1, 4), (4,)), ((1,), (2, 3), (3,))):
            x = [rng.random(dims[0]) < 0.5, quantised(dtype, *dims[1]), *params(dtype, 0.03), quantised(dtype, *dims[2]), *params(dtype, 0.05),
                 *params(dtype, 0.04)]
            w.add("QLinearWhere", [x], [kind], constants=[2, 3, 5, 6, 7, 8])


def write_reductions(w):
    for dtype, kind in KINDS:
        for opset, axis in ((13, -1), (13, 1), (11, 1), (11, 2)):
            tail = [*params(dtype, 0.05), scale(1 / 256), np.array(0 if dtype == np.uint8 else -128, dtype)]
            w.add("QLinearSoftmax", [[quantised(dtype, *d)] + tail for d in ((2, 3, 5), (4, 3, 7))], [kind], {"opset": opset, "axis": axis},
                  constants=rest(5, 0))
        for last in (0, 1):
            tail = [*params(dtype, 0.05), *params(dtype, 0.04127)]
            sets = [[quantised(dtype, *((n, h, 5, 3) if last else (n, 3, h, 5)))] + tail for n, h in ((2, 4), (1, 7))]
            w.add("QLinearGlobalAveragePool", sets, [kind], {"channels_last": last}, constants=rest(5, 0))
            for attributes in ({}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1},
                               {"strides": [2, 2], "ceil_mode": 1}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}):
                w.add("QLinearAveragePool", sets[:1], [kind], attributes | {"kernel_shape": [3, 2], "channels_last": last},
                      constants=rest(5, 0))
            w.add("QLinearAveragePool", sets, [kind], {"kernel_shape": [2, 2], "channels_last": last}, constants=rest(5, 0))
        tail = [*params(dtype, 0.05), scale(0.04127)]
        w.add("QLinearAveragePool", [[quantised(dtype, 1, 2, 6)] + tail], [kind], {"kernel_shape": [2]}, constants=rest(5, 0))
        for axis in (0, 1, -1):
            x = params(dtype, 0.05)
            for n in (2, 3, 1):
                dims = [3, 4, 2]
                dims[axis] = n
                x += [quantised(dtype, *dims), *params(dtype, 0.03 + 0.01 * n)]
            w.add("QLinearConcat", [x], [kind], {"axis": axis}, constants=[0, 1, 3, 4, 6, 7, 9, 10])
        tail = [params(dtype, s) for s in (0.04, 0.02, 0.05)]
        w.add("QLinearConcat", [[*tail[0], quantised(dtype, 2, n), *tail[1], quantised(dtype, 2, m), *tail[2]] for n, m in ((3, 4), (5, 1))],
              [kind], {"axis": 1}, constants=[0, 1, 3, 4, 6, 7])
        for attributes in ({"kernel_shape": [2, 2]}, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
                           {"kernel_shape": [2, 2], "dilations": [2, 1]}, {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}):
            w.add("NhwcMaxPool", [[quantised(dtype, 2, h, 7, 3)] for h in (5, 8)], [kind], attributes)


def write_products(w):
    for (a, kind), (b, _) in itertools.product(KINDS, KINDS):
        if a == np.int8 and b == np.uint8:
            continue  # no kernel
        for trans_b, columns, biased, quantise in ((0, 1, 1, 1), (1, 1, 0, 1), (1, 5, 1, 0), (0, 5, 1, 1)):
            weights = ints(-40 if b == np.int8 else 0, 60, *((5, 7) if trans_b else (7, 5)), dtype=b)
            x = [scale(0.03), point(a), weights, rng.random(columns).astype("f") if columns > 1 else scale(0.02),
                 np.zeros(columns, b) if columns > 1 else np.array(3, b), ints(-100, 100, 5) if biased else None]
            x += params(a, 0.9 if columns > 1 else 0.05) if quantise else []
            sets = [trimmed([quantised(a, m, 7)] + x) for m in (3, 6)]
            w.add("QGemm", sets, [kind if quantise else F32], {"transB": trans_b, "alpha": 1.0 if biased else 1.5},
                  constants=[k for k in rest(len(sets[0]), 0) if sets[0][k] is not None])
        if a == np.int8:
            continue
        for last, per_channel in itertools.product((0, 1), repeat=2):
            x = [*params(a, 0.02), ints(-40 if b == np.int8 else 0, 60, 4, 3, 3, 3, dtype=b), rng.random(4).astype("f") if per_channel else scale(0.03),
                 np.full(4, 0, b) if per_channel else np.array(3, b), *params(a, 1.5), ints(-300, 300, 4)]
            sets = [[quantised(a, *((n, h, 5, 6) if last else (n, 6, h, 5)))] + x for n, h in ((2, 4), (1, 7))]
            w.add("QLinearConv", sets, [kind], {"channels_last": last, "group": 2, "pads": [1, 1, 1, 1]}, constants=rest(9, 0))


def write_quantisation(w):
    for kind, dtype in ((TensorProto.INT16, np.int16), (TensorProto.UINT16, np.uint16), (U8, np.uint8), (S8, np.int8)):
        for axis in (None, 1):
            shape = () if axis is None else (3,)
            s = np.asarray(rng.random(shape) / 30 + 0.01, np.float32)
            z = np.asarray(ints(0, 100, *shape), dtype)
            attributes = {} if axis is None else {"axis": axis}
            sets = [[100 * floats(n, 3, 4), s, z] for n in (2, 5)]
            w.add("QuantizeLinear", sets, [kind], attributes, constants=[1, 2])
            w.add("DequantizeLinear", [[quantised(dtype, n, 3, 4), s, z] for n in (2, 5)], [F32], attributes, constants=[1, 2])
    w.add("QuantizeLinear", [[100 * floats(2, 3), scale(0.7)]], [U8])
    w.add("DequantizeLinear", [[ints(-1000, 1000, 2, 3), scale(0.7)]], [F32])


def write_attention(w):
    heads, size, width = 2, 4, 6
    hidden = heads * size
    for a, b, columns, causal in ((np.uint8, np.int8, 1, 0), (np.uint8, np.uint8, 1, 1), (np.uint8, np.int8, 3 * hidden, 0), (np.uint8, np.int8, 3 * hidden, 1)):
        weights = [ints(-40 if b == np.int8 else 0, 60, width, 3 * hidden, dtype=b), floats(3 * hidden), scale(0.01),
                   np.asarray(rng.random(columns) / 50, np.float32).reshape((columns,) if columns > 1 else ())]
        points = [np.array(5, a), np.zeros(columns, b) if columns > 1 else np.array(2, b)]
        attributes = {"num_heads": heads, "unidirectional": causal}
        constants = [1, 2, 3, 4, 6, 7]
        mask = ints(0, 2, 2, 3)
        mask[:, 0] = 1
        w.add("QAttention", [[quantised(a, n, s, width)] + weights + [None] + points for n, s in ((2, 3), (1, 5))], [F32], attributes, constants=constants)
        w.add("QAttention", [[quantised(a, 2, 3, width)] + weights + [mask] + points], [F32], attributes, constants=constants)
        w.add("QAttention", [[quantised(a, 2, 3, width)] + weights + [np.array([2, 3], np.int32)] + points], [F32], attributes, constants=constants)
        w.add("QAttention", [[quantised(a, 2, s, width)] + weights + [None] + points + [floats(2, 2, heads, p, size)] for s, p in ((3, 4), (1, 6))],
              [F32, F32], attributes, constants=constants)


def write_recurrent(w):
    """The expected results are those of LSTM with the weights as floats."""
    hidden, width = 5, 6

    def lstm(attributes, x, w8, r8, b, lengths, h, c, p, w_scale, w_zero, r_scale, r_zero):
        def wide(q, s, z):
            s, z = (v.reshape(v.shape[0], 1, -1) for v in (s, z))
            return ((q.astype(np.int32) - z.astype(np.int32)) * s).astype(np.float32).transpose(0, 2, 1)

        inputs = [x, wide(w8, w_scale, w_zero), wide(r8, r_scale, r_zero), b, lengths, h, c, p]
        return w.run("LSTM", inputs, [F32] * 3, attributes, domain="")

    for direction, dtype, by_column, full in itertools.product(("forward", "reverse", "bidirectional"), (np.int8, np.uint8), (0, 1), (0, 1)):
        d = 1 + (direction == "bidirectional")
        columns = (d, 4 * hidden) if by_column else (d,)

        def scales():
            return [np.asarray(rng.random(columns) / 100 + 0.002, np.float32), quantised(dtype, *columns)]

        weights = [quantised(dtype, d, k, 4 * hidden) for k in (width, hidden)]
        more = [floats(d, 8 * hidden), floats(d, 3 * hidden)] if full else [None, None]
        attributes = {"direction": direction, "hidden_size": hidden} | ({"input_forget": 1, "clip": 3.0} if full else {})
        tail, sets = scales() + scales(), []
        for t, n in ((4, 3), (7, 2)):
            state = [ints(1, t + 1, n), floats(d, n, hidden), floats(d, n, hidden)] if full else [None] * 3
            sets.append([floats(t, n, width), *weights, more[0], *state, more[1], *tail])
        w.add("DynamicQuantizeLSTM", sets, [F32] * 3, attributes, constants=rest(12, 0, 4, 5, 6),
              expected=lambda *s, attributes=attributes: lstm(attributes, *s))


def write_embeddings(w):
    for dtype, segments, masked in itertools.product((np.uint8, np.int8), (0, 1), (0, 1)):
        tables = [quantised(dtype, n, 8) for n in (11, 6, 2)] + [quantised(dtype, 8) for _ in range(2)]
        scales, points = [scale(rng.random() / 50 + 0.01) for _ in tables], [point(dtype) for _ in tables]
        for x in (() if segments else (tables, scales, points)):
            x[2] = None
        sets = [[ints(0, 11, *d), ints(0, 2, *d) if segments else None, *tables, ints(0, 2, *d) if masked else None, *scales, *points]
                for d in ((2, 4), (3, 5))]
        w.add("QEmbedLayerNormalization", sets, [F32, TensorProto.INT32], {"epsilon": 1e-3}, constants=rest(18, 0, 1, 7))


def write_tables(w):
    for bits, block, width in ((4, 16, 48), (8, 32, 64), (4, 32, 80), (8, 16, 40)):
        for pointed, dtype in itertools.product((0, 1), (np.float32, np.float16)):
            blocks = -(-width // block)
            rest_of = [floats(9, blocks, dtype=dtype)] + ([ints(0, 256, 9, -(-blocks * bits // 8), dtype=np.uint8)] if pointed else [])
            data = ints(0, 256, 9, width * bits // 8, dtype=np.uint8)
            sets = [[data, ints(-9, 9, *d, dtype=np.int64)] + rest_of for d in ((2, 3), (1, 7))]
            w.add("GatherBlockQuantized", sets, [F16 if dtype == np.float16 else F32], {"bits": bits, "block_size": block},
                  constants=rest(4, 1))
    w.add("GatherBlockQuantized", [[data, np.array([3, 9, -10, 100], np.int32), floats(9, 3)]], [F32], {"bits": 8, "block_size": 16},
          constants=[0, 2])
    for kind, wide in ((ml_dtypes.int4, (-8, 8)), (ml_dtypes.uint4, (0, 16))):
        for pointed in (0, 1):
            x = [rng.integers(*wide, (9, 48)).astype(kind), ints(-9, 9, 2, 3, dtype=np.int64), floats(9, 3)]
            x += [rng.integers(*wide, (9, 3)).astype(kind)] if pointed else []
            w.add("GatherBlockQuantized", [x], [F32], {"block_size": 16}, constants=rest(4, 1))
        s, z = np.array(0.3, np.float32), rng.integers(*wide, ()).astype(kind)
        w.add("DequantizeLinear", [[rng.integers(*wide, (5, 4)).astype(kind), s, z]], [F32], constants=[0, 1, 2])


def write_tables_of_any_rank(w):
    """Blocks and slices along any axes."""
    for kind, wide in ((ml_dtypes.int4, (-8, 8)), (ml_dtypes.uint4, (0, 16))):
        for dims, gather, along in (((5, 3, 40), 1, 2), ((40, 3), 1, 0), ((40, 5), 0, 0), ((3, 70, 4), 2, 1), ((4, 6, 5), -1, 1)):
            blocks = [-(-d // 16) if k == along % len(dims) else d for k, d in enumerate(dims)]
            rows = dims[gather]
            for pointed in (0, 1):
                more = [floats(*blocks)] + ([rng.integers(*wide, blocks).astype(kind)] if pointed else [])
                sets = [[rng.integers(*wide, dims).astype(kind), ints(-rows - 2, rows + 2, *d, dtype=np.int64)] + more for d in ((2, 3), (1, 7))]
                for s in sets[1:]:
                    s[0] = sets[0][0]
                w.add("GatherBlockQuantized", sets, [F32], {"block_size": 16, "gather_axis": gather, "quantize_axis": along}, constants=rest(4, 1))
    for bits in (2, 4, 8):
        data, more = ints(0, 256, 5, 3, 4 * bits, dtype=np.uint8), [floats(5, 3, 2), ints(0, 256, 5, 3, -(-bits // 4), dtype=np.uint8)]
        w.add("GatherBlockQuantized", [[data, ints(-5, 5, *d)] + more for d in ((4,), (2, 2))][:1], [F32],
              {"block_size": 16, "bits": bits, "quantize_axis": 2}, constants=rest(4, 1))
    for kind, block, scales in ((ml_dtypes.float8_e4m3fn, 16, (6, 2)), (ml_dtypes.float8_e5m2, 0, (6, 1)), (ml_dtypes.float8_e4m3fn, 0, (1, 1))):
        x = [floats(6, 32).astype(kind), ints(-6, 6, 2, 3), floats(*scales)]
        w.add("GatherBlockQuantized", [x], [F32], {"block_size": block}, constants=[0, 2])
