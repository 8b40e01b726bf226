"""idioms/residual.py: results that are added to, joined with or multiplied by the values from which they were computed.

The residual is the operand of a contraction in all forms: before or after an activation, as a view, as an input or a constant
of the model, and used twice."""

import numpy as np

from idioms import idiom
from registry import EXACT


def ends(k, y, x):
    """Returns y + x, sometimes with a factor, an activation or a view on either side."""
    if k.chance(0.2):
        y = k.Mul(y, k.vector(0, 0.5, (1, y.shape[1]) + (1,) * (y.rank - 2)) if k.chance(0.6) else 0.5)
    if k.chance(0.4):
        y = k.activation(y)
    y = k.Add(y, k.maybe_view(x))
    return k.activation(y) if k.chance(0.4) else y


def begins(k, x):
    """Returns the operand of the contraction and the residual: x, or an activation of x, for either of the two."""
    if k.chance(0.5):
        return x, x
    y = k.one(k.Relu, k.activation, k.Neg)(x)
    return (y, y) if k.chance(0.7) else (y, x)


@idiom("image", 2)
def residual_conv(k, x):
    x, base = begins(k, x)
    return ends(k, k.conv(x, kernel=k.one(1, 3, 3, 3, 5)), base)


@idiom("image", 2)
def residual_depthwise(k, x):
    x, base = begins(k, x)
    return ends(k, k.depthwise(x), base)


