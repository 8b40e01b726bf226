"""ops/elementwise.py: operators that take each element on its own, with broadcasting."""

import numpy as np

import rows
from registry import Skip, operators
from values import draw_array, type_range

# operator: lowest and highest operand, so that results stay finite and moderate
RANGES = {
    "Acos": (-0.95, 0.95),
    "Asin": (-0.95, 0.95),
    "Atanh": (-0.9, 0.9),
    "Acosh": (1.1, 30),
    "Asinh": (-30, 30),
    "Atan": (-30, 30),
    "Cos": (-10, 10),
    "Sin": (-10, 10),
    "Tan": (-1.3, 1.3),
    "Cosh": (-4, 4),
    "Sinh": (-4, 4),
    "Tanh": (-8, 8),
    "Erf": (-4, 4),
    "Exp": (-5, 4),
    "Log": (0.05, 50),
    "Sqrt": (0.05, 100),
    "Reciprocal": (0.2, 8),
    "Sigmoid": (-8, 8),
    "Softplus": (-8, 8),
    "Softsign": (-8, 8),
}


@operators(" ".join(set(RANGES) - {"Sigmoid"}), ulps=8)
@operators("Sigmoid", ulps=8, unit=0.1)  # ONNX Runtime's small results have the same absolute error as results near 1/2
def smooth(b, o):
    lo, hi = RANGES[o.name]
    return [b.tensor(o.type("T"), lo=lo, hi=hi, least=0)], {}


@operators("Abs Neg", kind="exact")
def sign_change(b, o):
    t = o.type("T")
    lo = None if rows.is_float(t) or t.startswith("u") else type_range(t)[0] + 1
    return [b.tensor(t, lo=lo, least=0)], {}


@operators("Ceil Floor Round Sign", kind="step")
def steps(b, o):
    return [b.tensor(o.type("T"), exact=True, least=0)], {}


@operators("Not BitwiseNot", kind="exact")
def flip(b, o):
    return [b.tensor("bool" if o.name == "Not" else o.type("T"), least=0)], {}


@operators("Identity", kind="exact")
def identity(b, o):
    return [b.tensor(o.type("V" if "V" in o.schema.types else "T"), least=0)], {}


@operators("Relu", kind="exact", liked=3)
def relu(b, o):
    return [b.tensor(o.type("T"), least=0)], {}


# Factors are f32 attributes, even for doubles.
# In Gelu, 1 + tanh(...) cancels.
@operators("Elu Celu LeakyRelu HardSigmoid Selu HardSwish Mish Swish", ulps=8, inner="float")
@operators("Gelu", ulps=8, inner="float", unit=1.0)
def activation(b, o):
    r = b.r
    attributes = {}
    for name, lo, hi in (("alpha", 0.1, 1.5), ("beta", 0.1, 0.9), ("gamma", 0.5, 1.5)):
        if o.has(name) and r.random() < 0.6:
            attributes[name] = round(r.uniform(lo, hi), 3) + (
                1.0 if o.name == "Selu" and name == "gamma" else 0
            )
    if o.has("approximate") and r.random() < 0.5:
        attributes["approximate"] = r.choice(["none", "tanh"])
    return [b.tensor(o.type("T"), lo=-8, hi=8, least=0)], attributes


@operators("SwiGLU", ulps=8, inner="float")
def swiglu(b, o):
    t = o.type("T")
    x = b.tensor(t, lo=-8, hi=8, least=0)
    return [x, b.tensor(t, shape=x.shape, least=0)], {"alpha": b.r.choice([None, 0.7])}


@operators("ThresholdedRelu Shrink", kind="step")
def thresholds(b, o):
    attributes = (
        {"alpha": b.r.choice([None, 0.7])}
        if o.name == "ThresholdedRelu"
        else {"lambd": b.r.choice([None, 1.3]), "bias": b.r.choice([None, 0.5])}
    )
    t = o.type("T")
    if o.name == "Shrink" and not rows.is_float(t):
        return [b.tensor(t, lo=0 if t[0] == "u" else -100, hi=100, least=0)], {"lambd": 2.0, "bias": 1.0}
    return [b.tensor(t, exact=True, least=0)], attributes


@operators("IsInf IsNaN", kind="step")
def not_numbers(b, o):
    def special(s):
        x = draw_array(b.r, t, s)
        wide = x.astype(np.float32)
        mask = np.random.Generator(np.random.PCG64(b.r.getrandbits(64))).random(s)
        wide = np.where(mask < 0.2, np.inf, np.where(mask < 0.4, -np.inf, np.where(mask < 0.6, np.nan, wide)))
        return np.asarray(wide, np.float32).astype(rows.NP[t])

    t = o.type("T1")
    s = b.shape((0, 4))
    x = b.fresh(special(s), constant=False)
    attributes = (
        {"detect_negative": b.r.choice([None, 0, 1]), "detect_positive": b.r.choice([None, 0, 1])}
        if o.name == "IsInf"
        else {}
    )
    return [x], attributes


