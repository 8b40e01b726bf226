"""idioms/decisions.py: decisions that depend on the sizes of arrays, as in scripted models: if x.shape[0] == 1, if past.shape[2] == 0."""

import numpy as np

from idioms import idiom
from registry import EXACT


def asked(k, x):
    """Returns a bool[1] that says whether a dimension of x is equal to a number or at most that.  The number is mostly one that the
    dimension has at some of the graph's sizes, so that the answers differ."""
    axis = k.r.randrange(x.rank)
    elsewhere = k.b.sizes.at(x, axis) if k.b.sizes else ()
    size = k.r.choice([x.shape[axis], 0, 1, *elsewhere, *elsewhere])
    n = k.Gather(k.Shape(x), k.const(np.array([axis])), axis=0)
    operator = k.one(k.Equal, k.Equal, k.Equal, k.Less, k.Greater)
    return operator(n, k.const(np.array([size])), wild=True)


@idiom("any", 2.0, since=9)
def chosen_by_size(k, x):
    """Selects one of two arrays, by Where or by weights of 1 and 0."""
    question, y = asked(k, x), k.Neg(k.other(x))
    if k.chance(0.5):
        return k.Where(question, k.activation(x), y)
    weight = k.Cast(question, to=1 if x.type == "float" else 11, wild=True)
    return k.Add(k.Mul(x, weight, wild=True), k.Mul(y, k.Sub(1.0, weight, wild=True), wild=True))


@idiom("any", 2.0, since=9)
def scaled_by_size(k, x):
    """A factor, or a number of elements, that is different for one size."""
    question = asked(k, x)
    if k.chance(0.5):
        return k.Mul(x, k.Where(question, k.scalar(0.5, x.type), k.scalar(2.0, x.type), wild=True))
    count = k.Where(question, k.const(np.array([1])), k.const(np.array([2**31 - 1])), wild=True)
    operands = [k.const(np.array([0])), count, k.const(np.array([x.rank - 1]))]
    return k.Slice(x, *operands)


def size_of_axis(k, x, axis):
    return k.Gather(k.Shape(x), k.const(np.array([axis])), axis=0)


@idiom("any", 1.5, since=10)
def part_by_floats(k, x):
    """A part of x, whose size is computed in floats, as Paddle and TensorFlow's central_crop do."""
    axis = k.r.randrange(x.rank)
    n = k.Cast(size_of_axis(k, x, axis), to=k.one(1, 11), kind=EXACT)
    part = k.Div(n, k.one(2.0, 3.0, 7.0)) if k.chance(0.4) else k.Mul(n, k.one(0.5, 0.25, 0.75, 0.875), kind=EXACT)
    if k.chance(0.5) and part.exact:
        part = k.Add(part, k.one(0.5, 0.25, 1.0), kind=EXACT)
    end = k.Cast(k.one(k.Floor, k.Ceil)(part, kind=EXACT), to=7, kind=EXACT)
    return k.Slice(x, k.const(np.array([0])), end, k.const(np.array([axis])))


@idiom("any", 1.0, since=13)
def rolled(k, x):
    """The rows of x rolled by an offset that is a remainder of a negative number, as TensorFlow writes it."""
    axis = k.r.randrange(x.rank)
    n = size_of_axis(k, x, axis)
    at = k.Mod(k.const(np.array([-k.one(1, 2, 3, 5)])), n) if k.chance(0.6) else k.Neg(k.Div(k.Neg(n), k.const(np.array([2]))))
    axes = k.const(np.array([axis]))
    return k.concat([k.Slice(x, at, n, axes), k.Slice(x, k.const(np.array([0])), at, axes)], axis)
