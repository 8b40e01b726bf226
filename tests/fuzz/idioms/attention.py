"""idioms/attention.py: attention in its spellings: masks, repeated heads, rotary positions, caches."""

import numpy as np

from idioms import idiom
from registry import EXACT

# --- masks, which are added to scores of [..., rows, keys], or select among them ---


def causal_by_trilu(k, t, s):
    ones = k.const(np.ones((t, s), np.float32))
    keep = k.Trilu(ones, k.const(np.array(s - t)), upper=0, wild=True)
    return k.Cast(keep, to=9, kind="step", wild=True)


def query_places(k, t, s):
    """Returns the positions of the queries as a column: computed from the sizes, or the input position_ids."""
    if k.chance(0.5):
        places = k.b.new_input(np.arange(s - t, s))
    else:
        numbers = [k.const(np.array(n)) for n in (0, t, 1, s - t)]
        places = k.Add(k.Range(*numbers[:3], wild=True), numbers[3], wild=True)
    return k.Unsqueeze(places, axes=[1], wild=True)


def causal_by_range(k, t, s):
    """Returns a mask from compared positions: key <= query + past."""
    keys = k.Range(*[k.const(np.array(n)) for n in (0, s, 1)])
    rows = query_places(k, t, s)
    return k.one(
        lambda: k.LessOrEqual(keys, rows, wild=True),
        lambda: k.Not(k.Greater(keys, rows, wild=True), wild=True),
        lambda: k.Not(k.Less(rows, keys, wild=True), wild=True),
    )()


def padded_keys(k, t, s):
    """Returns a mask from an input of 0 and 1, which never masks the first key."""
    ones = (k.array((1, s), 0, 1, "float") < 0.7) | (np.arange(s) == 0)
    mask = k.b.new_input(ones.astype(np.int64))
    return k.one(
        lambda: k.Cast(mask, to=9, kind="step", wild=True),
        lambda: k.Not(k.Equal(mask, 0, wild=True), wild=True),
        lambda: k.Not(k.Less(mask, 1, wild=True), wild=True),
    )()


def window_of_keys(k, t, s):
    """Returns a mask that hides later keys and those that are more than a number of positions before."""
    if k.chance(0.5):
        places = k.const(np.arange(s) - (np.arange(t) + s - t)[:, None])
    else:
        places = k.Sub(k.const(np.arange(s)), query_places(k, t, s), wild=True)
    back = -k.one(3, 8)
    if k.chance(0.5):
        return k.And(k.LessOrEqual(places, 0, wild=True), k.Greater(places, back, wild=True), wild=True)
    ahead, behind = k.Greater(places, 0, wild=True), k.LessOrEqual(places, back, wild=True)
    if k.chance(0.5):
        return k.Not(k.Or(ahead, behind, wild=True), wild=True)
    return k.And(k.Not(ahead, wild=True), k.Not(behind, wild=True), wild=True)


def masked(k, scores):
    """Returns the scores, [..., rows, keys], with some keys masked."""
    t, s = scores.shape[-2:]
    if k.chance(0.35) or s < 2:
        return scores
    keep = k.one(*([causal_by_trilu, causal_by_range, window_of_keys] if s >= t else []), padded_keys)(
        k, t, s
    )
    if k.chance(0.3) and keep.shape != (t, s):
        keep = k.expand(keep, (t, s), wild=True)
    low = k.one(-1e9, -10000.0, float("-inf"), float(np.finfo(np.float32).min))
    way = k.r.randrange(3)
    if way == 0:
        return k.Where(keep, scores, low, wild=True)
    if way == 1:
        bias = k.Where(keep, *(k.scalar(v, scores.type) for v in (0.0, low)), wild=True)
        return k.Add(scores, k.Unsqueeze(bias, axes=[0], wild=True) if k.chance(0.5) else bias, wild=True)
    there = k.Cast(keep, to=11 if scores.type == "double" else 1, kind="step", wild=True)
    hidden = k.Sub(1.0, there, wild=True, kind=EXACT)
    return k.Add(scores, k.Mul(hidden, -10000.0, wild=True, kind=EXACT), wild=True)


# --- heads ---


