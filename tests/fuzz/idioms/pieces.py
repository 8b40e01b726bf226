"""idioms/pieces.py: activations, gates and norms, in the spellings that exporters have for them."""

import numpy as np

from idioms import idiom

# --- activations ---


@idiom("any", 0.5)
def plain_activation(k, x):
    return k.node(k.one("Relu", "Sigmoid", "Tanh", "HardSigmoid", "Softplus", "Elu", "LeakyRelu", "Selu"), x)


@idiom("any", 0.5)
def relu(k, x):
    return k.Relu(x)


@idiom("any", 0.5)
def relu6(k, x):
    return k.one(
        lambda: k.clip(x, 0.0, 6.0), lambda: k.Min(k.Max(x, 0.0), 6.0), lambda: k.clip(k.Relu(x), None, 6.0)
    )()


@idiom("any", 0.5)
def silu(k, x):
    return k.Mul(x, k.Sigmoid(x))


@idiom("any", 0.3)
def silu_of_exponential(k, x):
    return k.Div(x, k.Add(k.Exp(k.Neg(k.clip(x, -20.0, 20.0))), 1.0))


@idiom("any", 0.5)
def hard_swish(k, x):
    def spelled():
        return k.Mul(x, k.Div(k.clip(k.Add(x, 3.0), 0.0, 6.0), 6.0))

    def of_sigmoid():
        return k.Mul(x, k.HardSigmoid(x, alpha=1 / 6))

    return k.one(spelled, of_sigmoid, lambda: k.HardSwish(x))()


@idiom("any", 0.3)
def mish(k, x):
    return k.one(lambda: k.Mul(x, k.Tanh(k.Softplus(x))), lambda: k.Mish(x))()


@idiom("any", 0.3)
def prelu(k, x):
    slope = k.array((x.shape[1],) + (1,) * (x.rank - 2) if k.chance(0.7) else (1,), 0.1, 0.5)
    return k.PRelu(x, k.const(slope))


@idiom("image", 0.6)
def shifted_activation(k, x):
    """A convolution, an activation, and after that a bias and perhaps a scale for each channel."""
    y = k.activation(k.conv(x, k.one(16, 32), k.one(1, 3), bias=False))
    shape = (1, y.shape[1], 1, 1)
    y = k.Add(y, k.vector(0, 0.0, shape))
    return k.Mul(y, k.vector(0, 1.0, shape)) if k.chance(0.5) else y


@idiom("any", 1.2)
def rescaled_output(k, x):
    """The result of a contraction, often after an activation, is moved to another range, like the pixels of generators, the
    offsets of detectors and bounded actions: (y + a) * b, y * b + a."""
    m = k.one(16, 32)
    y = k.linear(x, m) if x.rank < 4 else k.conv(x, m, k.one(1, 3), bias=k.chance(0.3))
    if k.chance(0.6):
        y = k.one(k.Tanh, k.Sigmoid, k.Relu, k.activation)(y)
    shape = (1, y.shape[1]) + (1,) * (y.rank - 2) if x.rank > 3 else y.shape[-1:]
    for _ in range(k.one(1, 1, 2)):
        a, b = ((k.vector(0, middle, shape) if k.chance(0.3) else middle) for middle in (0.75, 0.5))
        if k.chance(0.5):
            y = k.Mul(k.one(k.Add, k.Sub)(y, a), b)
        else:
            y = k.one(k.Add, k.Sub)(k.one(k.Mul, k.Div)(y, b), a)
    return y


@idiom("image", 0.6)
def statistics(k, x):
    """Normalises x by its mean and deviation over dimensions that are not next to each other."""
    axes = k.one([0, 2, 3], [0, 2], [1, 3], [0, 3])
    m = k.ReduceMean(x, axes=axes, keepdims=1)
    d = k.Sub(x, m)
    return k.Div(d, k.Sqrt(k.Add(k.ReduceMean(k.Mul(d, d), axes=axes, keepdims=1), 1e-2)))


@idiom("any", 0.6)
def every_second(k, x):
    """Every second row, and of these all but the first ones."""
    axis = k.r.randrange(x.rank)
    n = x.shape[axis]
    k.need(n >= 7)
    y = k.slice(x, axis, k.one(0, 1), n, 2)
    z = k.slice(y, axis, k.one(1, 2), y.shape[axis], k.one(1, 1, 2))
    return k.maybe_activation(z)


