"""cases_movement.py: operators that move, count, choose or make elements.  numpy computes the expected values."""
import numpy as np
from onnx import helper, numpy_helper

from case import BOOL, FLOAT, INT64, bools, case, f32, i64, ints

X = f32(2, 3, 4)
WIDE = f32(2, 6, 4, 6)


def same(x, *_):
    return x


# --- shapes ---

case("Reshape", X, expect=lambda x: x.reshape(2, 2, 6), until=4, shape=[0, -1, 6])
case("Reshape", X, expect=lambda x: x.reshape(24), until=4, name="consumed", shape=[24], consumed_inputs=[0])
case("Reshape", X, i64(0, -1, 6), expect=lambda x, _: x.reshape(2, 2, 6), since=5)
case("Reshape", X, i64(-1), expect=lambda x, _: x.reshape(-1), since=5, name="flat")
case("Reshape", f32(0, 3), i64(3, 0, 7), expect=lambda x, _: x.reshape(3, 0, 7), since=14, name="empty", allowzero=1)
case("Flatten", X, expect=lambda x: x.reshape(2, 12))
for axis in (0, 2, 3):
    case("Flatten", X, expect=lambda x, a=axis: x.reshape(int(np.prod(x.shape[:a])), -1), name=f"axis{axis}", axis=axis)
case("Flatten", X, expect=lambda x: x.reshape(6, 4), since=11, name="negative", axis=-1)
case("Flatten", ints(2, 3, 4), expect=lambda x: x.reshape(2, 12), since=9, name="integers")
case("Shape", X, expect=lambda x: i64(2, 3, 4))
case("Shape", X, expect=lambda x: i64(3), since=15, name="slice", start=1, end=-1)
case("Size", X, expect=lambda x: np.int64(24))
case("Squeeze", f32(1, 3, 1, 2), expect=np.squeeze)
case("Squeeze", f32(1, 3, 1, 2), expect=lambda x: x[:, :, 0], until=12, name="axes", axes=[2])
case("Squeeze", f32(1, 3, 1, 2), expect=lambda x: x[:, :, 0], since=11, until=12, name="negative", axes=[-2])
case("Squeeze", f32(1, 3, 1, 2), i64(-2, 0), expect=lambda x, _: x[0, :, 0], since=13, name="axes")
case("Unsqueeze", X, expect=lambda x: x[None, :, :, None], until=12, axes=[0, 3])
case("Unsqueeze", X, expect=lambda x: x[:, :, None], since=11, until=12, name="negative", axes=[-2])
case("Unsqueeze", X, i64(0, -1), expect=lambda x, _: x[None, ..., None], since=13)
case("Transpose", X, expect=np.transpose)
case("Transpose", X, expect=lambda x: x.transpose(1, 0, 2), name="perm", perm=[1, 0, 2])
case("Identity", X, expect=same)
case("Identity", ints(3, 2), expect=same, name="integers")
case("Expand", f32(3, 1), i64(2, 1, 4), expect=lambda x, _: np.broadcast_to(x, (2, 3, 4)))
case("Expand", ints(3, 1), i64(1), expect=same, name="less")
case("Tile", X, np.float32(3), np.float32(1), expect=lambda x, *_: np.tile(x, (1, 3, 1)), until=5)
case("Tile", X, i64(2, 1, 3), expect=np.tile, since=6)
case("Range", np.int64(2), np.int64(11), np.int64(3), expect=np.arange)
case("Range", np.float32(2), np.float32(-1), np.float32(-0.75), expect=lambda *x: np.arange(*x, dtype=np.float32), name="down")

# --- DepthToSpace and SpaceToDepth ---


def depth_to_space(x, block=2, columns_first=False):
    n, c, h, w = x.shape
    if columns_first:
        return x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, -1, h * block, w * block)
    return x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, -1, h * block, w * block)


