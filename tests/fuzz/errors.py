"""errors.py: which values are exact, and how far implementations may be apart in the others (build.py says the
idea)."""

import math
import zlib

import numpy as np

import rows
import xla
from registry import EXACT, ROUND, STEP, SUM, Skip
from rows import is_inexact
from values import as_wide, moderate, size_of


CONTRACTIONS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum")
MANY = 256  # elements, among which some were moved about as badly as can be
NOTABLE = 1e-4  # errors of so much of the largest number are looked at again
TRIES = 2  # computations with other roundings all the way
SAFETY = 16  # how much more may happen than in the worst of them


def check_exact(b, kind, operands):
    if kind == STEP and any(not v.exact for v in operands):
        raise Skip("a step of inexact values")


def check_integers(b, kind, operands, outputs):
    """Integers made of rounded numbers could differ by one anywhere; Shape and Size do not look at
    numbers."""
    inexact = any(not v.exact for v in operands)
    if (
        inexact
        and kind != "shape"
        and any(a.dtype.kind in "iub" or a.dtype.name.startswith(("int", "uint")) for a in outputs)
    ):
        raise Skip("an integer of inexact values")


def errors_of(b, schema, entry, node, kind, ulps, inputs, operands, outputs):
    """For each output None (exact) or the error it may have."""
    rounding = kind in (ROUND, SUM)
    if kind in (EXACT, STEP, "shape"):
        worst = max((v.error for v in operands if not v.exact), default=None)
        found = [worst if is_inexact(rows.NAME_OF_NP[a.dtype]) else None for a in outputs]
        remember(b, node, operands, [0.0] * len(outputs), found)
        return found
    if all(v.exact for v in operands) and not rounding:
        return [None] * len(outputs)
    floats = [is_inexact(rows.NAME_OF_NP[a.dtype]) for a in outputs]
    if not any(floats):
        return [None] * len(outputs)
    moves = carried(b, node, operands, outputs)
    sizes = scales(b, node, kind, operands, outputs)
    precisions = [precision_of(schema, entry, a, operands) if isf else 0.0 for a, isf in zip(outputs, floats)]
    # Of 16 bits and less: most implementations compute in f32 and round once.
    own = [
        (ulps if p < 1e-4 else 1 + ulps / 16) * p * max(scale, entry.unit) for p, scale in zip(precisions, sizes)
    ]
    found = [moved + o if isf else None for moved, o, isf in zip(moves, own, floats)]
    remember(b, node, operands, own, found)
    found = tightened(b, node, operands, outputs, own, found)
    for a, p, error in zip(outputs, precisions, found):
        limit = 0.05 if p < 1e-4 else 0.2
        if error is not None and a.size and not (error <= limit * max(1e-3, largest_of(a, operands))):
            raise Skip("errors grow too large")
    return found


def precision_of(schema, entry, a, operands):
    types = [rows.NAME_OF_NP[a.dtype]] + [
        v.type for v in operands if is_inexact(v.type) and v.type not in rows.TINY_FLOATS
    ]
    if entry.inner or "stash_type" in schema.attributes:
        types.append(entry.inner or "float")  # what they compute in, of doubles too
    return max(rows.eps(t) for t in types)


# --- other roundings all the way ---


class Making:
    """How values came to be, so that they can be computed again, each operation with roundings of its own."""

    def __init__(self, b, node, operands, own):
        self.b, self.node, self.operands, self.own = b, node, operands, own
        self.tries = {}

    def again(self, number):
        """The outputs in one of the tries."""
        if number not in self.tries:
            g = np.random.Generator(np.random.PCG64([number, zlib.crc32(self.node.output[0].encode())]))
            arrays = [v.array if v.exact else another(self.b, v, number, g) for v in self.operands]
            out = recompute(self.b, self.node, self.operands, arrays)
            self.tries[number] = [nudged(a, own, number, g) for a, own in zip(out, self.own)]
        return self.tries[number]


def remember(b, node, operands, own, found):
    """Bodies are left out: what they compute changes from round to round."""
    if b.outer is None and any(e is not None for e in found):
        making = Making(b, node, operands, own)
        b.root.makings.update({name: (making, k) for k, name in enumerate(node.output)})


def another(b, v, number, g):
    """The value in one of the tries; off by its error where nobody knows how it came to be."""
    making, k = b.root.makings.get(v.name, (None, 0))
    return making.again(number)[k] if making else nudged(v.array, v.error, number, g)


def this_way_or_that(g, shape):
    """A sign for each element, half of them of each kind: two of one sign would leave alone what depends on their difference."""
    signs = np.where(np.arange(size_of(shape)) % 2, -1.0, 1.0) * g.choice([-1.0, 1.0])
    return g.permutation(signs).reshape(shape)


def nudged(a, far, number, g):
    """Each element moved by `far` this way or that, or all one way, as sums of the former may come to nothing."""
    wide = as_wide(a)
    way = this_way_or_that(g, a.shape if number % 2 else ())
    return np.where(moderate(wide), wide + far * way, wide).astype(a.dtype) if far else a


