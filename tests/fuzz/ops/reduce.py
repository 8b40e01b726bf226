"""ops/reduce.py: operators along axes: reductions, cumulative ones, normalisations."""

import numpy as np

import rows
from registry import Skip, axes_input, operators, some_axes, some_axis
from values import as_wide

INT_RANGE = {"ReduceProd": (0, 4), "ReduceSumSquare": (0, 12)}


@operators("ReduceMax ReduceMin", kind="exact")
@operators(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare",
    kind="sum",
    liked=1.5,
)
def reduce(b, o):
    lo, hi = {"ReduceLogSum": (0.2, 5), "ReduceProd": (0.5, 1.8), "ReduceLogSumExp": (-4, 5)}.get(
        o.name, (None, None)
    )
    t = o.type("T")
    if not rows.is_float(t) and o.name in INT_RANGE:
        lo, hi = INT_RANGE[o.name]
    elif not rows.is_float(t) and o.name.startswith("ReduceL"):
        lo, hi = 1, 40
    elif t in ("int64", "uint64", "int32", "uint32"):
        lo, hi = -(10**6) if t[0] == "i" else 0, 10**6  # no rule says what an overflow gives
    rank = (1, 4) if o.since < 18 else (0, 4)
    x = b.tensor(t, rank=rank, lo=lo, hi=hi, least=1)
    axes = some_axes(b, x.rank, o.since >= 11) if x.rank and b.r.random() < 0.8 else None
    attributes = {"keepdims": b.r.choice([None, 0, 1])}
    if axes is None and o.has("noop_with_empty_axes") and b.r.random() < 0.3:
        attributes["noop_with_empty_axes"] = 1
    if not rows.is_float(t) and o.name in BEFORE_CUT and (axes or "noop_with_empty_axes" not in attributes):
        check_cut(BEFORE_CUT[o.name](x.array.astype(np.float64), tuple(axes) if axes else None))
    return axes_input(b, o, axes, [x], attributes)


# For integer types the result is truncated to an integer, so the result before that must not be near an integer, unless
# it is exact.
BEFORE_CUT = {
    "ReduceL2": lambda x, axes: np.sqrt(np.sum(x * x, axes)),
    "ReduceLogSum": lambda x, axes: np.log(np.sum(x, axes)),
    "ReduceLogSumExp": lambda x, axes: np.log(np.sum(np.exp(x), axes)) + 1e-6,  # log(exp(x)) of one element may be a little less than x
    "ReduceMean": lambda x, axes: np.mean(x, axes),
}


def check_cut(results):
    far = np.abs(results - np.round(results))
    if np.any((far > 0) & (far < 0.01)):
        raise Skip("next to a whole number")


@operators("ArgMax ArgMin", kind="step")
def arg_reduce(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4), exact=True, least=1)
    axis = b.r.randrange(x.rank)
    return [x], {
        "axis": axis - x.rank if o.since >= 11 and b.r.random() < 0.3 else axis,
        "keepdims": b.r.choice([None, 0, 1]),
        "select_last_index": b.r.choice([None, 0, 1]) if o.has("select_last_index") else None,
    }


@operators("CumSum CumProd", kind="sum")
def cumulative(b, o):
    t = o.type("T")
    product = o.name == "CumProd"
    x = b.tensor(
        t,
        rank=(1, 3),
        lo=(0.5 if rows.is_float(t) else 0) if product else None,
        hi=(1.8 if rows.is_float(t) else 3) if product else None,
    )
    axis = b.fresh(np.array(some_axis(b, x.rank)).astype(rows.NP[o.type("T2")]), constant=True)
    return [x, axis], {"exclusive": b.r.choice([None, 0, 1]), "reverse": b.r.choice([None, 0, 1])}


@operators("Softmax LogSoftmax", kind="sum", liked=2)
def softmax(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4), lo=-20, hi=20)
    axis = b.r.choice([None, b.r.randrange(x.rank)] + ([-1] if o.since >= 11 else []))
    if axis is None and o.since < 13 and x.rank < 2:
        axis = 0
    return [x], {"axis": axis}


@operators("Hardmax", kind="step")
def hardmax(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4), exact=True)
    axis = b.r.randrange(x.rank)
    return [x], {"axis": axis}


@operators("LpNormalization", kind="sum")
def lp_normalization(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4), lo=0.3, hi=5)
    return [x], {"axis": b.r.choice([None, some_axis(b, x.rank)]), "p": b.r.choice([None, 1, 2])}


@operators("MeanVarianceNormalization", kind="sum", ulps=64)
def mean_variance(b, o):
    x = b.tensor(
        o.type("T"), shape=(b.r.randint(2, 4), b.r.randint(1, 4), b.r.randint(2, 4), b.r.randint(2, 4))
    )
    axes = b.r.choice([None, [0, 2, 3], [0, 1, 2, 3]])
    if not np.ptp(as_wide(x.array), tuple(axes or (0, 2, 3))).all():
        raise Skip("0 / 0: the standard's formula has no epsilon, its function has")
    return [x], {"axes": axes}