# --- two operands and more ---


def partner_shape(b, s):
    """Returns a shape that can be broadcast with s."""
    r = b.r
    kind = r.random()
    if kind < 0.5:
        return s
    other = [d if r.random() < 0.6 else 1 for d in s]
    if kind < 0.8:
        return tuple(other[r.randrange(len(s) + 1) :])
    if len(s) < 4 and kind < 0.9 and np.prod(s, dtype=int) < 200:
        return (r.choice((1, 2, 3)),) + tuple(other)
    return tuple(other)


def pair(b, t, u=None, exact=False, second=(None, None), lo=None, hi=None):
    x = b.tensor(t, lo=lo, hi=hi, exact=exact, least=0)
    y = b.tensor(u or t, shape=partner_shape(b, x.shape), lo=second[0], hi=second[1], exact=exact, least=0)
    return x, y


def either_way(b, x, y):
    return [x, y] if b.r.random() < 0.5 else [y, x]


@operators("Add Sub Mul", ulps=2, liked=4)
def arithmetic(b, o):
    return (
        either_way(
            b,
            *pair(
                b,
                o.type("T"),
                lo=-1e3 if rows.is_float(o.type("T")) else None,
                hi=1e3 if rows.is_float(o.type("T")) else None,
            )
        ),
        {},
    )


@operators("Div", ulps=2, liked=2)
def divide(b, o):
    t = o.type("T")
    if rows.is_float(t):
        x, y = pair(b, t, second=(0.3, 10))
    else:
        x, y = pair(b, t, second=(1, None))
        if x.size and x.low <= type_range(t)[0] < 0:
            raise Skip("the least integer")
    return [x, y], {}


@operators("Mod", kind="step")
def modulus(b, o):
    t = o.type("T")
    signed = not t.startswith("u") and b.r.random() < 0.5
    x, y = pair(b, t, exact=True, second=(-9 if signed else 1, -1 if signed else 9))
    if x.size and not rows.is_float(t) and x.low <= type_range(t)[0] < 0:
        raise Skip("the least integer")
    fmod = 1 if rows.is_float(t) else b.r.choice([None, 0, 1])
    return [x, y], {"fmod": fmod}


@operators("Pow", ulps=8)
def power(b, o):
    t = o.type("T")
    u = o.type("T1") if "T1" in o.schema.types else t
    if not rows.is_float(t):
        x = b.tensor(t, lo=None if t.startswith("u") else -9, hi=9, least=0)
        y = b.tensor(u, shape=partner_shape(b, x.shape), lo=0, hi=3, exact=True, least=0)
        if rows.is_float(u):
            y = b.fresh(np.round(np.abs(rows_wide(y))).clip(0, 3).astype(rows.NP[u]))
        return [x, y], {}
    x = b.tensor(t, lo=0.2, hi=6, least=0)
    y = b.tensor(u, shape=partner_shape(b, x.shape), lo=0 if u.startswith("u") else -2, hi=3, least=0)
    return [x, y], {}


def rows_wide(v):
    from values import as_wide

    return as_wide(v.array)


@operators("PRelu", ulps=2)
def prelu(b, o):
    t = o.type("T")
    x = b.tensor(t, rank=(0, 4), least=0)
    s = tuple(d if b.r.random() < 0.6 else 1 for d in x.shape)
    s = s[b.r.randrange(len(s)) :] if s and b.r.random() < 0.8 else (1,) + s
    return [x, b.tensor(t, shape=s, lo=0, hi=2, least=0)], {}


@operators("Greater GreaterOrEqual Less LessOrEqual Equal", kind="step")
def comparison(b, o):
    """Sometimes operands have few different numbers, so that some are equal, for which < and <= differ."""
    t = o.type("T")
    if t not in ("bool", "string") and b.r.random() < 0.5:
        lo, hi = 0 if t.startswith("u") else -2, 2
        return list(pair(b, t, exact=True, lo=lo, hi=hi, second=(lo, hi))), {}
    return list(pair(b, t, exact=True)), {}


@operators("And Or Xor", kind="exact")
def logic(b, o):
    return list(pair(b, "bool")), {}


@operators("BitwiseAnd BitwiseOr BitwiseXor", kind="exact")
def bitwise(b, o):
    return list(pair(b, o.type("T"))), {}


@operators("BitShift", kind="exact")
def bit_shift(b, o):
    return list(pair(b, o.type("T"), second=(0, 7))), {"direction": b.r.choice(["LEFT", "RIGHT"])}


