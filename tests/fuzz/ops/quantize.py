"""ops/quantize.py: operators over quantised numbers."""

import numpy as np

import rows
from registry import Skip, operators
from values import draw_array


def scale(b, t, shape=()):
    """Returns scales that are powers of two, so that quotients and products are exact, and all implementations round them to the same
    integers."""
    exponents = np.array(
        [b.r.choice([-3, -2, -1, 0] if rows.is_float(t) else [0, 1, 2]) for _ in range(int(np.prod(shape)))]
    ).reshape(shape)
    return b.fresh(np.exp2(exponents).astype(rows.NP[t]), constant=b.r.random() < 0.8)


def zero(b, t, shape=()):
    if rows.is_float(t):
        return b.fresh(np.zeros(shape).astype(rows.NP[t]), constant=True)
    lo, hi = (0, 3) if t.startswith("u") else (-2, 1)
    return b.fresh(draw_array(b.r, t, shape, lo, hi), constant=b.r.random() < 0.8)


def places(b, o, x):
    """Returns the shape of scale and zero point, and the attributes that go with it."""
    attributes = {}
    if x.rank == 0 or not o.has("axis") or b.r.random() < 0.4:
        return (), attributes
    axis = b.r.randrange(x.rank)
    attributes["axis"] = axis - x.rank if b.r.random() < 0.3 else axis
    if o.has("block_size") and b.r.random() < 0.4:
        block = b.r.choice([k for k in range(1, x.shape[axis] + 1) if x.shape[axis] % k == 0])
        attributes["block_size"] = block
        return x.shape[:axis] + (x.shape[axis] // block,) + x.shape[axis + 1 :], attributes
    return (x.shape[axis],), attributes


@operators("QuantizeLinear", kind="step")
def quantize(b, o):
    t = o.type("T1")
    s = t if "T2" in o.schema.types and "T3" in o.schema.types or o.since in (19, 21) else "float"
    q = o.type("T3" if "T3" in o.schema.types else "T2")
    if "T3" in o.schema.types:
        s = o.type("T2")
    lo, hi = (-4, 4) if rows.is_float(t) else (-30, 30)
    x = b.tensor(t, lo=lo, hi=hi, exact=True)
    shape, attributes = places(b, o, x)
    if o.has("precision"):
        precision = b.r.choice([None, None, "float", "float16", "bfloat16"])
        attributes["precision"] = precision and rows.CODE_OF_NP[rows.NP[precision]]
    return [x, scale(b, s, shape), zero(b, q, shape)], attributes


@operators("DequantizeLinear", kind="step", liked=1.5)
def dequantize(b, o):
    q = o.type("T1" if "T1" in o.schema.types else "T")
    s = o.type("T2") if "T2" in o.schema.types else "float"
    x = b.tensor(q, lo=-90 if q == "int32" else None, hi=90 if q == "int32" else None)
    shape, attributes = places(b, o, x)
    z = zero(b, q, shape) if q != "int32" and b.r.random() < 0.6 else None
    out = o.type("T3") if "T3" in o.schema.types else None
    if out:
        attributes["output_dtype"] = rows.CODE_OF_NP[rows.NP[out]]
    return [x, scale(b, s, shape), z], attributes


@operators("DynamicQuantizeLinear", kind="step")
def dynamic_quantize(b, o):
    """The operand has integers whose range is at most 255, so the scale is 1, or a rounded quotient that is the same in all
    implementations."""
    g = np.random.Generator(np.random.PCG64(b.r.getrandbits(64)))
    array = g.integers(-60, 195, b.shape((1, 3))).astype(np.float32)
    if array.size == 0:
        raise Skip("empty")
    array.flat[0] = 195
    array.flat[-1] = -60 if array.size > 1 else 255
    return [b.fresh(array)], {}, 3


@operators("MatMulInteger", kind="exact", liked=2)
def matmul_integer(b, o):
    t, u = o.type("T1"), o.type("T2")
    x = b.tensor(t, rank=(1, 4))
    y = b.tensor(u, shape=(x.shape[-1], b.dim()))
    return [x, y, zero(b, t) if b.r.random() < 0.6 else None, zero(b, u) if b.r.random() < 0.6 else None], {}


@operators("ConvInteger", kind="exact")
def conv_integer(b, o):
    from ops.nn import image, spatial

    t, u = o.type("T1"), o.type("T2")
    x = image(b, t, rank=2)
    kernel = [b.r.choice([1, 2, 3]) for _ in range(2)]
    attributes = spatial(b, 2, x.shape[2:], kernel, {"dilations": None})
    w = b.tensor(u, shape=(b.r.randint(1, 3), x.shape[1]) + tuple(kernel))
    return [x, w, zero(b, t) if b.r.random() < 0.6 else None], attributes


@operators("QLinearMatMul", kind="step")
def qlinear_matmul(b, o):
    t, u, v = o.type("T1"), o.type("T2"), o.type("T3")
    s = o.type("TS") if "TS" in o.schema.types else "float"
    x = b.tensor(t, rank=(2, 3))
    y = b.tensor(u, shape=(x.shape[-1], b.dim()))
    out = b.constant(np.array(b.r.choice([4.0, 8.0, 32.0])).astype(rows.NP[s]), as_node=False)
    return [x, scale(b, s), zero(b, t), y, scale(b, s), zero(b, u), out, zero(b, v)], {}


@operators("QLinearConv", kind="step")
def qlinear_conv(b, o):
    from ops.nn import image, spatial

    t, u, v = o.type("T1"), o.type("T2"), o.type("T3")
    x = image(b, t, rank=2)
    kernel = [b.r.choice([1, 2, 3]) for _ in range(2)]
    attributes = spatial(b, 2, x.shape[2:], kernel, {"dilations": None})
    m = b.r.randint(1, 3)
    w = b.tensor(u, shape=(m, x.shape[1]) + tuple(kernel))
    shape = b.r.choice([(), (m,)])
    bias = b.tensor("int32", shape=(m,), lo=-300, hi=300) if b.r.random() < 0.5 else None
    out = b.constant(np.array(b.r.choice([4.0, 8.0, 32.0]), np.float32), as_node=False)
    zero_w = b.constant(np.zeros(shape).astype(rows.NP[u]), as_node=False)
    return [
        x,
        scale(b, "float"),
        zero(b, t),
        w,
        scale(b, "float", shape),
        zero_w,
        out,
        zero(b, v),
        bias,
    ], attributes
