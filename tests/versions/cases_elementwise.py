"""cases_elementwise.py: operators that compute each element by itself.  numpy computes the expected values."""
import math

import numpy as np

from case import bools, case, f32, f64, ints

X = f32(2, 3, 4)
POSITIVE = f32(2, 3, 4, low=0.25, high=4)
UNIT = f32(2, 3, 4, low=-0.875, high=0.875)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elementwise(function):
    return np.vectorize(function, otypes=[np.float32])


# --- one operand ---

UNARY = {
    "Abs": (np.abs, X),
    "Acos": (np.arccos, UNIT),
    "Acosh": (np.arccosh, POSITIVE + 1),
    "Asin": (np.arcsin, UNIT),
    "Asinh": (np.arcsinh, X),
    "Atan": (np.arctan, X),
    "Atanh": (np.arctanh, UNIT),
    "Ceil": (np.ceil, X),
    "Cos": (np.cos, X),
    "Cosh": (np.cosh, X),
    "Erf": (elementwise(math.erf), X),
    "Exp": (np.exp, X),
    "Floor": (np.floor, X),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1).astype(np.float32), X * 3),
    "IsNaN": (np.isnan, np.float32([1, np.nan, -np.inf, np.inf, -0.0])),
    "IsInf": (np.isinf, np.float32([1, np.nan, -np.inf, np.inf, -0.0])),
    "Log": (np.log, POSITIVE),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), X),
    "Neg": (np.negative, X),
    "Reciprocal": (lambda x: 1 / x, POSITIVE),
    "Relu": (lambda x: np.maximum(x, 0), X),
    "Round": (np.rint, np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.75])),
    "Sigmoid": (sigmoid, X),
    "Sign": (np.sign, X),
    "Sin": (np.sin, X),
    "Sinh": (np.sinh, X),
    "Softplus": (lambda x: np.log1p(np.exp(x)), X),
    "Softsign": (lambda x: x / (1 + np.abs(x)), X),
    "Sqrt": (np.sqrt, POSITIVE),
    "Tan": (np.tan, UNIT),
    "Tanh": (np.tanh, X),
}
CONSUME = ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Tanh")
for op, (function, x) in UNARY.items():
    case(op, x, expect=function)
    if op in CONSUME:
        case(op, x, expect=function, until=5, name="consumed", consumed_inputs=[0])
for op in ("Abs", "Neg", "Sign"):
    case(op, ints(2, 5, dtype=np.int32), expect=UNARY[op][0], since=6 if op != "Sign" else 9, name="integers")
case("Relu", ints(2, 5, dtype=np.int32), expect=UNARY["Relu"][0], since=14, name="integers")
case("IsInf", UNARY["IsInf"][1], expect=np.isneginf, name="negative", detect_positive=0)

# --- activations with attributes ---


def elu(x, alpha=1.0):
    return np.where(x < 0, alpha * np.expm1(x), x).astype(np.float32)


def selu(alpha, gamma):
    return lambda x: np.where(x > 0, gamma * x, gamma * alpha * np.expm1(x)).astype(np.float32)


def leaky(alpha):
    return lambda x: np.where(x < 0, np.float32(alpha) * x, x)


case("Elu", X, expect=elu)
case("Elu", X, expect=lambda x: elu(x, 1.5), name="alpha", alpha=1.5)
case("Elu", X, expect=elu, until=5, name="consumed", consumed_inputs=[0])
case("HardSigmoid", X * 2, expect=lambda x: np.clip(np.float32(0.2) * x + np.float32(0.5), 0, 1))
case("HardSigmoid", X, expect=lambda x: np.clip(x * 0.5 + np.float32(0.25), 0, 1), name="given", alpha=0.5, beta=0.25)
case("LeakyRelu", X, expect=leaky(0.01))
case("LeakyRelu", X, expect=leaky(0.25), until=5, name="consumed", alpha=0.25, consumed_inputs=[0])
# The default constants have more digits since version 6; the cases' usual tolerance does not see the difference.
case("Selu", X, expect=selu(1.6732, 1.0507), until=5, consumed_inputs=[0])
case("Selu", X, expect=selu(1.67326319217681884765625, 1.05070102214813232421875), since=6)
case("Selu", X, expect=selu(1.5, 2), name="given", alpha=1.5, gamma=2.0)
case("ThresholdedRelu", X, expect=lambda x: np.where(x > 1, x, 0))
case("ThresholdedRelu", X, expect=lambda x: np.where(x > 0.5, x, 0), name="alpha", alpha=0.5)

