"""idioms/language.py: what networks on rows have besides attention: embeddings, recurrences, graphs."""

import numpy as np

from idioms import idiom


@idiom("rows")
def token_embedding(k, x):
    """Rows of a table by token number, and embeddings of positions, are added to x."""
    n, t, c = x.shape
    table = k.const(k.array((50, c)))
    y = k.Gather(table, k.indices((n, t), 50), axis=0)
    y = k.Add(y, k.slice(k.const(k.array((1, t + 2, c))), 1, 0, t))
    return k.norm(k.Add(y, x))


@idiom("rows")
def gated_mlp(k, x):
    """SwiGLU, GeGLU: of two products, or one that is split."""
    c = x.shape[-1]
    y = k.norm(x) if k.chance(0.5) else x
    if k.chance(0.5):
        g, u = k.linear(y, 2 * c, bias=False), k.linear(y, 2 * c, bias=False)
    else:
        g, u = k.split(k.linear(y, 4 * c), 2, 2)
    return k.Add(k.linear(k.Mul(k.activation(g), u), c, bias=False), x)


@idiom("matrix")
def gated_mlp_of_one_row(k, x):
    g, u = k.linear(x, 64, bias=False), k.linear(x, 64, bias=False)
    return k.linear(k.Mul(k.Mul(g, k.Sigmoid(g)), u), x.shape[1])


@idiom("rows", 0.8)
def soft_mixture(k, x):
    """A mixture of experts: the sum of all experts' results, weighted by a softmax."""
    c = x.shape[-1]
    gates = k.Softmax(k.linear(x, 2), axis=2)
    a, b = k.split(gates, 2, 2)
    return k.Add(k.Mul(k.linear(k.activation(x), c), a), k.Mul(k.linear(x, c), b))


@idiom("rows", 0.8)
def chosen_experts(k, x):
    """Each row goes to the experts that an input names: one-hot masks, or gathered weights."""
    n, t, c = x.shape
    experts = k.const(k.array((3, c, c), -0.3, 0.3))
    which = k.indices((n,), 3)
    k.afford(x.size * c)
    if k.chance(0.5):
        return k.MatMul(x, k.Gather(experts, which, axis=0))
    y = k.input((n, t, c)) if k.chance(0.2) else x
    out = None
    for e in range(2):
        keep = k.Cast(
            k.Equal(which, k.const(np.array(e)), wild=True),
            to=11 if x.type == "double" else 1,
            kind="step",
            wild=True,
        )
        part = k.Mul(k.linear(y, c, bias=False), k.reshape(keep, (n, 1, 1)), wild=True)
        out = k.Add(out, part) if out else part
    return k.Add(out, x)


@idiom("rows", 0.8)
def tied_logits(k, x):
    """Scores of words as the product with the transposed embedding table."""
    table = k.const(k.array((40, x.shape[-1]), -0.3, 0.3))
    y = k.Gather(table, k.indices(x.shape[:2], 40), axis=0)
    k.afford(x.size * 40)
    y = k.MatMul(k.Add(x, y), k.swap(table))
    return k.LogSoftmax(y, axis=2) if k.chance(0.5) else y


@idiom("rows", 0.8)
def masked_mean(k, x):
    """The mean of the rows that a mask names."""
    n, t, c = x.shape
    mask = k.b.new_input(((k.array((n, t), 0, 1, "float") < 0.7) | (np.arange(t) == 0)).astype(np.int64))
    m = k.Cast(k.Unsqueeze(mask, axes=[2]), to=11 if x.type == "double" else 1, kind="step")
    m = k.expand(m, x.shape) if k.chance(0.5) else m
    total = k.ReduceSum(k.Mul(x, m), axes=[1], keepdims=0)
    return k.Div(total, k.clip(k.ReduceSum(m, axes=[1], keepdims=0, wild=True), 1e-3))


@idiom("rows")
def conformer_conv(k, x):
    """Conformer's convolution: a norm, GLU, a depthwise convolution in time, a batch norm, Swish, transposed back, plus the input."""
    c = x.shape[-1]
    y = k.swap(k.norm(x) if k.chance(0.4) else x)
    a, g = k.split(k.conv(y, 2 * c, 1), 1, 2)
    y = k.depthwise(k.Mul(a, k.Sigmoid(g)), k.one(3, 7))
    y = k.batch_norm(y)
    y = k.conv(k.Mul(y, k.Sigmoid(y)), c, 1)
    return k.Add(k.swap(y), x)


