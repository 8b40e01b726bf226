"""ops/microsoft.py: operators of the domain com.microsoft (fuzz.py --microsoft).  MoE is left out, of which ONNX Runtime adds the results
to memory that is not 0 if the input is the result of a node."""

import numpy as np

import rows
from registry import Skip, operators
from rows import MICROSOFT
from values import draw_array


def ours(names, **more):
    """Registers a generator as @operators does.  The ulps that are given here say how many roundings the operator makes between its
    inputs and its result, beyond which no difference is allowed: 4 for a sum or product with one factor, the usual 8 for a function
    or for a sum behind a function, and 16 for a norm or a product of two such functions, whose steps are a mean, a root, a quotient
    and one or two factors.  The standard's norms have 64."""
    return operators(" ".join(f"{MICROSOFT}.{name}" for name in names.split()), **more)


def near(b, t, shape=None, **more):
    """Returns floats whose products stay small."""
    return b.tensor(t, shape=shape, lo=-6, hi=6, **more)


def weights(b, t, shape):
    return b.fresh(draw_array(b.r, t, shape, -1, 1))


def maybe(b, t, shape, chance=0.5):
    return near(b, t, shape) if b.r.random() < chance else None


# --- activations and sums ---


@ours("Gelu QuickGelu ScaledSiLU", inner="float")
def activation(b, o):
    x = near(b, o.type("T"))
    return [x], {"alpha": b.r.choice([None, 0.5, 2.0]) if o.has("alpha") else None}


@ours("BiasGelu FastGelu", inner="float")
def biased_gelu(b, o):
    t = o.type("T")
    x = near(b, t, rank=(1, 4))
    return [x, near(b, t, x.shape[-1:]) if o.name.endswith("BiasGelu") else maybe(b, t, x.shape[-1:])], {}


@ours("GatedAdd", ulps=4)
def gated_add(b, o):
    t = o.type("T")
    x = near(b, t, rank=(1, 4))
    return [x, near(b, t, x.shape), near(b, t, x.shape[:-1] + (1,))], {}


@ours("BiasAdd BiasSplitGelu", ulps=16)
def biased(b, o):
    t = o.type("T")
    x = near(b, t, (b.dim(), b.dim(), 2 * b.r.randint(1, 8)))
    return [x, near(b, t, x.shape[2:])] + ([near(b, t, x.shape)] if o.name.endswith("Add") else []), {}


@ours("BiasSoftmax", kind="sum", ulps=8)
def bias_softmax(b, o):
    t = o.type("T")
    x = near(b, t, rank=(2, 4))
    axis = b.r.randrange(1, x.rank)
    inner = b.r.randint(0, 1)
    k = b.r.randint(0, axis)
    bias = x.shape[:k] + (1,) * (axis - k) + x.shape[axis:] if inner else (1,) * k + x.shape[k:]
    return [x, near(b, t, bias)], {"axis": axis, "is_inner_broadcast": inner}


@ours("ComplexMul ComplexMulConj", ulps=8)
def complex_mul(b, o):
    t = o.type("T")
    shape = b.shape((0, 3))
    return [near(b, t, shape + (2,)), near(b, t, shape[b.r.randint(0, len(shape)) :] + (2,))], {}


# --- normalisations ---


@ours("SkipLayerNormalization SkipSimplifiedLayerNormalization", kind="sum", ulps=16, inner="float")
def skip_norm(b, o):
    t = o.type("T")
    x = near(b, t, rank=3)
    skip = near(b, t, b.r.choice([x.shape, x.shape, x.shape[1:]]))
    row = x.shape[2:]
    beta = [] if "Simplified" in o.name else [maybe(b, t, row)]
    return [x, skip, near(b, t, row)] + beta + [maybe(b, t, row)], {"epsilon": b.r.choice([0.01, 0.5])}


@ours("GatedRMSNorm", kind="sum", ulps=16, inner="float")
def gated_norm(b, o):
    t = o.type("T")
    x = near(b, t, rank=(1, 4))
    group = b.r.choice([k for k in range(1, x.shape[-1] + 1) if x.shape[-1] % k == 0])
    attributes = {"epsilon": 0.1, "activation": b.r.choice([None, "silu", "swish", "sigmoid"])}
    return [x, near(b, t, (group,)), near(b, t, x.shape)], attributes


@ours("BranchwiseRMSNorm", kind="sum", ulps=16, inner="float")
def branch_norm(b, o):
    t = o.type("T")
    x = near(b, t, rank=(2, 4))
    return [x, near(b, o.type("M"), x.shape[-1:])], {"epsilon": 0.1}


