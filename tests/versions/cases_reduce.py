"""cases_reduce.py: reductions, softmax and its like, products of matrices, CumSum.  numpy computes most expected values."""
import numpy as np

from case import bools, case, f32, i64, ints

X = f32(2, 3, 4)
POSITIVE = f32(2, 3, 4, low=0.25, high=4)

# --- reductions: axes are an attribute before version 18 (ReduceSum: 13), an input since ---

REDUCE = {
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


def over(function, axes, keep=True):
    return lambda x, *_: function(x, axis=axes, keepdims=keep)


for op, function in REDUCE.items():
    x = POSITIVE if op == "ReduceLogSum" else X
    move = 13 if op == "ReduceSum" else 18
    case(op, x, expect=over(function, None))
    case(op, x, expect=over(function, None, False), name="all", keepdims=0)
    case(op, x, expect=over(function, (0, 2)), until=move - 1, name="axes", axes=[0, 2])
    case(op, x, expect=over(function, (1,), False), until=move - 1, name="drop", axes=[1], keepdims=0)
    case(op, x, expect=over(function, (-1,)), since=11, until=move - 1, name="negative", axes=[-1])
    case(op, x, i64(0, -1), expect=over(function, (0, -1)), since=move, name="axes")
for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"):
    case(op, X, i64(), expect=lambda x, _: x, since=13 if op == "ReduceSum" else 18, name="none", noop_with_empty_axes=1)
for op in ("ReduceMax", "ReduceMin"):
    case(op, ints(3, 4, dtype=np.int8), expect=over(REDUCE[op], None), since=12, name="bytes")
    case(op, bools(3, 4), expect=over(REDUCE[op], None), since=20, name="bools")

# --- positions ---

TIES = np.float32([[1, 3, 3, 0], [2, 2, -1, 2], [5, -5, 5, -5]])


def last(function):
    """Makes a function that does as `function` (argmax or argmin) but returns the last position of equal values."""
    return lambda x: x.shape[1] - 1 - function(x[:, ::-1], axis=1)


for op, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
    case(op, X, expect=lambda x, f=function: f(x, axis=0, keepdims=True))
    case(op, X, expect=lambda x, f=function: f(x, axis=1), name="drop", axis=1, keepdims=0)
    case(op, TIES, expect=lambda x, f=function: f(x, axis=1), name="first", axis=1, keepdims=0)
    case(op, TIES, expect=last(function), since=12, name="last", axis=1, keepdims=0, select_last_index=1)
    case(op, X, expect=lambda x, f=function: f(x, axis=-2, keepdims=True), since=11, name="negative", axis=-2)
    case(op, ints(3, 5, dtype=np.int32), expect=lambda x, f=function: f(x, axis=1), name="integers", axis=1, keepdims=0)


def top(k, axis, sign=-1):
    def run(x, *_):
        order = np.argsort(sign * x, axis=axis, kind="stable")
        index = np.take(order, range(k), axis=axis)
        return np.take_along_axis(x, index, axis), index

    return run


case("TopK", X, expect=top(2, -1), until=9, outputs=2, k=2)
case("TopK", X, expect=top(2, 1), until=9, outputs=2, name="axis", k=2, axis=1)
case("TopK", TIES, expect=top(3, 1), until=9, outputs=2, name="ties", k=3)
case("TopK", X, i64(2), expect=top(2, -1), since=10, outputs=2)
case("TopK", TIES, i64(3), expect=top(3, 1), since=10, outputs=2, name="ties")
case("TopK", X, i64(1), expect=top(1, 0), since=10, outputs=2, name="axis", axis=0)
case("TopK", X, i64(2), expect=top(2, -1, 1), since=11, outputs=2, name="smallest", largest=0)
case("TopK", ints(3, 5), i64(2), expect=top(2, -1), since=11, outputs=2, name="integers")

# --- softmax and its like: over all that follows the axis before version 13, over the axis since ---


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def hardmax(x):
    return np.eye(x.shape[-1], dtype=np.float32)[x.argmax(-1)]


def as_matrix(function, axis):
    return lambda x: function(x.reshape(int(np.prod(x.shape[:axis])), -1)).reshape(x.shape)


def along(function, axis):
    return lambda x: np.moveaxis(function(np.moveaxis(x, axis, -1)), -1, axis)


SOFT = {"Softmax": softmax, "LogSoftmax": lambda x: np.log(softmax(x)), "Hardmax": hardmax}
for op, function in SOFT.items():
    for axis in (0, 1, 2):
        case(op, X, expect=as_matrix(function, axis), until=12, name=f"axis{axis}", axis=axis)
        case(op, X, expect=along(function, axis), since=13, name=f"axis{axis}", axis=axis)
    case(op, X, expect=as_matrix(function, 1), until=12)
    case(op, X, expect=along(function, -1), since=13)
    case(op, X, expect=as_matrix(function, 1), since=11, until=12, name="negative", axis=-2)
case("Hardmax", TIES, expect=hardmax, name="ties")

# --- matrices ---

A, B, C = f32(3, 4), f32(4, 5), f32(3, 5)


def gemm(alpha=1.0, beta=1.0, flip_a=False, flip_b=False):
    def run(a, b, c=0):
        a, b = a.T if flip_a else a, b.T if flip_b else b
        return np.asarray(alpha * (a @ b) + beta * c, a.dtype)

    return run


BOTH = {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}
case("Gemm", A, B, C, expect=gemm())
case("Gemm", f32(4, 3), f32(5, 4), C, expect=gemm(0.5, 2, True, True), name="all", **BOTH)
for name, c in (("row", f32(5)), ("column", f32(3, 1)), ("rows", f32(1, 5)), ("one", f32(1))):
    case("Gemm", A, B, c, expect=gemm(), until=6, name=name, broadcast=1)
    case("Gemm", A, B, c, expect=gemm(), since=7, name=name)
case("Gemm", A, B, f32(), expect=gemm(), since=7, name="scalar")
case("Gemm", A, B, expect=gemm(), since=11, name="two")
case("Gemm", ints(2, 3, dtype=np.int32), ints(3, 4, dtype=np.int32), ints(4, dtype=np.int32), expect=gemm(), since=9,
     name="integers")
case("MatMul", A, B, expect=np.matmul)
case("MatMul", f32(2, 1, 3, 4), f32(5, 4, 2), expect=np.matmul, name="batches")
case("MatMul", f32(4), f32(2, 4, 3), expect=np.matmul, name="vector")
case("MatMul", ints(2, 3), ints(3, 2), expect=np.matmul, since=9, name="integers")
case("Det", f32(2, 3, 3), expect=lambda x: np.linalg.det(x).astype(np.float32))

# --- norms ---


def lp_normalized(p, axis):
    def run(x):
        norm = np.linalg.norm(x, p, axis, keepdims=True)
        return np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)

    return run


