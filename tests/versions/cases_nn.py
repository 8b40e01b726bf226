"""cases_nn.py: convolutions, pools, norms, recurrences, resizing, sampling, losses, quantisation.  ONNX Runtime computes most
expected values, at the same version or at one that means the same; numpy does where an old version had another meaning."""
import numpy as np

from case import bools, case, f32, i64, ints, ort_at

IMAGE = f32(2, 3, 6, 7)

# --- convolutions ---

case("Conv", IMAGE, f32(4, 3, 3, 2), f32(4), pads=[1, 0, 1, 1], strides=[2, 1])
case("Conv", IMAGE, f32(3, 1, 3, 3), name="groups", group=3, dilations=[1, 2], kernel_shape=[3, 3])
case("Conv", IMAGE, f32(4, 3, 2, 2), name="same", auto_pad="SAME_UPPER", strides=[2, 2])
case("ConvTranspose", f32(1, 4, 3, 3), f32(4, 2, 3, 3), f32(2), strides=[2, 2], pads=[1, 1, 0, 0])
case("ConvTranspose", f32(1, 4, 3, 3), f32(4, 2, 3, 3), name="output", strides=[2, 2], output_shape=[7, 7])
case("ConvTranspose", f32(1, 4, 3, 3), f32(4, 2, 3, 3), name="padding", strides=[2, 3], output_padding=[1, 1], group=1)
case("DeformConv", f32(1, 2, 4, 4), f32(3, 2, 2, 2), f32(1, 8, 3, 3, low=-1, high=1), f32(3), f32(1, 4, 3, 3, low=0, high=1))

# --- pools; version 1 means the same as version 7 without its new attributes ---

SAME = {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2]}
PADDED = {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "strides": [2, 1]}
UNEVEN = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
for op in ("AveragePool", "MaxPool"):
    expect = ort_at(7) if op == "AveragePool" else None
    for name, window in (("padded", PADDED), ("same", SAME)):
        case(op, IMAGE, expect=expect, until=6, name=name, **window)
        case(op, IMAGE, since=7, name=name, **window)
    case(op, IMAGE, since=10, name="ceil", **UNEVEN)
    case(op, f32(2, 3, 7), since=7, name="line", kernel_shape=[3], strides=[2])
case("AveragePool", IMAGE, since=7, name="counted", count_include_pad=1, **PADDED)
case("AveragePool", IMAGE, since=19, name="dilated", kernel_shape=[2, 2], dilations=[2, 3])
case("MaxPool", IMAGE, since=10, name="dilated", kernel_shape=[2, 2], dilations=[2, 3])
case("MaxPool", IMAGE, since=8, outputs=2, name="indices", **PADDED)
case("MaxPool", ints(1, 1, 4, 4, dtype=np.int8), since=12, name="bytes", kernel_shape=[2, 2])


def max_pool_columns(x):
    """Returns (maxima of 2x2 windows, their positions in the whole tensor), with storage_order=1: positions within an image
    are counted down its columns."""
    n, c, h, w = x.shape
    y = np.zeros((n, c, h - 1, w - 1), np.float32)
    at = np.zeros(y.shape, np.int64)
    for i in np.ndindex(*y.shape):
        cells = [(i[2] + a, i[3] + b) for a in range(2) for b in range(2)]
        best = max(cells, key=lambda p: x[i[0], i[1], p[0], p[1]])
        y[i] = x[i[0], i[1], best[0], best[1]]
        at[i] = (i[0] * c + i[1]) * h * w + best[1] * h + best[0]
    return y, at


DISTINCT = np.random.default_rng(5).permutation(60).reshape(1, 3, 4, 5).astype(np.float32)
case("MaxPool", DISTINCT, expect=max_pool_columns, since=8, outputs=2, name="columns", kernel_shape=[2, 2], storage_order=1)