def groups(k, c):
    """Returns a number of groups for c channels: 2, 4 or 8 groups, or groups of 2, 4 or 8 channels."""
    return k.r.choice([g for n in (2, 4, 8) for g in (n, c // n) if c % n == 0])


@idiom("image", 1.5)
def residual_grouped(k, x):
    x, base = begins(k, x)
    return ends(k, k.conv(x, group=groups(k, x.shape[1]), kernel=k.one(1, 3, 5)), base)


@idiom("image")
def residual_dilated(k, x):
    x, base = begins(k, x)
    return ends(k, k.conv(x, dilation=2, group=k.one(1, x.shape[1])), base)


@idiom("volume", 2)
def residual_volume(k, x):
    x, base = begins(k, x)
    group = k.one(1, x.shape[1])
    return ends(k, k.conv(x, group=group, kernel=k.one(1, 3)), base)


@idiom("rows", 1.5)
def residual_line(k, x):
    """Conv1d over (N, C, T)."""
    x, base = begins(k, x)
    return ends(
        k, k.conv(x, group=k.one(1, x.shape[1]), kernel=k.one(3, 5, 7), dilation=k.one(1, 2, 4)), base
    )


@idiom("image")
def residual_transposed_conv(k, x):
    x, base = begins(k, x)
    return ends(k, k.deconv(x, kernel=3, stride=1, pads=1, group=k.one(1, x.shape[1])), base)


@idiom("image", 1.5)
def residual_bottleneck(k, x):
    y = k.Relu(k.conv(x, max(8, x.shape[1] // 4 * 2), 1))
    y = k.Relu(k.conv(y, y.shape[1], 3, group=1 if k.chance(0.6) else groups(k, y.shape[1])))
    return k.maybe_activation(k.Add(k.conv(y, x.shape[1], 1), x))


@idiom("image", 1.5)
def residual_inverted(k, x):
    """MobileNet's block."""
    y = k.activation(k.conv(x, 2 * x.shape[1], 1))
    y = k.activation(k.depthwise(y))
    if k.chance(0.4):
        from idioms.vision import squeeze_excite

        y = squeeze_excite(k, y)
    return k.Add(k.conv(y, x.shape[1], 1), x)


@idiom("image", 1.5)
def residual_norms(k, x):
    """A block of ResNet with its norms before or after the convolutions."""
    if k.chance(0.5):
        y = k.Relu(k.batch_norm(x))
        y = k.conv(k.Relu(k.batch_norm(k.conv(y))))
        return k.Add(y, x)
    y = k.batch_norm(k.conv(k.Relu(k.batch_norm(k.conv(x)))))
    return k.Relu(k.Add(y, x))


@idiom("image")
def residual_downsampled(k, x):
    m = k.one(x.shape[1], 24, 32, 48)
    y = k.conv(k.Relu(k.conv(x, m, 3, 2)), m, 3)
    shortcut = k.conv(x, m, 1, 2)
    return k.Relu(k.Add(y, shortcut))


@idiom("image", 0.7)
def residual_padded(k, x):
    """A block with fewer channels at its beginning: the residual is pooled and padded with channels of zeros."""
    m = x.shape[1] + 8
    y = k.conv(x, m, 3, 2)
    pooled = k.AveragePool(x, kernel_shape=[1, 1], strides=[2, 2])
    return k.Add(y, k.pad(pooled, [(1, 0, 8)]))


@idiom("image", 1.5)
def residual_scaled(k, x):
    """A block of ConvNeXt: with channels last, a scale for each channel before the sum, and transposed back."""
    y = k.transpose(k.depthwise(x, 7), 0, 2, 3, 1)
    y = k.linear(k.activation(k.linear(k.norm(y), 2 * x.shape[1])), x.shape[1])
    y = k.transpose(k.Mul(y, k.vector(x.shape[1])), 0, 3, 1, 2)
    return k.Add(x, y)


@idiom("image", 1.5)
def residual_in_views(k, x):
    """The sum is made in rows: both sides through Reshape and Transpose."""
    n, c, h, w = x.shape
    y = k.conv(x, group=k.one(1, c))
    y, base = (k.swap(k.reshape(v, (n, c, h * w))) for v in (y, x))
    z = k.norm(k.Add(y, base)) if k.chance(0.5) else k.Add(y, base)
    return k.reshape(k.swap(z), x.shape)


@idiom("rows", 1.5)
def residual_of_rows(k, x):
    """A convolution over rows seen as an image (PVT, CoaT), added in rows."""
    n, t, c = x.shape
    side = int(t**0.5)
    k.need(side * side == t)
    image = k.reshape(k.swap(x), (n, c, side, side))
    y = k.depthwise(image)
    if k.chance(0.5):
        y = k.Add(y, image)
    return k.Add(k.swap(k.reshape(y, (n, c, t))), x)


@idiom("any", 1.5)
def residual_dot(k, x):
    """y @ y + y, y @ y' + y, y' @ y + y, for the last two dimensions."""
    y = k.one(lambda: x, lambda: k.Relu(x))()
    h, w = y.shape[-2:]
    if h != w:
        n = min(h, w, 64)
        for axis, d in ((-2, h), (-1, w)):
            y = k.slice(y, y.rank + axis, 0, n) if d != n else y
    k.afford(y.size * y.shape[-1])
    right = k.one(lambda: y, lambda: k.swap(y), lambda: k.other(y))()
    z = k.Mul(k.MatMul(*k.shuffled(y, right)), 1.0 / y.shape[-1])
    return k.Add(z, k.maybe_view(y)) if k.chance(0.8) else z


@idiom("any", 1.5)
def residual_linear(k, x):
    x, base = begins(k, x)
    return ends(k, k.linear(x, x.shape[-1]), base) if x.rank > 1 else x


@idiom("rows", 1.5)
def residual_mlp(k, x):
    """A transformer's MLP, with the norm before or after."""
    y = k.norm(x) if k.chance(0.6) else x
    y = k.linear(k.activation(k.linear(y, 2 * x.shape[-1])), x.shape[-1])
    y = k.Add(y, x)
    return k.norm(y) if k.chance(0.4) else y


@idiom("image")
def dense_block(k, x):
    for _ in range(k.one(1, 2, 3)):
        y = k.conv(k.Relu(k.batch_norm(x) if k.chance(0.5) else x), 8, 3)
        x = k.concat([x, y], 1)
    return x


@idiom("image")
def cross_stage(k, x):
    """CSP: one half goes through blocks, and both are joined."""
    if k.chance(0.5):
        a, b = k.split(x, 1, 2)
    else:
        a, b = (k.activation(k.conv(x, x.shape[1] // 2, 1)) for _ in range(2))
    for _ in range(k.one(1, 2)):
        y = k.activation(k.conv(b))
        b = k.Add(b, y) if k.chance(0.7) else y
    return k.conv(k.concat([a, b], 1), x.shape[1], 1)


@idiom("image")
def scales_in_turn(k, x):
    """Res2Net: each quarter of the channels is added to the result of the quarter before."""
    parts = k.split(x, 1, 4)
    made, y = [parts[0]], parts[1]
    for part in parts[2:] + [None]:
        y = k.Relu(k.conv(y))
        made.append(y)
        y = k.Add(y, part) if part else y
    return k.Add(k.concat(made, 1), x)


@idiom("image", 1.5)
def branches_summed(k, x):
    """RepVGG as it is trained: a 3x3 convolution + a 1x1 convolution + x."""
    y = k.Add(k.conv(x, kernel=3), k.conv(x, kernel=1))
    y = k.Add(y, k.batch_norm(x) if k.chance(0.5) else x)
    return k.maybe_activation(y)


@idiom("image", 1.2)
def conv_mixer(k, x):
    y = k.Add(k.batch_norm(k.activation(k.depthwise(x, k.one(5, 7)))), x)
    return k.batch_norm(k.activation(k.conv(y, kernel=1)))


@idiom("image")
def pyramid_sum(k, x):
    """A coarser level, made larger, is added to this one."""
    k.need(x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
    coarse = k.conv(x, 24, 3, 2)
    empty = k.const(np.zeros(0, np.float32))
    given = [k.const(np.array([1, 1, 2, 2], np.float32))]
    if k.chance(0.5):
        given = [None if k.b.opset >= 13 else empty, k.ints((x.shape[0], 24) + x.shape[2:])]
    if k.chance(0.6):
        up = k.Resize(
            coarse,
            empty,
            *given,
            mode="nearest",
            kind=EXACT,
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric"
        )
    else:
        up = k.Resize(coarse, empty, *given, mode="linear")
    y = k.Add(k.conv(x, 24, 1), up)
    return k.conv(y, 24, 3) if k.chance(0.5) else y


@idiom("image")
def up_and_joined(k, x):
    """U-Net: enlarged by a transposed convolution, and joined with the array before the pool."""
    k.need(x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
    small = k.MaxPool(k.Relu(k.conv(x)), kernel_shape=[2, 2], strides=[2, 2])
    up = k.deconv(small, x.shape[1])
    if k.chance(0.5):
        return k.Add(up, x)
    return k.Relu(k.conv(k.concat([x, up], 1), x.shape[1], 3))


@idiom("rows")
def wave_net(k, x):
    """WaveNet: tanh * sigmoid of causal dilated convolutions, plus the input, and the skip connection."""
    d, c = k.one(1, 2, 4), x.shape[1]
    padded = k.pad(x, [(2, d, 0)])
    if k.chance(0.5):
        a, g = k.split(k.conv(padded, 2 * c, 2, dilation=d, pads=[0, 0]), 1, 2)
    else:
        a, g = (k.conv(padded, c, 2, dilation=d, pads=[0, 0]) for _ in range(2))
    y = k.Mul(k.Tanh(a), k.Sigmoid(g))
    skip = k.conv(y, 16, 1)
    return [skip, k.Add(k.conv(y, c, 1), x)]


@idiom("image", 1.2)
def bias_that_is_used(k, x):
    """A convolution whose bias is an operand of another node, too."""
    c = x.shape[1]
    b = k.vector(c)
    w = k.weights((c, c, 1, 1), c)
    k.afford(x.size * c)
    y = k.Conv(x, w, b)
    return k.Add(y, k.reshape(k.Mul(b, 2.0) if k.chance(0.5) else b, (1, c, 1, 1)))


@idiom("matrix", 1.2)
def bias_that_is_operand(k, x):
    """Gemm whose C is one of its operands, or a view of one."""
    n = min(x.shape)
    y = k.slice(k.slice(x, 0, 0, n), 1, 0, n)
    k.afford(n**3)
    right = k.one(lambda: y, lambda: k.other(y))()
    z = k.Gemm(
        y,
        right,
        k.maybe_view(k.one(y, right)),
        alpha=1.0 / n,
        beta=k.one(1.0, 0.5),
        transA=k.one(0, 1),
        transB=k.one(0, 1),
    )
    return z


@idiom("any")
def same_operand(k, x):
    return k.one(
        lambda: k.Mul(x, x),
        lambda: k.Add(x, x),
        lambda: k.concat([x, x], k.r.randrange(x.rank)),
        lambda: k.Sub(k.Mul(x, 2.0), x),
        lambda: k.Max(x, k.view(x)),
        lambda: k.Add(x, k.Mul(x, k.Sigmoid(x))),
    )()


@idiom("any")
def sum_of_others(k, x):
    """Sums, products and the like of existing values, one after the other."""
    for _ in range(k.one(1, 2, 3)):
        x = k.one(k.Add, k.Add, k.Mul, k.Max, k.Sub)(x, k.other(x))
    return x


@idiom("any")
def added_to_result(k, x):
    """Intermediate results are outputs of the model, and the next node reads them."""
    y = k.maybe_activation(x)
    z = k.linear(y, y.shape[-1])
    k.b.kept.update(v.name for v in (y, z) if k.chance(0.5))
    return k.Add(z, y)


@idiom("any")
def crossed(k, x):
    """Returns two values, each of which is computed from the same two values."""
    y = k.other(x)
    a, b = k.Add(x, y), k.Sub(x, y)
    return [k.Mul(a, k.Sigmoid(b)), k.Max(b, a)]