@idiom("heads", 0.8)
def relative_shift(k, x):
    """Transformer-XL's: a column of zeros, reshaped, the first row cut off."""
    n, h, t, d = x.shape
    y = k.pad(x, [(3, 1, 0)])
    y = k.slice(k.reshape(y, (n, h, d + 1, t)), 2, 1, d + 1)
    return k.Add(k.reshape(y, (n, h, t, d)), x)


@idiom("rows", 0.8)
def mixed_with_last(k, x):
    """RWKV: a weighted sum of each row and the one before it."""
    n, t, c = x.shape
    last = k.pad(k.slice(x, 1, 0, t - 1), [(1, 1, 0)])
    m = k.vector(c, 0.5)
    return k.Add(k.Mul(x, m), k.Mul(last, k.Sub(1.0, m)))


@idiom("rows", 0.8)
def unrolled_scan(k, x):
    """A state-space model's steps: h = a h + b x."""
    steps = min(x.shape[1], 5)
    a = k.Sigmoid(k.vector(x.shape[2]))
    h, made = None, []
    for s in range(steps):
        row = (
            k.Squeeze(k.slice(x, 1, s, s + 1), axes=[1])
            if k.chance(0.5)
            else k.Gather(x, k.const(np.array(s)), axis=1)
        )
        h = k.Add(k.Mul(h, a), row) if h else row
        made.append(k.Unsqueeze(h, axes=[1]))
    return k.concat(made, 1)


@idiom("rows")
def unrolled_lstm(k, x):
    """A few steps of an LSTM's cell, its gates one product."""
    n, c = x.shape[0], 16
    w, u, bias = k.weights((x.shape[2], 4 * c), x.shape[2]), k.weights((c, 4 * c), c), k.vector(4 * c)
    h = s = k.input((n, c))
    if k.chance(0.5):
        s = k.const(np.zeros((n, c), h.array.dtype))
    for step in range(k.one(1, 2, 3)):
        row = k.Gather(x, k.const(np.array(step)), axis=1)
        z = k.Add(k.Add(k.matmul(row, w), k.matmul(h, u)), bias)
        i, f, o, g = k.split(z, 1, 4)
        s = k.Add(k.Mul(k.Sigmoid(f), s), k.Mul(k.Sigmoid(i), k.Tanh(g)))
        h = k.Mul(k.Sigmoid(o), k.Tanh(s))
    return [s, h]


@idiom("rows")
def unrolled_gru(k, x):
    n, c = x.shape[0], 16
    w, u = k.weights((x.shape[2], 3 * c), x.shape[2]), k.weights((c, 3 * c), c)
    h = k.input((n, c))
    for step in range(k.one(1, 2, 3)):
        a = k.split(k.matmul(k.Gather(x, k.const(np.array(step)), axis=1), w), 1, 3)
        b = k.split(k.Add(k.matmul(h, u), k.vector(3 * c)), 1, 3)
        z, r = k.Sigmoid(k.Add(a[0], b[0])), k.Sigmoid(k.Add(a[1], b[1]))
        y = k.Tanh(k.Add(a[2], k.Mul(b[2], r)))
        h = k.Add(k.Mul(k.Sub(1.0, z), y), k.Mul(z, h))
    return h


@idiom("rows", 0.8)
def recurrent_operator(k, x):
    """LSTM or GRU between transposes, both directions joined."""
    n, t, c = x.shape
    k.need(t <= 32)
    name, d, hidden = k.one("LSTM", "GRU"), k.one(1, 2), 16
    gates = {"LSTM": 4, "GRU": 3}[name]
    k.afford(x.size * gates * hidden * 2 * d)
    w, u = k.weights((d, gates * hidden, c), c), k.weights((d, gates * hidden, hidden), hidden)
    y = k.node(
        name,
        k.transpose(x, 1, 0, 2),
        w,
        u,
        k.vector(0, 0.0, (d, 2 * gates * hidden)),
        hidden_size=hidden,
        direction="forward" if d == 1 else "bidirectional",
        outputs=2,
    )[0]
    if d == 1:
        return k.transpose(k.Squeeze(y, axes=[1]), 1, 0, 2)
    return k.reshape(k.transpose(y, 2, 0, 1, 3), (n, t, d * hidden))


