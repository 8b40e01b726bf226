"""Operators for any kind of model: forms of the standard's operators, inverses, crops, distances, windows and hashes."""
import itertools

import numpy as np
from onnx import TensorProto, helper

from runtime_cases import F16, F32, MICROSOFT, S32, floats, ints, rng

S16, S64, U32, F64 = TensorProto.INT16, TensorProto.INT64, TensorProto.UINT32, TensorProto.DOUBLE


def write_standard(w):
    for axis in (-3, -1, 0, 1, 2):
        w.add("ExpandDims", [[floats(n, 3), np.array(axis, np.int32)] for n in (2, 5)], [F32], constants=[1])
    w.add("ExpandDims", [[ints(0, 9, 0, 3, dtype=np.int64), np.array([0], np.int32)]], [S64])
    w.add("ExpandDims", [[np.float32(3), np.array(-1, np.int32)]], [F32], constants=[1])
    for mode, pads in itertools.product(("constant", "edge", "reflect"), ([0, 2, 1, 0], [[1, 0, 0, 2]], [[-1, 2, 0, -1]])):
        sets = [[floats(n, 4), np.array(pads, np.int64)] for n in (3, 6)]
        w.add("Pad", sets, [F32], {"mode": mode}, constants=[1])
        if mode == "constant":
            w.add("Pad", [s + [np.array([2.5], np.float32)] for s in sets], [F32], constants=[1, 2])
            w.add("Pad", [sets[0] + [np.array(-1, np.float32)]], [F32], one_program=False)
    for kind, dtype in ((F32, np.float32), (F64, np.float64), (S16, np.int16), (S32, np.int32), (S64, np.int64)):
        for start, limit, delta in ((1, 7, None), (7, 1, None), (9, -2, -3), (0, 5, 2)):
            numbers = [np.array(v, dtype) for v in (start, limit) + (() if delta is None else ([delta],))]
            w.add("Range", [numbers], [kind], constants=[0, 1, 2])
    zero = np.array(0)
    nodes = [helper.make_node("Shape", ["x"], ["dims"]), helper.make_node("Gather", ["dims", "zero"], ["n"]),
             helper.make_node("Range", ["zero", "n"], ["y"], domain=MICROSOFT)]
    w.add_graph("Range_of_sizes", nodes, [{"x": floats(n, 2), "zero": zero} for n in (3, 8)], {"y": S64}, {"zero"})
    nodes = [helper.make_node("Shape", ["x"], ["n"], end=1), helper.make_node("Concat", ["zeros", "n", "zero", "zero"], ["pads"], axis=0),
             helper.make_node("Pad", ["x", "pads"], ["y"], domain=MICROSOFT)]
    sets = [{"x": floats(n, 2), "zeros": np.array([1]), "zero": np.array([0])} for n in (3, 8)]
    w.add_graph("Pad_of_sizes", nodes, sets, {"y": F32}, {"zeros", "zero"})
    for ta, tb in itertools.product((0, 1), repeat=2):
        sets = [[floats(n, *((4, 3) if ta else (3, 4))), floats(n, *((5, 4) if tb else (4, 5)))] for n in (2, 3)]
        w.add("TransposeMatMul", sets, [F32], {"transA": ta, "transB": tb, "alpha": 0.5})
    w.add("MatMulInteger16", [[ints(-2000, 2000, n, 3, 9, dtype=np.int16), ints(-2000, 2000, 9, 5, dtype=np.int16)] for n in (2, 4)], [S32])
    w.add("MatMulInteger16", [[np.full(2, 30000, np.int16), np.full((2, 3), 30000, np.int16)]], [S32])


def write_transposed_convolutions(w):
    for spatial, pads, attributes in ((2, [1, 0, 1, 0], {}), (2, [1, 1, 0, 2], {"strides": [2, 2], "output_padding": [1, 0]}),
                                      (2, [0, 0, 0, 0], {"group": 2, "dilations": [1, 2]}), (1, [2, 1], {"strides": [3]})):
        x = [floats(2, 3, *[3] * spatial), np.array(pads)] + [floats(6 if "group" in attributes else 3)]
        sets = [[floats(n, 2, *d[:spatial])] + x for n, d in ((1, (4, 5)), (3, (6, 3)))]
        w.add("ConvTransposeWithDynamicPads", sets, [F32], attributes, constants=[1, 2, 3])
        w.add("ConvTransposeWithDynamicPads", [s[:3] for s in sets], [F32], attributes, constants=[1], one_program=False)


