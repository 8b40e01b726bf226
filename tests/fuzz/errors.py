"""errors.py: which values are exact, and by how much implementations may differ in the others (build.py explains the
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
MANY = 256  # elements: among so many, some were changed in about the worst way
NOTABLE = 1e-4  # an error above this part of the largest number is measured again (tightened)
TRIES = 2  # how often a value is computed again with other roundings in all operations
SAFETY = 16  # the error is at most this multiple of the largest change in these tries


def check_exact(b, kind, operands):
    if kind == STEP and any(not v.exact for v in operands):
        raise Skip("a step of inexact values")


def check_integers(b, kind, operands, outputs):
    """Raises Skip for integers that are computed from rounded numbers, since any of them could differ by one.  Results of Shape and
    Size do not depend on numbers."""
    inexact = any(not v.exact for v in operands)
    if (
        inexact
        and kind != "shape"
        and any(a.dtype.kind in "iub" or a.dtype.name.startswith(("int", "uint")) for a in outputs)
    ):
        raise Skip("an integer of inexact values")


def errors_of(b, schema, entry, node, kind, ulps, inputs, operands, outputs):
    """Returns for each output None if it is exact, or the error that it may have."""
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
    # For types of 16 bits and less most implementations compute in f32 and round once.
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
        types.append(entry.inner or "float")  # the type in which such operators compute, even for doubles
    return max(rows.eps(t) for t in types)


# --- values that are computed again, with other roundings in all operations ---


class Making:
    """How the outputs of a node were computed, so that they can be computed again with other roundings in all operations before
    them."""

    def __init__(self, b, node, operands, own):
        self.b, self.node, self.operands, self.own = b, node, operands, own
        self.tries = {}

    def again(self, number):
        """Returns the outputs in try number `number`."""
        if number not in self.tries:
            g = np.random.Generator(np.random.PCG64([number, zlib.crc32(self.node.output[0].encode())]))
            arrays = [v.array if v.exact else another(self.b, v, number, g) for v in self.operands]
            out = recompute(self.b, self.node, self.operands, arrays)
            self.tries[number] = [nudged(a, own, number, g) for a, own in zip(out, self.own)]
        return self.tries[number]


def remember(b, node, operands, own, found):
    """Notes how the outputs of a node were computed.  Nodes in bodies are left out, since their results differ in each iteration."""
    if b.outer is None and any(e is not None for e in found):
        making = Making(b, node, operands, own)
        b.root.makings.update({name: (making, k) for k, name in enumerate(node.output)})


def another(b, v, number, g):
    """Returns the value in try number `number`; if it is not known how it was computed, it is changed by its error."""
    making, k = b.root.makings.get(v.name, (None, 0))
    return making.again(number)[k] if making else nudged(v.array, v.error, number, g)


def this_way_or_that(g, shape):
    """Returns a sign for each element, half of them negative, so that also results that depend on differences of elements change."""
    signs = np.where(np.arange(size_of(shape)) % 2, -1.0, 1.0) * g.choice([-1.0, 1.0])
    return g.permutation(signs).reshape(shape)


def nudged(a, far, number, g):
    """Returns the array with each element changed by `far`, with random signs in one try and one sign for all in the next: in a sum
    random signs may cancel."""
    wide = as_wide(a)
    way = this_way_or_that(g, a.shape if number % 2 else ())
    return np.where(moderate(wide), wide + far * way, wide).astype(a.dtype) if far else a


def tightened(b, node, operands, outputs, own, found):
    """Returns the errors `found`, made smaller if they are large.  They assume the worst case in every operation, which in long
    chains is thousands of times what roundings do.  For large ones it is enough to take a multiple (SAFETY) of the changes
    that other roundings made (verify/compare.h does so, too), but never less than the node's own rounding: for a single
    element of 16 bits, or a difference of equal values, the tries often give the same number."""
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
    """Returns the value's array with its elements changed by `far`, except for elements as large as those of masks, for which
    `error` does not hold."""
    wide = as_wide(v.array)
    return (np.where(moderate(wide), wide + far, wide) if v.wild else wide + far).astype(v.array.dtype)


def counted(a, operands):
    """Returns the array in float64, with 0 for elements that a mask among the operands made large."""
    wide = as_wide(a)
    return np.where(moderate(wide), wide, 0.0) if any(v.wild for v in operands) else wide


def distance(a, now, operands):
    """Returns the largest finite difference of two arrays."""
    far = np.abs(counted(a, operands) - counted(now, operands))
    return float(np.max(far[np.isfinite(far)], initial=0))


def largest_of(a, operands):
    return float(np.max(np.abs(counted(a, operands)), initial=0))


def carried(b, node, operands, outputs):
    """Returns by how much outputs change if operands are changed by their errors: once with a random sign for each element, and
    once with one sign for all elements of an operand, since in a sum random signs may cancel.  In the second trial, the sign of
    every other operand is reversed, so that two operands of one element do not cancel in both trials."""
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
                more = 1.25 if a.size >= MANY else 2.0  # few elements are less likely to be changed in the worst way
                worst[k] = max(worst[k], more * distance(a, now, operands))
    return worst


def terms_of(b, node, operands, outputs):
    """Returns how many numbers a result is the sum of, for the estimate of its rounding: for a contraction at most 1000, for
    operators that sum rows the length of the row, since some implementations add one number after the other."""
    most = max([v.size for v in operands] + [1])
    row = most // max(1, outputs[0].size)
    if node.op_type in ("Softmax", "LogSoftmax"):
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1 if b.opset >= 13 else 1)
        shape = operands[0].shape
        row = size_of(shape[axis:]) if b.opset < 13 else shape[axis]
    return max(min(most, 1000), row if node.op_type not in CONTRACTIONS else 1)


def scales(b, node, kind, operands, outputs):
    """Returns the number to which roundings are relative: the largest result or, for sums, the largest sum of the terms' absolute
    values.  A sum has as many roundings as terms, of which the square root counts, since they have different signs."""
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