@operators("BatchNormalization", kind="round", ulps=16, liked=3)
def batch_normalization(b, o):
    t = o.type("T")
    u = o.type("T1") if "T1" in o.schema.types else t
    w = o.type("T2") if "T2" in o.schema.types else o.type("U") if "U" in o.schema.types else u
    x = b.tensor(t, rank=(2, 4))
    c = (x.shape[1],)
    weights = [
        b.tensor(k, shape=c, lo=lo, hi=hi, constant=True if b.r.random() < 0.8 else None)
        for k, lo, hi in ((u, 0.3, 2), (u, -2, 2), (w, -1, 1), (w, 0.3, 3))
    ]
    return [x] + weights, {"epsilon": b.r.choice([None, 1e-3])}


@operators("InstanceNormalization", kind="sum", ulps=64)
def instance_normalization(b, o):
    t = o.type("T")
    x = b.tensor(t, rank=(3, 4), new=None)
    if np.prod(x.shape[2:]) < 3:
        raise Skip("too few to have a variance")
    c = (x.shape[1],)
    return [x, b.tensor(t, shape=c, lo=0.3, hi=2), b.tensor(t, shape=c, lo=-2, hi=2)], {
        "epsilon": b.r.choice([None, 1e-2])
    }


@operators("GroupNormalization", kind="sum", ulps=64)
def group_normalization(b, o):
    t = o.type("T")
    groups = b.r.randint(1, 3)
    c = groups * b.r.randint(1, 3)
    x = b.tensor(t, shape=(b.r.randint(1, 3), c, b.r.randint(3, 5), b.r.randint(1, 4)))
    n = (groups if o.since < 21 else c,)
    return [x, b.tensor(t, shape=n, lo=0.3, hi=2), b.tensor(t, shape=n, lo=-2, hi=2)], {
        "num_groups": groups,
        "epsilon": b.r.choice([None, 1e-2]),
    }


@operators("LayerNormalization RMSNormalization", kind="sum", ulps=64, liked=2)
def layer_normalization(b, o):
    t = o.type("T")
    x = b.tensor(t, rank=(1, 4))
    axis = b.r.randrange(x.rank)
    if np.prod(x.shape[axis:]) < 3:
        raise Skip("too few to have a variance")
    rest = x.shape[axis:]
    v = o.type("V") if "V" in o.schema.types else t
    inputs = [x, b.tensor(v, shape=rest, lo=0.3, hi=2)]
    if o.name == "LayerNormalization" and b.r.random() < 0.7:
        inputs.append(b.tensor(v, shape=rest, lo=-2, hi=2))
    attributes = {"axis": b.r.choice([axis, axis - x.rank]), "epsilon": b.r.choice([None, 1e-2])}
    if o.name != "LayerNormalization" or b.r.random() < 0.7:
        return inputs, attributes
    attributes["stash_type"] = rows.CODE_OF_NP[rows.NP[o.type("U")]]
    # After 64 roundings to 8 bits the error would be too large; with a few numbers there are fewer roundings.
    return inputs, attributes, 3, None, 16 if o.type("U") == "bfloat16" else None


@operators("LRN", kind="sum")
def lrn(b, o):
    x = b.tensor(o.type("T"), rank=(3, 4))
    return [x], {
        "size": b.r.choice([1, 3, 5]),
        "alpha": b.r.choice([None, 0.1]),
        "beta": b.r.choice([None, 0.5]),
        "bias": b.r.choice([None, 2.0]),
    }


@operators("Det", kind="sum", ulps=64)
def det(b, o):
    n = b.r.randint(1, 4)
    return [b.tensor(o.type("T"), shape=b.shape((0, 2)) + (n, n))], {}


@operators("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", kind="sum")
def loss(b, o):
    t = o.type("T")
    n, c = b.r.randint(1, 4), b.r.randint(2, 5)
    rest = b.shape((0, 2))
    x = b.tensor(t, shape=(n, c) + rest, lo=-8, hi=8)
    labels = b.tensor(o.type("Tind"), shape=(n,) + rest, lo=0, hi=c - 1, exact=True)
    weight = b.tensor(t, shape=(c,), lo=0.2, hi=2) if b.r.random() < 0.5 else None
    ignored = b.r.choice([None, None, 0])
    if ignored is not None and np.all(labels.array == ignored):
        raise Skip("no label is left")
    return (
        [x, labels, weight],
        {"reduction": b.r.choice([None, "none", "mean", "sum"]), "ignore_index": ignored},
        b.r.choice([1, 2]) if o.name.startswith("Softmax") else 1,
    )
