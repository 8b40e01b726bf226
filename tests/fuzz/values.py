"""values.py: arrays drawn at random, and the values of a graph."""

import numpy as np

from rows import NAME_OF_NP, NP, is_float, COMPLEX, TINY_FLOATS, TINY_INTS

LARGE = 4096  # elements of a value at most
WILD = 5000.0  # elements of masks have larger magnitudes
WILD_ERROR = 2.0**-22  # the relative error of the sum of a score and a mask, which is rounded once

_RANGE = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
    "uint2": (0, 3),
}


def type_range(name):
    return _RANGE[name]


def size_of(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def draw_array(r, name, shape, lo=None, hi=None):
    """Returns a random array of that type; its numbers are moderate, so that sums and products of a few are finite."""
    g = np.random.Generator(np.random.PCG64(r.getrandbits(64)))
    if name == "bool":
        return g.integers(0, 2, shape).astype(bool)
    if name in COMPLEX:
        return (g.uniform(-4, 4, shape) + 1j * g.uniform(-4, 4, shape)).astype(NP[name])
    if is_float(name):
        return _draw_float(r, g, name, shape, lo, hi)
    least, most = _RANGE[name]
    lo = max(least, -100 if lo is None else int(np.ceil(lo)))
    hi = min(most, 100 if hi is None else int(np.floor(hi)))
    if (
        name not in TINY_INTS
        and lo == max(least, -100)
        and hi == min(most, 100)
        and r.random() < (0.5 if name == "uint8" else 0.15)
    ):
        lo, hi = least, most
    return g.integers(
        lo, max(lo, hi), shape, dtype=np.uint64 if name == "uint64" else np.int64, endpoint=True
    ).astype(NP[name])


def _draw_float(r, g, name, shape, lo, hi):
    lo = -4 if lo is None else lo
    hi = 4 if hi is None else hi
    if name == "float8e8m0":
        exponents = g.integers(
            int(np.ceil(np.log2(max(lo, 0.25)))), int(np.floor(np.log2(max(hi, 0.5)))), shape, endpoint=True
        )
        return np.exp2(exponents.astype(np.float64)).astype(NP[name])
    x = g.uniform(lo, hi, shape)
    if r.random() < 0.2 and hi - lo > 3:  # multiples of 1/2, so that there are ties
        x = np.clip(np.round(x * 2) / 2, lo, hi)
    y = (
        x.astype(np.float32).astype(NP[name])
        if name in TINY_FLOATS or name == "bfloat16"
        else x.astype(NP[name])
    )
    wide = y.astype(np.float64)  # rounding may have left the range
    middle = np.asarray((lo + hi) / 2, np.float32).astype(NP[name])
    return np.where((wide < lo) | (wide > hi), middle, y).astype(NP[name])


def as_wide(array):
    """Returns the array in a type in which the tester computes: float64 or complex128."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    return array.astype(np.float32).astype(np.float64) if array.dtype.itemsize < 4 else array.astype(np.float64)


class Value:
    """A tensor of the graph.  exact: every implementation must give the same bits; otherwise implementations may differ by
    `error`."""

    __slots__ = (
        "name",
        "array",
        "exact",
        "error",
        "constant",
        "uses",
        "low",
        "high",
        "varying",
        "finite",
        "static",
        "relative",
        "wild",
    )

    def __init__(self, name, array, exact=True, error=0.0, constant=False, varying=False, static=True, wild=False):
        self.name, self.array, self.exact, self.error, self.constant, self.uses = (
            name,
            array,
            exact,
            error,
            constant,
            0,
        )
        self.varying = varying  # whether it changes with each iteration of a body; `array` is from the first one
        self.static = (
            static and not varying
        )  # known when the graph is imported: computed from constants, inputs and shapes
        self.wild = wild  # whether it has elements as large as those of masks; `error` holds for the other elements
        self.relative = WILD_ERROR if wild and not exact else 0.0  # a relative error that each element has in addition
        self.finite = True
        self.low = self.high = 0.0
        if array.size and array.dtype.kind != "c":
            wide = as_wide(array)
            self.finite = bool(np.all(np.isfinite(wide)))
            self.low, self.high = (
                (float(np.nanmin(wide)), float(np.nanmax(wide))) if self.finite else (-np.inf, np.inf)
            )

    @property
    def type(self):
        return NAME_OF_NP[self.array.dtype]

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def size(self):
        return self.array.size

    def fits(self, lo, hi):
        if lo is None and hi is None or self.size == 0 and not self.varying:
            return True
        if self.varying:
            return False
        margin = 4 * self.error
        return (lo is None or self.low - margin >= lo) and (hi is None or self.high + margin <= hi)


def moderate(array):
    """Returns for each element of an array of float64 whether it is smaller than the elements of masks."""
    return np.abs(array) < WILD


def has_wild(array):
    return array.dtype.kind == "f" and not np.all(moderate(array))


def is_degenerate(array):
    """Returns whether the array has elements that are not finite, or only equal ones."""
    if array.size == 0:
        return False
    wide = as_wide(array)
    if not np.all(np.isfinite(wide)):
        return True
    return array.size > 1 and bool(np.all(wide == wide.flat[0]))