def lp_pool(p, kernel=2, stride=1):
    def run(x):
        y = np.zeros(x.shape[:2] + tuple((d - kernel) // stride + 1 for d in x.shape[2:]), np.float32)
        for i in np.ndindex(*y.shape[2:]):
            window = x[:, :, i[0] * stride : i[0] * stride + kernel, i[1] * stride : i[1] * stride + kernel]
            y[:, :, i[0], i[1]] = (np.abs(window) ** p).sum((2, 3)) ** (1 / p)
        return y

    return run


case("LpPool", IMAGE, expect=lp_pool(2), until=1, name="default", kernel_shape=[2, 2])
case("LpPool", IMAGE, expect=lp_pool(1.5, 2, 2), until=1, name="fraction", kernel_shape=[2, 2], strides=[2, 2], p=1.5)
case("LpPool", IMAGE, expect=lp_pool(2), since=2, name="default", kernel_shape=[2, 2])
case("LpPool", IMAGE, expect=lp_pool(3, 2, 2), since=2, name="cubes", kernel_shape=[2, 2], strides=[2, 2], p=3)
case("LpPool", IMAGE, since=2, name="padded", p=1, **PADDED)
case("LpPool", IMAGE, since=18, name="ceil", p=2, dilations=[1, 1], **UNEVEN)
case("LpPool", IMAGE, since=18, name="dilated", kernel_shape=[2, 2], dilations=[2, 2])
case("GlobalLpPool", IMAGE, expect=lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)))
case("GlobalLpPool", IMAGE, expect=lambda x: (np.abs(x) ** 1.5).sum((2, 3), keepdims=True) ** (1 / 1.5), until=1,
     name="fraction", p=1.5)
case("GlobalLpPool", IMAGE, expect=lambda x: np.abs(x).sum((2, 3), keepdims=True), since=2, name="one", p=1)
case("GlobalAveragePool", IMAGE, expect=lambda x: x.mean((2, 3), keepdims=True))
case("GlobalMaxPool", IMAGE, expect=lambda x: x.max((2, 3), keepdims=True))
PLACES = i64(0, 7, 8, 15).reshape(1, 1, 2, 2)
case("MaxUnpool", f32(1, 1, 2, 2), PLACES, kernel_shape=[2, 2], strides=[2, 2])

# --- norms ---

SCALE, BIAS, MEAN, VAR = f32(3, low=0.5, high=2), f32(3), f32(3, low=-1, high=1), f32(3, low=0.5, high=3)
PARAMETERS = (IMAGE, SCALE, BIAS, MEAN, VAR)


def along(v, rank=4):
    return v.reshape((-1,) + (1,) * (rank - 2)) if v.ndim == 1 else v


def batch_norm(epsilon=1e-5):
    return lambda x, s, b, m, v: (x - along(m)) / np.sqrt(along(v) + np.float32(epsilon)) * along(s) + along(b)


def batch_norm_trained(momentum=0.9, saved=True, axes=(0, 2, 3)):
    """Makes a function that returns Y, the new running statistics and, if saved (before version 14), the batch's statistics."""

    def run(x, s, b, m, v):
        mean, var = x.mean(axes), x.var(axes)
        running = [np.float32(momentum) * old + np.float32(1 - momentum) * new for old, new in ((m, mean), (v, var))]
        return [batch_norm()(x, s, b, mean, var), *running] + ([mean, var] if saved else [])

    return run


TEST = {"is_test": 1}
OLD = {"consumed_inputs": [0, 0, 0, 1, 1]}
case("BatchNormalization", *PARAMETERS, expect=batch_norm(), until=5, **TEST, **OLD)
case("BatchNormalization", *PARAMETERS, expect=batch_norm(0.5), until=5, name="epsilon", epsilon=0.5, **TEST, **OLD)
case("BatchNormalization", *PARAMETERS, expect=batch_norm(), since=6, until=6, **TEST)
case("BatchNormalization", *PARAMETERS, since=7)
case("BatchNormalization", *PARAMETERS, since=7, name="epsilon", epsilon=0.5)
case("BatchNormalization", *PARAMETERS, expect=batch_norm_trained(), until=5, outputs=5, name="trained", **OLD)
case("BatchNormalization", *PARAMETERS, expect=batch_norm_trained(), since=6, until=13, outputs=5, name="trained")
case("BatchNormalization", *PARAMETERS, expect=batch_norm_trained(0.5), since=6, until=13, outputs=5, name="momentum",
     momentum=0.5)
case("BatchNormalization", *PARAMETERS, expect=lambda *x: batch_norm_trained()(*x)[:3], since=6, until=13, name="running",
     outputs=[True, True, True, False, False])
