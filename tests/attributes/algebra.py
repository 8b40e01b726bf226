"""Products, norms, losses and pools whose attributes the official cases use sparingly.  Expected values come from numpy, ONNX Runtime
or ONNX's reference."""
import itertools

import numpy as np
from onnx import TensorProto

import oracles

rng = np.random.default_rng(8)
FLOAT = TensorProto.FLOAT


def floats(*dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


def trimmed(x):
    while x[-1] is None:
        x.pop()
    return x


def write_einsum(w):
    for equation, *dims in (
            ("ij,jk", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("...ij->...ji", (2, 3, 4)),
            ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)), ("i,j->ji", (2,), (3,)), ("bij,bjk,bkl->bil", (2, 2, 3), (2, 3, 4), (2, 4, 2)),
            ("a...b,b...->...a", (2, 3, 4), (4, 3)), (" i j , j k -> k i ", (2, 3), (3, 4)), ("ab,cd->", (2, 3), (4, 5)),
            ("iij->ij", (3, 3, 2)), ("...->...", (2, 3)), ("Ab,bA->A", (2, 3), (3, 2)), ("i,i,i", (4,), (4,), (4,)),
            ("...i,i", (2, 4), (4,)), ("ij...,jk...->ik...", (2, 3, 4), (3, 5, 1)), (",->", (), ())):
        x = [floats(*d, dtype=np.float64) for d in dims]
        plain = equation.replace(" ", "")
        w.add("Einsum", x, [np.asarray(np.einsum(plain, *x))], {"equation": equation}, opset=12)
    x = [rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4))]
    w.add("Einsum", x, [x[0] @ x[1]], {"equation": "ij,jk->ik"}, opset=12)


def write_gemm(w):
    for kind in (np.float32, np.int32, np.uint64):
        for ta, tb, alpha, beta in ((0, 0, 1.0, 1.0), (1, 0, 0.5, 0.25), (0, 1, 2.0, 0.0), (1, 1, 1.5, 3.0)):
            a, b = (rng.integers(0, 9, d[::-1] if t else d).astype(kind) for d, t in (((2, 3), ta), ((3, 4), tb)))
            for dims in ((2, 4), (4,), (2, 1), (1,), (), None):
                c = None if dims is None else rng.integers(0, 9, dims).astype(kind)
                y = alpha * ((a.T if ta else a).astype("d") @ (b.T if tb else b).astype("d")) + (0 if c is None else beta * c)
                attributes = {"transA": ta, "transB": tb, "alpha": alpha, "beta": beta}
                w.add("Gemm", trimmed([a, b, c]), [y.astype(kind)], attributes, opset=13)


def write_quantised_products(w):
    a, b = rng.integers(0, 255, (2, 3, 4)).astype(np.uint8), rng.integers(-128, 127, (4, 5)).astype(np.int8)
    for za, zb in ((np.uint8(3), np.int8(-4)), (np.array([3], np.uint8), rng.integers(-9, 9, 5).astype(np.int8)), (None, None)):
        y = (a.astype(int) - (0 if za is None else za)) @ (b.astype(int) - (0 if zb is None else zb.astype(int)))
        w.add("MatMulInteger", trimmed([a, b, za, zb]), [y.astype(np.int32)], opset=10)
    for zb, sb in ((np.int8(2), np.float32(0.02)), (rng.integers(-9, 9, 5).astype(np.int8), rng.random(5).astype("f") / 50)):
        for zy in (np.uint8(100), np.int8(-3)):
            sa, sy = np.float32(0.03), np.float32(0.9)
            y = (a.astype(int) - 3) @ (b.astype(int) - np.int64(zb)) * (sa * sb.astype("d") / sy)
            limits = np.iinfo(zy.dtype)
            y = (np.rint(y) + zy).clip(limits.min, limits.max).astype(zy.dtype)
            w.add("QLinearMatMul", [a, sa, np.uint8(3), b, sb, zb, sy, zy], [y], opset=10)
    # Weights of 7 bits: with 8, ONNX Runtime's sums of pairs saturate on processors without VNNI.
    x, k = rng.integers(0, 255, (1, 4, 5, 5)).astype(np.uint8), rng.integers(-64, 64, (6, 2, 3, 3)).astype(np.int8)
    for wide in (False, True):
        scale = rng.random(6).astype("f") / 90 if wide else np.float32(0.01)
        given = [x, np.float32(0.05), np.uint8(7), k, scale, np.zeros(6 if wide else (), np.int8), np.float32(0.2), np.uint8(99),
                 rng.integers(-999, 999, 6).astype(np.int32)]
        attributes = {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}
        w.add("QLinearConv", given, oracles.run("ort", "QLinearConv", given, [TensorProto.UINT8], attributes, 10), attributes,
              opset=10)