@idiom("rows", 0.8)
def class_token(k, x):
    """A class token: a constant row is put before the others, positions are added, and it is read at the end."""
    n, t, c = x.shape
    token = k.expand(k.const(k.array((1, 1, c))), (n, 1, c))
    y = k.concat([token, x], 1)
    y = k.norm(k.Add(y, k.const(k.array((1, t + 1, c)))))
    return k.Gather(y, k.const(np.array(0)), axis=1) if k.chance(0.5) else y


@idiom("image", 0.8)
def time_embedding(k, x):
    """Diffusion: sines of a step, two products, added to channels."""
    n, c = x.shape[:2]
    step = k.input((n, 1), 0, 4)
    f = k.Mul(step, k.const((10.0 ** -np.linspace(0, 1, 8)).astype(x.array.dtype)[None]))
    e = k.concat([k.Sin(f), k.Cos(f)], 1)
    e = k.linear(k.Mul(e, k.Sigmoid(e)), c)
    y = k.conv(k.activation(x))
    return k.Add(k.Add(y, k.Unsqueeze(e, axes=[2, 3])), x)


@idiom("rows", 0.8)
def modulated(k, x):
    """AdaLN: scale and shift of a condition, and a gate of the result."""
    n, t, c = x.shape
    condition = k.input((n, c))
    parts = [
        k.Unsqueeze(v, axes=[1])
        for v in k.split(k.linear(k.Mul(condition, k.Sigmoid(condition)), 3 * c), 1, 3)
    ]
    y = k.Add(k.Mul(k.norm(x), k.Add(parts[0], 1.0)), parts[1])
    return k.Add(x, k.Mul(k.linear(y, c), parts[2]))


@idiom("matrix", 0.8)
def message_passing(k, x):
    """Rows are gathered along edges, transformed, and added up at the ends of the edges."""
    n, c = x.shape
    edges = k.one(8, 20, 40)
    begin, end = k.array((edges,), 0, n - 1, "int64"), k.array((edges,), 0, n - 1, "int64")
    y = k.activation(k.linear(k.Gather(x, k.const(begin), axis=0), c))
    empty = k.const(np.zeros((n, c), x.array.dtype)) if k.chance(0.6) else x
    if k.chance(0.5):
        at = k.const(np.repeat(end[:, None], c, 1))
        return k.ScatterElements(empty, at, y, axis=0, reduction="add", kind="sum")
    return k.ScatterND(empty, k.const(end[:, None]), y, reduction="add", kind="sum")


@idiom("matrix", 0.8)
def neighbours(k, x):
    """A graph convolution by a matrix of neighbours."""
    n = x.shape[0]
    adjacent = k.b.new_input(
        (k.array((n, n), 0, 1) < 0.4).astype(x.array.dtype) + np.eye(n, dtype=x.array.dtype)
    )
    degree = k.ReduceSum(adjacent, axes=[1], keepdims=1, wild=True)
    k.afford(n * x.size)
    return k.Add(k.linear(k.Div(k.MatMul(adjacent, x), degree), x.shape[1]), x)


@idiom("matrix", 0.8)
def factorisation(k, x):
    """Factorisation machine: half of (sum)^2 - sum of squares over fields."""
    n, c = x.shape
    y = k.reshape(x, (n, -1, 8))
    square = k.Pow(k.ReduceSum(y, axes=[1], keepdims=0), 2.0)
    return k.Mul(k.Sub(square, k.ReduceSum(k.Mul(y, y), axes=[1], keepdims=0)), 0.5)


@idiom("rows", 0.8)
def dot_interaction(k, x):
    """DLRM: all pairs of rows, those below the diagonal gathered."""
    n, t, c = x.shape
    k.need(t <= 33)
    k.afford(x.size * t)
    z = k.Mul(k.MatMul(x, k.swap(x)), 1.0 / c)
    below = np.flatnonzero(np.tril(np.ones((t, t)), -1))
    return k.Gather(k.reshape(z, (n, t * t)), k.const(below), axis=1)