@idiom("any", 0.3)
def share_of_all(k, x):
    """Elements divided by the sum or the maximum of all, in their order or transposed."""
    y = k.Exp(k.clip(x, -4.0, 4.0))
    total = k.node(k.one("ReduceSum", "ReduceMax"), y, keepdims=1)
    return k.Div(k.swap(y) if k.chance(0.5) and y.rank > 1 else y, total)


@idiom("any", 0.3)
def leaky_of_maximum(k, x):
    return k.Max(x, k.Mul(x, 0.1))


@idiom("any", 0.5)
def gelu_erf(k, x):
    """0.5 x (1 + erf(x / sqrt(2))), in the orders that exporters have."""
    e = k.Erf(k.one(lambda: k.Div(x, 1.4142135), lambda: k.Mul(x, 0.70710678))())
    inner = k.Add(e, 1.0)
    return k.one(lambda: k.Mul(k.Mul(x, inner), 0.5), lambda: k.Mul(k.Mul(x, 0.5), inner))()


@idiom("any", 0.5)
def gelu_tanh(k, x):
    cube = k.one(lambda: k.Pow(x, 3.0), lambda: k.Mul(k.Mul(x, x), x))()
    inner = k.Mul(k.Add(x, k.Mul(cube, 0.044715)), 0.79788456)
    return k.Mul(k.Mul(x, 0.5), k.Add(k.Tanh(inner), 1.0))


@idiom("any", 0.3)
def gelu_sigmoid(k, x):
    return k.Mul(x, k.Sigmoid(k.Mul(x, 1.702)))


@idiom("any", 0.3)
def gelu_operator(k, x):
    return k.Gelu(x, approximate=k.one(None, "none", "tanh"))


@idiom("any", 0.3)
def squared_relu(k, x):
    y = k.Relu(x)
    return k.one(lambda: k.Mul(y, y), lambda: k.Pow(y, 2.0))()


@idiom("any", 0.3)
def soft_cap(k, x):
    return k.Mul(k.Tanh(k.Div(x, 5.0)), 5.0)


@idiom("any", 0.3)
def snake(k, x):
    """x + sin(a x)^2 / a, as in vocoders."""
    s = k.Sin(k.Mul(x, 1.5))
    return k.Add(x, k.Mul(k.Pow(s, 2.0), 1 / 1.5))


ACTIVATIONS = (
    "relu relu relu relu6 silu silu hard_swish gelu_erf gelu_tanh gelu_sigmoid plain_activation mish prelu "
    "squared_relu leaky_of_maximum"
)

# --- gates ---


@idiom("any")
def gated_halves(k, x):
    """GLU and its kin: one half gates the other."""
    a, g = k.split(x, k.one(1, x.rank - 1), 2)
    return k.Mul(a, k.one(k.Sigmoid, k.Tanh, k.activation)(g))


@idiom("any")
def gate_of_other(k, x):
    return k.Mul(x, k.Sigmoid(k.other(x)))


@idiom("any")
def highway(k, x):
    t, h = k.Sigmoid(k.other(x)), k.Tanh(k.other(x))
    return k.Add(k.Mul(h, t), k.Mul(x, k.Sub(1.0, t)))


@idiom("any")
def interpolated(k, x):
    """a + t (b - a)."""
    y = k.other(x)
    return k.Add(x, k.Mul(k.Sub(y, x), k.vector(x.shape[-1], 0.5)))


# --- norms of rows ---


def scaled(k, y, bias=True):
    """Multiplies y by weights along the last dimension, and adds a bias."""
    y = k.Mul(y, k.vector(y.shape[-1], 1.0))
    return k.Add(y, k.vector(y.shape[-1])) if bias else y


def mean(k, x, axis=-1):
    return k.ReduceMean(x, axes=[axis], keepdims=1)


@idiom("any", 0.6)
def layer_norm_operator(k, x):
    n = x.shape[-1]
    return k.LayerNormalization(x, k.vector(n, 1.0), *[k.vector(n)] * k.chance(0.8), epsilon=1e-5)