def heads_of(k, x, heads, width):
    """[n, t, heads * width] -> [n, heads, t, width]."""
    return k.transpose(k.reshape(x, x.shape[:2] + (heads, width)), 0, 2, 1, 3)


def merged(k, x):
    """[n, heads, t, width] -> [n, t, heads * width]."""
    n, h, t, d = x.shape
    return k.reshape(k.transpose(x, 0, 2, 1, 3), (n, t, h * d))


def repeated(k, x, times):
    """Repeats each head `times` times, by Unsqueeze, Expand and Reshape, or by Tile, Gather or Concat."""
    n, h, t, d = x.shape
    way = k.one(0, 0, 0, 1, 2)
    if way == 0:
        y = k.expand(k.Unsqueeze(x, axes=[2]), (n, h, times, t, d))
        return k.reshape(y, (n, h * times, t, d))
    if way == 1:
        return k.Gather(x, k.const(np.repeat(np.arange(h), times)), axis=1)
    return k.reshape(k.Concat(*[k.Unsqueeze(x, axes=[2])] * times, axis=2), (n, h * times, t, d))


def attend(k, q, key, v, mask=True):
    """Returns softmax(q k' / sqrt(d)) v for [..., t, d]; the scale is applied in one of the places where exporters have it."""
    d = q.shape[-1]
    factor = float(d) ** -0.5
    k.afford(q.size * key.shape[-2] * 2)
    way = k.r.randrange(4)
    if way == 0:
        q = k.Mul(q, factor)
    elif way == 1:
        q, key = k.Mul(q, factor**0.5), k.Mul(key, factor**0.5)
    scores = k.MatMul(q, k.swap(key))
    if way == 2:
        scores = k.Div(scores, factor**-1)
    elif way == 3:
        scores = k.Mul(scores, factor)
    if k.chance(0.08):
        scores = k.Mul(k.Tanh(k.Div(scores, 10.0)), 10.0)
    scores = masked(k, scores) if mask else scores
    if not k.chance(0.2):
        return k.MatMul(k.Softmax(scores, axis=scores.rank - 1), v)
    # As torch exports scaled_dot_product_attention with a mask, which may leave a row without keys.
    if k.chance(0.6):
        rows = k.const(np.array([[k.chance(0.7)] for _ in range(scores.shape[-2])]))
        scores = k.Where(rows, scores, float("-inf"), wild=True)
    weights = k.Softmax(scores, axis=scores.rank - 1, wild=True)
    return k.MatMul(k.Where(k.IsNaN(weights, wild=True), 0.0, weights), v)


