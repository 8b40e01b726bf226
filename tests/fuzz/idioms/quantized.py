"""idioms/quantized.py: quantise-dequantise chains, weights of few bits, products of bytes.

Scales are powers of two and weights are small integers, so that sums are exact in f32.  If a result is rounded to integers,
a bias keeps it away from the middle between two integers, so that all implementations round it alike (`quantized`)."""

import numpy as np

from idioms import idiom
from registry import EXACT, Skip
from values import as_wide


def quantized(k, x, scale, zero):
    """Adds QuantizeLinear, also of a value that is not exact, if its error cannot change a result."""
    if x.exact:
        return k.QuantizeLinear(x, scale, zero)
    numbers = as_wide(x.array) / as_wide(scale.array)
    middle = np.min(np.abs(numbers - np.floor(numbers) - 0.5), initial=1.0)
    if middle * float(scale.array.min()) <= 8 * x.error:
        raise Skip("next to the middle of two steps")
    x.exact = True  # for this node, whose results do not depend on the error
    try:
        return k.QuantizeLinear(x, scale, zero)
    finally:
        x.exact = False


def step_of(k, lo=-5, hi=-3):
    return k.const(np.array(2.0 ** k.r.randint(lo, hi), np.float32))


def through_bytes(k, x, exact=True):
    """QuantizeLinear and DequantizeLinear with one scale."""
    scale = step_of(k)
    zero = k.const(np.array(k.one(0, 3, 4), k.one(np.int8, np.uint8)))
    return k.DequantizeLinear(quantized(k, x, scale, zero), scale, zero, kind=EXACT)


