"""ops/nn.py: contractions, convolutions, pools, recurrences, attention, sampling."""

import numpy as np

import rows
from registry import Skip, operators
from values import draw_array

# --- products ---


@operators("MatMul", kind="sum", ulps=4, liked=4)
def matmul(b, o):
    t = o.type("T")
    lo, hi = (-10, 10) if rows.is_float(t) else (None, None)
    x = b.tensor(t, rank=(1, 4), lo=lo, hi=hi, least=0)
    k = x.shape[-1]
    batch = x.shape[:-2]
    choice = b.r.random()
    if choice < 0.15 and k:  # for sums without terms, ONNX Runtime's product with a vector is uninitialised
        shape = (k,)
    elif choice < 0.6 or not batch:
        shape = (k, b.dim(0))
    else:
        shape = tuple(d if b.r.random() < 0.7 else 1 for d in batch)[b.r.randrange(len(batch)) :] + (k, b.dim())
    y = b.tensor(t, shape=shape, lo=lo, hi=hi, least=0)
    return [x, y], {}


@operators("Gemm", kind="sum", ulps=4, liked=3)
def gemm(b, o):
    t = o.type("T")
    lo, hi = (-10, 10) if rows.is_float(t) else (None, None)
    m, n, k = b.dim(0), b.dim(), b.dim()
    x = b.tensor(t, rank=2, lo=lo, hi=hi)
    ta, tb = b.r.randint(0, 1), b.r.randint(0, 1)
    m, k = x.shape[::-1] if ta else x.shape
    y = b.tensor(t, shape=(n, k) if tb else (k, n), lo=lo, hi=hi)
    c = None
    if o.since < 11 or b.r.random() < 0.7:
        c = b.tensor(t, shape=b.r.choice([(m, n), (n,), (1, n), (m, 1), (1, 1), ()]), lo=lo, hi=hi)
    whole = not rows.is_float(t)
    return [x, y, c], {
        "transA": ta,
        "transB": tb,
        "alpha": b.r.choice([None, 2.0 if whole else 0.5]),
        "beta": b.r.choice([None, 3.0 if whole else 1.5]),
    }


@operators("Einsum", kind="sum", ulps=4)
def einsum(b, o):
    t = o.type("T", rows.FLOATS + rows.INTS)
    equation = b.r.choice(
        [
            "ij,jk->ik",
            "bij,bjk->bik",
            "ij->ji",
            "ij->i",
            "ii->i",
            "i,j->ij",
            "bhid,bhjd->bhij",
            "ijk,k->ij",
            "ij,ij->",
            "...ij,...jk->...ik",
            "abc,cd,be->ade",
            "ij,jk",
            "a b c -> c a",
        ]
    )
    left = equation.replace(" ", "").split("->")[0]
    sizes = {c: b.r.randint(1, 5) for c in left if c.isalpha()}
    batch = b.shape((0, 2))
    operands = []
    for term in left.split(","):
        shape = (batch if "..." in term else ()) + tuple(sizes[c] for c in term if c.isalpha())
        operands.append(b.tensor(t, shape=shape))
    return operands, {"equation": equation}


# --- convolutions ---


