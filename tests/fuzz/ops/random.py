"""ops/random.py: random operators.  All runs of the tester have the same seed.  What a node draws depends on the seed and on the node's
names, so a node draws the same numbers alone as in its graph, except in a body."""

import numpy as np

import rows
from registry import Skip, operators
from values import draw_array


def attributes_of(b, type, **more):
    if b.outer or b.root.peer:
        raise Skip("a body draws other numbers than its node alone, and so does another implementation")
    return {"seed": b.r.choice([None, 0.0, 2.5]), "dtype": rows.CODE_OF_NP[rows.NP[type]], **more}


@operators("RandomUniform", kind="shape")
def uniform(b, o):
    low = b.r.choice([None, -3.0, 0.25])
    return [], attributes_of(
        b,
        o.type("T"),
        shape=list(b.shape((1, 4))),
        low=low,
        high=None if low is None else low + b.r.choice([0.125, 5.0]),
    )


@operators("RandomUniformLike", kind="shape")
def uniform_like(b, o):
    return [b.tensor(o.type("T1"))], attributes_of(b, o.type("T2"), low=b.r.choice([None, -2.0]))


@operators("RandomNormal", ulps=16)
def normal(b, o):
    return [], attributes_of(
        b,
        o.type("T"),
        shape=list(b.shape((1, 4))),
        mean=b.r.choice([None, -1.0]),
        scale=b.r.choice([None, 0.5]),
    )


@operators("RandomNormalLike", ulps=16)
def normal_like(b, o):
    return [b.tensor(o.type("T1"), exact=True)], attributes_of(b, o.type("T2"), mean=b.r.choice([None, 2.0]))


@operators("Bernoulli", kind="step")
def bernoulli(b, o):
    x = b.tensor(o.type("T1"), lo=0, hi=1, exact=True)
    return [x], attributes_of(b, o.type("T2"))


@operators("Multinomial", kind="step")
def multinomial(b, o):
    """The operand, logarithms of the classes' weights, is a new value and so exact.  The rounding of exp matters only if a drawn number is
    next to one of the sums of weights."""
    t = o.type("T1")
    x = b.fresh(draw_array(b.r, t, (b.r.randint(1, 3), b.r.randint(1, 6)), -3, 3).astype(rows.NP[t]))
    if not np.all(np.isfinite(x.array.astype(np.float64))):
        raise Skip("no probabilities")
    return [x], attributes_of(b, o.type("T2"), sample_size=b.r.choice([None, 1, 7, 40]))