case("BatchNormalization", *PARAMETERS, expect=lambda *x: batch_norm_trained()(*x)[0], since=6, until=6, name="only-y")
EACH = [f32(3, 6, 7, low=low, high=high) for low, high in ((0.5, 2), (-2, 2), (-1, 1), (0.5, 3))]
case("BatchNormalization", IMAGE, *EACH, expect=batch_norm(), since=7, until=8, name="elements", spatial=0)
case("BatchNormalization", *PARAMETERS, expect=batch_norm_trained(saved=False), since=14, outputs=3, name="trained",
     training_mode=1)
case("BatchNormalization", f32(5, 3), *PARAMETERS[1:], since=7, name="flat")


def instance_norm(x, s, b):
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    return (x - mean) / np.sqrt(var + np.float32(1e-5)) * along(s) + along(b)


case("InstanceNormalization", IMAGE, SCALE, BIAS, expect=instance_norm)
case("InstanceNormalization", IMAGE, SCALE, BIAS, expect=instance_norm, until=5, name="consumed", consumed_inputs=[0, 0, 0])


def group_norm(groups, epsilon=1e-5, by_group=True):
    def run(x, s, b):
        y = x.reshape(x.shape[0], groups, -1)
        y = (y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + np.float32(epsilon))
        if by_group:
            return (y * s[:, None] + b[:, None]).reshape(x.shape)
        return y.reshape(x.shape) * along(s) + along(b)

    return run


case("GroupNormalization", f32(2, 4, 3, 3), f32(2), f32(2, low=0), expect=group_norm(2), until=20, num_groups=2)
case("GroupNormalization", f32(2, 4, 3, 3), f32(4), f32(4, low=0), expect=group_norm(2, 0.5, False), since=21, num_groups=2,
     epsilon=0.5)


def lrn(size, alpha=1e-4, beta=0.75, bias=1.0):
    def run(x):
        squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        total = sum(squares[:, k : k + x.shape[1]] for k in range(size))
        return (x / (bias + alpha / size * total) ** beta).astype(np.float32)

    return run


CHANNELS = f32(1, 6, 2, 3)
case("LRN", CHANNELS, expect=lrn(3), size=3)
case("LRN", CHANNELS, expect=lrn(4, 0.5, 0.5, 2), name="even", size=4, alpha=0.5, beta=0.5, bias=2.0)

# --- dropout where nothing is dropped ---

for until in (5, 6):
    consumed = {"consumed_inputs": [0]} if until == 5 else {}
    case("Dropout", IMAGE, expect=lambda x: x, since=1 if until == 5 else 6, until=until, is_test=1, ratio=0.25, **consumed)
case("Dropout", IMAGE, expect=lambda x: x, since=7, until=11, ratio=0.25)
case("Dropout", IMAGE, expect=lambda x: (x, np.ones(x.shape, bool)), since=10, outputs=2, name="mask")
case("Dropout", IMAGE, np.float32(0.25), expect=lambda x, _: (x, np.ones(x.shape, bool)), since=12, outputs=2, name="ratio")
case("Dropout", IMAGE, np.float32(0), np.bool_(True), expect=lambda x, *_: (x, np.ones(x.shape, bool)), since=12, outputs=2,
     name="none")

# --- recurrences: versions before 7 differ in attributes, not in meaning ---


def layer(gates, directions=1, hidden=4, inputs=3, steps=5, batch=2, bias=True, state=True):
    x = [
        f32(steps, batch, inputs, low=-1, high=1),
        f32(directions, gates * hidden, inputs, low=-1, high=1),
        f32(directions, gates * hidden, hidden, low=-1, high=1),
        f32(directions, 2 * gates * hidden, low=-1, high=1) if bias else None,
        np.array([steps, steps - 2], np.int32),
    ]
    return x + [f32(directions, batch, hidden, low=-1, high=1)] if state else x


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
for op, gates in GATES.items():
    outputs = 3 if op == "LSTM" else 2
    for since, until, expect, extra in ((1, 6, ort_at(7, "output_sequence"), {"output_sequence": 1}), (7, 10000, None, {})):
        shared = {"since": since, "until": until, "expect": expect, "outputs": outputs, **extra}
        case(op, *layer(gates)[:4], hidden_size=4, **shared)
        case(op, *layer(gates), name="lengths", hidden_size=4, **shared)
        case(op, *layer(gates)[:3], name="reverse", hidden_size=4, direction="reverse", **shared)
        case(op, *layer(gates, 2), name="both", hidden_size=4, direction="bidirectional", **shared)
        case(op, *layer(gates)[:4], name="clip", hidden_size=4, clip=0.5, **shared)
    case(op, *layer(gates)[:4], expect=ort_at(7), until=6, outputs=[False, True], name="last", hidden_size=4)