@ours("GroupNorm SkipGroupNorm", kind="sum", ulps=16, inner="float")
def group_norm(b, o):
    t, m = o.type("T"), o.type("M")
    groups = b.r.randint(1, 4)
    channels = groups * b.r.randint(1, 4)
    last = b.r.randint(0, 1)
    n, h, w = b.dim(), b.dim(), b.dim()
    x = near(b, t, (n, h, w, channels) if last else (n, channels, h, w))
    inputs = [x, near(b, m, (channels,)), near(b, m, (channels,))]
    outputs = 1
    if o.name.endswith("SkipGroupNorm"):
        inputs += [near(b, t, b.r.choice([x.shape, (n, channels)])), maybe(b, t, (channels,))]
        outputs = b.r.randint(1, 2)
    attributes = {"groups": groups, "activation": b.r.randint(0, 1), "channels_last": last, "epsilon": 0.1}
    return inputs, attributes, outputs


# --- products ---


@ours("FusedMatMul TransposeMatMul", kind="sum", ulps=4, inner="float", liked=3)
def fused_matmul(b, o):
    t = o.type("T")
    ta, tb = b.r.randint(0, 1), b.r.randint(0, 1)
    x = near(b, t, rank=(2, 4))
    k, n = x.shape[-2 if ta else -1], b.dim()
    lead = x.shape[:-2][b.r.randint(0, x.rank - 2) :]
    y = near(b, t, lead + ((n, k) if tb else (k, n)))
    return [x, y], {"transA": ta, "transB": tb, "alpha": b.r.choice([None, 0.5, -2.0])}