def head_sizes(k, c):
    heads = k.r.choice([h for h in (1, 2, 4, 8) if c % h == 0 and c // h >= 4] or [1])
    return heads, c // heads


def attention_of_rows(k, x):
    heads, width = head_sizes(k, x.shape[-1])
    q, key, v = (heads_of(k, k.linear(x, x.shape[-1]), heads, width) for _ in range(3))
    return k.linear(merged(k, attend(k, q, key, v)), x.shape[-1])


@idiom("rows", 2)
def self_attention(k, x):
    y = k.norm(x) if k.chance(0.5) else x
    return k.Add(attention_of_rows(k, y), x)


@idiom("rows", 2)
def grouped_heads(k, x):
    """Keys and values with fewer heads, which are repeated, as in Llama and most later decoders."""
    heads = k.one(2, 4, 8)
    groups = k.r.choice([g for g in (1, 2, 4) if g <= heads])
    width = k.one(8, 16, 32)
    y = k.norm(x) if k.chance(0.5) else x
    q = heads_of(k, k.linear(y, heads * width), heads, width)
    key, v = (heads_of(k, k.linear(y, groups * width), groups, width) for _ in range(2))
    if k.chance(0.4):
        cos, sin = angles(k, q.shape[2], width)
        q, key = turned(k, q, cos, sin), turned(k, key, cos, sin)
    if k.chance(0.3):
        key, v = cached(k, key, v)
    if heads != groups:
        key, v = repeated(k, key, heads // groups), repeated(k, v, heads // groups)
    return k.linear(merged(k, attend(k, q, key, v)), x.shape[-1])


@idiom("heads", 1.5)
def grouped_heads_alone(k, x):
    """Grouped attention where x has the heads of queries, and keys and values are inputs; keys may also be the values."""
    n, h, t, d = x.shape
    k.need(h % 2 == 0 and d <= 64)
    times = k.one(2, h)
    key = k.input((n, h // times, k.one(t, 16, 24), d))
    v = key if k.chance(0.2) else k.input(key.shape)
    y = attend(k, x, repeated(k, key, times), repeated(k, v, times))
    return k.Add(y, x) if k.chance(0.3) else y


@idiom("heads", 1.2)
def five_dimensions(k, x):
    """Grouped heads without copies: queries of [n, groups, times, t, d], keys broadcast."""
    n, h, t, d = x.shape
    k.need(h % 2 == 0)
    groups = k.one(1, h // 2)
    q = k.reshape(x, (n, groups, h // groups, t, d))
    key, v = (k.Unsqueeze(k.input((n, groups, 16, d)), axes=[2]) for _ in range(2))
    return k.reshape(attend(k, q, key, v, mask=k.chance(0.5)), x.shape)


@idiom("rows", 1.5)
def one_head_of_keys(k, x):
    """Multi-query: keys are broadcast over heads."""
    heads, width = head_sizes(k, x.shape[-1])
    q = heads_of(k, k.linear(x, heads * width), heads, width)
    key, v = (k.Unsqueeze(k.linear(x, width), axes=[1]) for _ in range(2))
    if k.chance(0.5):
        shape = (x.shape[0], heads, x.shape[1], width)
        key, v = k.expand(key, shape), k.expand(v, shape)
    return merged(k, attend(k, q, key, v))


@idiom("rows", 1.5)
def packed_heads(k, x):
    """Queries, keys and values come from one product, which Split, Gather or Slice divides."""
    n, t, c = x.shape
    heads, width = head_sizes(k, c)
    y = k.linear(x, 3 * c)
    way = k.r.randrange(3)
    if way == 0:
        q, key, v = (heads_of(k, z, heads, width) for z in k.split(y, 2, 3))
    else:
        y = k.transpose(k.reshape(y, (n, t, 3, heads, width)), 2, 0, 3, 1, 4)
        if way == 1:
            q, key, v = (k.Gather(y, k.const(np.array(j)), axis=0) for j in range(3))
        else:
            q, key, v = (k.Squeeze(z, axes=[0]) for z in k.split(y, 0, 3))
    return k.linear(merged(k, attend(k, q, key, v)), c)


@idiom("rows", 1.5)
def query_over_windows(k, x):
    """GCViT: one global query, expanded over windows."""
    n, t, c = x.shape
    heads, width = head_sizes(k, c)
    windows = k.one(1, 2, 4)
    k.need(t % windows == 0 and t // windows >= 4)
    size = t // windows
    y = k.linear(k.reshape(x, (n * windows, size, c)), 2 * c)
    y = k.transpose(k.reshape(y, (n * windows, size, 2, heads, width)), 2, 0, 3, 1, 4)
    key, v = (k.Gather(y, k.const(np.array(j)), axis=0) for j in range(2))
    q = k.input((n, 1, size, heads, width))
    q = k.expand(q, (n, windows, size, heads, width))
    q = k.transpose(k.reshape(q, (n * windows, size, heads, width)), 0, 2, 1, 3)
    y = k.reshape(merged(k, attend(k, q, key, v, mask=k.chance(0.2))), x.shape)
    return k.Add(y, x) if k.chance(0.5) else y


@idiom("rows", 1.2)
def cross_attention(k, x):
    """Keys and values that are computed from another value; sometimes the query is a constant."""
    c = x.shape[-1]
    heads, width = head_sizes(k, c)
    found = [
        v
        for v in k.b.values
        if v.rank == 3
        and v.shape[0] == x.shape[0]
        and v.shape[2] == c
        and v.type == x.type
        and not v.wild
        and v.finite
    ]
    memory = k.r.choice(found) if found and k.chance(0.5) else k.input((x.shape[0], k.one(8, 16, 33), c))
    q = heads_of(k, k.linear(x, c), heads, width)
    key, v = (heads_of(k, k.linear(memory, c), heads, width) for _ in range(2))
    return k.Add(k.linear(merged(k, attend(k, q, key, v, mask=k.chance(0.3))), c), x)


@idiom("heads", 1.5)
def raw_attention(k, x):
    """Attention of existing heads: keys may be the query itself, values the keys."""
    n, h, t, d = x.shape
    k.need(d <= 64 and t <= 256)
    key = k.other(x)
    v = k.one(lambda: key, lambda: k.other(x))()
    y = attend(k, x, key, v)
    return k.Add(y, x) if k.chance(0.4) else y


@idiom("heads")
def biased_attention(k, x):
    """A bias that is gathered from a table by relative positions and added to the scores (Swin, T5)."""
    n, h, t, d = x.shape
    k.need(t <= 64 and d <= 64)
    table = k.const(k.array((2 * t - 1, h)))
    places = np.arange(t)[:, None] - np.arange(t) + t - 1
    bias = k.Gather(table, k.const(places.reshape(-1)), axis=0)
    bias = k.transpose(k.reshape(bias, (t, t, h)), 2, 0, 1)
    k.afford(2 * n * h * t * t * d)
    scores = k.Mul(k.MatMul(x, k.swap(k.other(x))), float(d) ** -0.5)
    scores = masked(k, k.Add(scores, k.Unsqueeze(bias, axes=[0])))
    return k.MatMul(k.Softmax(scores, axis=3), k.other(x))


@idiom("heads", 0.7)
def linear_biases(k, x):
    """ALiBi: a bias of a slope for each head times the distance."""
    n, h, t, d = x.shape
    k.need(t <= 128 and d <= 64)
    slopes = k.const((2.0 ** -np.arange(1, h + 1)).astype(x.array.dtype).reshape(h, 1, 1))
    k.afford(2 * n * h * t * t * d)
    distance = k.const((np.arange(t) - np.arange(t)[:, None]).astype(x.array.dtype))
    scores = k.Mul(k.MatMul(x, k.swap(k.other(x))), float(d) ** -0.5)
    scores = masked(k, k.Add(scores, k.Mul(slopes, distance)))
    return k.MatMul(k.Softmax(scores, axis=3), k.other(x))


@idiom("heads", 0.8)
def cosine_attention(k, x):
    """SwinV2: queries and keys are normalised to length one, and each head has a scale."""
    n, h, t, d = x.shape
    k.need(t <= 128 and d <= 64)
    k.afford(2 * n * h * t * t * d)
    from idioms.pieces import unit_length

    scores = k.MatMul(unit_length(k, x), k.swap(unit_length(k, k.other(x))))
    scores = k.Mul(scores, k.vector(0, 4.0, (1, h, 1, 1)))
    return k.MatMul(k.Softmax(scores, axis=3), k.other(x))


@idiom("heads", 0.8)
def einsum_attention(k, x):
    n, h, t, d = x.shape
    k.need(t <= 128 and d <= 64)
    k.afford(2 * n * h * t * t * d)
    scores = k.Mul(k.Einsum(x, k.other(x), equation="bhid,bhjd->bhij"), float(d) ** -0.5)
    weights = k.Softmax(masked(k, scores), axis=3)
    return k.Einsum(weights, k.other(x), equation="bhij,bhjd->bhid")


@idiom("heads", 0.8, since=23)
def attention_operator(k, x):
    n, h, t, d = x.shape
    k.need(d <= 64 and t <= 256)
    groups = k.one(h, max(1, h // 2))
    k.need(h % groups == 0)
    k.afford(2 * n * h * t * t * d)
    key, v = k.input((n, groups, t, d)), k.input((n, groups, t, d))
    return k.Attention(x, key, v, is_causal=k.one(0, 1))


@idiom("heads", 0.8)
def linear_attention(k, x):
    """elu(q) + 1 times (k' v)."""
    n, h, t, d = x.shape
    k.need(d <= 64)
    k.afford(2 * x.size * d)
    q, key = (k.Add(k.Elu(v), 1.0) for v in (x, k.other(x)))
    v = k.other(x)
    kv = k.Mul(k.MatMul(k.swap(key), v), 1.0 / t)
    z = k.ReduceMean(key, axes=[2], keepdims=1)
    below = k.ReduceSum(k.Mul(q, z), axes=[3], keepdims=1)
    return k.Div(k.MatMul(q, kv), k.Add(below, 1e-2))


@idiom("heads", 0.8)
def attention_without_softmax(k, x):
    """Attention between channels (XCiT), or with relu in place of softmax."""
    n, h, t, d = x.shape
    k.need(d <= 64)
    k.afford(2 * x.size * d)
    scores = k.Mul(k.MatMul(k.swap(x), k.other(x)), 1.0 / t)
    weights = k.one(lambda: k.Softmax(scores, axis=3), lambda: k.Relu(scores))()
    return k.swap(k.MatMul(weights, k.swap(x)))


@idiom("image", 0.8)
def non_local(k, x):
    """Attention over the pixels of an image, between 1x1 convolutions."""
    n, c, h, w = x.shape
    k.need(h * w <= 400)
    q, key, v = (k.reshape(k.conv(x, 16, 1), (n, 16, h * w)) for _ in range(3))
    k.afford(2 * 16 * n * (h * w) ** 2)
    weights = k.Softmax(k.MatMul(k.swap(q), key), axis=2)
    y = k.swap(k.MatMul(weights, k.swap(v)))
    return k.Add(k.conv(k.reshape(y, (n, 16, h, w)), c, 1), x)


# --- rotary positions ---


def angles(k, t, width):
    """Returns cos and sin, [t, width] or [1, 1, t, width]: constants, or computed from positions as exporters do."""
    half = np.arange(0, width, 2) / width
    if k.chance(0.5):
        table = np.concatenate([np.arange(t)[:, None] * 10.0**-half] * 2, 1).astype(k.array((1,)).dtype)
        table = table[None, None] if k.chance(0.3) else table
        return k.const(np.cos(table).astype(table.dtype)), k.const(np.sin(table).astype(table.dtype))
    numbers = [k.const(np.array(n, np.int64)) for n in (0, t, 1)]
    places = k.Cast(k.Range(*numbers, wild=True), to=11 if k.type == "double" else 1, kind="step", wild=True)
    frequencies = k.const((10.0**-half).astype(k.array((1,)).dtype))
    f = k.Mul(k.Unsqueeze(places, axes=[1], wild=True), k.Unsqueeze(frequencies, axes=[0]))
    both = k.concat([f, f], 1)
    return k.Cos(both), k.Sin(both)


def turned(k, x, cos, sin):
    """Returns x cos + (-x2, x1) sin, where x1 and x2 are the halves of x."""
    d = x.shape[-1]
    if k.chance(0.5):
        a, b = k.slice(x, x.rank - 1, 0, d // 2), k.slice(x, x.rank - 1, d // 2, d)
    else:
        a, b = k.split(x, x.rank - 1, 2)
    half = k.concat([k.Neg(b), a], k.one(-1, x.rank - 1))
    return k.Add(k.Mul(x, cos), k.Mul(half, sin))


@idiom("heads", 1.2)
def rotary_by_halves(k, x):
    k.need(x.shape[3] % 2 == 0)
    return turned(k, x, *angles(k, x.shape[2], x.shape[3]))


@idiom("heads", 1.2)
def rotary_by_pairs(k, x):
    """Rotates pairs of even and odd elements, which Unsqueeze, Concat and Reshape join again."""
    n, h, t, d = x.shape
    k.need(d % 2 == 0)
    cos, sin = (k.slice(v, v.rank - 1, 0, d // 2) for v in angles(k, t, d))
    if k.chance(0.5):
        a, b = k.slice(x, 3, 0, d, 2), k.slice(x, 3, 1, d, 2)
    else:
        pairs = k.reshape(x, (n, h, t, d // 2, 2))
        a, b = (k.Gather(pairs, k.const(np.array(j)), axis=4) for j in (0, 1))
    y = k.Sub(k.Mul(a, cos), k.Mul(b, sin))
    z = k.Add(k.Mul(a, sin), k.Mul(b, cos))
    y = k.concat([k.Unsqueeze(v, axes=[4]) for v in (y, z)], 4)
    return k.reshape(y, x.shape)


@idiom("heads", 0.8)
def rotary_of_a_part(k, x):
    """Only the first elements of each row are rotated."""
    d = x.shape[3]
    k.need(d % 4 == 0)
    a, b = k.slice(x, 3, 0, d // 2), k.slice(x, 3, d // 2, d)
    return k.concat([turned(k, a, *angles(k, x.shape[2], d // 2)), b], 3)


def turned_by_operator(k, *values):
    """Applies RotaryEmbedding to values of [n, heads, t, d]: with angles for each step, mostly the same for all elements of a batch, or
    with rows of tables."""
    n, _, t, d = values[0].shape
    k.need(d % 2 == 0)
    places = [k.indices((n, t), t + 4)] if k.chance(0.3) else []
    shape = (t + 4, d // 2) if places else (k.one(1, 1, n), t, d // 2)
    cos, sin = (k.const(k.array(shape)) if k.chance(0.5) else k.input(shape, -1.0, 1.0) for _ in range(2))
    turned = [k.RotaryEmbedding(v, cos, sin, *places, interleaved=k.one(0, 0, 1)) for v in values]
    return turned if len(turned) > 1 else turned[0]


@idiom("heads", 0.8, since=23)
def rotary_operator(k, x):
    return turned_by_operator(k, x)


@idiom("rows", 2, since=23)
def decoder_of_operators(k, x):
    """A decoder's layer of operator set 23: RMSNormalization, RotaryEmbedding, Attention."""
    n, t, c = x.shape
    groups, times, width = k.one(1, 2), k.one(1, 2, 4), k.one(8, 16, 32)
    y = k.RMSNormalization(x, k.vector(c, 1.0), epsilon=1e-6)
    q = heads_of(k, k.linear(y, groups * times * width), groups * times, width)
    key, v = (heads_of(k, k.linear(y, groups * width), groups, width) for _ in range(2))
    q, key = turned_by_operator(k, q, key)
    key, v = cached(k, key, v) if k.chance(0.4) else (key, v)
    k.afford(2 * q.size * key.shape[2])
    mask = [padded_keys(k, t, key.shape[2])] if k.chance(0.3) else []
    y = k.Attention(q, key, v, *mask, is_causal=0 if mask or key.shape[2] != t else k.one(0, 1))
    return k.Add(k.linear(merged(k, y), c), x)


# --- caches ---


def cached(k, *new):
    """Returns for each new value its concatenation with a past of the same number of steps; the concatenations are outputs."""
    past = k.one(1, 5, 16)
    made = [k.concat([k.input(v.shape[:2] + (past, v.shape[3])), v], 2) for v in new]
    k.b.kept.update(v.name for v in made)
    return made


@idiom("heads", 1.5)
def cached_keys(k, x):
    """A step of decoding: one query or a few over all keys so far."""
    n, h, t, d = x.shape
    k.need(d <= 64)
    new = k.slice(x, 2, 0, k.one(1, 1, min(t, 8)))
    return attend(k, new, *cached(k, new, k.Mul(new, 0.5) if k.chance(0.5) else new))


@idiom("heads", 0.8)
def static_cache(k, x):
    """A cache of fixed size; ScatterND or ScatterElements writes one step, and attention reads the whole cache."""
    n, h, t, d = x.shape
    k.need(d <= 64)
    new = k.slice(x, 2, 0, 1)
    cache = k.input((n, h, t, d))
    place = k.r.randrange(t)
    if k.chance(0.5):
        at = k.const(np.array([[i, j, place] for i in range(n) for j in range(h)]).reshape(n, h, 1, 3))
        key = k.ScatterND(cache, at, new)
    else:
        at = k.const(np.full((n, h, 1, d), place, np.int64))
        key = k.ScatterElements(cache, at, new, axis=2)
    k.b.kept.add(key.name)
    return attend(k, new, key, k.one(key, cache), mask=False)


@idiom("heads", 0.8)
def beam_gather(k, x):
    """A step of beam search, where beams continue others: states are gathered along the batch."""
    n = x.shape[0]
    at = k.indices((k.one(n, n + 1, 4),), n)
    y = k.Gather(x, at, axis=0)
    return k.Add(y, k.input(y.shape)) if k.chance(0.5) else y