def normalised(x, axes, epsilon=1e-5, mean=True):
    x = x.astype(np.float64)
    centred = x - x.mean(axes, keepdims=True) if mean else x
    return centred / np.sqrt((centred ** 2).mean(axes, keepdims=True) + epsilon)


def write_norms(w):
    x = floats(2, 3, 4)
    for axis, scale, bias in ((-1, (4,), (4,)), (1, (3, 4), None), (1, (4,), (3, 1)), (0, (2, 3, 4), (1,)), (2, (1,), (4,)),
                              (-2, (1, 4), (3, 1))):
        s, b = floats(*scale), None if bias is None else floats(*bias)
        axes = tuple(range(axis % 3, 3))
        y = normalised(x, axes) * s + (0 if b is None else b)
        mean = x.mean(axes, keepdims=True)
        deviation = 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        w.add("LayerNormalization", trimmed([x, s, b]), [y.astype("f"), mean, deviation], {"axis": axis}, opset=17)
        w.add("RMSNormalization", [x, s], [(normalised(x, axes, mean=False) * s).astype("f")], {"axis": axis}, opset=23)
    x, s, b = floats(2, 6, 3, 2), floats(6), floats(6)
    for groups in (1, 2, 3, 6):
        y = normalised(x.reshape(2, groups, -1), 2).reshape(x.shape) * s.reshape(6, 1, 1) + b.reshape(6, 1, 1)
        w.add("GroupNormalization", [x, s, b], [y.astype("f")], {"num_groups": groups}, opset=21)
    for dims in ((2, 6, 5), (2, 6, 3, 2), (2, 6, 2, 2, 2)):
        x = floats(*dims)
        along = (6,) + (1,) * (len(dims) - 2)
        y = normalised(x, tuple(range(2, len(dims)))) * s.reshape(along) + b.reshape(along)
        w.add("InstanceNormalization", [x, s, b], [y.astype("f")], opset=6)
    for dims in ((4, 6), (4, 6, 3), (4, 6, 2, 2, 2)):
        x, mean, variance = floats(*dims), floats(6), rng.random(6).astype("f")
        along = (6,) + (1,) * (len(dims) - 2)
        p = [v.reshape(along) for v in (s, b, mean, variance)]
        y = (x - p[2]) / np.sqrt(p[3] + 1e-3) * p[0] + p[1]
        w.add("BatchNormalization", [x, s, b, mean, variance], [y.astype("f")], {"epsilon": 1e-3}, opset=15)
    x = floats(2, 7, 3, 3)
    for size in (1, 2, 3, 4, 9):
        attributes = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
        squares = np.pad(x.astype("d") ** 2, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        total = sum(squares[:, k:k + 7] for k in range(size))
        w.add("LRN", [x], [(x / (1.5 + 0.3 / size * total) ** 0.6).astype("f")], attributes, opset=13)
    for p, axis in itertools.product((1, 2), (0, -1, 2)):
        norm = np.linalg.norm(x.astype("d"), p, axis, keepdims=True)
        w.add("LpNormalization", [x], [(x / norm).astype("f")], {"p": p, "axis": axis}, opset=22)
    for axes in ([0, 2, 3], [1], [0, 1, 2, 3], [-1, 0]):
        y = normalised(x, tuple(axes), 0)
        w.add("MeanVarianceNormalization", [x], [y.astype("f")], {"axes": axes}, opset=13)


def write_losses(w):
    for dims in ((3, 5), (3, 5, 2), (3, 5, 2, 2)):
        x, labels = floats(*dims), rng.integers(0, 5, (dims[0], *dims[2:]))
        for reduction, weighted, ignored in itertools.product(("mean", "sum", "none"), (0, 1), (None, 2, -100)):
            where = labels.copy()
            where.flat[0] = 2 if ignored is None else ignored
            given = trimmed([x, where, rng.random(5).astype("f") if weighted else None])
            attributes = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
            for op, outputs in (("NegativeLogLikelihoodLoss", 1), ("SoftmaxCrossEntropyLoss", 2)):
                y = oracles.run("reference", op, given, [FLOAT] * outputs, attributes, 13)
                w.add(op, given, y, attributes, opset=13)


def write_ngrams(w):
    """N-grams of one to three items.  The columns of the result have another order than the pool, and one may belong to no n-gram.
    A larger pool has items that no longer n-gram begins or ends with."""
    pool = [1, 2, 3, 1, 1, 1, 2, 2, 3, 3, 1, 1, 2, 3, 3, 2, 1]
    for dims in ((14,), (3, 11), (2, 1), (2, 0)):
        for mode in ("TF", "IDF", "TFIDF"):
            for shortest, longest, skips in ((1, 1, 0), (1, 2, 0), (2, 3, 1), (1, 3, 4)):
                weighted = skips == 4 or mode == "IDF"
                columns = np.array([4, 0, 7, 3, 1, 8 if weighted else 9, 2, 5, 6])
                attributes = {"mode": mode, "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips,
                              "ngram_counts": [0, 3, 11], "ngram_indexes": columns, "pool_int64s": pool}
                attributes |= {"weights": (rng.random(9) + 0.5).astype("f")} if weighted else {}
                x = rng.integers(1, 4, dims).astype(np.int32 if skips == 1 else np.int64)
                y = oracles.run("ort", "TfIdfVectorizer", [x], [FLOAT], attributes, 9)
                w.add("TfIdfVectorizer", [x], y, attributes, opset=9)
    pairs = np.unique(rng.integers(0, 30, (150, 2)), axis=0)
    count = 30 + len(pairs)
    attributes = {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 30],
                  "ngram_indexes": rng.permutation(count), "pool_int64s": [*range(0, 60, 2), *pairs.ravel()],
                  "weights": (rng.random(count) + 0.5).astype("f")}
    for dims in ((5, 40), (40,)):
        x = rng.integers(-1, 61, dims)
        w.add("TfIdfVectorizer", [x], oracles.run("ort", "TfIdfVectorizer", [x], [FLOAT], attributes, 9), attributes, opset=9)