@idiom("any", 0.6)
def layer_norm_spelled(k, x):
    """A layer norm as TorchScript writes it."""
    d = k.Sub(x, mean(k, x))
    variance = mean(k, k.one(lambda: k.Pow(d, 2.0), lambda: k.Mul(d, d))())
    return scaled(k, k.Div(d, k.Sqrt(k.Add(variance, 1e-5))))


@idiom("any", 0.4)
def layer_norm_twice(k, x):
    """A layer norm in which the difference from the mean is computed twice: for the variance and for the result."""
    m = mean(k, x)
    d = k.Sub(x, m)
    inverse = k.Reciprocal(k.Sqrt(k.Add(mean(k, k.Mul(d, d)), 1e-6)))
    return scaled(k, k.Mul(k.Sub(x, m), inverse))


@idiom("any", 0.4)
def layer_norm_of_moments(k, x):
    """A layer norm with the variance E[x^2] - E[x]^2, as TensorFlow's exporter folds it: x * s + (b - m * s)."""
    m = mean(k, x)
    variance = k.Sub(mean(k, k.Mul(x, x)), k.Mul(m, m))
    s = k.Mul(k.Reciprocal(k.Sqrt(k.Add(variance, 1e-2))), k.vector(x.shape[-1], 1.0))
    return k.Add(k.Mul(x, s), k.Sub(k.vector(x.shape[-1]), k.Mul(m, s)))


@idiom("any", 0.4)
def layer_norm_of_channels(k, x):
    """A layer norm over dimension 1, spelled out (ConvNeXt), or over the last one between transposes."""
    if k.chance(0.5):
        d = k.Sub(x, mean(k, x, 1))
        y = k.Div(d, k.Sqrt(k.Add(mean(k, k.Mul(d, d), 1), 1e-6)))
        shape = (x.shape[1],) + (1,) * (x.rank - 2)
        return k.Add(k.Mul(y, k.vector(0, 1.0, shape)), k.vector(0, 0.0, shape))
    last = [0] + list(range(2, x.rank)) + [1]
    return k.Transpose(k.norm(k.Transpose(x, perm=last)), perm=[int(p) for p in np.argsort(last)])


@idiom("any", 0.6)
def rms_norm_spelled(k, x):
    square = mean(k, k.one(lambda: k.Pow(x, 2.0), lambda: k.Mul(x, x))())
    root = k.Sqrt(k.Add(square, 1e-6))
    y = k.one(
        lambda: k.Mul(x, k.Reciprocal(root)), lambda: k.Div(x, root), lambda: k.Mul(x, k.Div(1.0, root))
    )()
    w = k.vector(x.shape[-1], 1.0)
    return k.Mul(y, w) if k.chance(0.7) else k.Mul(y, k.Add(w, 1.0))


@idiom("any", 0.4, since=23)
def rms_norm_operator(k, x):
    return k.RMSNormalization(x, k.vector(x.shape[-1], 1.0), epsilon=1e-6)


@idiom("any", 0.4)
def unit_length(k, x):
    """F.normalize."""
    length = k.one(
        lambda: k.ReduceL2(x, axes=[-1], keepdims=1),
        lambda: k.Sqrt(k.ReduceSum(k.Mul(x, x), axes=[-1], keepdims=1)),
        lambda: k.Sqrt(k.ReduceSumSquare(x, axes=[-1], keepdims=1)),
    )()
    length = k.one(lambda: k.Max(length, 1e-3), lambda: k.clip(length, 1e-3), lambda: k.Add(length, 1e-3))()
    return k.Div(x, k.one(lambda: length, lambda: k.expand(length, x.shape))())


ROW_NORMS = (
    "layer_norm_operator layer_norm_spelled layer_norm_spelled layer_norm_twice layer_norm_of_moments "
    "rms_norm_spelled rms_norm_spelled rms_norm_operator unit_length"
)

# --- norms of images ---


@idiom("image")
def conv_norm_activation(k, x):
    m = k.one(x.shape[1], 16, 24, 32, 48)
    return k.maybe_activation(k.batch_norm(k.conv(x, m, k.one(1, 3), k.one(1, 1, 2))))