def spatial(b, rank, shape, kernel, attributes, transposed=False):
    """Sets strides, dilations and pads such that a window fits."""
    r = b.r
    if r.random() < 0.5:
        attributes["strides"] = [r.choice([1, 1, 2, 3]) for _ in range(rank)]
    if r.random() < 0.3 and "dilations" in attributes:
        attributes["dilations"] = [r.choice([1, 2]) for _ in range(rank)]
    elif "dilations" in attributes:
        del attributes["dilations"]
    dilations = attributes.get("dilations", [1] * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    choice = r.random()
    if choice < 0.3:
        attributes["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif choice < 0.7:
        pads = [r.randint(0, min(2, k - 1)) for k in kernel] + [r.randint(0, min(2, k - 1)) for k in kernel]
        attributes["pads"] = pads
    pads = attributes.get("pads", [0] * 2 * rank)
    padded = [d + pads[k] + pads[k + rank] for k, d in enumerate(shape)]
    if (
        not transposed
        and not attributes.get("auto_pad", "").startswith("SAME")
        and any(s > d for s, d in zip(spans, padded))
    ):
        raise Skip("the window does not fit")
    return attributes


def negative_padding(attributes, kernel):
    """Returns whether strides are larger than the kernel and auto_pad is SAME, which then asks for negative padding."""
    strides = attributes.get("strides", [1] * len(kernel))
    return attributes.get("auto_pad", "").startswith("SAME") and any(k < s for k, s in zip(kernel, strides))


def image(b, t, rank=None, lo=None, hi=None, channels=None, **more):
    rank = rank or b.r.choice([1, 2, 2, 2, 3])
    if channels is None:
        return b.tensor(t, rank=rank + 2, lo=lo, hi=hi, **more)
    return b.tensor(
        t,
        shape=(b.r.randint(1, 2), channels) + tuple(b.r.randint(2, 7) for _ in range(rank)),
        lo=lo,
        hi=hi,
        **more
    )


@operators("Conv", kind="sum", ulps=4, liked=5)
def conv(b, o):
    t = o.type("T")
    x = image(b, t, lo=-20, hi=20)
    rank, c = x.rank - 2, x.shape[1]
    group = b.r.choice([g for g in range(1, c + 1) if c % g == 0] + [1, 1])
    m = group * b.r.randint(1, 3)
    kernel = [b.r.choice([1, 2, 3, 3]) for _ in range(rank)]
    attributes = spatial(b, rank, x.shape[2:], kernel, {"group": group, "dilations": None})
    w = b.tensor(
        t, shape=(m, c // group) + tuple(kernel), lo=-3, hi=3, constant=True if b.r.random() < 0.7 else None
    )
    bias = (
        b.tensor(t, shape=(m,), lo=-3, hi=3, constant=True if b.r.random() < 0.7 else None)
        if b.r.random() < 0.6
        else None
    )
    if b.r.random() < 0.5:
        attributes["kernel_shape"] = kernel
    return [x, w, bias], attributes


@operators("ConvTranspose", kind="sum", ulps=4)
def conv_transpose(b, o):
    t = o.type("T")
    x = image(b, t, lo=-20, hi=20)
    rank, c = x.rank - 2, x.shape[1]
    group = b.r.choice([g for g in range(1, c + 1) if c % g == 0] + [1, 1])
    kernel = [b.r.choice([1, 2, 3]) for _ in range(rank)]
    attributes = spatial(b, rank, x.shape[2:], kernel, {"group": group, "dilations": None}, transposed=True)
    if attributes.get("auto_pad", "").startswith("SAME") and "dilations" in attributes:
        raise Skip("what SAME means with dilations is not agreed upon")
    strides = attributes.get("strides", [1] * rank)
    if negative_padding(attributes, kernel):
        raise Skip("whether padding may be negative is not agreed upon")
    if b.r.random() < 0.3:
        attributes["output_padding"] = [b.r.randint(0, s - 1) for s in strides]
    w = b.tensor(t, shape=(c, b.r.randint(1, 3)) + tuple(kernel), lo=-3, hi=3)
    bias = b.tensor(t, shape=(w.shape[1] * group,), lo=-3, hi=3) if b.r.random() < 0.5 else None
    return [x, w, bias], attributes


@operators("DeformConv", kind="sum", ulps=16)
def deform_conv(b, o):
    t = o.type("T")
    n, c, m = b.r.randint(1, 2), b.r.randint(1, 3), b.r.randint(1, 3)
    kernel = (b.r.randint(1, 2), b.r.randint(1, 3))
    x = b.tensor(t, shape=(n, c, b.r.randint(4, 6), b.r.randint(4, 6)), lo=-20, hi=20)
    out = (x.shape[2] - kernel[0] + 1, x.shape[3] - kernel[1] + 1)
    offset = b.tensor(t, shape=(n, 2 * kernel[0] * kernel[1]) + out, lo=-2, hi=2)
    w = b.tensor(t, shape=(m, c) + kernel)
    bias = b.tensor(t, shape=(m,)) if b.r.random() < 0.5 else None
    mask = b.tensor(t, shape=(n, kernel[0] * kernel[1]) + out, lo=0, hi=1) if b.r.random() < 0.5 else None
    return [x, w, offset, bias, mask], {
        "kernel_shape": list(kernel) if b.r.random() < 0.5 else None,
        "pads": [0, 0, 0, 0],
    }


# --- pools ---


@operators("MaxPool", kind="exact", liked=2)
@operators("AveragePool LpPool", kind="sum", ulps=8, liked=1.5)
def pool(b, o):
    t = o.type("T")
    floats = rows.is_float(t)
    x = image(b, t, lo=0.1 if o.name == "LpPool" else None)
    rank = x.rank - 2
    kernel = [b.r.choice([1, 2, 2, 3]) for _ in range(rank)]
    attributes = {"kernel_shape": kernel}
    if o.has("dilations"):
        attributes["dilations"] = None
    attributes = spatial(b, rank, x.shape[2:], kernel, attributes)
    if attributes.get("auto_pad", "").startswith("SAME") and "dilations" in attributes:
        raise Skip("what SAME means with dilations is not agreed upon")
    if negative_padding(attributes, kernel):
        raise Skip("whether padding may be negative is not agreed upon")
    if o.has("ceil_mode") and b.r.random() < 0.3 and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if o.name == "LpPool":
        attributes["p"] = b.r.choice([None, 1, 2, 3])
    if o.name == "AveragePool" and b.r.random() < 0.5:
        attributes["count_include_pad"] = b.r.choice([0, 1])
    outputs = 1
    if o.name == "MaxPool" and o.since >= 8 and x.exact and b.r.random() < 0.3 and floats:
        outputs, attributes["storage_order"] = 2, b.r.choice([None, 0, 1])
    return [x], attributes, outputs


@operators("GlobalMaxPool", kind="exact")
@operators("GlobalAveragePool GlobalLpPool", kind="sum", ulps=8)
def global_pool(b, o):
    return [image(b, o.type("T"), lo=0.1 if "Lp" in o.name else None)], (
        {"p": b.r.choice([None, 1, 2, 3])} if o.name == "GlobalLpPool" else {}
    )


@operators("MaxUnpool", kind="step")
def max_unpool(b, o):
    t = o.type("T1")
    x = b.fresh(draw_array(b.r, t, (1, b.r.randint(1, 3), 2 * b.r.randint(1, 3), 2 * b.r.randint(1, 3))))
    small, places = b.add("MaxPool", [x], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2)
    size = b.ints(x.shape) if b.r.random() < 0.5 else None
    return [small, places, size], {"kernel_shape": [2, 2], "strides": [2, 2]}


@operators("MaxRoiPool", kind="step")
def max_roi_pool(b, o):
    x = b.tensor(o.type("T"), shape=(2, 2, 6, 6), exact=True)
    rois = b.fresh(np.array([[0, 0, 0, 3, 4], [1, 1, 2, 5, 5]]).astype(rows.NP[o.type("T")]))
    return [x, rois], {"pooled_shape": [2, 2]}


@operators("Col2Im", kind="sum")
def col2im(b, o):
    r, size, blocks = b.r, [], 1
    kernel = [r.randint(1, 3), r.randint(1, 3)]
    dilations, strides = [r.choice([1, 1, 2]) for _ in kernel], [r.choice([1, k, 2]) for k in kernel]
    pads = [r.choice([0, 0, 1, 2]) for _ in kernel * 2]
    for k in range(2):
        padding, covered = pads[k] + pads[2 + k], (kernel[k] - 1) * dilations[k] + 1
        size.append(max(1, covered - padding) + r.randint(0, 4))
        blocks *= (size[k] + padding - covered) // strides[k] + 1
    x = b.tensor(o.type("T"), shape=(r.randint(1, 2), r.randint(1, 3) * kernel[0] * kernel[1], blocks))
    return [x, b.ints(size), b.ints(kernel)], {"strides": strides, "dilations": dilations, "pads": pads}


# --- sampling ---


@operators("Resize Upsample", kind="round", ulps=32)
def resize(b, o):
    r = b.r
    t = o.type("T1" if "T1" in o.schema.types else "T")
    rank = r.choice([1, 2, 2])
    mode = r.choice(
        ["nearest", "linear"] + (["cubic"] if o.since >= 11 and rank == 2 and o.name == "Resize" else [])
    )
    if not rows.is_float(t):
        mode = "nearest"
    x = image(b, t, rank=rank)
    scales = [1.0, 1.0] + [r.choice([1.0, 2.0, 0.5, 1.5, 3.0]) for _ in range(rank)]
    if any(int(d * s) < 1 for d, s in zip(x.shape, scales)):
        raise Skip("nothing is left")
    if o.name == "Upsample":
        scales = [max(1.0, s) for s in scales]
    values = b.fresh(np.array(scales, np.float32), constant=True)
    kind = "exact" if mode == "nearest" else "round"
    attributes = {"mode": mode}
    if o.since < 11:
        if o.has("scales"):
            return [x], {"mode": mode, "scales": scales}, 1, kind
        return [x, values], attributes, 1, kind
    if r.random() < 0.8:
        attributes["coordinate_transformation_mode"] = r.choice(
            ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
            + (["half_pixel_symmetric"] if o.since >= 19 else [])
        )
    whole = all(d * s == int(d * s) for d, s in zip(x.shape, scales))
    if attributes.get("coordinate_transformation_mode") == "align_corners" and not whole:
        raise Skip("whether the size is cut before it counts is not agreed upon")
    if mode == "nearest":
        attributes["nearest_mode"] = r.choice(
            [None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        )
    if mode == "cubic":
        attributes.update(cubic_coeff_a=r.choice([None, -0.5]), exclude_outside=r.choice([None, 1]))
    if mode != "nearest" and o.since >= 18 and r.random() < 0.3:
        attributes["antialias"] = 1
    sizes = None
    if r.random() < 0.4 and (whole or mode != "nearest"):  # the scale 7/5 = 1.4 is no float
        sizes = b.ints([int(d * s) for d, s in zip(x.shape, scales)])
        values = None if o.since >= 13 else b.fresh(np.zeros(0, np.float32), constant=True)
    return [x, region(b, o, x, sizes, attributes), values, sizes], attributes, 1, kind


def region(b, o, x, sizes, attributes):
    """Returns Resize's operand roi, which must be there before version 13.  Only the mode tf_crop_and_resize reads it.  That mode
    is drawn only with sizes that change the shape, since implementations compute different result sizes from scales and a roi,
    and only with the whole of axes whose size stays, since ONNX Runtime ignores the roi along them.  It is not drawn with nearest, which would depend on rounding, nor with
    cubic, for which ONNX Runtime reads other numbers of the roi."""
    if o.since >= 13 and b.r.random() < 0.5:
        return None
    t = o.type("T2")
    if b.r.random() < 0.3:
        return b.fresh(np.zeros(0, rows.NP[t]), constant=True)
    corners = np.array([[0.0, 0.0] + [b.r.choice([0.0, 0.125, 0.25]) for _ in x.shape[2:]],
                        [1.0, 1.0] + [b.r.choice([0.75, 0.875, 1.0]) for _ in x.shape[2:]]])
    resized = sizes and tuple(sizes.array) != x.shape
    if resized:
        stays = np.array(sizes.array) == x.shape
        corners = np.where(stays, np.array([[0.0], [1.0]]), corners)
    if resized and attributes["mode"] == "linear" and "antialias" not in attributes and b.r.random() < 0.6:
        attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
        attributes["extrapolation_value"] = b.r.choice([None, 1.5])
    return b.fresh(corners.reshape(-1).astype(rows.NP[t]), constant=True)


@operators("GridSample", kind="round", ulps=64)
def grid_sample(b, o):
    mode = b.r.choice(["nearest", "linear", "cubic"] if o.since >= 20 else ["nearest", "bilinear", "bicubic"])
    t = o.type("T1")
    mode = mode if t in rows.FLOATS else "nearest"
    x = b.tensor(t, shape=(b.r.randint(1, 2), b.r.randint(1, 3), b.r.randint(2, 5), b.r.randint(2, 5)))
    u = o.type("T2", rows.FLOATS)

    def places(shape):
        """Returns positions that are not near the middle between two pixels, where implementations choose different ones as the nearest."""
        return (np.round(draw_array(b.r, "float", shape, -1.2, 1.2) * 1024 + 0.37) / 1024).astype(rows.NP[u])

    grid = b.tensor(
        u,
        shape=(x.shape[0], b.r.randint(1, 4), b.r.randint(1, 4), 2),
        lo=-1.2,
        hi=1.2,
        exact=mode == "nearest",
        new=places,
    )
    padding = b.r.choice([None, "zeros", "border", "reflection"])
    return (
        [x, grid],
        {"mode": mode, "padding_mode": padding, "align_corners": b.r.choice([None, 0, 1])},
        1,
        "exact" if mode == "nearest" else "round",
    )


@operators("AffineGrid", kind="sum", ulps=16)
def affine_grid(b, o):
    n = b.r.choice([2, 3])
    theta = b.tensor(o.type("T1"), shape=(b.r.randint(1, 2), n, n + 1), lo=-3, hi=3)
    size = [theta.shape[0], b.r.randint(1, 3)] + [b.r.randint(2, 4) for _ in range(n)]
    return [theta, b.ints(size)], {"align_corners": b.r.choice([None, 0, 1])}


@operators("RoiAlign", kind="round", ulps=64)
def roi_align(b, o):
    t = o.type("T1")
    x = b.tensor(t, shape=(2, b.r.randint(1, 3), 6, 6))
    n = b.r.randint(1, 3)
    g = np.random.Generator(np.random.PCG64(b.r.getrandbits(64)))
    start = g.uniform(0, 2.4, (n, 2))
    rois = b.fresh(np.concatenate([start, start + g.uniform(1.1, 3.2, (n, 2))], 1).astype(rows.NP[t]))
    which = b.fresh(np.array([b.r.randint(0, 1) for _ in range(n)], np.int64))
    mode = b.r.choice([None, "avg", "max"])
    return [x, rois, which], {
        "mode": mode,
        "output_height": b.r.choice([None, 2]),
        "output_width": 3,
        "sampling_ratio": b.r.choice([None, 1, 2]),
        "spatial_scale": b.r.choice([None, 0.5]),
    }


# --- recurrences ---


@operators("RNN GRU LSTM", kind="sum", ulps=32)
def recurrence(b, o):
    r, t = b.r, o.type("T")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[o.name]
    steps, batch, width, hidden = r.randint(1, 4), r.randint(1, 3), r.randint(1, 4), r.randint(1, 5)
    direction = r.choice([None, "forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    layout = r.randint(0, 1) if o.has("layout") and r.random() < 0.3 else 0
    x = b.tensor(t, shape=(batch, steps, width) if layout else (steps, batch, width), lo=-5, hi=5)

    def weights(*shape):
        return b.tensor(t, shape=shape, lo=-1, hi=1, constant=True if r.random() < 0.7 else None)

    def state():
        return weights(*((batch, d, hidden) if layout else (d, batch, hidden))) if r.random() < 0.4 else None

    bias = weights(d, 2 * gates * hidden) if r.random() < 0.6 else None
    lengths = (
        b.fresh(np.array([r.randint(1, steps) for _ in range(batch)], np.int32)) if r.random() < 0.4 else None
    )
    inputs = [x, weights(d, gates * hidden, width), weights(d, gates * hidden, hidden), bias, lengths, state()]
    attributes = {"hidden_size": hidden, "direction": direction, "layout": layout or None}
    if o.name == "GRU":
        attributes["linear_before_reset"] = r.choice([None, 0, 1])
    if o.name == "LSTM":
        inputs += [state(), weights(d, 3 * hidden) if r.random() < 0.3 else None]
    return inputs, attributes, r.choice([1, 2, 3 if o.name == "LSTM" else 2])


# --- attention ---


@operators("Attention", kind="sum", ulps=32, inner="float")  # scale and softcap have that type
def attention(b, o):
    r = b.r
    m = o.type("U", rows.FLOATS + rows.INTS + ("bool",)) if r.random() < 0.4 else None
    t = o.type("T1", (m,) if m in rows.FLOATS else None)  # a mask of floats is of the scores' type
    v_type = o.type("T2", (t,))
    batch, kv_heads = r.randint(1, 2), r.randint(1, 2)
    heads = kv_heads * r.choice([1, 1, 2])
    q_len, kv_len, width, v_width = r.randint(1, 4), r.randint(1, 5), r.choice([2, 4, 8]), r.choice([2, 3, 8])
    flat = r.random() < 0.4

    def operand(type, n_heads, length, w):
        return b.tensor(
            type, shape=(batch, length, n_heads * w) if flat else (batch, n_heads, length, w), lo=-3, hi=3
        )

    q, k, v = (
        operand(t, heads, q_len, width),
        operand(t, kv_heads, kv_len, width),
        operand(v_type, kv_heads, kv_len, v_width),
    )
    mask = None
    if m:
        shape = r.choice([(q_len, kv_len), (batch, 1, q_len, kv_len), (1, heads, q_len, kv_len)])
        if m == "bool":  # each row has at least one key
            chosen = np.array([r.random() < 0.7 for _ in range(int(np.prod(shape)))]).reshape(shape)
            mask = b.fresh(chosen | (np.arange(kv_len) == 0))
        else:
            mask = b.tensor(m, shape=shape, lo=0 if m[0] == "u" else -3, hi=3)
    attributes = {
        "is_causal": r.choice([None, 0, 1]),
        "scale": r.choice([None, 0.3]),
        "softcap": r.choice([None, 2.0]),
    }
    if flat:
        attributes.update(q_num_heads=heads, kv_num_heads=kv_heads)
    past = []
    if r.random() < 0.3:
        n = r.randint(1, 3)
        if mask is not None:
            raise Skip("the mask is for no past")
        past = [
            b.tensor(t, shape=(batch, kv_heads, n, width), lo=-3, hi=3),
            b.tensor(v_type, shape=(batch, kv_heads, n, v_width), lo=-3, hi=3),
        ]
    return [q, k, v, mask] + past, attributes, 3 if past else 1


@operators("RotaryEmbedding", kind="sum", ulps=8)
def rotary_embedding(b, o):
    r, t = b.r, o.type("T")
    batch, heads, steps, width = r.randint(1, 2), r.randint(1, 3), r.randint(1, 4), r.choice([2, 4, 8])
    flat = r.random() < 0.4
    x = b.tensor(t, shape=(batch, steps, heads * width) if flat else (batch, heads, steps, width))
    part = r.choice([None, width]) if width == 2 else r.choice([None, 2])
    half = (part or width) // 2
    attributes = {
        "interleaved": r.choice([None, 0, 1]),
        "rotary_embedding_dim": part if part != width else None,
        "num_heads": heads if flat else None,
    }
    if attributes["rotary_embedding_dim"] and not attributes["num_heads"]:
        attributes["num_heads"] = heads
    if r.random() < 0.5:
        shape = (r.choice([1, batch]), steps, half)
        return [x, b.tensor(t, shape=shape), b.tensor(t, shape=shape)], attributes
    n = steps + 2
    places = b.tensor("int64", shape=(batch, steps), lo=0, hi=n - 1, exact=True)
    return [x, b.tensor(t, shape=(n, half)), b.tensor(t, shape=(n, half)), places], attributes


@operators("LinearAttention", kind="sum", ulps=64)
def linear_attention(b, o):
    r, t = b.r, o.type("T")
    batch, steps, kv_heads = r.randint(1, 2), r.randint(1, 3), r.randint(1, 2)
    heads, dk, dv = kv_heads * r.choice([1, 1, 2]), r.choice([2, 4]), r.choice([1, 2, 4])
    rule = r.choice([None, "linear", "gated", "delta", "gated_delta"])

    def operand(width, lo, hi):
        return b.tensor(t, shape=(batch, steps, width), lo=lo, hi=hi)

    past = b.tensor(o.type("S"), shape=(batch, kv_heads, dk, dv), lo=-2, hi=2) if r.random() < 0.5 else None
    decay = operand(kv_heads * r.choice([1, dk]), -1, 0) if rule in (None, "gated", "gated_delta") else None
    beta = operand(kv_heads, 0, 1) if rule in (None, "delta", "gated_delta") else None
    return (
        [
            operand(heads * dk, -1, 1),
            operand(kv_heads * dk, -1, 1),
            operand(kv_heads * dv, -2, 2),
            past,
            decay,
            beta,
        ],
        {"q_num_heads": heads, "kv_num_heads": kv_heads, "update_rule": rule, "scale": r.choice([None, 0.5])},
        2,
    )


@operators("CausalConvWithState", kind="sum", ulps=8)
def causal_conv(b, o):
    r, t = b.r, o.type("T")
    x = b.tensor(t, rank=3)
    k = r.randint(1, 4)
    weight = b.tensor(t, shape=(x.shape[1], 1, k), lo=-2, hi=2)
    bias = b.tensor(t, shape=(x.shape[1],)) if r.random() < 0.5 else None
    past = b.tensor(t, shape=(x.shape[0], x.shape[1], k - 1), least=0) if r.random() < 0.5 and k > 1 else None
    return [x, weight, bias, past], {"activation": r.choice([None, "none", "silu", "swish"])}, 2


@operators("NonMaxSuppression", kind="step")
def non_max_suppression(b, o):
    """NonMaxSuppression of constants.  Boxes have multiples of powers of two, so that rounding cannot move a quotient over the
    threshold."""
    r = b.r
    n, classes = r.randint(1, 6), r.randint(1, 2)
    boxes = np.array(
        [
            [y, x, y + r.choice([2, 4, 8]), x + r.choice([2, 4, 8])]
            for y, x in [(r.randint(0, 8), r.randint(0, 8)) for _ in range(n)]
        ],
        np.float32,
    ).reshape(1, n, 4)
    scores = draw_array(r, "float", (1, classes, n), 0, 1)
    limits = [np.array([r.randint(1, 4)], np.int64), np.array([0.43], np.float32), np.array([0.2], np.float32)]
    return [b.fresh(a, constant=True) for a in [boxes, scores] + limits], {
        "center_point_box": r.choice([None, 0, 1])
    }