ZEROS = X * np.float32([[0], [1], [1]])
for p in (1, 2):
    for axis in (-1, 1):
        case("LpNormalization", X, expect=lp_normalized(p, axis), name=f"{p}-{axis}", p=p, axis=axis)
case("LpNormalization", ZEROS, expect=lp_normalized(2, -1), name="zeros")


def standardized(axes):
    def run(x):
        mean = x.mean(axes, keepdims=True)
        return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True))

    return run


case("MeanVarianceNormalization", f32(2, 3, 4, 5), expect=standardized((0, 2, 3)))
case("MeanVarianceNormalization", f32(2, 3, 4, 5), since=9, expect=standardized((1, 2)), name="axes", axes=[1, 2])

# --- running sums ---

case("CumSum", X, np.int32(1), expect=lambda x, _: np.cumsum(x, 1))
case("CumSum", X, np.int64(-1), expect=lambda x, _: np.cumsum(x[..., ::-1], -1)[..., ::-1] - x, name="both",
     exclusive=1, reverse=1)

case("Einsum", f32(2, 3, 4), f32(2, 4, 5), expect=lambda a, b: np.einsum("bij,bjk->bik", a, b), equation="bij, bjk -> bik")
case("Einsum", f32(3, 3), expect=lambda a: np.einsum("ii", a), name="trace", equation="ii")