for since, until, expect in ((3, 6, ort_at(7)), (7, 10000, None)):
    case("GRU", *layer(3)[:4], since=since, until=until, expect=expect, outputs=2, name="linear", hidden_size=4,
         linear_before_reset=1)
for since, until, expect in ((1, 6, ort_at(7)), (7, 10000, None)):
    case("LSTM", *layer(4), f32(1, 2, 4), f32(1, 12, low=-1, high=1), since=since, until=until, expect=expect, outputs=3,
         name="peepholes", hidden_size=4)
    case("LSTM", *layer(4)[:4], since=since, until=until, expect=expect, outputs=3, name="coupled", hidden_size=4, input_forget=1)
    case("RNN", *layer(1)[:4], since=since, until=until, expect=expect, outputs=2, name="relu", hidden_size=4,
         activations=["Relu"])

# --- resizing ---

SMALL = f32(1, 2, 3, 4)


def upsampled(x, *scales):
    """Returns x upsampled to the nearest element: element k of a result's axis is element floor(k / scale) of x."""
    for axis, scale in enumerate(scales):
        places = np.floor(np.arange(int(x.shape[axis] * scale)) / scale).astype(int)
        x = np.take(x, places, axis)
    return x


case("Upsample", SMALL, expect=lambda x: upsampled(x, 1, 1, 2, 3), until=6, height_scale=2.0, width_scale=3.0)
case("Upsample", SMALL, expect=lambda x: upsampled(x, 1, 1, 1.5, 2.5), until=6, name="fraction", height_scale=1.5, width_scale=2.5)
case("Upsample", SMALL, expect=lambda x: upsampled(x, 1, 1, 2, 3), since=7, until=8, scales=[1.0, 1.0, 2.0, 3.0])
case("Upsample", SMALL, since=7, until=8, name="linear", mode="linear", scales=[1.0, 1.0, 2.0, 3.0])
case("Upsample", SMALL, np.float32([1, 1, 2, 3]), expect=lambda x, s: upsampled(x, *s), since=9)
case("Upsample", SMALL, np.float32([1, 1, 2, 3]), expect=ort_at(9), since=9, name="linear", mode="linear")


def bilinear_from_corner(x, up):
    """Returns x with height and width multiplied by `up`: positions between two elements are interpolated, positions after the
    last element repeat it."""
    for axis in (2, 3):
        edge = np.take(x, [x.shape[axis] - 1], axis)
        after = np.concatenate([np.take(x, range(1, x.shape[axis]), axis), edge], axis)
        x = np.stack([x + (after - x) * (k / up) for k in range(up)], axis + 1).reshape(
            x.shape[:axis] + (x.shape[axis] * up,) + x.shape[axis + 1 :])
    return x.astype(np.float32)


case("Upsample", SMALL, expect=lambda x: bilinear_from_corner(x, 2), until=6, name="bilinear", mode="bilinear", height_scale=2.0,
     width_scale=2.0)
# ONNX Runtime deviates from the standard for align_corners if a scaled size is not whole; these scales give whole
# sizes.
for name, scales in (("up", [1, 1, 2, 3]), ("down", [1, 1, 1 / 3, 0.5]), ("mixed", [1, 1, 5 / 3, 0.75])):
    for mode in ("nearest", "linear"):
        case("Resize", SMALL, np.float32(scales), until=10, name=f"{name}-{mode}", mode=mode)
        for where in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            case("Resize", SMALL, np.float32([]), np.float32(scales), since=11, name=f"{name}-{mode}-{where}", mode=mode,
                 coordinate_transformation_mode=where)
case("Resize", SMALL, np.float32([]), np.float32([1, 1, 2, 3]), since=11, until=12, name="tf", mode="nearest",
     coordinate_transformation_mode="tf_half_pixel_for_nn")
