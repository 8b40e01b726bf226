"""Operators of the domain ai.onnx.ml, which converters of scikit-learn write."""
import itertools

import numpy as np
from onnx import TensorProto, numpy_helper

from runtime_cases import F32, MACHINE_LEARNING, S32, floats, ints

S16, S64, F64 = TensorProto.INT16, TensorProto.INT64, TensorProto.DOUBLE
TYPES = {np.float32: F32, np.float64: F64, np.int32: S32, np.int64: S64}


def add(w, op, sets, kinds, attributes=None, **more):
    w.add(op, sets, kinds, attributes, domain=MACHINE_LEARNING, **more)


def rows(dtype, *dims):
    return floats(*dims, dtype=dtype) * 3 if dtype in (np.float32, np.float64) else ints(-9, 10, *dims, dtype=dtype)


def of_sizes(dtype, features=4):
    """Inputs of several batches, and one that is a row without a batch."""
    return [[rows(dtype, n, features)] for n in (1, 5, 8)], [[rows(dtype, features)]]


def in_type(dtype):
    """The result of the standard where ONNX Runtime has only f32 and s64: that of the numbers in such a type."""
    def decorated(w, op, attributes):
        wide = np.float32 if dtype in (np.float32, np.float64) else np.int64
        return lambda x: [w.run(op, [x.astype(wide)], [TYPES[wide]], attributes, MACHINE_LEARNING)[0].astype(dtype)]
    return decorated


def write_scaling(w):
    for dtype in TYPES:
        for sets in of_sizes(dtype):
            add(w, "Scaler", sets, [F32], {"offset": [0.5, -1.0, 2.25, 0.1], "scale": [2.0, 0.3, -1.0, 0.0]})
            add(w, "Scaler", sets, [F32], {"offset": [0.7], "scale": [3.1]})
    add(w, "Scaler", [[floats(3, n)] for n in (2, 6)], [F32], {"offset": [0.7], "scale": [3.1]})
    big = np.array([[2 ** 24 + 1.0, 1e300, -1e-300, 0.1]])
    add(w, "Scaler", [[big]], [F32], {"offset": [2.0 ** 24], "scale": [1e8]})


def write_norms(w):
    special = np.array([[0, 0, 0, 0], [-1, -2, -3, -4], [0, -5, 0, -1], [np.inf, 1, -2, 0], [np.nan, 1, -2, 0], [-np.inf] * 4,
                        [np.nan] * 4, [1e-30, -1e-30, 0, 1e-30], [-0.0, 0.0, -0.0, 3]])
    for norm, dtype in itertools.product(("MAX", "L1", "L2"), TYPES):
        for sets in of_sizes(dtype):
            add(w, "Normalizer", sets, [F32], {"norm": norm})
        if dtype in (np.float32, np.float64):
            add(w, "Normalizer", [[special.astype(dtype)]], [F32], {"norm": norm})
        else:
            add(w, "Normalizer", [[np.array([[0, 0], [-3, 0], [-40000, 30000]], dtype)]], [F32], {"norm": norm})
    add(w, "Normalizer", [[floats(3, n)] for n in (2, 6)], [F32])


def write_thresholds(w):
    for dtype, threshold in itertools.product(TYPES, (0.0, 1.0, -2.5, 3e38, -3e38)):
        def expected(x):
            return [(x.astype(np.float64) > np.float32(threshold)).astype(x.dtype)]
        sets = [[np.concatenate([rows(dtype, n, 4), np.array([[0, 1, -2, -3]], dtype)])] for n in (1, 6)]
        add(w, "Binarizer", sets, [TYPES[dtype]], {"threshold": threshold}, expected=None if dtype == np.float32 else expected)
    near = np.array([2 ** 53 + 1, 2 ** 53, 2 ** 53 - 1])
    add(w, "Binarizer", [[near]], [S64], {"threshold": 2.0 ** 53}, expected=lambda x: [np.array([1, 0, 0])])
    add(w, "Binarizer", [[floats(2, 3, 4)]], [F32], {"threshold": 0.25})


