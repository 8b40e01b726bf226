"""idioms/heads.py: heads of detectors and segmenters, and operators that choose among their results.

The operators that choose (NonMaxSuppression, TopK, ArgMax) get exact values only: boxes and scores are multiples of powers
of two, so that sums and products of them are exact, too."""

import numpy as np

from idioms import idiom
from registry import EXACT


@idiom("image")
def anchors_head(k, x):
    """YOLOv5: a 1x1 convolution, [n, a, 5 + c, h, w] turned, sigmoid, grids and anchors."""
    n, c, h, w = x.shape
    a, per = k.one(1, 3), k.one(6, 9)
    y = k.reshape(k.conv(x, a * per, 1), (n, a, per, h, w))
    y = k.Sigmoid(k.transpose(y, 0, 1, 3, 4, 2))
    grid = k.const(
        np.stack(np.meshgrid(np.arange(h), np.arange(w), indexing="ij"), -1)[None, None].astype(x.array.dtype)
    )
    xy = k.Mul(k.Add(k.Sub(k.Mul(k.slice(y, 4, 0, 2), 2.0), 0.5), grid), 8.0)
    wh = k.Mul(k.Pow(k.Mul(k.slice(y, 4, 2, 4), 2.0), 2.0), k.const(k.array((1, a, 1, 1, 2), 4, 20)))
    return k.reshape(k.concat([xy, wh, k.slice(y, 4, 4, per)], 4), (n, a * h * w, per))


@idiom("image")
def distances_head(k, x):
    """YOLOv8: a softmax over bins, a convolution with 0, 1, 2 ..., boxes of distances."""
    n, c, h, w = x.shape
    bins = k.one(8, 16)
    y = k.reshape(k.conv(x, 4 * bins, 1), (n, 4, bins, h * w))
    y = k.Softmax(k.transpose(y, 0, 2, 1, 3), axis=1)
    numbers = k.const(np.arange(bins, dtype=x.array.dtype).reshape(1, bins, 1, 1))
    k.afford(y.size)
    y = k.reshape(k.Conv(y, numbers, kernel_shape=[1, 1]), (n, 4, h * w))
    anchors = k.const(k.array((1, 2, h * w), 0, 8))
    a, b = k.Sub(anchors, k.slice(y, 1, 0, 2)), k.Add(anchors, k.slice(y, 1, 2, 4))
    middle, size = k.Div(k.Add(a, b), 2.0), k.Sub(b, a)
    return k.Mul(k.concat([middle, size], 1), 8.0)


@idiom("rows", 0.8)
def decoded_boxes(k, x):
    """Boxes from anchors and the offsets that a network predicts: centres are moved, and sizes multiplied by exp."""
    k.need(x.shape[2] >= 4)
    n, t = x.shape[:2]
    anchors = [k.const(k.array((t, 1), lo, hi)) for lo, hi in ((0, 8), (0, 8), (1, 4), (1, 4))]
    dx, dy, dw, dh = (k.slice(x, 2, j, j + 1) for j in range(4))
    cx, cy = k.Add(k.Mul(dx, anchors[2]), anchors[0]), k.Add(k.Mul(dy, anchors[3]), anchors[1])
    w, h = (k.Mul(k.Exp(k.clip(v, -4.0, 3.0)), a) for v, a in ((dw, anchors[2]), (dh, anchors[3])))
    w, h = k.Mul(w, 0.5), k.Mul(h, 0.5)
    return k.concat([k.Sub(cx, w), k.Sub(cy, h), k.Add(cx, w), k.Add(cy, h)], 2)


@idiom("image", 0.8)
def segmentation_head(k, x):
    y = k.conv(x, 8, 1)
    scales = k.const(np.array([1, 1, 2, 2], np.float32))
    y = k.Resize(
        y,
        k.const(np.zeros(0, np.float32)),
        scales,
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    return k.Softmax(y, axis=1)


@idiom("image", 0.8)
def joined_levels(k, x):
    """Heads of several levels, flattened and joined."""
    made = []
    for level in range(k.one(2, 3)):
        y = k.transpose(k.conv(x, 6, k.one(1, 3)), 0, 2, 3, 1)
        made.append(k.reshape(y, (x.shape[0], -1, 6)))
        x = k.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])
    return k.Sigmoid(k.concat(made, 1))


def grid_input(k, shape, lo, hi):
    """An input of multiples of 1/4."""
    return k.b.new_input((np.round(k.array(shape, lo, hi, "float") * 4) / 4).astype(np.float32))