def write_unique(w):
    values = [[2, 1, 1, 3, 4, 3], [5.5, np.nan, -0.0, 0.0, np.nan, 5.5, -np.inf, np.inf], [7]]
    w.add("Unique", [[np.array(v, np.float32)] for v in values], [F32, S64, S64])
    w.add("Unique", [[np.zeros(0, np.float32)]], [F32, S64, S64])


def write_inverses(w):
    def matrices(*dims):  # not singular, and with pivots that must be looked for
        x = rng.permuted(np.eye(dims[-1]), axis=0) * 4 + rng.uniform(-0.4, 0.4, dims)
        return x.astype(np.float32)

    for size in (1, 2, 3, 4, 7):
        w.add("Inverse", [[matrices(n, size, size)] for n in (1, 3)], [F32])
    w.add("Inverse", [[matrices(n, n)] for n in (5, 9)], [F32])
    w.add("Inverse", [[matrices(2, 3, 4, 4).astype(np.float64)]], [F64])
    half = matrices(3, 3).astype(np.float16)  # ONNX Runtime rounds each step to f16
    w.add("Inverse", [[half]], [F16], expected=lambda x: [np.linalg.inv(x.astype(np.float64)).astype(np.float16)])
    w.add("Inverse", [[np.array([[0, 2, 0], [0, 0, 4], [8, 0, 0]], np.float32)]], [F32])
    w.add("Inverse", [[np.zeros((0, 2, 2), np.float32)]], [F32])


def write_crops(w):
    boxes = rng.uniform(-0.2, 1.2, (5, 4)).astype(np.float32)
    boxes[:3] = [[0, 0, 1, 1], [0.9, 0.8, 0.1, 0.0], [0.5, 0.5, 0.5, 0.5]]
    for mode, size in itertools.product(("bilinear", "nearest"), ((3, 4), (1, 5), (2, 1), (7, 6))):
        sets = [[floats(2, 3, h, v), boxes[:n], ints(0, 2, n), np.array(size, np.int32)] for h, v, n in ((5, 6, 5), (4, 9, 3))]
        w.add("CropAndResize", sets, [F32], {"mode": mode, "extrapolation_value": 2.5}, constants=[3])
    halves = [floats(1, 1, 2, 2), np.array([[0.5, 0, 0.5, 1]], np.float32), np.zeros(1, np.int32), np.array([1, 3], np.int32)]
    w.add("CropAndResize", [halves], [F32], {"mode": "nearest"}, one_program=False)
    w.add("CropAndResize", [[floats(1, 2, 1, 1), boxes[:3], np.zeros(3, np.int32), np.array([2, 2], np.int32)]], [F32], constants=[3])
    w.add("CropAndResize", [[floats(1, 2, 3, 3), boxes[:0], np.zeros(0, np.int32), np.array([2, 2], np.int32)]], [F32], constants=[3])
    image = np.array([[[[0, np.inf], [1, 2]]]], np.float32)
    whole = [image, np.array([[0, 0, 1, 1]], np.float32), np.zeros(1, np.int32), np.array([2, 2], np.int32)]
    w.add("CropAndResize", [whole], [F32], constants=[3])
    beside = [image, np.array([[np.nan, 0, np.nan, 1]], np.float32), *whole[2:]]  # no position
    w.add("CropAndResize", [beside], [F32], {"extrapolation_value": 3.0}, constants=[3], expected=lambda x, *rest: [np.full_like(x, 3)])