@ours("FusedGemm", kind="sum", ulps=8, liked=2)
def fused_gemm(b, o):
    t = o.type("T", rows.FLOATS)
    x = near(b, t, rank=2)
    n, tb = b.dim(), b.r.randint(0, 1)
    y = near(b, t, (n, x.shape[1]) if tb else (x.shape[1], n))
    attributes = {"transB": tb, "activation": b.r.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu"])}
    if attributes["activation"] == "LeakyRelu":
        attributes["activation_alpha"] = 0.25
    return [x, y, maybe(b, t, (n,))], attributes


@ours("GemmFastGelu", kind="sum", ulps=16, inner="float")
def gemm_gelu(b, o):
    t = o.type("T", ("float",))
    x = near(b, t, rank=(2, 3))
    n = b.dim()
    return [x, near(b, t, (x.shape[-1], n)), maybe(b, t, (n,))], {}


@ours("FusedConv", kind="sum", ulps=8, liked=2)
def fused_conv(b, o):
    from ops.nn import image, spatial

    t = o.type("T")
    x = image(b, t, lo=-6, hi=6)
    rank, m = x.rank - 2, b.r.randint(1, 4)
    kernel = [b.r.choice([1, 2, 3, 3]) for _ in range(rank)]
    attributes = spatial(b, rank, x.shape[2:], kernel, {"dilations": None})
    name, params = b.r.choice([("Relu", None), ("Tanh", None), ("LeakyRelu", [0.25]), ("Clip", [-1.0, 2.0])])
    w = near(b, t, (m, x.shape[1]) + tuple(kernel))
    return [x, w, maybe(b, t, (m,))], {**attributes, "activation": name, "activation_params": params}


@ours("MatMulNBits", kind="sum", ulps=8, liked=3)
def matmul_nbits(b, o):
    t = o.type("T1", ("float",))
    bits, block = b.r.choice([2, 4, 4, 8]), b.r.choice([16, 32])
    k, n = b.r.choice([block, 2 * block, block + 7]), b.r.randint(1, 20)
    if b.r.random() < 0.2:  # so many weights stay small integers in a dot
        k, n = 512, b.r.randint(512, 600)
    blocks = -(-k // block)
    packed = b.constant(draw_array(b.r, "uint8", (n, blocks, block * bits // 8), 0, 255), as_node=False)
    scale = b.constant(draw_array(b.r, t, (n, blocks), 0.0625, 0.5), as_node=False)
    points = (n, -(-blocks * bits // 8))
    zero = b.constant(draw_array(b.r, "uint8", points, 0, 255), as_node=False) if b.r.random() < 0.5 else None
    x = near(b, t, b.shape((1, 2)) + (k,))
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    return [x, packed, scale, zero, None, maybe(b, t, (n,), 0.3)], attributes


@ours("MatMulIntegerToFloat", kind="sum", ulps=8)
def matmul_to_float(b, o):
    t, u = "uint8", o.type("T2")
    x = b.tensor(t, rank=(2, 3))
    n = b.dim()
    # with weights of few bits sums of two products fit into 16 bits, see peers.py
    y = b.tensor(u, shape=(x.shape[-1], n), lo=0 if u == "uint8" else -60, hi=60)
    scales = [b.fresh(draw_array(b.r, "float", s, 0.0625, 0.25)) for s in ((), b.r.choice([(), (n,)]))]
    return [x, y, *scales, b.fresh(draw_array(b.r, t, (), 0, 9)), None, maybe(b, "float", (n,))], {}


# --- attention ---


def heads(b):
    return b.r.randint(1, 4), b.r.choice([1, 2, 3, 8, 16])


@ours("MultiHeadAttention", kind="sum", ulps=32, liked=3)
def multi_head(b, o):
    t = o.type("T", ("float",))
    n, size = heads(b)
    batch, steps, keys = b.dim(), b.dim(), b.dim()
    causal = b.r.randint(0, 1)
    keys = steps if causal else keys
    past = b.r.randint(1, 5) if b.r.random() < 0.4 else None
    total = keys + (past or 0)
    inputs = [near(b, t, (batch, k, n * size)) for k in (steps, keys, keys)]
    inputs.append(maybe(b, t, (3 * n * size,)))
    inputs.append(b.fresh(draw_array(b.r, "int32", (batch, total), 0, 1)) if b.r.random() < 0.3 else None)
    inputs.append(maybe(b, t, (b.r.choice([1, batch]), b.r.choice([1, n]), steps, total), 0.3))
    inputs += [near(b, t, (batch, n, past, size)) for _ in range(2)] if past else []
    return inputs, {"num_heads": n, "unidirectional": causal, "scale": b.r.choice([None, 0.25])}, 3 if past else 1


@ours("Attention", kind="sum", ulps=32, liked=2)
def attention(b, o):
    t = o.type("T", ("float",))
    n, size = heads(b)
    x = near(b, t, rank=3)
    batch, steps, width = x.shape
    inputs = [x, weights(b, t, (width, 3 * n * size)), near(b, t, (3 * n * size,))]
    past = b.r.randint(1, 5) if b.r.random() < 0.4 else 0
    inputs.append(b.fresh(draw_array(b.r, "int32", (batch, steps + past), 0, 1)) if b.r.random() < 0.3 else None)
    inputs.append(near(b, t, (2, batch, n, past, size)) if past else None)
    return inputs, {"num_heads": n, "unidirectional": b.r.randint(0, 1)}, b.r.choice([1, 2]) if not past else 2


@ours("GroupQueryAttention", kind="sum", ulps=32, liked=2)
def group_query(b, o):
    t = o.type("T", ("float",))
    kv, each, size = b.r.randint(1, 2), b.r.randint(1, 3), 16
    batch = b.dim()
    past = b.r.randint(1, 6) if b.r.random() < 0.6 else None
    steps = 1 if past else b.dim()
    inputs = [near(b, t, (batch, steps, n * size)) for n in (kv * each, kv, kv)]
    inputs += [near(b, t, (batch, kv, past, size)) for _ in range(2)] if past else [None, None]
    total = steps + (past or 0)
    inputs += [b.constant(np.full(batch, total - 1, np.int32)), b.constant(np.array([total], np.int32))]
    attributes = {"num_heads": kv * each, "kv_num_heads": kv, "local_window_size": b.r.choice([None, 1, 3])}
    if b.r.random() < 0.5:
        inputs += [near(b, t, (total + 1, size // 2)) for _ in range(2)]
        attributes.update(do_rotary=1, rotary_interleaved=b.r.randint(0, 1))
    return inputs, attributes, 3


@ours("RotaryEmbedding", ulps=8, inner="float")
def rotary(b, o):
    t = o.type("T")
    size = 2 * b.r.randint(1, 4)
    batch, n, steps = b.dim(), b.r.randint(1, 4), b.dim()
    x = near(b, t, b.r.choice([(batch, n, steps, size), (batch, steps, n * size)]))
    positions = b.fresh(draw_array(b.r, "int64", (batch, steps), 0, 8))
    tables = [near(b, t, (max(9, steps), size // 2)) for _ in range(2)]
    return [x, positions, *tables], {"interleaved": b.r.randint(0, 1)}


@ours("CausalConvWithState", kind="sum", ulps=8, inner="float")
def causal_conv(b, o):
    t = o.type("T")
    channels, k, dilation = b.dim(), b.r.randint(1, 4), b.r.choice([1, 1, 2])
    batch, steps = b.dim(), b.dim()
    w, bias = near(b, t, (channels, 1, k)), maybe(b, t, (channels,))
    state = maybe(b, t, (batch, channels, (k - 1) * dilation)) if k > 1 else None
    attributes = {"dilation": dilation, "activation": b.r.choice([None, "silu", "none"])}
    return [near(b, t, (batch, channels, steps)), w, bias, state], attributes, 2


# --- quantised arrays ---


@ours("QLinearAdd QLinearMul", kind="step", liked=2)
def qlinear_binary(b, o):
    from ops.quantize import scale, zero

    t = o.type("T")
    x = b.tensor(t, rank=(0, 4))
    y = b.tensor(t, shape=x.shape[b.r.randint(0, x.rank) :])
    operands = [v for a in (x, y) for v in (a, scale(b, "float"), zero(b, t))]
    out = b.constant(np.array(b.r.choice([0.25, 1.0, 8.0]), np.float32), as_node=False)
    return operands + [out, zero(b, t)], {}


@ours("QLinearConcat", kind="step")
def qlinear_concat(b, o):
    from ops.quantize import scale, zero

    t = o.type("T8")
    x = b.tensor(t, rank=(1, 4))
    axis = b.r.randrange(x.rank)
    inputs = [b.constant(np.array(b.r.choice([0.25, 1.0]), np.float32), as_node=False), zero(b, t)]
    for _ in range(b.r.randint(1, 3)):
        part = b.tensor(t, shape=x.shape[:axis] + (b.dim(),) + x.shape[axis + 1 :])
        inputs += [part, scale(b, "float"), zero(b, t)]
    return inputs, {"axis": axis}


@ours("NhwcMaxPool", kind="exact")
def nhwc_pool(b, o):
    t = o.type("T")
    x = b.tensor(t, shape=(b.dim(), b.r.randint(3, 8), b.r.randint(3, 8), b.dim()))
    kernel = [b.r.randint(1, 3) for _ in range(2)]
    pads = b.r.choice([None, [b.r.randint(0, k - 1) for k in kernel * 2]])
    return [x], {"kernel_shape": kernel, "strides": [b.r.randint(1, 2) for _ in kernel], "pads": pads}


@ours("GatherBlockQuantized", kind="sum", ulps=4)
def gather_blocks(b, o):
    t = o.type("T2", ("float",))
    n, blocks, bits, block = b.r.randint(1, 8), b.r.randint(1, 3), b.r.choice([4, 8]), 16
    data = b.constant(draw_array(b.r, "uint8", (n, blocks * block * bits // 8), 0, 255), as_node=False)
    scale = b.constant(draw_array(b.r, t, (n, blocks), -0.5, 0.5), as_node=False)
    points = draw_array(b.r, "uint8", (n, -(-blocks * bits // 8)), 0, 255)
    zero = b.constant(points, as_node=False) if b.r.random() < 0.5 else None
    index = b.fresh(draw_array(b.r, o.type("Tind"), b.shape((1, 3)), -n, n - 1))
    return [data, index, scale, zero], {"bits": bits, "block_size": block, "quantize_axis": 1}


# --- arrays of any kind ---


@ours("UnfoldTensor", kind="exact")
def unfold(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4))
    axis = b.r.randrange(x.rank)
    return [x], {"dim": axis, "size": b.r.randint(1, x.shape[axis]), "step": b.r.randint(1, 3)}


@ours("ExpandDims", kind="exact")
def expand_dims(b, o):
    x = b.tensor(o.type("T"), rank=(0, 4))
    return [x, b.constant(np.array(b.r.randint(0, x.rank), np.int32))], {}


@ours("Pad", kind="exact")
def pad(b, o):
    x = b.tensor(o.type("T"), rank=(1, 4), least=2)
    pads = [b.r.randint(0, 1) for _ in range(2 * x.rank)]
    return [x, b.ints(pads)], {"mode": b.r.choice(["constant", "edge", "reflect"])}


@ours("MurmurHash3", kind="step")
def murmur(b, o):
    return [b.tensor(o.type("T1"), exact=True)], {"seed": b.r.choice([None, 0, 77]), "positive": 1}