@idiom("matrix", 0.8)
def distances(k, x):
    """|x|^2 - 2 x y + |y|^2."""
    y = k.one(lambda: k.const(k.array((16, x.shape[1]))), lambda: k.other(x))()
    k.afford(x.size * y.shape[0])
    a = k.ReduceSum(k.Mul(x, x), axes=[1], keepdims=1)
    b = k.ReduceSum(k.Mul(y, y), axes=[1], keepdims=0)
    return k.Add(k.Sub(a, k.Mul(k.MatMul(x, k.swap(y)), 2.0)), b)


@idiom("matrix", 0.8)
def similarities(k, x):
    from idioms.pieces import unit_length

    a, b = unit_length(k, x), unit_length(k, k.other(x))
    k.afford(x.size * x.shape[0])
    return k.Mul(k.MatMul(a, k.swap(b)), k.Exp(k.scalar(0.5, x.type)))


@idiom("matrix")
def tower(k, x):
    """Linear layers of different widths."""
    for _ in range(k.one(1, 2, 3)):
        x = k.maybe_activation(k.linear(x, k.one(16, 32, 48, 64)))
    return x


@idiom("matrix", 0.8)
def crossed_layers(k, x):
    """Deep and cross: x0 * (w x + b) + x."""
    y = k.Add(k.Mul(x, k.linear(x, x.shape[1], bias=True)), x)
    return k.Add(k.Mul(x, k.linear(y, x.shape[1], bias=True)), y)


@idiom("rows", 0.8)
def mixer(k, x):
    """MLP-Mixer: linear layers over positions, then over channels."""
    n, t, c = x.shape
    k.need(t <= 64)
    y = k.Add(x, k.swap(k.linear(k.activation(k.linear(k.swap(k.norm(x)), 32)), t)))
    return k.Add(y, k.linear(k.activation(k.linear(k.norm(y), c)), c))


@idiom("rows", 0.8)
def pooled_places(k, x):
    """MetaFormer's: an average pool less the input."""
    n, t, c = x.shape
    y = k.AveragePool(k.swap(x), kernel_shape=[3], pads=[1, 1])
    return k.Add(x, k.Sub(k.swap(y), x))


@idiom("rows", 0.8)
def line_of_convolutions(k, x):
    """Convolutions over time (speech encoders), sometimes as convolutions of an image of one column."""
    y = k.swap(x)
    if k.chance(0.3):
        y = k.Squeeze(k.conv(k.Unsqueeze(y, axes=[3]), 24, 1), axes=[3])
    for _ in range(k.one(1, 2)):
        y = k.activation(k.conv(y, 24, 3, k.one(1, 2)))
    return k.swap(y)


@idiom("heads", 0.8)
def heads_merged(k, x):
    n, h, t, d = x.shape
    return k.reshape(k.transpose(x, 0, 2, 1, 3), (n, t, h * d))


@idiom("rows", 0.8)
def heads_split(k, x):
    n, t, c = x.shape
    heads = k.one(2, 4, 8)
    k.need(c % heads == 0)
    return k.transpose(k.reshape(x, (n, t, heads, c // heads)), 0, 2, 1, 3)


@idiom("rows", 0.6)
def rows_as_batch(k, x):
    return k.reshape(x, (-1, x.shape[-1]))


@idiom("matrix", 0.6)
def batch_as_rows(k, x):
    return k.Unsqueeze(x, axes=[k.one(0, 1)])


@idiom("any", 0.6)
def cumulated(k, x):
    return k.CumSum(k.Mul(x, 0.1), k.const(np.array(k.r.randrange(x.rank))))


@idiom("any", 0.6)
def chosen(k, x):
    """A Where whose mask is an input or a constant pattern of positions."""
    other = k.other(x)
    keep = (
        k.b.new_input(k.array((x.shape[-1],), type="bool"))
        if k.chance(0.5)
        else k.const(np.arange(x.shape[-1]) % 3 == 0)
    )
    return k.Where(keep, x, other)
