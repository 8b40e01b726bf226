"""ops/movement.py: operators that move elements, or look at shapes."""

import numpy as np

import rows
from registry import Skip, axes_input, operators, some_axes, some_axis
from values import LARGE, draw_array, size_of


def anything(b, o, rank=(0, 4), variable="T", least=0, **more):
    return b.tensor(o.type(variable), rank=rank, least=least, **more)


@operators("Transpose", kind="exact", liked=2)
def transpose(b, o):
    x = anything(b, o)
    order = list(range(x.rank))
    b.r.shuffle(order)
    return [x], {"perm": order if x.rank and b.r.random() < 0.8 else None}


def factors(b, n):
    """Returns a shape of n elements."""
    shape = []
    while n > 1 and len(shape) < 4:
        d = b.r.choice([k for k in range(2, n + 1) if n % k == 0])
        shape.append(d)
        n //= d
    shape += [n] if n > 1 else []
    if b.r.random() < 0.3:
        shape.insert(b.r.randrange(len(shape) + 1), 1)
    return shape


def regrouped(b, shape):
    """Returns a shape with the same number of elements at any sizes: some neighbouring dimensions are merged."""
    shape = list(shape)
    while len(shape) > 1 and b.r.random() < 0.7:
        k = b.r.randrange(len(shape) - 1)
        shape[k : k + 2] = [shape[k] * shape[k + 1]]
    if b.r.random() < 0.3:
        shape.insert(b.r.randrange(len(shape) + 1), 1)
    return shape


@operators("Reshape", kind="exact", liked=2)
def reshape(b, o):
    x = anything(b, o)
    if x.size == 0:
        shape = list(x.shape) + [1]
        return [x, b.ints(shape)], {"allowzero": 1} if o.has("allowzero") else {}
    shape = regrouped(b, x.shape) if b.root.sizes and b.r.random() < 0.8 else factors(b, x.size)
    if shape and b.r.random() < 0.4:
        shape[b.r.randrange(len(shape))] = -1
    elif shape and x.rank and shape[0] == x.shape[0] and b.r.random() < 0.5:
        shape[0] = 0
    return [x, b.ints(shape)], {}


@operators("Flatten", kind="exact")
def flatten(b, o):
    x = anything(b, o, rank=(1, 4))
    return [x], {"axis": b.r.choice([None, b.r.randint(0 if o.since < 11 else -x.rank, x.rank)])}


@operators("Squeeze", kind="exact")
def squeeze(b, o):
    x = anything(b, o)
    ones = [k for k, d in enumerate(x.shape) if d == 1]
    if not ones:
        shape = list(x.shape)
        shape.insert(b.r.randrange(len(shape) + 1), 1)
        x = b.tensor(x.type, shape=tuple(shape))
        ones = [k for k, d in enumerate(x.shape) if d == 1]
    axes = sorted(b.r.sample(ones, b.r.randint(1, len(ones)))) if b.r.random() < 0.7 else None
    inputs, attributes = axes_input(b, o, axes, [x], {})
    return inputs, attributes


@operators("Unsqueeze", kind="exact")
def unsqueeze(b, o):
    x = anything(b, o, rank=(0, 3))
    n = b.r.randint(1, 2)
    axes = sorted(b.r.sample(range(x.rank + n), n))
    if o.since >= 11 and b.r.random() < 0.3:
        axes = [k - x.rank - n for k in axes]
    return axes_input(b, o, axes, [x], {})


@operators("Concat", kind="exact", liked=2)
def concat(b, o):
    x = anything(b, o, rank=(1, 4))
    axis = b.r.randrange(x.rank)
    operands = [x]
    for _ in range(b.r.choice([0, 1, 1, 2, 3])):
        shape = list(x.shape)
        shape[axis] = b.dim(least=0)
        operands.append(b.tensor(x.type, shape=tuple(shape), least=0))
    b.r.shuffle(operands)
    return operands, {"axis": axis - x.rank if o.since >= 11 and b.r.random() < 0.3 else axis}


