"""ops/signal.py: windows and Fourier transforms."""

import numpy as np

import rows
from registry import operators


@operators("HannWindow HammingWindow BlackmanWindow", kind="round", ulps=16, inner="float", unit=1.0)
def window(b, o):
    """For integer types only an element of exactly 1, the peak, is not truncated to 0.  Hann's peak is exact, since its terms are
    1/2.  The peaks of other windows may be a little less than 1, so these get sizes that have no element at the peak."""
    t = o.type("T2")
    n, periodic = b.r.randint(2, 20), b.r.choice([None, 0, 1])
    if not rows.is_float(t) and o.name != "HannWindow":
        n = n | 1 if periodic != 0 else n & ~1
    counts = rows.NP[o.type("T1")]
    size = b.int_of_shapes(n) if b.root.sizes and counts == np.int64 and rows.is_float(t) else None
    size = b.reshape_to(size, ()) if size is not None else b.fresh(np.array(n).astype(counts), constant=True)
    return [size], {"periodic": periodic, "output_datatype": rows.CODE_OF_NP[rows.NP[t]]}


@operators("MelWeightMatrix", kind="round", ulps=256)
def mel_weight_matrix(b, o):
    """For integer types only the middles of the bands are not truncated to 0.  The frequencies may be of any floating-point type, and are
    such that no band ends next to a line of the spectrum."""
    t = o.type("T3")

    def number(n, variable):
        return b.fresh(np.array(n).astype(rows.NP[o.type(variable)]), constant=True)

    return [
        number(b.r.choice([4, 8]), "T1"),
        number(16, "T1"),
        number(8192, "T1"),
        number(0.0, "T2"),
        number(4096.0, "T2"),
    ], {"output_datatype": rows.CODE_OF_NP[rows.NP[t]]}


@operators("DFT", kind="sum", ulps=16)
def dft(b, o):
    r, t = b.r, o.type("T1")
    parts = r.choice([1, 2])
    x = b.tensor(t, shape=(r.randint(1, 2), r.choice([1, 2, 3, 4, 5, 8, 16]), r.randint(1, 3), parts))
    inverse, onesided = r.choice([(0, 0), (0, 1), (1, 0)])
    if parts == 2:
        onesided = 0
    attributes = {"inverse": inverse or None, "onesided": onesided or None}
    length = None
    if r.random() < 0.3 and not onesided:
        length = b.fresh(np.array(r.randint(1, 9)).astype(rows.NP[o.type("T2")]), constant=True)
    if o.has("axis"):
        return [x, length], {**attributes, "axis": 1}
    axis = b.ints(r.choice([1, 1, -3]), "int64", constant=True) if r.random() < 0.7 or x.shape[-2] < 2 else None
    return [x, length, axis], attributes


@operators("STFT", kind="sum", ulps=16)
def stft(b, o):
    r, t = b.r, o.type("T1")
    x = b.tensor(t, shape=(r.randint(1, 2), r.choice([16, 24]), 1))
    step = b.fresh(np.array(r.choice([2, 4, 8])).astype(rows.NP[o.type("T2")]), constant=True)
    n = r.choice([4, 8])
    frame = b.fresh(np.array(n).astype(rows.NP[o.type("T2")]), constant=True)
    taper = b.tensor(t, shape=(n,), lo=0.1, hi=1) if r.random() < 0.6 else None
    return [x, step, taper, frame], {"onesided": r.choice([None, 0, 1])}