@idiom("rows", 0.8)
def suppressed_boxes(k, x):
    """Boxes are converted from centres and sizes to corners and suppressed, and the chosen ones are gathered."""
    n, t = k.one(1, 2), k.one(6, 16)
    rows = grid_input(k, (n, t, 4), 1, 8)
    centre, size = k.slice(rows, 2, 0, 2), k.slice(rows, 2, 2, 4)
    half = k.Mul(size, 0.5, kind=EXACT)
    boxes = k.concat([k.Sub(centre, half, kind=EXACT), k.Add(centre, half, kind=EXACT)], 2)
    scores = k.input((n, k.one(1, 3), t), 0.0, 1.0, "float")
    limits = [k.const(v) for v in (np.array([4]), np.array([0.43], np.float32), np.array([0.2], np.float32))]
    chosen = k.NonMaxSuppression(boxes, scores, *limits)
    which = k.Squeeze(k.slice(chosen, 1, 2, 3), axes=[1])
    flat = k.slice(boxes, 0, 0, 1)
    return k.Gather(k.Squeeze(flat, axes=[0]), which, axis=0)


@idiom("rows", 0.8)
def best_rows(k, x):
    """The rows of the highest scores, in order: TopK, Gather or GatherElements."""
    n, t, c = x.shape
    k.need(t >= 4)
    scores = k.input((n, t))
    best = k.TopK(scores, k.const(np.array([min(t, k.one(3, 8))])), axis=1, outputs=2)
    m = best[1].shape[1]
    if k.chance(0.5):
        at = k.expand(k.Unsqueeze(best[1], axes=[2]), (n, m, c))
        return k.GatherElements(x, at, axis=1)
    return k.GatherND(x, k.Unsqueeze(best[1], axes=[2]), batch_dims=1) if k.b.opset >= 12 else best[0]


@idiom("heads", 0.8)
def greedy_tokens(k, x):
    """The largest score of each row, and the row of a table for it."""
    n, t = x.shape[0], 8
    best = k.ArgMax(k.input((n, t, 20)), axis=2, keepdims=0)
    return k.Gather(k.const(k.array((20, 16))), best, axis=0)


@idiom("image", 0.8)
def aligned_regions(k, x):
    """RoiAlign of a few boxes, and a head on each."""
    k.need(min(x.shape[2:]) >= 7)
    rois = k.array((3, 2), 0, 2.5)
    rois = k.b.new_input(np.concatenate([rois, rois + k.array((3, 2), 1.1, 4)], 1))
    which = k.const(np.array([0, x.shape[0] - 1, 0]))
    y = k.RoiAlign(x, rois, which, output_height=4, output_width=4, sampling_ratio=2, spatial_scale=1.0)
    return k.linear(k.reshape(y, (3, -1)), 16)


@idiom("image", 0.8)
def warped(k, x):
    """GridSample at places moved by a flow."""
    n, c, h, w = x.shape
    k.need(h >= 7 and w >= 7)
    side = 8
    places = np.stack(np.meshgrid(np.linspace(-0.9, 0.9, side), np.linspace(-0.9, 0.9, side)), -1)[None]
    grid = k.Add(k.const(places.astype(x.array.dtype)), k.input((n, side, side, 2), -0.1, 0.1))
    return k.GridSample(x, grid, align_corners=k.one(0, 1), padding_mode=k.one("zeros", "border"))


@idiom("any", 0.8)
def rows_that_are_there(k, x):
    """The rows that a mask selects: a size that depends on data."""
    k.need(x.rank >= 2 and x.shape[0] >= 2)
    keep = k.b.new_input((np.arange(x.shape[0]) % 2 == 0))
    if k.chance(0.5):
        return k.Compress(x, keep, axis=0)
    at = k.transpose(k.NonZero(keep), 1, 0)
    return k.GatherND(x, at)


@idiom("any", 0.5)
def chosen_and_mapped(k, x):
    """An unknown number of rows, to which elementwise operators are applied (the size rules of the import)."""
    k.need(x.rank >= 2 and x.shape[0] >= 2)
    y = k.Compress(x, k.b.new_input(np.arange(x.shape[0]) % 2 == 0), axis=0)
    y = k.one(k.Relu, k.Sigmoid, lambda v: k.Mul(v, k.Sigmoid(v)), k.Neg)(y)
    return k.Add(y, 1.0)