def weights_of_bytes(k, shape, axis, channels, low=-8, high=7):
    """Returns dequantised weights: a constant of int8 with one scale, or with a scale for each channel.  Sometimes it is one of uint8
    whose zero point makes numbers of it that int8 does not have."""
    array, type = k.array(shape, low, high, "int8"), np.int8
    if k.chance(0.2):
        array, type = (array.astype(np.int16) + 10).astype(np.uint8), np.uint8
        array.reshape(-1)[:: max(1, array.size // 8)] = 200
    w = k.const(array)
    each = k.chance(0.6) and k.b.opset >= 13
    scale = (
        k.const((2.0 ** -k.array((channels,), 3, 5, "int64").astype(np.float32)).astype(np.float32))
        if each
        else step_of(k)
    )
    zero = k.const(np.full(scale.shape, 0 if type == np.int8 else 10, type))
    return k.DequantizeLinear(w, scale, zero, kind=EXACT, **({"axis": axis} if each else {}))


def grid(k, x):
    """Returns an exact value of x's shape: x if it is exact, otherwise an input."""
    k.need(k.b.opset >= 10)
    return x if x.exact and x.type == "float" else k.input(x.shape, type="float")


@idiom("any", 0.8)
def fake_quantized(k, x):
    """A chain of QuantizeLinear and DequantizeLinear pairs, with operators between them that keep values exact."""
    y = through_bytes(k, grid(k, x))
    for _ in range(k.one(0, 1, 2)):
        y = k.one(
            lambda: k.Relu(y), lambda: k.view(y), lambda: through_bytes(k, y), lambda: k.clip(y, -1.0, 1.0)
        )()
    return y


def bias_of(k, n):
    """Returns biases between the results of exact sums, so that few sums are in the middle between two steps."""
    return k.const((k.array((n,), -8, 8, "int64") / 16 + 2.0 ** -k.one(7, 9, 9, 10)).astype(np.float32))


@idiom("image", 1.2)
def quantized_conv(k, x):
    """Both operands through bytes, a bias, an activation, and the result through bytes, which another such convolution may read."""
    y = through_bytes(k, grid(k, x))
    for _ in range(k.one(1, 1, 2)):
        k.need(y.exact)
        c, m = y.shape[1], k.one(16, 24, 32)
        group = k.one(1, 1, 2, 4, c)
        m, side = (c, 3) if group == c else (m, k.one(1, 3))
        k.afford(y.size // group * m * side * side)
        w = weights_of_bytes(k, (m, c // group, side, side), 0, m)
        y = k.Conv(y, w, bias_of(k, m), group=group, kernel_shape=[side] * 2, pads=[side // 2] * 4)
        y = k.Relu(y) if k.chance(0.5) else y
        y = through_bytes(k, k.clip(y, -3.0, 3.0) if k.chance(0.3) else y) if k.chance(0.8) else y
    return y


@idiom("rows")
def quantized_linear(k, x):
    y = through_bytes(k, grid(k, x))
    n, c = k.one(16, 32, 48), x.shape[-1]
    k.afford(x.size * n)
    turned = k.chance(0.5)  # the weights have a row for each output, as torch has them
    w = k.swap(weights_of_bytes(k, (n, c), 0, n)) if turned else weights_of_bytes(k, (c, n), 1, n)
    y = k.Add(k.MatMul(y, w), bias_of(k, n))
    return through_bytes(k, y) if k.chance(0.5) else y


@idiom("image")
def quantized_sum(k, x):
    """The residual of quantised networks: both sides dequantised, added, quantised."""
    a = through_bytes(k, grid(k, x))
    b = k.Relu(a) if k.chance(0.5) else through_bytes(k, k.input(x.shape, type="float"))
    return through_bytes(k, k.Add(a, b, kind=EXACT))


@idiom("matrix")
def weights_of_few_bits(k, x):
    """A product of few rows with dequantised weights, in blocks that have a scale each."""
    k.need(x.type == "float" and x.shape[1] % 16 == 0)
    n, c = k.one(32, 64, 96), x.shape[1]
    k.afford(x.size * n)
    bits = k.one("int8", "uint4", "int4") if k.b.opset >= 21 else "int8"
    lo, hi = {"int8": (-20, 20), "uint4": (0, 15), "int4": (-8, 7)}[bits]
    w = k.const(k.array((c, n), lo, hi, bits))
    if k.b.opset >= 21 and k.chance(0.6):
        scale = k.const((2.0 ** -k.array((c // 16, n), 4, 6, "int64").astype(np.float32)).astype(np.float32))
        return k.MatMul(x, k.DequantizeLinear(w, scale, axis=0, block_size=16, kind=EXACT))
    if k.b.opset >= 13:
        scale = k.const((2.0 ** -k.array((n,), 4, 6, "int64").astype(np.float32)).astype(np.float32))
        return k.MatMul(x, k.DequantizeLinear(w, scale, axis=1, kind=EXACT))
    return k.MatMul(x, k.DequantizeLinear(w, step_of(k, -6, -4), kind=EXACT))


@idiom("matrix", 0.8)
def dynamic_product(k, x):
    """DynamicQuantizeLinear and MatMulInteger, whose result is multiplied by the scales."""
    m, c, n = x.shape[0], x.shape[1], k.one(16, 32)
    array = k.array((m, c), -60, 195, "int64").astype(np.float32)
    array.flat[0], array.flat[-1] = 195, -60
    y = k.DynamicQuantizeLinear(k.b.new_input(array), outputs=3)
    w = k.const(k.array((c, n), -2, 2, "int8"))
    k.afford(m * c * n)
    z = k.Cast(k.MatMulInteger(y[0], w, y[2]), to=1)
    return k.Mul(k.Mul(z, k.Mul(y[1], 2.0**-10)), 2.0**-3)


@idiom("image", 0.8)
def bytes_through_pools(k, x):
    """Pools, reshapes and joins between bytes."""
    y = through_bytes(k, grid(k, x))
    y = k.MaxPool(y, kernel_shape=[2, 2], strides=[2, 2])
    y = through_bytes(k, y)
    return k.concat([y, y], 1) if k.chance(0.4) else y


@idiom("image", 0.8)
def quantized_join(k, x):
    """Branches with scales of their own or a common one, concatenated and quantised again."""
    parts = [through_bytes(k, grid(k, x))]
    parts.append(k.Relu(parts[0]) if k.chance(0.3) else parts[0])
    parts.append(through_bytes(k, k.input(x.shape, type="float")))
    y = k.concat(k.shuffled(*parts)[: k.one(2, 3)], 1)
    return through_bytes(k, y) if k.chance(0.7) else y


def linear(k, y, scale, zero, m, side, group=1):
    """Adds QLinearConv with a zero point of its own; returns its result, scale and zero point."""
    w = k.array((m, y.shape[1] // group, side, side), -8, 7, "int8")
    k.afford(y.size // group * m * side * side)
    out = k.const(np.array(scale.array * 2.0 ** k.one(0, 1, 2), np.float32))
    own = k.const(np.array(k.one(0, 0, 3, 100), y.array.dtype))
    bias = [k.const(k.array((m,), -300, 300, "int32"))] if k.chance(0.6) else []
    w_scale, w_zero = k.const(np.array(2.0**-4, np.float32)), k.const(np.array(0, np.int8))
    attributes = {"group": group, "kernel_shape": [side] * 2, "pads": [side // 2] * 4}
    return k.QLinearConv(y, scale, zero, k.const(w), w_scale, w_zero, out, own, *bias, **attributes), out, own


@idiom("image", 1.2)
def linear_conv(k, x):
    """A chain of QLinearConv between QuantizeLinear and DequantizeLinear.  Its last bytes may be read with another zero point, too."""
    scale, zero = step_of(k), k.const(np.array(k.one(0, 3, 100), k.one(np.uint8, np.int8)))
    y = k.QuantizeLinear(grid(k, x), scale, zero)
    for _ in range(k.one(1, 2, 2, 3)):
        m, side = k.one(16, 24), k.one(1, 1, 3)
        depthwise = k.chance(0.2)
        y, scale, zero = linear(k, y, scale, zero, y.shape[1] if depthwise else m, side, y.shape[1] if depthwise else 1)
    if k.chance(0.3):
        other = k.const(np.array(k.one(0, 50), y.array.dtype))
        m = k.one(16, 24)
        return k.Add(*[k.DequantizeLinear(*linear(k, y, scale, z, m, 1), kind=EXACT) for z in (zero, other)], kind=EXACT)
    return k.DequantizeLinear(y, scale, zero, kind=EXACT)


@idiom("matrix", 0.5)
def long_integer_sums(k, x):
    """MatMulInteger of two inputs, of so many products that the sums are beyond the integers that float has; their last digits count."""
    m, c, n = x.shape[0], k.one(300, 500, 700), k.one(3, 8, 16)
    k.afford(m * c * n)
    a, b = (k.b.new_input(k.array(shape, 200, 255, "uint8")) for shape in ((m, c), (c, n)))
    digits = k.Mod(k.MatMulInteger(a, b), k.const(np.array(1021, np.int32)))
    return k.Mul(k.Cast(digits, to=1, kind=EXACT), 2.0**-8)


@idiom("rows", 0.8)
def bytes_by_hand(k, x):
    """A dequantisation of single operators, whose zero point need not be a byte."""
    number = k.one(3, 128, 300, 40000, -70000)
    scale = k.const(np.array(2.0 ** (-4 if abs(number) < 1000 else -14), np.float32))
    q = k.QuantizeLinear(grid(k, x), step_of(k), k.const(np.array(k.one(0, 128), np.uint8)))
    y = k.Sub(k.Cast(q, to=6), k.const(np.array(number, np.int32)), wild=True)
    y = k.Mul(k.Cast(y, to=1, kind=EXACT, wild=True), scale, kind=EXACT)
    n, c = k.one(16, 32, 48), x.shape[-1]
    k.afford(x.size * n)
    return k.MatMul(y, weights_of_bytes(k, (c, n), 1, n))