def write_missing_values(w):
    for dtype in TYPES:
        whole = dtype in (np.int32, np.int64)
        name, replaced = ("imputed_value_int64s", "replaced_value_int64") if whole else ("imputed_value_floats", "replaced_value_float")
        for values, missing in itertools.product(([7], [1, -2, 3, 4]), (0, 2) if whole else (0.0, 2.0, float("nan"))):
            attributes = {name: [v if whole else v + 0.1 for v in values], replaced: missing}
            for sets in of_sizes(dtype):
                sets = [[np.where(np.arange(x.size).reshape(x.shape) % 3 == 1, np.array(missing, dtype), x)] for x, in sets]
                add(w, "Imputer", sets, [TYPES[dtype]], attributes,
                    expected=in_type(dtype)(w, "Imputer", attributes) if dtype in (np.int32,) else
                    imputed(attributes[name], missing) if dtype == np.float64 else None)


def imputed(values, missing):
    def result(x):
        same = np.isnan(x) if np.isnan(missing) else x == missing
        return [np.where(same, np.float32(values).astype(x.dtype), x)]
    return result


def write_features(w):
    sets = [[rows(t, n, f) for t, f in zip(TYPES, (2, 3, 1, 4))] for n in (1, 4)]
    for s in ([s[:1] for s in sets], sets):
        add(w, "FeatureVectorizer", [[x.astype(np.float32) for x in y] for y in s], [F32], {"inputdimensions": [2, 3, 1, 4][:len(s[0])]})
    for dtype in TYPES:
        same = [[rows(dtype, n, f) for f in (2, 3)] for n in (1, 4)]
        add(w, "FeatureVectorizer", same, [F32], {"inputdimensions": [2, 3]})
        add(w, "FeatureVectorizer", same, [F32], {"inputdimensions": [1, 5]})
    add(w, "FeatureVectorizer", [[floats(3), floats(2)]], [F32], {"inputdimensions": [3, 2]})
    add(w, "FeatureVectorizer", [[floats(3, n), floats(3, 2)] for n in (2, 5)], [F32], {"inputdimensions": [3, 2]}, one_program=False)
    add(w, "FeatureVectorizer", [[floats(n, 3), floats(n, 2)] for n in (2, 5)], [F32],
        expected=lambda *x: [np.concatenate(x, axis=1)])


def write_extraction(w):
    for dtype, kind in TYPES.items():
        chosen = np.array([[3, 0], [1, 3]])
        add(w, "ArrayFeatureExtractor", [[rows(dtype, n, 4), chosen] for n in (1, 5)], [kind], constants=[1])
        add(w, "ArrayFeatureExtractor", [[rows(dtype, n, 4), chosen] for n in (1, 5)], [kind])
    add(w, "ArrayFeatureExtractor", [[floats(4), np.array([2])], [floats(7), np.array([6, 1, 1])]], [F32])
    add(w, "ArrayFeatureExtractor", [[floats(n, 2, n + 3), ints(0, 4, n, dtype=np.int64)] for n in (1, 5)], [F32])


def write_labels(w):
    nan = float("nan")
    keys = {"int64s": [5, -7, 5, 2 ** 60 + 1, 2 ** 60, 0, -2 ** 63], "floats": [5.5, -7.0, 5.5, nan, 1e30, -0.0, nan]}
    values = {"int64s": [1, 2 ** 40, -3, 4, 5, 6, 7], "floats": [0.5, 1.5, nan, 2.5, -0.0, 3.5, 4.5]}
    inputs = {"int64s": [0, 1, 5, -7, 2 ** 60, 2 ** 60 + 1, 2 ** 60 - 1, -2 ** 63, 2 ** 63 - 1],
              "floats": [0.0, -0.0, 5.5, -7.0, nan, 1e30, np.inf, -np.inf, 5.4]}
    types = {"int64s": np.int64, "floats": np.float32}
    for opset, k, v in itertools.product((3, 4), keys, values):
        w.machine_learning_opset = opset
        x = np.array(inputs[k], types[k])
        sets = [[np.tile(x, (n, 1))] for n in (1, 3)]
        kind = TYPES[types[v]]
        for count in (7, 1, 2, 5):
            attributes = {"keys_" + k: keys[k][:count], "values_" + v: values[v][:count]}
            add(w, "LabelEncoder", sets, [kind], attributes)
        add(w, "LabelEncoder", [[x[2]]], [kind], attributes | ({"default_int64": 77} if v == "int64s" else {"default_float": nan}))
    many = np.arange(-3000, 3000, 3)[::-1]
    add(w, "LabelEncoder", [[ints(-3100, 3100, n, dtype=np.int64)] for n in (50, 200)], [F32],
        {"keys_int64s": many.tolist(), "values_floats": (many / 8).tolist()})
    write_tensor_labels(w)
    w.machine_learning_opset = 3


