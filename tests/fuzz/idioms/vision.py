"""idioms/vision.py: what networks for images do with channels and pixels."""

import numpy as np

from idioms import idiom


def spatial_mean(k, x):
    return k.one(
        lambda: k.GlobalAveragePool(x),
        lambda: k.ReduceMean(x, axes=[2, 3], keepdims=1),
        lambda: k.AveragePool(x, kernel_shape=list(x.shape[2:])),
    )()


@idiom("image", 1.5)
def squeeze_excite(k, x):
    """Squeeze-and-excitation, by 1x1 convolutions or by products of rows."""
    c, pooled = x.shape[1], spatial_mean(k, x)
    last = k.one(k.Sigmoid, k.HardSigmoid)
    if k.chance(0.6):
        gate = last(k.conv(k.activation(k.conv(pooled, 8, 1, bias=True)), c, 1, bias=True))
    else:
        rows = k.reshape(pooled, (x.shape[0], c))
        gate = k.reshape(last(k.linear(k.Relu(k.linear(rows, 8)), c)), (x.shape[0], c, 1, 1))
    return k.Mul(x, k.expand(gate, x.shape) if k.chance(0.2) else gate)


@idiom("image", 0.7)
def efficient_channels(k, x):
    """ECA: a convolution over the channels' means."""
    row = k.swap(k.Squeeze(spatial_mean(k, x), axes=[3]))
    gate = k.Sigmoid(k.conv(row, 1, 3, bias=False))
    return k.Mul(x, k.Unsqueeze(k.swap(gate), axes=[3]))


@idiom("image", 0.7)
def attended_places(k, x):
    """CBAM: mean and maximum over channels make a mask."""
    both = k.concat([k.ReduceMean(x, axes=[1], keepdims=1), k.ReduceMax(x, axes=[1], keepdims=1)], 1)
    return k.Mul(x, k.Sigmoid(k.conv(both, 1, k.one(3, 7), bias=False)))


@idiom("image", 0.7)
def coordinate_attention(k, x):
    c, h, w = x.shape[1:]
    rows = k.ReduceMean(x, axes=[3], keepdims=1)
    columns = k.transpose(k.ReduceMean(x, axes=[2], keepdims=1), 0, 1, 3, 2)
    y = k.activation(k.conv(k.concat([rows, columns], 2), 8, 1))
    a, b = k.slice(y, 2, 0, h), k.slice(y, 2, h, h + w)
    a = k.Sigmoid(k.conv(a, c, 1))
    b = k.Sigmoid(k.conv(k.transpose(b, 0, 1, 3, 2), c, 1))
    return k.Mul(k.Mul(x, a), b)