@operators("BitCast", kind="step")
def bit_cast(b, o):
    """For a cast to floats, complex numbers or booleans, the operand has the bits of moderate numbers, since arbitrary bits can be numbers
    of any size."""
    u = o.type("T2")

    def width(type):
        return {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}.get(
            type, 8 * rows.NP[type].itemsize
        )

    t = o.type("T1", [t for t in o.schema.types["T1"] if width(t) == width(u)])
    attributes = {"to": rows.CODE_OF_NP[rows.NP[u]]}
    if t in (u, "bool") or u in rows.INTS + rows.TINY_INTS:
        return [b.tensor(t, exact=True, least=0)], attributes
    bits = draw_array(b.r, u, b.shape((0, 4)))
    if width(u) == 4:  # one in each byte, as numpy has them
        bits = (bits.view(np.uint8) if t == "uint4" else bits.view(np.int8) << 4 >> 4).astype(rows.NP[t])
    return [b.fresh(bits.view(rows.NP[t]))], attributes


@operators("Max Min", kind="exact")
@operators("Mean Sum", ulps=4)
def variadic(b, o):
    t = o.type("T")
    x, y = pair(b, t, lo=-1e3 if rows.is_float(t) else None, hi=1e3 if rows.is_float(t) else None)
    if o.since < 8 and x.shape != y.shape:
        y = b.tensor(t, shape=x.shape, least=0)
    operands = [x, y]
    if b.r.random() < 0.3:
        operands = [x]
    elif b.r.random() < 0.4:
        operands.append(b.tensor(t, shape=x.shape, least=0))
    b.r.shuffle(operands)
    return operands, {}


@operators("Where", kind="exact", liked=2)
def where(b, o):
    t = o.type("T")
    x, y = pair(b, t)
    s = np.broadcast_shapes(x.shape, y.shape)
    return [b.tensor("bool", shape=partner_shape(b, s), least=0), x, y], {}


@operators("Clip", kind="exact", liked=2)
def clip(b, o):
    t = o.type("T")
    x = b.tensor(t, least=0)
    lo, hi = (-1.5, 2.0) if rows.is_float(t) else (3, 40) if t.startswith("u") else (-30, 40)
    lo, hi = b.r.choice([(lo, hi), (lo, None), (None, hi), (None, None)])
    if o.has("min"):
        return [x], {"min": lo, "max": hi}

    def bound(k):
        return None if k is None else b.fresh(np.array(k).astype(rows.NP[t]), constant=b.r.random() < 0.8)

    return [x, bound(lo), bound(hi)], {}


@operators("Cast CastLike", kind="round", ulps=1, liked=2)
def cast(b, o):
    to = o.type("T2")
    source = o.type("T1")
    if source in rows.COMPLEX or to in rows.COMPLEX:
        raise Skip("complex")
    lo, hi = (None, None) if rows.is_float(to) or to == "bool" else type_range(to)
    if rows.is_float(to):
        lo, hi = (
            {"float4e2m1": (-6, 6), "float8e8m0": (0.1, 100), "float6e2m3": (-7, 7), "float6e3m2": (-28, 28)}
        ).get(to, (-200, 200))
    if rows.is_float(source) and lo is not None:
        lo, hi = max(lo, -200), min(hi, 200)
    exact = not rows.is_float(to) or to in rows.TINY_FLOATS
    x = b.tensor(source, lo=lo, hi=hi, exact=exact, least=0)
    kind = "step" if exact or rows.bits(to) >= rows.bits(source) and x.exact else "round"
    kind = "step" if x.exact else kind  # there is one rounding, which is the same in all implementations
    attributes = {"saturate": b.r.choice([None, 0, 1]) if o.has("saturate") else None}
    if o.name == "CastLike":
        return [x, b.tensor(to, least=0)], attributes, 1, kind
    return [x], {"to": rows.CODE_OF_NP[rows.NP[to]], **attributes}, 1, kind


@operators("Dropout", kind="exact")
def dropout(b, o):
    """Dropout in inference: an identity, and a mask of ones."""
    t = o.type("T")
    x = b.tensor(t)
    if o.has("ratio"):
        attributes = {"ratio": b.r.choice([None, 0.3]), "is_test": 1 if o.has("is_test") else None}
        return [x], attributes, b.r.choice([1, 2])
    u = o.type("T1", rows.FLOATS + rows.TINY_FLOATS)
    ratio = b.fresh(np.array(0.25).astype(rows.NP[u]), constant=True) if b.r.random() < 0.7 else None
    return [x, ratio], {"seed": b.r.choice([None, 1])}, b.r.choice([1, 2])