def space_to_depth(x, block=2):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4).reshape(n, -1, h // block, w // block)


case("DepthToSpace", f32(2, 8, 2, 3), expect=depth_to_space, blocksize=2)
case("DepthToSpace", f32(2, 8, 2, 3), expect=lambda x: depth_to_space(x, 2, True), since=11, name="crd", blocksize=2, mode="CRD")
case("SpaceToDepth", WIDE, expect=space_to_depth, blocksize=2)

# --- concatenation, slices, splits ---

case("Concat", X, f32(2, 2, 4), expect=lambda *x: np.concatenate(x, 1), until=3)
case("Concat", X, f32(2, 3, 1), expect=lambda *x: np.concatenate(x, 2), name="axis", axis=2)
case("Concat", X, f32(1, 3, 4), X, expect=lambda *x: np.concatenate(x, 0), since=11, name="negative", axis=-3)
case("Slice", X, expect=lambda x: x[1:2, 0:-1, 1:], until=9, starts=[1, 0, 1], ends=[2, -1, 1000])
case("Slice", X, expect=lambda x: x[:, :, -3:-1], until=9, name="axes", axes=[2], starts=[-3], ends=[-1])
case("Slice", X, i64(0, -1), i64(2, 1000), i64(0, 2), expect=lambda x, *_: x[0:2, :, -1:], since=10)
case("Slice", X, i64(3, -2), i64(0, -100), i64(2, 1), i64(-2, -1), since=10, name="back",
     expect=lambda x, *_: x[:, -2::-1, 3:0:-2])
case("Slice", X, i64(1), i64(3), i64(-1), expect=lambda x, *_: x[..., 1:3], since=11, name="negative")


def split(where, axis=0):
    return lambda x, *_: np.split(x, where, axis)


WHOLE = f32(6, 4)
case("Split", WHOLE, expect=split(2), until=17, outputs=2, axis=0)
case("Split", WHOLE, expect=split(2), since=2, until=17, outputs=2, name="default")
case("Split", WHOLE, expect=split([1, 3], 1), until=12, outputs=3, name="sizes", axis=1, split=[1, 2, 1])
case("Split", WHOLE, np.float32([1, 5]), expect=split([1]), until=1, outputs=2, name="input", axis=0)
case("Split", WHOLE, expect=split(2, 1), since=11, until=17, outputs=2, name="negative", axis=-1)
case("Split", WHOLE, i64(2, 4), expect=split([2]), since=13, outputs=2, name="sizes")
case("Split", WHOLE, expect=split([3]), since=18, outputs=2, name="count", num_outputs=2)
case("Split", f32(7, 2), expect=split([3, 6]), since=18, outputs=3, name="uneven", num_outputs=3)
case("Compress", X, np.array([True, False, True]), expect=lambda x, c: np.compress(c, x, 1), axis=1)
case("Compress", X, bools(20), expect=lambda x, c: np.compress(c, x), name="flat")
case("Compress", X, np.array([False, True]), expect=lambda x, c: x[:, :, 1:2], since=11, name="negative", axis=-1)

# --- padding: `paddings`, then `pads`, then an input ---

PADS = [0, 1, 0, 0, 2, 1, 1, 0]
IMAGE = f32(1, 2, 3, 4)
WIDTHS = [(0, 0), (1, 2), (0, 1), (0, 0)]
INNER = [0, 0, 1, 2, 0, 0, 2, 1]
INNER_WIDTHS = [(0, 0), (0, 0), (1, 2), (2, 1)]
OUTER = [0, 1, 0, 0, 0, 2, 1, 0]


def pad(widths, **more):
    return lambda x, *_: np.pad(x, widths, **more)


for until, name in ((1, "paddings"), (10, "pads")):
    since = 1 if until == 1 else 2
    case("Pad", IMAGE, expect=pad(WIDTHS), since=since, until=until, **{name: OUTER})
    case("Pad", IMAGE, expect=pad(WIDTHS, constant_values=1.5), since=since, until=until, name="value", value=1.5, **{name: OUTER})
    for mode in ("reflect", "edge"):
        case("Pad", IMAGE, expect=pad(INNER_WIDTHS, mode=mode), since=since, until=until, name=mode, mode=mode, **{name: INNER})
case("Pad", X, expect=lambda x: np.pad(x, [(1, 0), (0, 0), (0, 0)])[:, 1:, :-2], since=2, until=10, name="negative",
     pads=[1, -1, 0, 0, 0, -2])
case("Pad", IMAGE, i64(*OUTER), expect=pad(WIDTHS), since=11)
case("Pad", IMAGE, i64(*OUTER), np.float32(1.5), expect=pad(WIDTHS, constant_values=1.5), since=11, name="value")
for mode in ("reflect", "edge"):
    case("Pad", IMAGE, i64(*INNER), expect=pad(INNER_WIDTHS, mode=mode), since=11, name=mode, mode=mode)
case("Pad", ints(2, 3), i64(1, 0, 0, 2), np.int64(7), expect=pad([(1, 0), (0, 2)], constant_values=7), since=11, name="integers")
case("Pad", X, i64(1, 2), None, i64(-1), expect=pad([(0, 0), (0, 0), (1, 2)]), since=18, name="axes")
case("Pad", X, i64(0, 2, 1, 0, 1, 3), expect=pad([(0, 0), (2, 1), (1, 3)], mode="wrap"), since=19, name="wrap", mode="wrap")

# --- gathering and scattering ---

INDEX = np.array([[0, 2], [1, 1]])
case("Gather", f32(4, 3), INDEX, expect=lambda x, i: np.take(x, i, 0))
case("Gather", X, INDEX.astype(np.int32), expect=lambda x, i: np.take(x, i, 2), name="axis", axis=2)
case("Gather", X, i64(-1, 0), expect=lambda x, i: np.take(x, i, 1), since=11, name="negative", axis=1)
case("GatherElements", f32(4, 3), i64(0, 3, 1, 1, 2, 0).reshape(2, 3), expect=lambda x, i: np.take_along_axis(x, i, 0))
case("GatherElements", f32(4, 3), i64(-1, 0, 1, 1, 2, 0, 0, 0).reshape(4, 2), expect=lambda x, i: np.take_along_axis(x, i, 1),
     name="axis", axis=-1)
case("GatherND", X, i64(0, 1, 1, -1).reshape(2, 2), expect=lambda x, i: x[i[:, 0], i[:, 1]])
case("GatherND", X, i64(0, 2).reshape(2, 1), expect=lambda x, i: np.stack([x[0, 0], x[1, 2]]), since=12, name="batch",
     batch_dims=1)


def scattered(axis, combine=None):
    def run(x, index, updates):
        y = x.copy()
        for at in np.ndindex(*index.shape):
            to = list(at)
            to[axis] = index[at]
            to = tuple(to)
            y[to] = combine(y[to], updates[at]) if combine else updates[at]
        return y

    return run


TO = i64(0, 3, 1, 1, 2, 0).reshape(2, 3)
TWICE = i64(0, 3, 1, 0, 3, 2).reshape(2, 3)
for op in ("Scatter", "ScatterElements"):
    case(op, f32(4, 3), TO, f32(2, 3, low=5, high=9), expect=scattered(0))
    case(op, f32(2, 5), i64(4, 0, 2, 3).reshape(2, 2), f32(2, 2, low=5, high=9), expect=scattered(1), name="axis", axis=1)
case("ScatterElements", f32(4, 3), TO - 4 * (TO > 1), f32(2, 3, low=5, high=9), expect=scattered(0), name="negative")
COMBINE = {"add": (np.add, 16), "mul": (np.multiply, 16), "max": (np.maximum, 18), "min": (np.minimum, 18)}
for name, (function, since) in COMBINE.items():
    case("ScatterElements", f32(4, 3), TWICE, f32(2, 3, low=-3, high=3), expect=scattered(0, function), since=since, name=name,
         reduction=name)


def scattered_nd(combine=None):
    def run(x, index, updates):
        y = x.copy()
        for at in np.ndindex(*index.shape[:-1]):
            to = tuple(index[at])
            y[to] = combine(y[to], updates[at]) if combine else updates[at]
        return y

    return run


case("ScatterND", X, i64(0, 1, 1, 2).reshape(2, 2), f32(2, 4, low=5, high=9), expect=scattered_nd())
case("ScatterND", f32(4, 2), i64(-1, 1).reshape(2, 1), f32(2, 2, low=5, high=9), expect=scattered_nd(), name="negative")
for name, (function, since) in COMBINE.items():
    case("ScatterND", f32(4, 2), i64(1, 1, 3).reshape(3, 1), f32(3, 2), expect=scattered_nd(function), since=since, name=name,
         reduction=name)


def one_hot(axis):
    def run(index, depth, values):
        hot = np.arange(int(depth)) == index[..., None]
        return np.moveaxis(np.where(hot, values[1], values[0]), -1, axis)

    return run


case("OneHot", i64(0, 2, 4, 5), np.int64(5), np.float32([-1, 2]), expect=one_hot(-1))
case("OneHot", ints(2, 3, low=0, high=3), np.int64(4), i64(0, 7), expect=one_hot(1), name="axis", axis=1)
case("OneHot", np.float32([0, 2]), np.float32(3), np.float32([0, 1]), expect=one_hot(-1), name="floats")
case("OneHot", i64(-1, -3, 2), np.int64(3), np.float32([0, 1]), since=11, name="negative",
     expect=lambda i, d, v: one_hot(-1)(i % 3, d, v))
NONZERO = np.float32([[0, 1, 0], [2, 0, -3]])
case("NonZero", NONZERO, expect=lambda x: np.array(np.nonzero(x)))
case("EyeLike", f32(3, 4), expect=lambda x: np.eye(3, 4, dtype=np.float32))
case("EyeLike", ints(3, 4, dtype=np.int32), expect=lambda x: np.eye(3, 4, 1), name="diagonal", k=1, dtype=int(helper.TensorProto.DOUBLE))

# --- constants ---


def tensor(x):
    return numpy_helper.from_array(x, "value")


case("Constant", expect=lambda: X, value=tensor(X))
case("Constant", expect=lambda: ints(3), since=9, name="integers", value=tensor(ints(3)))
case("Constant", expect=lambda: np.float32(1.5), since=12, name="float", value_float=1.5)
case("Constant", expect=lambda: np.float32([1.5, 2]), since=12, name="floats", value_floats=[1.5, 2.0])
case("Constant", expect=lambda: np.int64(7), since=12, name="int", value_int=7)
case("Constant", expect=lambda: i64(7, 8), since=12, name="ints", value_ints=[7, 8])
case("ConstantOfShape", i64(2, 3), expect=lambda s: np.zeros(s, np.float32))
case("ConstantOfShape", i64(2, 3), expect=lambda s: np.full(s, -7, np.int32), name="value", value=tensor(np.int32([-7])))
case("ConstantOfShape", i64(), expect=lambda s: np.float32(0), name="scalar")

# --- types ---

MIXED = np.float32([[-2.75, -0.5, 0], [1.25, 2.5, 100]])
TYPES = {"FLOAT16": np.float16, "DOUBLE": np.float64, "INT8": np.int8, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_}
for name, dtype in TYPES.items():
    number = helper.TensorProto.DataType.Value(name)
    case("Cast", MIXED, expect=lambda x, t=dtype: x.astype(t), until=5, name=name, to=name)
    case("Cast", MIXED, expect=lambda x, t=dtype: x.astype(t), since=6, name=name, to=number)
    case("CastLike", MIXED, np.zeros(1, dtype), expect=lambda x, like: x.astype(like.dtype), name=name)
case("Cast", ints(3, dtype=np.uint8, low=0), expect=lambda x: x.astype(np.float32), until=5, name="from-uint8", to="FLOAT")
case("Cast", bools(3, 4), expect=lambda x: x.astype(np.float32), since=6, name="from-bool", to=FLOAT)
case("Cast", ints(3, 4), expect=lambda x: x.astype(bool), since=6, name="to-bool", to=BOOL)
case("Cast", bools(3, 4), expect=lambda x: x.astype(np.int64), since=6, name="bool-to-int64", to=INT64)

# --- orders ---


def reversed_parts(x, lengths, time=0):
    y = x.copy()
    for k, n in enumerate(lengths):
        if time == 0:
            y[:n, k] = x[:n, k][::-1]
        else:
            y[k, :n] = x[k, :n][::-1]
    return y


case("ReverseSequence", f32(4, 3), i64(2, 1, 4), expect=reversed_parts)
case("ReverseSequence", f32(3, 4), i64(2, 1, 4), expect=lambda x, n: reversed_parts(x, n, 1), name="batch-first", batch_axis=0,
     time_axis=1)
REPEATS = np.float32([2, 1, 1, 3, 4, 3])
case("Unique", REPEATS, expect=lambda x: np.unique(x, True, True, True), outputs=4)
case("Unique", np.float32([[1, 0, 0], [1, 0, 0], [2, 3, 4]]), expect=lambda x: np.unique(x, axis=0), name="rows", axis=0)