case("Resize", SMALL, np.float32([]), np.float32([1, 1, 2, 3]), since=11, name="cubic", mode="cubic")
for since, until, empty in ((11, 12, np.float32([])), (13, 10000, None)):
    case("Resize", SMALL, empty, empty, i64(1, 2, 5, 9), since=since, until=until, name="sizes", mode="linear")
    case("Resize", SMALL, np.float32([0, 0, 0.2, 0.3, 1, 1, 0.9, 1.2]), empty, i64(1, 2, 5, 9), since=since, until=until,
         name="crop", mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    case("Resize", SMALL, np.float32([]), np.float32([1, 1, 2, 0.7]), since=11, name=nearest, nearest_mode=nearest)
case("Resize", SMALL, None, np.float32([0.6, 0.5]), since=18, name="antialias", mode="linear", antialias=1, axes=[2, 3])

# --- regions and grids ---

BOXES = np.float32([[0.5, 1, 4.25, 4.5], [1, 0, 2.5, 5], [-1, -2, 3, 9], [2, 2, 2.25, 2.5]])
OF = i64(0, 1, 1, 0)
for mode in ("avg", "max"):
    size = {"mode": mode, "output_height": 2, "output_width": 3}
    fixed = {"sampling_ratio": 2, "spatial_scale": 0.75, **size}
    for since, until, expect in ((10, 21, None), (22, 10000, ort_at(16))):
        shared = {"since": since, "until": until, "expect": expect}
        case("RoiAlign", IMAGE, BOXES, OF, name=f"{mode}-fixed", **fixed, **shared)
        case("RoiAlign", IMAGE, BOXES, OF, name=f"{mode}-adaptive", **size, **shared)
    for since, until, expect in ((16, 21, None), (22, 10000, ort_at(16))):
        case("RoiAlign", IMAGE, BOXES, OF, since=since, until=until, expect=expect, name=f"{mode}-output",
             coordinate_transformation_mode="output_half_pixel", **size)
POOLED = np.float32([[0, 0.5, 1, 4.25, 4.5], [1, 1, 0, 2.5, 5], [1, -1, -2, 3, 9], [0, 2, 2, 2.25, 2.5], [0, 9, 9, 12, 12]])
for since, until, expect in ((1, 21, None), (22, 10000, ort_at(1))):
    shared = {"since": since, "until": until, "expect": expect, "pooled_shape": [2, 3]}
    case("MaxRoiPool", IMAGE, POOLED, **shared)
    case("MaxRoiPool", IMAGE, POOLED, name="scaled", spatial_scale=0.75, **shared)
CORNERS = np.sort(f32(2, 6, 2, 2, low=0, high=1), 2).reshape(2, 6, 4)
SCORES_OF = np.random.default_rng(3).permutation(36).reshape(2, 3, 6).astype(np.float32) / 36
LIMITS = i64(6), np.float32([0.25]), np.float32([0.2])
case("NonMaxSuppression", CORNERS, SCORES_OF, *LIMITS)
case("NonMaxSuppression", CORNERS, SCORES_OF, *LIMITS, name="centers", center_point_box=1)
case("NonMaxSuppression", CORNERS, SCORES_OF, i64(2), name="count")
GRID = f32(2, 4, 5, 2, low=-1.25, high=1.25)
for padding in ("zeros", "border", "reflection"):
    for until, modes in ((19, ("bilinear", "nearest", "bicubic")), (10000, ("linear", "nearest", "cubic"))):
        for mode in modes:
            for align in (0, 1):
                case("GridSample", IMAGE, GRID, since=16 if until == 19 else 20, until=until, name=f"{mode}-{padding}-{align}",
                     mode=mode, padding_mode=padding, align_corners=align)

# --- losses ---

SCORES = f32(4, 3, low=-3, high=3)
CLASSES = i64(2, 0, 1, 2)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def loss(reduction, weights=None, ignored=None, soft=False):
    def run(x, classes, w=None):
        x = log_softmax(x) if soft else x
        w = np.ones(x.shape[1], np.float32) if w is None else w
        each = np.where(classes == ignored, 0, w[np.where(classes == ignored, 0, classes)])
        y = -np.take_along_axis(x, np.where(classes == ignored, 0, classes)[:, None], 1)[:, 0] * each
        return {"none": y, "sum": y.sum(), "mean": y.sum() / each.sum()}[reduction].astype(np.float32)

    return run


for op, soft in (("NegativeLogLikelihoodLoss", False), ("SoftmaxCrossEntropyLoss", True)):
    case(op, SCORES, CLASSES, expect=loss("mean", soft=soft))
    case(op, SCORES, CLASSES, f32(3, low=0.5), expect=loss("mean", soft=soft), name="weights")
    case(op, SCORES, CLASSES, f32(3, low=0.5), expect=loss("none", ignored=2, soft=soft), name="ignored", reduction="none",
         ignore_index=2)
    case(op, SCORES, CLASSES, expect=loss("sum", soft=soft), name="sum", reduction="sum")

# --- quantisation ---

REAL = f32(3, 4, low=-4, high=4)
STEP = np.float32(0.03125)
BYTES = ints(3, 4, low=0, high=255, dtype=np.uint8)
SIGNED = ints(3, 4, low=-128, high=127, dtype=np.int8)


def quantized(x, step, zero=np.uint8(0)):
    low, high = np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max
    return np.clip(np.rint(x / step) + zero, low, high).astype(zero.dtype)


def dequantized(x, step, zero=0):
    return (x.astype(np.float32) - np.float32(zero)) * step


case("QuantizeLinear", REAL, STEP, expect=quantized, name="default")
case("QuantizeLinear", REAL, STEP, np.uint8(130), expect=quantized)
case("QuantizeLinear", REAL, STEP, np.int8(-3), expect=quantized, name="signed")
STEPS = np.float32([0.03125, 0.0625, 0.5])
ZEROS = np.array([1, -2, 3], np.int8)
case("QuantizeLinear", REAL, STEPS, ZEROS, expect=lambda x, s, z: quantized(x, s[:, None], z[:, None]), since=13, name="axis", axis=0)
case("DequantizeLinear", BYTES, STEP, expect=dequantized, name="default")
case("DequantizeLinear", BYTES, STEP, np.uint8(130), expect=dequantized)
case("DequantizeLinear", SIGNED, STEP, np.int8(-3), expect=dequantized, name="signed")
case("DequantizeLinear", ints(3, 4, low=-1000, high=1000, dtype=np.int32), STEP, expect=dequantized, name="wide")
case("DequantizeLinear", SIGNED, STEPS, ZEROS, expect=lambda x, s, z: dequantized(x, s[:, None], z[:, None]), since=13, name="axis",
     axis=0)
BLOCKS = f32(3, 2, low=0.5)
case("DequantizeLinear", SIGNED, BLOCKS, expect=lambda x, s: dequantized(x, np.repeat(s, 2, 1)), since=21, name="blocks", axis=1,
     block_size=2)
case("QuantizeLinear", REAL, BLOCKS / 16, since=21, name="blocks", axis=1, block_size=2, output_dtype=3,
     expect=lambda x, s: quantized(x, np.repeat(s, 2, 1), np.int8(0)))
case("QLinearMatMul", ints(2, 3, low=0, high=255, dtype=np.uint8), STEP, np.uint8(100), ints(3, 4, low=0, high=255, dtype=np.uint8),
     STEP, np.uint8(150), np.float32(0.125), np.uint8(120),
     expect=lambda a, sa, za, b, sb, zb, sy, zy: quantized(dequantized(a, sa, za) @ dequantized(b, sb, zb), sy, zy))

# --- attention, transforms ---

HEADS = f32(1, 2, 3, 4, low=-1, high=1)


def attention(q, k, v):
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(np.float32(q.shape[-1]))
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


case("Attention", HEADS, f32(1, 2, 5, 4, low=-1, high=1), f32(1, 2, 5, 6), expect=attention)


def dft(axis, inverse=False):
    def run(x, *_):
        z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
        y = np.fft.ifft(z, axis=axis) if inverse else np.fft.fft(z, axis=axis)
        return np.stack([y.real, y.imag], -1).astype(np.float32)

    return run


case("DFT", f32(2, 5, 3, 1), expect=dft(1), until=19)
case("DFT", f32(2, 5, 3, 2), expect=dft(2, True), until=19, name="inverse", axis=2, inverse=1)
case("DFT", f32(2, 5, 3, 1), None, np.int64(1), expect=dft(1), since=20)