def write_tensor_labels(w):
    """ONNX Runtime has no kernels for some of these types."""
    for k, v in itertools.product((np.int16, np.int32, np.int64, np.float32, np.float64), (np.int16, np.float64, np.int64)):
        keys, values = np.array([3, -4, 3, 11], k), np.array([100, -200, 300, 400], v)
        table = {3: 100, -4: -200, 11: 400}
        attributes = {"keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values)}

        def expected(x, table=table, v=v, otherwise=-1 if v != np.float64 else -0.0):
            return [np.array([table.get(e, otherwise) for e in x.tolist()], v)]
        x = np.array([11, 4, 3, -4, 0, 12], k)
        kind = TYPES.get(v, S16)
        add(w, "LabelEncoder", [[x], [x[:2]]], [kind], attributes, expected=expected)
        default = {"default_tensor": numpy_helper.from_array(np.array([9], v))}
        add(w, "LabelEncoder", [[x], [x[:2]]], [kind], attributes | default,
            expected=lambda x, f=expected: f(x, otherwise=9))


def write_one_hot(w):
    categories = {"cats_int64s": [4, -1, 4, 0, 2 ** 40]}
    for dtype in (np.int64, np.float32, np.float64):
        x = np.array([[4, -1, 0], [3, 2 ** 40, 5]], dtype)
        add(w, "OneHotEncoder", [[np.tile(x, (n, 1))] for n in (1, 4)], [F32], categories)
        add(w, "OneHotEncoder", [[x[0]]], [F32], categories | {"zeros": 0})
        add(w, "OneHotEncoder", [[np.tile(x[0], (n, 1))] for n in (1, 4)], [F32], categories | {"zeros": 0})
        if dtype != np.int64:
            add(w, "OneHotEncoder", [[np.array([4.9, -1.5, -0.9, 0.2, np.nan, 1e30, -np.inf], dtype)]], [F32], categories)
    add(w, "OneHotEncoder", [[np.array([4, 0, 1], np.int32)]], [F32], categories,
        expected=lambda x: [np.array([[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], np.float32)])


TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def write_linear_models(w):
    near = {"intercepts": [0.15, 0.7, 0.8]}  # PROBIT needs scores between 0 and 1, and loses all digits near 0.5
    for transform, dtype in itertools.product(TRANSFORMS, TYPES):
        scale = 0.002 if transform == "PROBIT" else 0.2
        for scores in (1, 2, 3):
            attributes = {"coefficients": (floats(scores * 4) * scale).tolist(), "intercepts": near["intercepts"][:scores],
                          "post_transform": transform}
            for sets in of_sizes(dtype):
                if dtype == np.float32:
                    add(w, "LinearRegressor", sets, [F32], attributes | {"targets": scores})
                if scores > 1 or transform != "PROBIT":
                    add(w, "LinearClassifier", sets, [S64, F32], attributes | {"classlabels_ints": [7, -2, 5][:max(scores, 2)]})
    weights = {"coefficients": [1.0, 0, 0, 0, 1, 0, 0, 0, 1]}
    integers = [[ints(-3, 4, n, 3, dtype=np.int64)] for n in (2, 5)]
    add(w, "LinearRegressor", integers, [F32], weights | {"targets": 3}, expected=lambda x: [x.astype(np.float32)])
    add(w, "LinearRegressor", [[floats(n, 3)] for n in (2, 5)], [F32], weights | {"targets": 3})
    nan, inf = np.nan, np.inf
    x = np.array([[1, 1, 0], [nan, 2, 3], [1, nan, 3], [3, nan, 1], [nan] * 3, [-inf, nan, nan], [-inf, -inf, 1]], np.float32)
    labels = {"classlabels_ints": [10, 20, 30]}
    add(w, "LinearClassifier", [[x[:1]], [x[:1] * 2]], [S64, F32], weights | labels | {"intercepts": [0.0] * 3})
    for k, row in enumerate(x):  # products with zeros of what is not finite are NaN, so each score needs a model of its own
        add(w, "LinearClassifier", [[np.ones((1, 3), np.float32)]], [S64, F32],
            labels | {"coefficients": np.diag(np.ones(3)).ravel().tolist(), "intercepts": row.tolist()})
    zeros = {"intercepts": [0.0] * 3}
    add(w, "LinearClassifier", integers, [S64, F32], weights | labels,
        expected=lambda x: w.run("LinearClassifier", [x], [S64, F32], weights | labels | zeros, MACHINE_LEARNING))


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.3, 0.5, 3.0], "RBF": [0.05, 0.0, 0.0], "SIGMOID": [0.1, -0.2, 0.0]}