@idiom("any", 0.5)
def folded_norm(k, x):
    """A batch norm that became a product and a sum."""
    shape = (1, x.shape[1]) + (1,) * (x.rank - 2)
    return k.Add(k.Mul(x, k.vector(0, 1.0, shape)), k.vector(0, 0.0, shape))


@idiom("image")
def group_norm(k, x):
    """By InstanceNormalization over reshaped groups, by the operator, or spelled out."""
    groups, (n, c, h, w) = k.one(1, 2, 4, 8), x.shape
    k.need(c % groups == 0)
    shape = (c, 1, 1)

    def by_instances():
        y = k.reshape(x, (n, groups, -1))
        y = k.InstanceNormalization(
            y, k.const(np.ones(groups, y.array.dtype)), k.const(np.zeros(groups, y.array.dtype))
        )
        return k.Add(k.Mul(k.reshape(y, x.shape), k.vector(0, 1.0, shape)), k.vector(0, 0.0, shape))

    def by_operator():
        per = c if k.b.opset >= 21 else groups
        return k.GroupNormalization(x, k.vector(per, 1.0), k.vector(per), num_groups=groups)

    def spelled():
        y = k.reshape(x, (n, groups, c // groups * h * w))
        d = k.Sub(y, mean(k, y))
        y = k.Div(d, k.Sqrt(k.Add(mean(k, k.Mul(d, d)), 1e-5)))
        return k.Add(k.Mul(k.reshape(y, x.shape), k.vector(0, 1.0, shape)), k.vector(0, 0.0, shape))

    return k.one(by_instances, by_operator, spelled)()


@idiom("image", 0.6)
def instance_norm(k, x):
    c = x.shape[1]
    if k.chance(0.5):
        return k.InstanceNormalization(x, k.vector(c, 1.0), k.vector(c))
    m = k.ReduceMean(x, axes=[2, 3], keepdims=1)
    d = k.Sub(x, m)
    return k.Div(d, k.Sqrt(k.Add(k.ReduceMean(k.Mul(d, d), axes=[2, 3], keepdims=1), 1e-5)))


@idiom("image", 0.6)
def response_norm(k, x):
    """Global response normalisation (ConvNeXt V2): x + gamma * (x * n) + beta."""
    g = k.ReduceL2(x, axes=[2, 3], keepdims=1)
    n = k.Div(g, k.Add(k.ReduceMean(g, axes=[1], keepdims=1), 1e-6))
    shape = (1, x.shape[1], 1, 1)
    return k.Add(k.Add(k.Mul(k.Mul(x, n), k.vector(0, 0.0, shape)), k.vector(0, 0.0, shape)), x)


@idiom("image", 0.4)
def local_response(k, x):
    return k.LRN(x, size=k.one(3, 5), alpha=1e-2, beta=0.75, bias=1.0)


@idiom("image", 0.5)
def filter_response(k, x):
    """FRN with its threshold: max(gamma * x / rms + beta, tau)."""
    square = k.ReduceMean(k.Pow(x, 2.0), axes=[2, 3], keepdims=1)
    shape = (1, x.shape[1], 1, 1)
    y = k.Mul(k.Mul(x, k.Reciprocal(k.Sqrt(k.Add(square, 1e-6)))), k.vector(0, 1.0, shape))
    return k.Max(k.Add(y, k.vector(0, 0.0, shape)), k.vector(0, 0.0, shape))


@idiom("any", 0.5)
def softmax_of_rows(k, x):
    """Softmax by the operator, or spelled out with the maximum subtracted first."""
    if k.chance(0.5):
        return k.Softmax(x, axis=x.rank - 1)
    e = k.Exp(k.Sub(x, k.ReduceMax(x, axes=[-1], keepdims=1)))
    return k.Div(e, k.ReduceSum(e, axes=[-1], keepdims=1))


@idiom("any", 0.4)
def log_softmax_of_rows(k, x):
    y = k.Mul(x, 0.5) if k.chance(0.5) else x
    return k.one(
        lambda: k.LogSoftmax(y, axis=y.rank - 1),
        lambda: k.Sub(y, k.ReduceLogSumExp(y, axes=[-1], keepdims=1)),
    )()
