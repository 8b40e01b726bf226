"""idioms/updates.py: parts of an array that are read or written by index, as torch exports x[:, 1:, ::2] += y:
the indices are ranges, sliced, broadcast and joined, one number for each dimension of each element."""

import numpy as np

from idioms import MOST, idiom


def some_part(k, n):
    """Returns start, end and step of a part of n elements."""
    return k.one(
        (0, n, 1),
        (0, n, 1),
        (1, n, 1),
        (0, n - 1, 1),
        (n // 3, n - n // 4, 1),
        (0, n, 2),
        (1, n, 3),
        (n // 2, n // 2 + 1, 1),
    )


def numbers_along(k, x, axis, part):
    """Returns the indices of a part of an axis: a Slice of 0, 1, ... up to the size of x."""
    n = x.shape[axis]
    end = k.const(np.array(n))
    if k.chance(0.6):
        end = k.Gather(k.Shape(x), k.const(np.array(axis)), axis=0)
    start, stop, step = part
    y = k.Range(k.const(np.array(0)), end, k.const(np.array(1)))
    if part != (0, n, 1):
        y = k.slice(y, 0, start, stop if stop < n else 2**63 - 1, step)
    if k.chance(0.2):  # from the end
        y = k.Sub(y, k.const(np.array(n)))
    if k.chance(0.1):
        y = k.Slice(y, *[k.const(np.array([v])) for v in (-1, -(2**63), 0, -1)])
    return y


def indices_of(k, x, parts):
    """Returns the index vectors of all elements of the part, for the leading dimensions."""
    rank = len(parts)
    lines = [k.reshape(numbers_along(k, x, d, p), (-1,) + (1,) * (rank - 1 - d)) for d, p in enumerate(parts)]
    shape = [line.shape[0] for line in lines]
    k.need(rank * int(np.prod(shape)) <= MOST)
    if k.chance(0.5):
        total = lines[0]
        for line in lines[1:]:
            total = k.Add(total, line)
        sizes = k.Shape(total)
        spread = [k.Expand(line, sizes) for line in lines]
    else:
        spread = [k.expand(line, shape) for line in lines]
    return k.concat([k.Unsqueeze(v, axes=[rank]) for v in spread], -1)


def part_of(k, x, parts):
    for d, part in enumerate(parts):
        if part != (0, x.shape[d], 1):
            x = k.slice(x, d, *part)
    return x


def choose_parts(k, x):
    rank = x.rank if k.chance(0.7) else k.r.randint(1, x.rank)
    parts = [some_part(k, n) for n in x.shape[:rank]]
    k.need(all(len(range(*p)) > 0 for p in parts))
    return parts


@idiom("any", 1.5, since=13)
def updated_part(k, x):
    """x[part] op= y, or x[part] = y; the assignment is written twice, as torch exports it."""
    parts = choose_parts(k, x)
    old = part_of(k, x, parts)
    indices = indices_of(k, x, parts)
    y = k.other(old) if k.chance(0.7) else k.vector(0, 0.5, (1,) * (old.rank - 1) + old.shape[-1:])
    if k.chance(0.25) and k.b.opset >= 16:
        y = k.expand(y, old.shape)
        reduction = k.one(*("add", "mul", "max", "min")[: 4 if k.b.opset >= 18 else 2])
        kind = {"add": "sum", "mul": "round"}.get(reduction, "exact")
        return k.ScatterND(x, indices, y, reduction=reduction, kind=kind)
    new = k.one(k.Add, k.Add, k.Sub, k.Mul, k.Max)(old, y) if k.chance(0.85) else k.expand(y, old.shape)
    z = k.ScatterND(x, indices, new)
    return k.ScatterND(z, indices, new) if k.chance(0.4) else z


@idiom("heads", 1.0, since=13)
def scores_with_positions(k, q):
    """MViT: attention where positions are added to all scores but those of the class token, the first row and column."""
    n, heads, steps, width = q.shape
    k.need(steps > 2 and n * heads * steps * steps * 4 <= MOST)
    scores = k.matmul(q, k.swap(k.other(q)))
    parts = [(0, n, 1), (0, heads, 1), (1, steps, 1), (1, steps, 1)]
    old = part_of(k, scores, parts)
    bias = k.matmul(part_of(k, q, parts[:3]), k.weights((width, steps - 1), width))
    z = k.ScatterND(scores, indices_of(k, scores, parts), k.Add(old, bias))
    return k.matmul(k.Softmax(z, axis=-1), k.other(q))


@idiom("any", 1.0, since=13)
def picked_part(k, x):
    """x[part] by GatherND, or by a Gather along each axis."""
    parts = choose_parts(k, x)
    if k.chance(0.6):
        return k.GatherND(x, indices_of(k, x, parts))
    for d, part in enumerate(parts):
        x = k.Gather(x, numbers_along(k, x, d, part), axis=d)
    return x


@idiom("any", 1.0, since=13)
def elements_at_expanded_indices(k, x):
    """gather and scatter_add of graph networks and detectors: one index for each row, expanded to all elements of the row."""
    k.need(x.rank >= 1 and 0 < x.size)
    axis = k.r.randrange(x.rank)
    n = x.shape[axis]
    count = k.r.randint(1, n)
    listed = [d == axis or k.chance(0.2) for d in range(x.rank)]  # the dimensions along which indices differ
    shape = [count if d == axis else size if listed[d] else 1 for d, size in enumerate(x.shape)]
    keys = np.random.Generator(np.random.PCG64(k.r.getrandbits(64))).random([n if d == axis else s for d, s in enumerate(shape)])
    places = np.take(np.argsort(keys, axis), range(count), axis)
    y = k.other(k.slice(x, axis, 0, count))
    reduction = k.one(None, "add", *(("max", "min") if k.b.opset >= 18 else ())) if k.b.opset >= 16 else None
    if reduction and k.chance(0.7):
        places = places // 2  # several updates of an element
    indices = k.Expand(k.b.fresh((places - n * k.chance(0.3)).astype(np.int64), fixed=True), k.Shape(y))
    if k.chance(0.4):
        return k.GatherElements(x, indices, axis=axis)
    more = {"reduction": reduction, "kind": "sum" if reduction == "add" else "exact"} if reduction else {}
    return k.ScatterElements(x, indices, y, axis=axis, **more)