def kernels():
    for kind, params in KERNELS.items():
        yield {"kernel_type": kind, "kernel_params": params}
    for degree in (2.0, 1.0, 4.0):
        yield {"kernel_type": "POLY", "kernel_params": [0.2, 1.0, degree]}


def write_support_vectors(w):
    for kernel, one_class in itertools.product(kernels(), (0, 1)):
        attributes = kernel | {"n_supports": 6, "support_vectors": floats(24).tolist(), "coefficients": floats(6).tolist(),
                               "rho": [0.25], "one_class": one_class}
        for sets in of_sizes(np.float32):
            sets = [[x / 3] for x, in sets]
            add(w, "SVMRegressor", sets, [F32], attributes)
            add(w, "SVMRegressor", sets, [F32], kernel | {"coefficients": floats(4).tolist(), "rho": [-0.5], "one_class": one_class})
    for dtype in (np.int32, np.int64, np.float64):
        def expected(x, a=attributes):
            return w.run("SVMRegressor", [x.astype(np.float32)], [F32], a, MACHINE_LEARNING)
        add(w, "SVMRegressor", of_sizes(dtype)[0], [F32], attributes, expected=expected)


def machine(classes, per_class, **more):
    pairs, vectors = classes * (classes - 1) // 2, sum(per_class)
    return {"classlabels_ints": [7, -2, 5, 30, 11][:classes], "vectors_per_class": per_class, "support_vectors": floats(4 * vectors).tolist(),
            "coefficients": floats((classes - 1) * vectors).tolist(), "rho": (floats(pairs) / 4).tolist()} | more


def write_votes(w):
    for kernel, (classes, per_class) in itertools.product(kernels(), ((2, [3, 2]), (3, [2, 4, 1]), (5, [1, 3, 0, 2, 2]))):
        for transform in TRANSFORMS[:4]:
            sets = [[x / 3] for x, in of_sizes(np.float32)[0]]
            add(w, "SVMClassifier", sets, [S64, F32], machine(classes, per_class, post_transform=transform, **kernel))
        add(w, "SVMClassifier", sets, [S64, F32], machine(classes, per_class, **kernel, **odds_of(classes)))
    kernel = next(kernels())
    for dtype in TYPES:
        for transform, sets in itertools.product(TRANSFORMS[:4], of_sizes(dtype)):
            add(w, "SVMClassifier", sets, [S64, F32], machine(3, [2, 4, 1], post_transform=transform, **kernel, **odds_of(3, 0.05)))
            add(w, "SVMClassifier", sets, [S64, F32], machine(2, [2, 1], post_transform=transform, **kernel, **odds_of(2, 0.05)))
    for classes, positive, odds in itertools.product((1, 2, 3), (False, True), (False, True)):
        for transform in TRANSFORMS[:4]:
            weights = floats(classes * 4) / 4
            attributes = {"classlabels_ints": [7, -2, 5][:classes], "coefficients": (np.abs(weights) if positive else weights).tolist(),
                          "rho": [0.1], "post_transform": transform, **kernel, **(odds_of(2) if odds else {})}
            add(w, "SVMClassifier", of_sizes(np.float32)[0], [S64, F32], attributes)


def odds_of(classes, slope=1.0):
    """prob_a and prob_b.  A small slope keeps probabilities away from 1e-7, where SOFTMAX_ZERO is not continuous."""
    pairs = classes * (classes - 1) // 2
    return {"prob_a": (slope * (-1 - np.abs(floats(pairs)))).tolist(), "prob_b": (floats(pairs) / 4).tolist()}