def tightened(b, node, operands, outputs, own, found):
    """The errors, less where they came out large.  They hold for the worst at every step, one after the other,
    which in long chains is thousands of times what roundings do: there several times as much as what other
    roundings did is enough (verify/compare.h measures so, too), but never less than the node's own rounding: of one element in
    16 bits, or of the difference of equal values, the tries often come to the same number."""
    least = [NOTABLE * max(1e-3, largest_of(a, operands)) for a in outputs]
    notable = [e is not None and e > n for e, n in zip(found, least)]
    making, _ = b.root.makings.get(node.output[0], (None, 0))
    if not making or not any(notable):
        return found
    try:
        tries = [making.again(number) for number in range(TRIES)]
        far = [max(distance_of_try(a, t[k], operands) for t in tries) for k, a in enumerate(outputs)]
    except Skip:
        return found
    return [min(e, max(SAFETY * d, o)) if n else e for e, d, o, n in zip(found, far, own, notable)]


def distance_of_try(a, now, operands):
    if a.shape != now.shape or np.any(np.isfinite(as_wide(a)) & ~np.isfinite(as_wide(now))):
        raise Skip("not for moved operands")
    return distance(a, now, operands)


# --- one step ---


def recompute(b, node, operands, arrays):
    model = b.one_node(node, operands)
    try:
        out = xla.run_xla(
            model.SerializeToString(), {v.name: x for v, x in zip(operands, arrays)}, backend="ref"
        )
    except xla.XlaError:
        raise Skip("not for moved operands") from None
    return [out[n] for n in node.output]


def moved_by(v, far):
    """The value's array with its elements moved, but for those of masks, which are not off by `error`."""
    wide = as_wide(v.array)
    return (np.where(moderate(wide), wide + far, wide) if v.wild else wide + far).astype(v.array.dtype)


def counted(a, operands):
    """The array in float64, with 0 for what a mask among the operands made large."""
    wide = as_wide(a)
    return np.where(moderate(wide), wide, 0.0) if any(v.wild for v in operands) else wide


def distance(a, now, operands):
    """The largest difference that is finite."""
    far = np.abs(counted(a, operands) - counted(now, operands))
    return float(np.max(far[np.isfinite(far)], initial=0))


def largest_of(a, operands):
    return float(np.max(np.abs(counted(a, operands)), initial=0))


def carried(b, node, operands, outputs):
    """How far outputs move when operands move by their errors: once each element this way or that, then all elements of
    an operand one way, since of a sum the former may come to nothing.  Every other operand turns between the two, so
    that two of one element do not cancel both times."""
    if all(v.exact for v in operands):
        return [0.0] * len(outputs)
    g = np.random.Generator(np.random.PCG64(b.r.getrandbits(64)))
    worst = [0.0] * len(outputs)
    signs = [this_way_or_that(g, v.shape) for v in operands]
    ways = [np.sign(s.flat[0]) * (-1.0 if k % 2 else 1.0) if s.size else 1.0 for k, s in enumerate(signs)]
    for moves in (signs, ways):
        arrays = [
            v.array if v.exact else moved_by(v, v.error * move) for v, move in zip(operands, moves)
        ]
        moved = recompute(b, node, operands, arrays)
        for k, (a, now) in enumerate(zip(outputs, moved)):
            if a.shape != now.shape:
                raise Skip("a size of inexact values")
            if a.size and is_inexact(rows.NAME_OF_NP[a.dtype]):
                more = 1.25 if a.size >= MANY else 2.0  # the worst direction is less likely to be met by few
                worst[k] = max(worst[k], more * distance(a, now, operands))
    return worst


def terms_of(b, node, operands, outputs):
    """How many numbers one of the results is the sum of, as far as that matters: of a contraction at most 1000, of what
    sums up rows their length, where some implementations add one number after the other."""
    most = max([v.size for v in operands] + [1])
    row = most // max(1, outputs[0].size)
    if node.op_type in ("Softmax", "LogSoftmax"):
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if b.opset >= 13 else 1)
        shape = operands[0].shape
        row = size_of(shape[axis:]) if b.opset < 13 else shape[axis]
    return max(min(most, 1000), row if node.op_type not in CONTRACTIONS else 1)


def scales(b, node, kind, operands, outputs):
    """What roundings are relative to: the largest number; for sums that of the terms' absolute values, and
    there are as many roundings as terms (their square root, as they do not all go one way)."""
    largest = [largest_of(a, operands) for a in outputs]
    if kind != SUM:
        return largest
    arrays = [
        np.abs(as_wide(v.array)).astype(v.array.dtype) if is_inexact(v.type) else v.array for v in operands
    ]
    try:
        sums = recompute(b, node, operands, arrays)
        absolute = [
            largest_of(a, operands) if np.all(np.isfinite(as_wide(a))) else 0.0
            for a in sums
        ]
    except Skip:
        absolute = largest
    terms = terms_of(b, node, operands, outputs)
    return [max(x, y) * (1 + math.sqrt(terms) / 4) for x, y in zip(largest, absolute)]
