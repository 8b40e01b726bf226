"""Convolutions, pooling, sampling and determinants in any number of dimensions.  Expected values come from loops in numpy; those of
pooling with ceil_mode from ONNX Runtime."""
import itertools

import numpy as np

import oracles

rng = np.random.default_rng(2)


def floats(*dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


def places(dims):
    return itertools.product(*(range(d) for d in dims))


def conv(x, w, group=1, strides=None, pads=None, dilations=None):
    n = x.ndim - 2
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(pads[k], pads[n + k]) for k in range(n)])
    kernel = w.shape[2:]
    out = [(x.shape[2 + k] - (kernel[k] - 1) * dilations[k] - 1) // strides[k] + 1 for k in range(n)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    inputs, outputs = w.shape[1], w.shape[0] // group
    for cell in places(kernel):
        at = tuple(slice(c * d, c * d + (o - 1) * s + 1, s) for c, d, o, s in zip(cell, dilations, out, strides))
        for g in range(group):
            part = x[(slice(None), slice(g * inputs, (g + 1) * inputs)) + at]
            weight = w[(slice(g * outputs, (g + 1) * outputs), slice(None)) + cell]
            y[:, g * outputs:(g + 1) * outputs] += np.einsum("nc...,oc->no...", part, weight)
    return y


def conv_transpose(x, w, group=1, strides=None, pads=None, dilations=None, output_padding=None):
    n = x.ndim - 2
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    extra = output_padding or [0] * n
    full = [strides[k] * (x.shape[2 + k] - 1) + extra[k] + (w.shape[2 + k] - 1) * dilations[k] + 1 for k in range(n)]
    inputs, outputs = x.shape[1] // group, w.shape[1]
    y = np.zeros((x.shape[0], outputs * group, *full))
    for cell in places(w.shape[2:]):
        at = tuple(slice(c * d, c * d + (e - 1) * s + 1, s) for c, d, e, s in zip(cell, dilations, x.shape[2:], strides))
        for g in range(group):
            part = x[:, g * inputs:(g + 1) * inputs].astype(np.float64)
            weight = w[(slice(g * inputs, (g + 1) * inputs), slice(None)) + cell]
            y[(slice(None), slice(g * outputs, (g + 1) * outputs)) + at] += np.einsum("nc...,co->no...", part, weight)
    return y[(slice(None), slice(None)) + tuple(slice(pads[k], full[k] - pads[n + k]) for k in range(n))]


def pool(x, kernel, reduce, strides=None, pads=None, empty=0.0):
    n = x.ndim - 2
    strides, pads = strides or [1] * n, pads or [0] * 2 * n
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(pads[k], pads[n + k]) for k in range(n)], constant_values=empty)
    out = [(x.shape[2 + k] - kernel[k]) // strides[k] + 1 for k in range(n)]
    y = np.zeros((*x.shape[:2], *out))
    for p in places(out):
        at = tuple(slice(i * s, i * s + e) for i, s, e in zip(p, strides, kernel))
        y[(slice(None), slice(None)) + p] = reduce(x[(slice(None), slice(None)) + at], tuple(range(2, 2 + n)))
    return y


def interpolated(x, position):
    """Returns x [C, spatial...] at one position, interpolated between the neighbours of the position; x is 0 outside of its bounds."""
    low = np.floor(position).astype(int)
    total = 0.0
    for corner in places([2] * len(position)):
        at = low + corner
        if np.all(at >= 0) and np.all(at < x.shape[1:]):
            total = total + x[(slice(None), *at)] * np.prod(1 - np.abs(position - at))
    return total


def deform_conv(x, w, offset, mask, strides, pads, dilations, offset_group):
    n = x.ndim - 2
    kernel, out = w.shape[2:], offset.shape[2:]
    offset = offset.reshape(x.shape[0], offset_group, -1, n, *out)
    mask = mask.reshape(x.shape[0], offset_group, -1, *out)
    y = np.zeros((x.shape[0], w.shape[0], *out))
    channels = x.shape[1] // offset_group
    for b, g, p, (number, cell) in itertools.product(range(x.shape[0]), range(offset_group), places(out),
                                                    enumerate(places(kernel))):
        start = np.array(p) * strides - np.array(pads[:n]) + np.array(cell) * dilations
        value = interpolated(x[b, g * channels:(g + 1) * channels], start + offset[(b, g, number, slice(None), *p)])
        value = value * mask[(b, g, number, *p)]
        y[(b, slice(None), *p)] += w[(slice(None), slice(g * channels, (g + 1) * channels), *cell)] @ (value + np.zeros(channels))
    return y


def write_convolutions(w):
    for n in (1, 2, 3, 4, 5):
        x = floats(2, 4, *[4 + k % 2 for k in range(n)])
        settings = [{}, {"group": 2, "pads": [1] * 2 * n}, {"strides": [2] * n, "pads": [1] + [0] * (2 * n - 1)},
                    {"dilations": [2] + [1] * (n - 1)}]
        for s in settings:
            k = floats(6, 4 // s.get("group", 1), *[2] * n)
            w.add("Conv", [x, k], [conv(x, k, **s).astype("f")], s, name="%dd" % n)
            k = floats(4, 6 // s.get("group", 1), *[2] * n)
            if "strides" in s:
                s = s | {"output_padding": [1] * n}
            w.add("ConvTranspose", [x, k], [conv_transpose(x, k, **s).astype("f")], s, name="%dd" % n)
    x, k = rng.integers(0, 255, (1, 2, 3, 3, 3, 3), np.uint8), rng.integers(-9, 9, (3, 2, 2, 2, 2, 2), np.int8)
    zeros = [np.array(7, np.uint8), np.array([1, 0, -2], np.int8)]
    y = conv(x.astype("d") - 7, k - np.array([1, 0, -2.0]).reshape(3, 1, 1, 1, 1, 1))
    w.add("ConvInteger", [x, k, *zeros], [y.astype(np.int32)], name="4d")
    for n in (1, 3):
        dims, out = [5, 4, 4][:n], [3, 2, 2][:n]
        x, k = floats(2, 4, *dims, dtype=np.float64), floats(3, 4, *[2] * n, dtype=np.float64)
        offset, mask = floats(2, 2 * 2 ** n * n, *out, dtype=np.float64), floats(2, 2 * 2 ** n, *out, dtype=np.float64)
        s = {"strides": [2] * n, "pads": [1] * n + [0] * n, "dilations": [1] * n}
        y = deform_conv(x, k, offset, mask, [2] * n, s["pads"], [1] * n, 2)
        w.add("DeformConv", [x, k, offset, None, mask], [y], s | {"offset_group": 2}, name="%dd" % n)


def write_pools(w):
    for n in (1, 4, 5):
        x = floats(2, 3, *[4] * n)
        s = {"strides": [2] * n, "kernel_shape": [3] + [2] * (n - 1), "pads": [1] + [0] * (2 * n - 1)}
        given = (s["kernel_shape"], s["strides"], s["pads"])
        most = pool(x, given[0], np.max, *given[1:], empty=-np.inf)
        w.add("MaxPool", [x], [most.astype("f")], s, name="%dd" % n)
        mean = pool(x, given[0], np.mean, *given[1:])
        w.add("AveragePool", [x], [mean.astype("f")], s | {"count_include_pad": 1}, name="%dd" % n)
        norm = pool(np.abs(x) ** 3.0, given[0], np.sum, *given[1:]) ** (1 / 3)
        w.add("LpPool", [x], [norm.astype("f")], s | {"p": 3}, name="%dd" % n)
        axes = tuple(range(2, 2 + n))
        norm = np.sum(np.abs(x.astype("d")) ** 3, axes, keepdims=True) ** (1 / 3)
        w.add("GlobalLpPool", [x], [norm.astype("f")], {"p": 3}, name="%dd" % n)
        w.add("GlobalMaxPool", [x], [x.max(axes, keepdims=True)], name="%dd" % n)


def write_ceil_mode(w):
    """Kernels that reach behind the input, or are larger than it.  A row has the extent of the input, kernel, stride, dilation and pads."""
    for n, kernel, stride, dilation, low, high in (
            (2, 3, 2, 1, 0, 0), (2, 3, 5, 1, 0, 0), (2, 4, 3, 1, 0, 0), (2, 320, 320, 1, 0, 0), (1, 7, 7, 1, 0, 0), (5, 3, 2, 1, 0, 0),
            (6, 3, 2, 1, 0, 0), (6, 2, 4, 1, 1, 1), (5, 2, 3, 1, 1, 1), (2, 5, 2, 1, 1, 1), (4, 2, 5, 1, 1, 1), (2, 4, 3, 1, 1, 0),
            (2, 4, 3, 1, 0, 1), (3, 2, 2, 3, 0, 0), (2, 2, 5, 2, 0, 0), (7, 3, 2, 2, 0, 0), (4, 3, 4, 3, 1, 0), (1, 2, 2, 1, 1, 1)):
        for op, attributes in (("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1}), ("LpPool", {"p": 3})):
            for rank in (1, 2):
                a = attributes | {"ceil_mode": 1, "kernel_shape": [kernel] * rank, "strides": [stride] * rank,
                                  "dilations": [dilation] * rank, "pads": [low] * rank + [high] * rank}
                x = floats(2, 3, *[n] * rank)
                kinds = [1, 7] if op == "MaxPool" else [1]
                w.add(op, [x], oracles.run("runtime", op, [x], kinds, a, 22), a, opset=22, name="ceil_mode")


def write_sampling(w):
    for n in (1, 4):
        x, out = floats(1, 2, *[3] * n, dtype=np.float64), [2] * n
        grid = rng.uniform(-1.2, 1.2, (1, *out, n))
        y = np.zeros((1, 2, *out))
        for p in places(out):  # the grid lists the last dimension first
            y[(0, slice(None), *p)] = interpolated(x[0], (grid[(0, *p)][::-1] + 1) * 3 / 2 - 0.5)
        w.add("GridSample", [x, grid], [y], {"mode": "linear"}, name="%dd" % n)
    write_wild_positions(w)


def write_wild_positions(w):
    """Positions that are NaN or infinite.  The standard does not mention NaN.  Interpolation at NaN gives NaN, as in PyTorch without
    padding; no element is nearest to NaN, so that mode gives 0, as the reference evaluator and PyTorch do without padding.  Infinite
    positions are outside of the image."""
    x = np.arange(1, 10, dtype="f").reshape(1, 1, 3, 3)
    nan, inf, big = np.nan, np.inf, 1e20
    grid = np.array([[nan, 0], [0, nan], [nan, nan], [inf, 0], [-inf, 0], [inf, -inf], [big, 0], [0, 0]], "f")
    for mode, padding, expected in (("linear", "zeros", [nan, nan, nan, 0, 0, 0, 0, 5]),
                                    ("cubic", "zeros", [nan, nan, nan, 0, 0, 0, 0, 5]),
                                    ("nearest", "zeros", [0, 0, 0, 0, 0, 0, 0, 5]),
                                    ("linear", "border", [nan, nan, nan, 6, 4, 3, 6, 5])):
        for align in (0, 1):
            y = np.array(expected, "f").reshape(1, 1, 1, 8)
            w.add("GridSample", [x, grid.reshape(1, 1, 8, 2)], [y],
                  {"mode": mode, "padding_mode": padding, "align_corners": align}, name="wild")


def write_determinants(w):
    for dims in ((65, 65), (2, 3, 70, 70), (1, 1), (3, 2, 2), (0, 5, 5)):
        x = floats(*dims, dtype=np.float64) / np.sqrt(dims[-1])
        w.add("Det", [x], [np.linalg.det(x)], opset=22)
    x = np.eye(80, dtype=np.float32)[rng.permutation(80)]
    w.add("Det", [x], [np.float32(round(np.linalg.det(x)))], opset=11, name="permutation")
    w.add("Det", [np.ones((66, 66), "f")], [np.float32(0)], name="singular")