case("Clip", X, expect=lambda x: x, until=10, name="unbounded")
case("Clip", X, expect=lambda x: np.clip(x, -0.5, 0.75), until=10, min=-0.5, max=0.75)
case("Clip", X, expect=lambda x: np.maximum(x, -0.5), until=10, name="min", min=-0.5)
case("Clip", X, expect=lambda x: np.minimum(x, 0.5), until=5, name="consumed", max=0.5, consumed_inputs=[0])
case("Clip", X, np.float32(-0.5), np.float32(0.75), expect=np.clip, since=11)
case("Clip", X, None, np.float32(0.75), expect=lambda x, _, high: np.minimum(x, high), since=11, name="max")
case("Clip", ints(9), np.int64(-3), expect=np.maximum, since=12, name="integers")

# --- two operands ---

BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
for op, function in BINARY.items():
    y = POSITIVE if op == "Div" else X
    case(op, X, y, expect=function, name="same")
    case(op, X, f32(3, 1, low=1, high=2), expect=function, since=7, name="numpy")
    case(op, f32(4), y, expect=function, since=7, name="left")
    case(op, ints(2, 5, dtype=np.int32), ints(2, 5, low=1, dtype=np.int32), since=6, name="integers",
         expect=function if op != "Div" else lambda x, y: np.trunc(x / y).astype(np.int32))
    case(op, X, y, expect=function, until=5, name="consumed", consumed_inputs=[0, 0])


def at_axis(function, axis, rank=3):
    """Makes a function that broadcasts y as ONNX did before version 7: y's dims are aligned with x's dims from `axis` on."""
    return lambda x, y: function(x, y.reshape(y.shape + (1,) * (rank - axis - y.ndim)))


def before_7(op, function, x, make, **more):
    """Adds cases of all forms of broadcasting before version 7.  make: makes the second operand of a shape."""
    case(op, x, make(4), expect=function, until=6, name="suffix", broadcast=1, **more)
    case(op, x, make(3, 4), expect=function, until=6, name="suffix-2", broadcast=1, **more)
    case(op, x, make(3), expect=at_axis(function, 1), until=6, name="axis-1", broadcast=1, axis=1, **more)
    case(op, x, make(2), expect=at_axis(function, 0), until=6, name="axis-0", broadcast=1, axis=0, **more)
    case(op, x, make(2, 3), expect=at_axis(function, 0), until=6, name="axis-0-2", broadcast=1, axis=0, **more)
    case(op, x, make(), expect=function, until=6, name="scalar", broadcast=1, **more)
    case(op, x, make(1, 1), expect=lambda x, y: function(x, y[0, 0]), until=6, name="one", broadcast=1, **more)


def divisor(*shape):
    return f32(*shape, low=0.5, high=2)


for op, function in BINARY.items():
    before_7(op, function, X, divisor)

case("Pow", POSITIVE, X, expect=np.power)
before_7("Pow", np.power, POSITIVE, divisor)
case("Pow", POSITIVE, f32(3, 1), expect=np.power, since=7, name="numpy")
case("Pow", POSITIVE, ints(4, low=0, high=3, dtype=np.int32), since=12, name="mixed",
     expect=lambda x, y: np.power(x, y.astype(np.float32)))

LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
for op, function in LOGIC.items():
    case(op, bools(2, 3, 4), ~bools(2, 3, 4), expect=function)
    before_7(op, function, bools(2, 3, 4), bools)
    case(op, bools(2, 3, 4), bools(3, 1), expect=function, since=7, name="numpy")