def write_arrays(w):
    for metric in ("sqeuclidean", "euclidean"):
        w.add("CDist", [[floats(m, 7), floats(k, 7)] for m, k in ((3, 4), (9, 1))], [F32], {"metric": metric})
        w.add("CDist", [[floats(4, 3, dtype=np.float64), floats(5, 3, dtype=np.float64)]], [F64], {"metric": metric})
    w.add("CDist", [[floats(0, 3), floats(5, 3)]], [F32])
    near = np.array([[1000, 1], [1000, 1.0625]], np.float32)  # products of such numbers have no digits for the difference
    w.add("CDist", [[near, near]], [F32], {"metric": "euclidean"}, expected=lambda x, y: [np.float32([[0, 0.0625], [0.0625, 0]])])
    for axis, size, step in itertools.product((0, 1, -1), (1, 3), (1, 2)):
        w.add("UnfoldTensor", [[floats(n, n + 1, 4)] for n in (4, 7)], [F32], {"dim": axis, "size": size, "step": step})
    w.add("UnfoldTensor", [[ints(0, 99, 6, dtype=np.int64)]], [S64], {"size": 6})
    numbers = np.array([0, 1, 7, 255, 65536, 2 ** 31 - 1])
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        x = np.concatenate([numbers, -numbers if np.issubdtype(dtype, np.signedinteger) else numbers * 2]).astype(dtype)
        for attributes in ({}, {"seed": 42}, {"positive": 0}, {"positive": 0, "seed": 2 ** 32 - 3}):
            w.add("MurmurHash3", [[x], [x[:4]]], [U32 if attributes.get("positive", 1) else S32], attributes)
    wide = np.array([2 ** 62 + 12345, -2 ** 40 - 1, 2 ** 32])
    w.add("MurmurHash3", [[wide]], [U32])
    w.add("MurmurHash3", [[np.array([[0.1, -1e300], [np.inf, -0.0]])]], [S32], {"positive": 0})


def write_matmul_bnb4(w):
    def untransposed(x, weights, k, n, attributes):
        """ONNX Runtime reads B as if it were transposed in this case; its other case gives the weights."""
        b = w.run("MatMulBnb4", [np.eye(k, dtype=np.float32)] + weights, [F32], attributes)[0].T
        return [(x.astype(np.float64) @ b).astype(np.float32)]

    for kind, block, (k, n) in itertools.product((0, 1), (16, 64), ((64, 24), (37, 5))):
        count = k * n
        weights = [ints(0, 256, -(-count // 2), dtype=np.uint8), rng.random(-(-count // block)).astype(np.float32)]
        attributes = {"K": k, "N": n, "block_size": block, "quant_type": kind}
        w.add("MatMulBnb4", [[floats(*d, k)] + weights for d in ((2, 3), (1, 9))], [F32], attributes, constants=[1, 2])
        w.add("MatMulBnb4", [[floats(3, n)] + weights], [F32], attributes | {"transB": 0}, constants=[1, 2],
              expected=lambda x, *rest, given=(weights, k, n, attributes): untransposed(x, *given))


def write_ngrams(w):
    for size in (1, 2, 3, 5):
        sets = [[ints(0, 3, b, s, dtype=np.int64), floats(b, 7)] for b, s in ((3, 20), (2, 9), (1, 40))]
        sets[0][1][:, :2] = np.nan, np.inf
        w.add("NGramRepeatBlock", sets, [F32], {"ngram_size": size})
    for size, steps in ((1, 0), (3, 2), (4, 3), (3, 3), (7, 1)):
        w.add("NGramRepeatBlock", [[np.full((2, steps), 1), floats(2, 4)]], [F32], {"ngram_size": size})
    beyond = [np.array([[1, 2, 3, 900, 1, 2]]), floats(1, 5)]  # only tokens that are blocked must have a score
    w.add("NGramRepeatBlock", [beyond], [F32], {"ngram_size": 3})


def write_word_embeddings(w):
    """ONNX Runtime leaves the embedding of a word without characters undefined, so all words here begin with one."""
    def words(count, length, window):
        x = ints(0, 9, count, length)
        x[:, 0] = rng.integers(1, 9, count)
        x[0, 1:] = 0
        x[0, window:] = -7  # characters that are not looked up may be anything
        return x

    for length, window, size in ((5, 2, 3), (4, 4, 2), (6, 1, 4), (2, 2, 1)):
        weights = [floats(4, 1, window, size), floats(4), floats(9, size)]
        attributes = {"embedding_size": 4, "conv_window_size": window, "char_embedding_size": size} if size > 2 else {}
        w.add("WordConvEmbedding", [[words(n, length, window)] + weights for n in (3, 7)], [F32], attributes, constants=[1, 2, 3])
    blank = [np.array([[0, 1, 2], [3, 0, 0]], np.int32), np.full((2, 1, 2, 1), 0.5, np.float32), np.ones(2, np.float32),
             np.arange(4, dtype=np.float32).reshape(4, 1)]
    w.add("WordConvEmbedding", [blank], [F32], expected=lambda *x: [np.tanh([[0, 0], [2.5, 2.5]]).astype(np.float32)])