@operators("Split", kind="exact")
def split(b, o):
    x = anything(b, o, rank=(1, 4), least=1)
    axis = b.r.randrange(x.rank)
    d = x.shape[axis]
    n = b.r.randint(1, min(4, d))
    attributes = {"axis": axis - x.rank if o.since >= 11 and b.r.random() < 0.3 else axis}
    if d % n == 0 and b.r.random() < 0.4 or (o.has("num_outputs") and b.r.random() < 0.3):
        if o.has("num_outputs"):
            attributes["num_outputs"] = n
            step = -(-d // n)
            if step * (n - 1) >= d:
                raise Skip("an empty part")
        elif d % n:
            raise Skip("unequal parts")
        return [x], attributes, n
    cuts = sorted(b.r.choices(range(d + 1), k=n - 1))
    sizes = np.diff([0] + cuts + [d]).tolist()
    if o.has("split"):
        return [x], {**attributes, "split": sizes}, n
    return [x, b.ints(sizes)], attributes, n


@operators("Slice", kind="exact", liked=2)
def slice_(b, o):
    x = anything(b, o, rank=(1, 4))
    axes = some_axes(b, x.rank, negative=False)
    starts, ends, steps = [], [], []
    for k in axes:
        d = x.shape[k]
        step = b.r.choice([1, 1, 1, 2, 3, -1, -2]) if not o.has("starts") else 1
        low, high = sorted((b.r.randint(0, d), b.r.randint(0, d)))
        high += b.r.choice([0, 0, 3, 2**31])
        if step > 0:
            start, end = low, high
            if b.r.random() < 0.3 and d:
                start = low - d if low < d else low
        else:
            start, end = min(high, d + 5), low - 1 if low else -d - 1
        starts.append(start)
        ends.append(end)
        steps.append(step)
    if o.has("starts"):
        return [x], {"starts": starts, "ends": ends, "axes": axes}
    kind = o.type("Tind")
    if kind == "int32":
        ends = [min(e, 2**31 - 1) for e in ends]
    inputs = [x, b.ints(starts, kind), b.ints(ends, kind)]
    if axes != list(range(len(axes))) or b.r.random() < 0.5 or any(s != 1 for s in steps):
        inputs.append(b.ints([k - x.rank if b.r.random() < 0.3 else k for k in axes], kind))
        if any(s != 1 for s in steps) or b.r.random() < 0.3:
            inputs.append(b.ints(steps, kind))
    return inputs, {}


@operators("Expand", kind="exact")
def expand(b, o):
    x = anything(b, o)
    shape = [b.dim() if d == 1 else (d if b.r.random() < 0.8 else 1) for d in x.shape]
    if b.r.random() < 0.3:
        shape.insert(0, b.dim())
    if size_of(shape) * max(1, x.size) > LARGE:
        raise Skip("large")
    return [x, b.ints(shape)], {}


@operators("Tile", kind="exact")
def tile(b, o):
    x = anything(b, o, rank=(1, 4))
    repeats = [b.r.choice([1, 1, 2, 3, 0] if b.r.random() < 0.1 else [1, 1, 2, 3]) for _ in x.shape]
    if size_of(repeats) * x.size > LARGE:
        raise Skip("large")
    return [x, b.ints(repeats)], {}


@operators("Pad", kind="exact", liked=2)
def pad(b, o):
    x = anything(b, o, rank=(1, 4), least=1)
    r = b.r
    mode = r.choice(["constant", "constant", "reflect", "edge"] + (["wrap"] if o.since >= 19 else []))
    axes = some_axes(b, x.rank) if o.since >= 18 and r.random() < 0.4 else None
    places = [k % x.rank for k in axes] if axes else range(x.rank)

    def width(k):
        most = x.shape[k] - 1 if mode in ("reflect", "wrap") else 3
        return r.randint(-1 if mode == "constant" and x.shape[k] > 2 else 0, max(0, min(3, most)))

    pads = [width(k) for k in places] + [width(k) for k in places]
    if mode != "constant" and r.random() < 0.15:  # negative pads only
        pads = [-r.randint(0, (x.shape[k] - 1) // 2) for _ in range(2) for k in places]
    if o.has("pads"):
        return [x], {"pads": pads, "mode": mode, "value": r.choice([None, 1.5]) if mode == "constant" else None}
    value = None
    if mode == "constant" and r.random() < 0.6:
        value = b.fresh(draw_array(r, x.type, (), 0, 1), constant=r.random() < 0.7)
    return [x, b.ints(pads), value, b.ints(axes, o.type("Tind")) if axes else None], {"mode": mode}


def indices(b, type, shape, size, negative=True):
    """Returns a value of indices in [-size, size)."""
    return b.tensor(
        type, shape=shape, lo=-size if negative and b.r.random() < 0.4 else 0, hi=size - 1, exact=True, least=0
    )


@operators("Gather", kind="exact", liked=2)
def gather(b, o):
    x = anything(b, o, rank=(1, 3), least=1)
    axis = b.r.randrange(x.rank)
    i = b.tensor(
        o.type("Tind"),
        rank=(0, 2),
        lo=-x.shape[axis] if o.since >= 11 and b.r.random() < 0.4 else 0,
        hi=x.shape[axis] - 1,
        exact=True,
        least=0,
    )
    return [x, i], {"axis": axis - x.rank if b.r.random() < 0.3 else axis}


@operators("GatherElements", kind="exact")
def gather_elements(b, o):
    x = anything(b, o, rank=(1, 4), least=1)
    axis = b.r.randrange(x.rank)
    shape = tuple(b.dim() if k == axis else b.r.randint(1, d) for k, d in enumerate(x.shape))
    return [x, indices(b, o.type("Tind"), shape, x.shape[axis])], {
        "axis": axis - x.rank if b.r.random() < 0.3 else axis
    }


def nd_indices(b, shape, batch, depth, outer, unique):
    """Returns index tuples in range, int64; unique ones if the order of updates would matter."""
    bounds = shape[batch : batch + depth]
    n = size_of(outer)
    total = size_of(bounds)
    if unique:
        if n > total:
            raise Skip("too few places")
        flat = b.r.sample(range(total), n)
    else:
        flat = [b.r.randrange(total) for _ in range(n)]
    places = np.stack(np.unravel_index(np.array(flat, np.int64), bounds), -1) if n else np.zeros((0, depth))
    places = places.reshape(tuple(outer) + (depth,)).astype(np.int64)
    if b.r.random() < 0.3:
        places = np.where(np.arange(depth) == b.r.randrange(depth), places - np.array(bounds), places)
    return places


@operators("GatherND", kind="exact")
def gather_nd(b, o):
    x = anything(b, o, rank=(1, 4), least=1)
    batch = b.r.randint(0, x.rank - 1) if o.has("batch_dims") and b.r.random() < 0.5 else 0
    depth = b.r.randint(1, x.rank - batch)
    outer = x.shape[:batch] + b.shape((0, 2))
    if batch == len(outer):
        outer += (b.dim(),) if b.r.random() < 0.5 else ()
    i = b.fresh(nd_indices(b, x.shape, batch, depth, outer, False))
    return [x, i], {"batch_dims": batch or None} if o.has("batch_dims") else {}


@operators("ScatterND", kind="exact")
def scatter_nd(b, o):
    reduction = b.r.choice(
        [None, "none", "add", "mul", "max", "min"][: 2 if o.since < 16 else 4 if o.since < 18 else 6]
    )
    t = o.type("T", rows.INTS + rows.FLOATS if reduction in ("add", "mul", "max", "min") else None)
    x = b.tensor(t, rank=(1, 4), least=1)
    depth = b.r.randint(1, x.rank)
    outer = b.shape((0, 2))
    places = nd_indices(b, x.shape, 0, depth, outer, reduction in (None, "none"))
    updates = b.tensor(t, shape=tuple(outer) + x.shape[depth:], least=0)
    return (
        [x, b.fresh(places), updates],
        {"reduction": reduction},
        1,
        "exact" if reduction not in ("add", "mul") else "sum" if reduction == "add" else "round",
    )


@operators("ScatterElements Scatter", kind="exact")
def scatter_elements(b, o):
    reduction = None
    if o.has("reduction"):
        reduction = b.r.choice([None, "none", "add", "mul", "max", "min"][: 4 if o.since < 18 else 6])
    t = o.type("T", rows.INTS + rows.FLOATS if reduction in ("add", "mul", "max", "min") else None)
    x = b.tensor(t, rank=(1, 3), least=1)
    axis = b.r.randrange(x.rank)
    shape = tuple(b.r.randint(1, d) for d in x.shape)
    unique = reduction in (None, "none")
    g = np.random.Generator(np.random.PCG64(b.r.getrandbits(64)))
    keys = g.random(shape[:axis] + (x.shape[axis],) + shape[axis + 1 :])
    places = (
        np.take(np.argsort(keys, axis), range(shape[axis]), axis)
        if unique
        else g.integers(0, x.shape[axis], shape)
    )
    if b.r.random() < 0.3 and o.name != "Scatter":
        places = places - x.shape[axis]
    i = b.fresh(places.astype(rows.NP[o.type("Tind")]))
    updates = b.tensor(t, shape=shape)
    return (
        [x, i, updates],
        {"reduction": reduction, "axis": axis - x.rank if b.r.random() < 0.3 else axis},
        1,
        "exact" if reduction not in ("add", "mul") else "sum" if reduction == "add" else "round",
    )


@operators("TensorScatter", kind="exact")
def tensor_scatter(b, o):
    t = o.type("T")
    x = b.tensor(t, rank=(3, 4), least=2)
    axis = b.r.randrange(1, x.rank)
    n = b.r.randint(1, x.shape[axis])
    updates = b.tensor(t, shape=x.shape[:axis] + (n,) + x.shape[axis + 1 :])
    mode = b.r.choice([None, "linear", "circular"])
    most = x.shape[axis] - (n if mode != "circular" else 1)
    at = b.tensor("int64", shape=(x.shape[0],), lo=0, hi=most, exact=True) if b.r.random() < 0.8 else None
    return [x, updates, at], {"axis": axis - x.rank if b.r.random() < 0.5 else axis, "mode": mode}


@operators("DepthToSpace SpaceToDepth", kind="exact")
def blocks(b, o):
    n = b.r.choice([1, 2, 2, 3])
    s = [b.r.randint(1, 2), b.r.randint(1, 3), b.r.randint(1, 4), b.r.randint(1, 4)]
    if o.name == "DepthToSpace":
        s[1] *= n * n
    else:
        s[2] *= n
        s[3] *= n
    return [b.tensor(o.type("T"), shape=tuple(s))], {
        "blocksize": n,
        "mode": b.r.choice([None, "DCR", "CRD"]) if o.has("mode") else None,
    }


@operators("ReverseSequence", kind="exact")
def reverse_sequence(b, o):
    x = anything(b, o, rank=(2, 4), least=1)
    batch = b.r.choice([0, 1])
    n = b.tensor("int64", shape=(x.shape[batch],), lo=1, hi=x.shape[1 - batch], exact=True)
    return [x, n], {"batch_axis": batch, "time_axis": 1 - batch}


@operators("Trilu", kind="exact")
def trilu(b, o):
    x = anything(b, o, rank=(2, 4))
    k = (
        b.fresh(np.array(b.r.randint(-4, 4), np.int64), constant=b.r.random() < 0.8)
        if b.r.random() < 0.6
        else None
    )
    return [x, k], {"upper": b.r.choice([None, 0, 1])}


@operators("CenterCropPad", kind="exact")
def center_crop_pad(b, o):
    x = anything(b, o, rank=(1, 4), least=1)
    axes = some_axes(b, x.rank) if b.r.random() < 0.6 else None
    n = len(axes) if axes else x.rank
    return [x, b.ints([b.r.randint(1, 9) for _ in range(n)], o.type("Tind"))], {"axes": axes}


@operators("OneHot", kind="exact")
def one_hot(b, o):
    i, d, t = (
        o.type("T1"),
        o.type("T2"),
        o.type("T3"),
    )
    depth = b.r.randint(1, 6)
    x = b.tensor(
        i,
        rank=(0, 3),
        lo=0 if i.startswith("u") else -depth,
        hi=depth - 1,
        exact=True,
        least=0,
        new=lambda s: np.random.Generator(np.random.PCG64(b.r.getrandbits(64)))
        .integers(0, depth, s)
        .astype(rows.NP[i]),
    )
    if rows.is_float(i) and not np.array_equal(x.array, np.round(x.array)):
        raise Skip("no whole numbers")
    n = b.fresh(
        np.array(depth if b.r.random() < 0.5 else [depth]).astype(rows.NP[d]), constant=b.r.random() < 0.8
    )
    return [x, n, b.tensor(t, shape=(2,), exact=True)], {
        "axis": b.r.choice([None, b.r.randint(-x.rank - 1, x.rank)])
    }


@operators("EyeLike", kind="shape")
def eye_like(b, o):
    t = o.type("T2")
    return [anything(b, o, rank=2, variable="T1")], {
        "dtype": rows.CODE_OF_NP[rows.NP[t]] if b.r.random() < 0.8 else None,
        "k": b.r.choice([None, 0, 1, -1, 3]),
    }


@operators("Shape Size", kind="shape")
def shape(b, o):
    x = anything(b, o)
    if o.has("start") and b.r.random() < 0.6:
        return [x], {
            "start": b.r.randint(-x.rank - 1, x.rank + 1),
            "end": b.r.choice([None, b.r.randint(-x.rank, x.rank + 1)]),
        }
    return [x], {}


@operators("ConstantOfShape", kind="step")
def constant_of_shape(b, o):
    from onnx import numpy_helper

    t = o.type("T2")
    value = numpy_helper.from_array(draw_array(b.r, t, (1,))) if b.r.random() < 0.8 or t != "float" else None
    return [b.ints(b.shape((0, 3)))], {"value": value}


@operators("Constant", kind="step")
def constant(b, o):
    from onnx import numpy_helper

    if o.has("value_ints") and b.r.random() < 0.3:
        name, value = b.r.choice(
            [("value_float", 1.5), ("value_floats", [1.5, -2.0]), ("value_int", 3), ("value_ints", [1, 2, 3])]
        )
        return [], {name: value}
    return [], {"value": numpy_helper.from_array(draw_array(b.r, o.type("T"), b.shape((0, 3))))}


@operators("Range", kind="step")
def range_(b, o):
    t = o.type("T")
    start, step, n = b.r.randint(-5, 5), b.r.choice([1, 2, 3, -1, -2]), b.r.randint(0, 9)
    whole = [start, start + step * n, step]
    if rows.is_float(t):
        whole = [k * 0.5 for k in whole]
    return [b.fresh(np.array(k).astype(rows.NP[t]), constant=b.r.random() < 0.9) for k in whole], {}


@operators("TopK", kind="step")
def top_k(b, o):
    x = anything(b, o, rank=(1, 4), least=1, exact=True)
    axis = b.r.randrange(x.rank)
    k = b.r.randint(1, x.shape[axis])
    attributes = {"axis": axis - x.rank if o.since >= 11 and b.r.random() < 0.3 else axis}
    if o.has("k"):
        return [x], {**attributes, "k": k}, 2
    if o.has("largest"):
        attributes.update(largest=b.r.choice([None, 0, 1]))
    return [x, b.ints([k])], attributes, 2


def sized(b, t, shape, lo=None, hi=None):
    """Returns a value on which a size depends: any value, or a constant if the graph may only have sizes that are known during the
    import."""
    if b.root.open_sizes:
        return b.tensor(t, shape=shape, exact=True)
    return b.fresh(draw_array(b.r, t, shape, lo, hi), constant=True)


@operators("NonZero Unique Compress", kind="step")
def data_sizes(b, o):
    t = o.type("T")
    x = sized(b, t, b.shape((1, 3)), 0 if t.startswith("u") else -2, 2)
    if o.name == "Unique":
        axis = b.r.choice([None] + list(range(-x.rank, x.rank)))
        return [x], {"axis": axis, "sorted": b.r.choice([None, 0, 1])}, b.r.choice([1, 2, 3, 4])
    if o.name == "NonZero":
        return [x], {}
    axis = some_axis(b, x.rank) if b.root.sizes else b.r.choice([None, some_axis(b, x.rank)])
    n = x.size if axis is None else b.root.sizes.least(x, axis) if b.root.sizes else x.shape[axis]
    if n == 0:
        raise Skip("nothing to choose from")
    # Without an axis, a condition of the input's shape is flattened as the input is.
    chosen = sized(b, "bool", x.shape if axis is None and b.r.random() < 0.3 else (b.r.randint(1, n),))
    return [x, chosen], {"axis": axis}