COMPARE = {"Equal": np.equal, "Greater": np.greater, "Less": np.less}
for op, function in COMPARE.items():
    numbers = ints if op == "Equal" else f32
    x = np.round(numbers(2, 3, 4))
    case(op, x, np.round(numbers(2, 3, 4)[::-1]), expect=function, name="same")
    before_7(op, function, x, lambda *shape, numbers=numbers: np.round(numbers(*shape)))
    case(op, x, np.round(numbers(3, 1)), expect=function, since=7, name="numpy")
case("Equal", bools(2, 3, 4), ~bools(2, 3, 4)[::-1], expect=np.equal, name="bools")
case("Equal", np.round(X), np.round(f32(4)), expect=np.equal, since=11, name="floats")
for op, function in (("Greater", np.greater), ("Less", np.less)):
    case(op, ints(2, 5), ints(2, 5, high=8), expect=function, since=9, name="integers")
for op, function in (("GreaterOrEqual", np.greater_equal), ("LessOrEqual", np.less_equal)):
    case(op, np.round(X), np.round(f32(3, 1)), expect=function)

case("Mod", ints(9), ints(9, low=1, high=4), expect=np.mod)
case("Mod", ints(9), ints(9, low=-4, high=-1), expect=np.mod, name="negative")
case("Mod", X, divisor(4), expect=np.fmod, name="fmod", fmod=1)

PRELU = leaky  # the slope is an array
case("PRelu", X, X[::-1] / 2, expect=lambda x, s: np.where(x < 0, s * x, x))
case("PRelu", X, f32(1), expect=lambda x, s: np.where(x < 0, s * x, x), name="one")
case("PRelu", X, f32(3), expect=lambda x, s: np.where(x < 0, s[:, None] * x, x), until=6, name="channels")
case("PRelu", X, f32(3, 1), expect=lambda x, s: np.where(x < 0, s * x, x), since=7, name="numpy")
case("PRelu", X, f32(1), expect=lambda x, s: np.where(x < 0, s * x, x), until=5, name="consumed", consumed_inputs=[0, 0])
case("PRelu", ints(2, 5, dtype=np.int32), ints(5, dtype=np.int32), since=9, name="integers",
     expect=lambda x, s: np.where(x < 0, s * x, x))

# --- many operands ---

MANY = {
    "Max": lambda *x: np.max(np.broadcast_arrays(*x), axis=0),
    "Min": lambda *x: np.min(np.broadcast_arrays(*x), axis=0),
    "Sum": lambda *x: np.sum(np.broadcast_arrays(*x), axis=0),
    "Mean": lambda *x: np.mean(np.broadcast_arrays(*x), axis=0, dtype=np.float32),
}
for op, function in MANY.items():
    case(op, X, expect=function, name="one")
    case(op, X, POSITIVE, UNIT, expect=function)
    case(op, X, POSITIVE, expect=function, until=5, name="consumed", consumed_inputs=[0, 0])
    case(op, X, f32(3, 1), f32(4), expect=function, since=8, name="numpy")
for op in ("Max", "Min"):
    case(op, ints(2, 5, dtype=np.int32), ints(5, dtype=np.int32), expect=MANY[op], since=12, name="integers")

case("Where", bools(2, 3, 4), X, f32(3, 1), expect=np.where)
case("Where", bools(3, 1), ints(2, 1, 4), ints(4), expect=np.where, name="integers")
case("Add", f64(2, 3), f64(3), expect=np.add, since=7, name="doubles")

BITS = ints(3, 4, low=0, high=255, dtype=np.uint8)
for direction, function in (("LEFT", np.left_shift), ("RIGHT", np.right_shift)):
    case("BitShift", BITS, ints(4, low=0, high=7, dtype=np.uint8), expect=function, name=direction.lower(), direction=direction)
case("Celu", X, expect=lambda x: np.maximum(x, 0) + np.minimum(0, 0.5 * np.expm1(x / 0.5)).astype(np.float32), alpha=0.5)