def write_rest(w):
    x, rois = floats(2, 3, 8, 9), np.array([[0, 0, 0, 7, 6], [1, 2, 1, 5, 3], [0, 3, 3, 3, 3],
                                             [1, 1.5, 2.5, 6.4, 20], [0, 12, 12, 14, 14], [1, -4, -3, 2, 1]], "f")
    for scale in (1.0, 0.5):
        attributes = {"pooled_shape": [3, 2], "spatial_scale": scale}
        w.add("MaxRoiPool", [x, rois], oracles.run("ort", "MaxRoiPool", [x, rois], [FLOAT], attributes, 1), attributes, opset=1)
    given = [floats(1, 16, 8), np.array([4, 4, 4]), np.array([2, 2, 2])]
    attributes = {"strides": [2, 2, 2]}
    w.add("Col2Im", given, oracles.run("reference", "Col2Im", given, [FLOAT], attributes, 18), attributes, opset=18)
    x = floats(2, 3)
    w.add("Add", [x, x[0]], [x + x[0]], name="without_ranks", ranked=False)
    z = np.array([[1 + 1j, 0], [1 - 1j, 1 + 1j], [0, 2j]], np.complex64)
    w.add("NonZero", [z], [np.array(np.nonzero(z))], opset=13)
    y = np.unique(z, return_index=True, return_inverse=True, return_counts=True)
    w.add("Unique", [z], [y[0], y[1], y[2].reshape(-1), y[3]], opset=11)
    flags = rng.random((3, 4)) < 0.5
    index = rng.integers(0, 3, (2, 4))
    for reduction, f in (("add", np.logical_or), ("max", np.logical_or), ("mul", np.logical_and), ("min", np.logical_and)):
        y, updates = flags.copy(), rng.random((2, 4)) < 0.5
        for k, at in np.ndenumerate(index):
            y[at, k[1]] = f(y[at, k[1]], updates[k])
        w.add("ScatterElements", [flags, index, updates], [y], {"reduction": reduction}, opset=18)