@idiom("image")
def pixel_shuffle(k, x):
    n, c, h, w = x.shape
    y = x if c % 4 == 0 else k.conv(x, 16, 1)
    c = y.shape[1]
    if k.chance(0.5):
        return k.DepthToSpace(y, blocksize=2, mode=k.one("DCR", "CRD"))
    y = k.transpose(k.reshape(y, (n, c // 4, 2, 2, h, w)), 0, 1, 4, 2, 5, 3)
    return k.reshape(y, (n, c // 4, 2 * h, 2 * w))


@idiom("image")
def pixel_unshuffle(k, x):
    n, c, h, w = x.shape
    k.need(h % 2 == 0 and w % 2 == 0)
    if k.chance(0.5):
        return k.SpaceToDepth(x, blocksize=2)
    y = k.transpose(k.reshape(x, (n, c, h // 2, 2, w // 2, 2)), 0, 1, 3, 5, 2, 4)
    return k.reshape(y, (n, 4 * c, h // 2, w // 2))


@idiom("image", 1.2)
def channel_shuffle(k, x):
    """ShuffleNet's unit: halves, one through convolutions, joined and shuffled."""
    n, c, h, w = x.shape
    a, b = k.split(x, 1, 2)
    b = k.Relu(k.conv(k.depthwise(k.Relu(k.conv(b, kernel=1)), 3), kernel=1))
    y = k.concat([a, b], 1)
    y = k.transpose(k.reshape(y, (n, 2, c // 2, h, w)), 0, 2, 1, 3, 4)
    return k.reshape(y, x.shape)


@idiom("image")
def focus_slices(k, x):
    """YOLOv5's first layer: the four slices of every second pixel are concatenated."""
    parts = [
        k.slice(k.slice(x, 2, i, x.shape[2] - x.shape[2] % 2, 2), 3, j, x.shape[3] - x.shape[3] % 2, 2)
        for j in (0, 1)
        for i in (0, 1)
    ]
    return k.conv(k.concat(parts, 1), x.shape[1], k.one(1, 3))


def rolled(k, x, axis, by):
    n = x.shape[axis]
    return k.concat([k.slice(x, axis, by, n), k.slice(x, axis, 0, by)], axis)


@idiom("image", 1.2)
def window_partition(k, x):
    """Swin: an image is shifted and divided into windows, which are transformed and joined again."""
    n, c, h, w = x.shape
    size = next((s for s in (7, 8, 4, 2) if h % s == 0 and w % s == 0), 1)
    k.need(size > 1)
    shift = k.one(0, size // 2)
    y = k.transpose(x, 0, 2, 3, 1)
    for axis in (1, 2):
        y = rolled(k, y, axis, shift) if shift else y
    y = k.reshape(y, (n, h // size, size, w // size, size, c))
    y = k.reshape(k.transpose(y, 0, 1, 3, 2, 4, 5), (-1, size * size, c))
    y = k.one(lambda: k.norm(y), lambda: self_attention(k, y), lambda: k.linear(y, c))()
    y = k.transpose(k.reshape(y, (n, h // size, w // size, size, size, c)), 0, 1, 3, 2, 4, 5)
    y = k.reshape(y, (n, h, w, c))
    for axis in (1, 2):
        y = rolled(k, y, axis, y.shape[axis] - shift) if shift else y
    return k.Add(k.transpose(y, 0, 3, 1, 2), x)


def self_attention(k, x):
    from idioms.attention import attention_of_rows

    return attention_of_rows(k, x)


@idiom("image")
def rows_of_patches(k, x):
    """MobileViT: pixels at the same place of all patches are rows, which are transformed and made a picture again."""
    n, c, h, w = x.shape
    p = next((s for s in (2, 3, 4) if h % s == 0 and w % s == 0), 1)
    k.need(p > 1)
    y = k.transpose(k.reshape(x, (n * c * h // p, p, w // p, p)), 0, 2, 1, 3)
    y = k.transpose(k.reshape(y, (n, c, h * w // p**2, p * p)), 0, 3, 2, 1)
    y = k.reshape(y, (n * p * p, h * w // p**2, c))
    y = k.one(lambda: k.norm(y), lambda: self_attention(k, y), lambda: k.linear(y, c))()
    y = k.transpose(k.reshape(y, (n, p * p, h * w // p**2, c)), 0, 3, 2, 1)
    y = k.transpose(k.reshape(y, (n * c * h // p, w // p, p, p)), 0, 2, 1, 3)
    return k.reshape(y, (n, c, h, w))


def split_or_join(k, x):
    """Reshapes x: one dimension becomes two, or two neighbours become one."""
    shape, d = list(x.shape), k.r.randrange(x.rank)
    if x.rank > 2 and d + 1 < x.rank and k.chance(0.5):
        return k.reshape(x, shape[:d] + [shape[d] * shape[d + 1]] + shape[d + 2 :])
    p = next((p for p in k.shuffled(2, 3, 5) if shape[d] % p == 0), 1)
    return k.reshape(x, shape[:d] + k.shuffled(p, shape[d] // p) + shape[d + 1 :])


@idiom("image")
def moved_factors(k, x):
    """Transposes with reshapes between them, which may or may not split dimensions into factors that both move."""
    y = x
    for _ in range(k.one(2, 3, 4)):
        y = k.transpose(y, *k.shuffled(*range(y.rank)))
        for _ in range(k.one(0, 1, 2)):
            y = split_or_join(k, y) if y.rank < 7 else y
    return k.reshape(y, x.shape) if k.chance(0.5) else y


@idiom("image")
def patch_embedding(k, x):
    p = next((s for s in (8, 7, 4, 2) if x.shape[2] % s == 0 and x.shape[3] % s == 0), 1)
    y = k.conv(x, k.one(24, 32, 48), p, p, pads=[0] * 4)
    y = k.swap(k.reshape(y, (y.shape[0], y.shape[1], y.shape[2] * y.shape[3])))
    return k.Add(y, k.const(k.array((1,) + y.shape[1:]))) if k.chance(0.7) else y


@idiom("image")
def patch_merging(k, x):
    n, c, h, w = x.shape
    k.need(h % 2 == 0 and w % 2 == 0)
    y = k.transpose(x, 0, 2, 3, 1)
    parts = [k.slice(k.slice(y, 1, i, h, 2), 2, j, w, 2) for j in (0, 1) for i in (0, 1)]
    y = k.reshape(k.concat(parts, 3), (n, h * w // 4, 4 * c))
    return k.linear(k.norm(y), 2 * c, bias=False)


@idiom("rows")
def rows_to_image(k, x):
    n, t, c = x.shape
    side = int(t**0.5)
    k.need(side * side == t)
    return k.reshape(k.swap(x), (n, c, side, side))


@idiom("image")
def image_to_rows(k, x):
    n, c, h, w = x.shape
    if k.chance(0.5):
        return k.swap(k.reshape(x, (n, c, h * w)))
    return k.reshape(k.transpose(x, 0, 2, 3, 1), (n, h * w, c))


@idiom("image")
def pyramid_pools(k, x):
    """SPPF: a pool of a pool of a pool, joined."""
    y = k.activation(k.conv(x, 16, 1))
    made = [y]
    for _ in range(3):
        y = k.MaxPool(y, kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
        made.append(y)
    return k.conv(k.concat(made, 1), x.shape[1], 1)


@idiom("image")
def dilated_pyramid(k, x):
    """ASPP: dilated convolutions and the mean of the image, joined."""
    made = [k.Relu(k.conv(x, 8, 1))] + [k.Relu(k.conv(x, 8, 3, dilation=d)) for d in k.shuffled(2, 3, 4)[:2]]
    pooled = k.Relu(k.conv(spatial_mean(k, x), 8, 1))
    made.append(k.expand(pooled, (x.shape[0], 8) + x.shape[2:]))
    return k.conv(k.concat(made, 1), x.shape[1], 1)


@idiom("image")
def padded_conv(k, x):
    """A Pad node before a convolution or pool without padding."""
    mode = k.one("constant", "reflect", "edge")
    y = k.pad(x, [(2, 1, 1), (3, 1, 1)], mode=mode)
    if k.chance(0.3):
        return k.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2])
    group = k.one(1, x.shape[1])
    return k.conv(y, kernel=3, stride=k.one(1, 2), group=group, pads=[0] * 4)


@idiom("image", since=11)
def padded_to_multiples(k, x):
    """An image that is padded until its sides are multiples of a number, as windows of attention need them."""
    unit = k.const(np.array([k.one(2, 3, 4, 8)]))
    zero, two = k.const(np.array([0])), k.const(np.array([2]))
    before, after = [zero, zero], [zero, zero]
    for axis in (2, 3):
        n = k.Gather(k.Shape(x), k.const(np.array([axis])), axis=0)
        more = k.Mod(k.Sub(unit, k.Mod(n, unit)), unit)
        half = k.Div(more, two) if k.chance(0.3) else zero
        before.append(half)
        after.append(k.Sub(more, half))
    return k.Pad(x, k.concat(before + after, 0), mode=k.one("constant", "reflect", "edge"))


@idiom("image")
def pools(k, x):
    """Pools whose sizes are rounded up or down, with windows that are larger than the rest of the image."""
    size = k.one(2, 3, 3, 5)
    attributes = {"kernel_shape": [size] * 2, "strides": [k.one(1, 2, 2)] * 2, "ceil_mode": k.one(0, 1)}
    if k.chance(0.5) and size > 2:
        attributes["pads"] = [size // 2] * 4
    if k.chance(0.4):
        return k.AveragePool(
            x, count_include_pad=k.one(0, 1) if not attributes["ceil_mode"] else 0, **attributes
        )
    return k.MaxPool(x, **attributes)


@idiom("image", 0.7)
def pool_of_little(k, x):
    """The pool of transformers' EfficientNet: the window is larger than the image, and sizes are rounded up."""
    y = k.slice(k.slice(x, 2, 0, k.one(1, 2, 3)), 3, 0, k.one(1, 2, 3))
    attributes = {
        "kernel_shape": [k.one(3, 4, 8, 320)] * 2,
        "strides": [k.one(2, 4, 320)] * 2,
        "ceil_mode": 1,
    }
    return k.one(k.MaxPool, k.AveragePool)(y, **attributes)


@idiom("image", 0.7)
def blurred(k, x):
    """Blur pool: a constant depthwise kernel after reflected edges."""
    c = x.shape[1]
    row = np.array([1, 2, 1], x.array.dtype)
    w = k.const(np.broadcast_to(np.outer(row, row) / 16, (c, 1, 3, 3)).copy())
    y = k.pad(x, [(2, 1, 1), (3, 1, 1)], mode="reflect")
    return k.Conv(y, w, group=c, strides=[2, 2], kernel_shape=[3, 3])


@idiom("image")
def resized(k, x):
    mode = k.one("nearest", "linear", "linear", "cubic")
    attributes = {
        "coordinate_transformation_mode": (
            "asymmetric" if mode == "nearest" else k.one("half_pixel", "align_corners")
        )
    }
    if mode == "nearest":
        attributes["nearest_mode"] = "floor"
    if mode == "cubic":
        attributes.update(cubic_coeff_a=k.one(-0.75, -0.5), exclude_outside=k.one(0, 1))
    if mode != "nearest" and k.b.opset >= 18 and k.chance(0.4):
        attributes["antialias"] = 1
    empty = k.const(np.zeros(0, np.float32))
    scales = k.const(np.array([1, 1, *k.one((2, 2), (2, 2), (0.5, 0.5), (0.75, 1.5))], np.float32))
    y = k.Resize(x, empty, scales, mode=mode, kind="exact" if mode == "nearest" else None, **attributes)
    return k.conv(y, 8, 3) if k.chance(0.4) else y


@idiom("image", 0.7)
def global_context(k, x):
    n, c, h, w = x.shape
    rows = k.reshape(x, (n, 1, c, h * w))
    mask = k.reshape(k.conv(x, 1, 1), (n, 1, h * w))
    mask = k.Unsqueeze(k.Softmax(mask, axis=2), axes=[3])
    k.afford(x.size)
    context = k.reshape(k.MatMul(rows, mask), (n, c, 1, 1))
    y = k.conv(k.Relu(k.norm(k.conv(context, 8, 1))), c, 1)
    return k.Add(x, y)


@idiom("image", 0.7)
def split_attention(k, x):
    """ResNeSt: two branches weighed by a softmax over them."""
    n, c, h, w = x.shape
    y = k.Relu(k.conv(x, 2 * c, 1, group=2))
    y = k.reshape(y, (n, 2, c, h, w))
    gap = k.ReduceMean(k.ReduceSum(y, axes=[1], keepdims=0), axes=[2, 3], keepdims=1)
    logits = k.conv(k.Relu(k.conv(gap, 8, 1)), 2 * c, 1)
    weights = k.Softmax(k.reshape(logits, (n, 2, c)), axis=1)
    return k.ReduceSum(k.Mul(y, k.reshape(weights, (n, 2, c, 1, 1))), axes=[1], keepdims=0)


@idiom("image", 0.7)
def selective_kernels(k, x):
    a, b = k.Relu(k.depthwise(x, 3)), k.Relu(k.depthwise(x, 5))
    s = k.conv(k.Relu(k.conv(spatial_mean(k, k.Add(a, b)), 8, 1)), x.shape[1], 1)
    g = k.Sigmoid(s)
    return k.Add(k.Mul(a, g), k.Mul(b, k.Sub(1.0, g)))


@idiom("image", 0.7)
def energy_gate(k, x):
    """SimAM."""
    d = k.Sub(x, k.ReduceMean(x, axes=[2, 3], keepdims=1))
    square = k.Mul(d, d)
    n = x.shape[2] * x.shape[3] - 1
    v = k.Div(k.ReduceSum(square, axes=[2, 3], keepdims=1), float(n))
    e = k.Add(k.Div(square, k.Mul(k.Add(v, 1e-2), 4.0)), 0.5)
    return k.Mul(x, k.Sigmoid(e))


@idiom("image")
def computed_weights(k, x):
    """A convolution whose weights are an input, or computed from inputs."""
    c, m = x.shape[1], k.one(8, 16)
    w = (
        k.input((m, c, 1, 1), -0.3, 0.3)
        if k.chance(0.5)
        else k.Mul(k.input((m, c, 3, 3), -0.2, 0.2), k.vector(0, 1.0, (m, 1, 1, 1)))
    )
    side = w.shape[2]
    k.afford(x.size * m * side * side)
    return k.Conv(x, w, kernel_shape=[side] * 2, pads=[side // 2] * 4)


@idiom("image", 0.7)
def standardised_weights(k, x):
    """A convolution whose weights are normalised in the graph: their mean is subtracted, and they are divided by their deviation."""
    c = x.shape[1]
    w = k.const(k.array((c, c, 1, 1)))
    w = k.Sub(w, k.ReduceMean(w, axes=[1, 2, 3], keepdims=1))
    w = k.Div(
        w, k.Mul(k.Add(k.Sqrt(k.ReduceMean(k.Mul(w, w), axes=[1, 2, 3], keepdims=1)), 1e-5), float(c) ** 0.5)
    )
    k.afford(x.size * c)
    return k.Conv(x, w)


@idiom("image", 0.7)
def prepared_pixels(k, x):
    """The preparation of pixels: (x * a - mean) / deviation, perhaps with channels reversed, or from channels last."""
    c = x.shape[1]
    y = k.Mul(x, 0.25)
    y = k.Div(k.Sub(y, k.vector(0, 0.0, (1, c, 1, 1))), k.vector(0, 1.0, (1, c, 1, 1)))
    if k.chance(0.5):
        y = k.Gather(y, k.const(np.arange(c - 1, -1, -1)), axis=1)
    return k.conv(y, 16, k.one(3, 7), k.one(1, 2))


@idiom("image", 0.7)
def stem(k, x):
    y = k.slice(x, 1, 0, 3) if k.chance(0.7) else x
    y = k.Relu(k.batch_norm(k.conv(y, 24, 7, 2)))
    return k.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


@idiom("image", 0.7)
def classifier(k, x):
    y = k.Flatten(spatial_mean(k, x), axis=1)
    y = k.linear(y, k.one(10, 32, 100))
    return k.Softmax(y, axis=1) if k.chance(0.5) else y


@idiom("image", 0.6)
def folded_patches(k, x):
    """MobileViT: an image is unfolded to rows of the pixels at equal places of patches, and after attention folded again."""
    n, c, h, w = x.shape
    k.need(h % 2 == 0 and w % 2 == 0)
    y = k.transpose(k.reshape(x, (n * c * h // 2, 2, w // 2, 2)), 0, 2, 1, 3)
    y = k.transpose(k.reshape(y, (n, c, h * w // 4, 4)), 0, 3, 2, 1)
    y = k.reshape(y, (n * 4, h * w // 4, c))
    y = self_attention(k, y) if y.shape[1] <= 64 else k.norm(y)
    y = k.transpose(k.reshape(y, (n, 4, h * w // 4, c)), 0, 3, 2, 1)
    y = k.transpose(k.reshape(y, (n * c * h // 2, w // 2, 2, 2)), 0, 2, 1, 3)
    return k.reshape(y, x.shape)


@idiom("volume")
def volume_block(k, x):
    """Convolutions over space, then time (R(2+1)D)."""
    n, c, t, h, w = x.shape
    k.afford(x.size * c * 12)
    y = k.Relu(k.Conv(x, k.weights((c, c, 1, 3, 3), 9 * c), pads=[0, 1, 1, 0, 1, 1]))
    y = k.Conv(y, k.weights((c, c, 3, 1, 1), 3 * c), pads=[1, 0, 0, 1, 0, 0])
    return k.Relu(k.Add(y, x)) if k.chance(0.7) else y


@idiom("volume", 0.7)
def volume_pools(k, x):
    y = k.one(k.MaxPool, k.AveragePool)(x, kernel_shape=[1, 2, 2], strides=[1, 2, 2])
    return k.ReduceMean(y, axes=[2], keepdims=0) if k.chance(0.5) else y


@idiom("volume", 0.7)
def volume_frames(k, x):
    """Frames as a batch of images, and back."""
    n, c, t, h, w = x.shape
    y = k.reshape(k.transpose(x, 0, 2, 1, 3, 4), (n * t, c, h, w))
    y = k.Relu(k.conv(y))
    return k.transpose(k.reshape(y, (n, t, c, h, w)), 0, 2, 1, 3, 4) if k.chance(0.6) else y


@idiom("image", 0.7)
def token_shift(k, x):
    """TSM and similar networks: some channels are shifted by one row, and the last row is filled."""
    c, h = x.shape[1:3]
    a, b = k.slice(x, 1, 0, c // 4), k.slice(x, 1, c // 4, c)
    a = k.concat([k.slice(a, 2, 1, h), k.Mul(k.slice(a, 2, 0, 1), 0.5)], 2)
    return k.Add(k.concat([a, b], 1), x)


@idiom("any", 0.7)
def ghost(k, x):
    """GhostNet: half of the channels are computed from the other half by a depthwise convolution."""
    k.need(x.rank == 4)
    y = k.Relu(k.conv(x, max(8, x.shape[1] // 2), 1))
    return k.concat([y, k.Relu(k.depthwise(y, 3))], 1)
