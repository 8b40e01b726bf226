"""ort_ep.py PLUGIN DATA: ONNX Runtime with our execution provider beside ONNX Runtime alone.

One session must give the same numbers at several sizes, and the provider must take nearly all nodes, in few groups."""
import os
import sys
import tempfile

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ort_models import all_models  # noqa: E402
from ort_sessions import VERBOSE, claimed, is_early, register, session  # noqa: E402

LEAST_CLAIMED, MOST_GROUPS = 0.95, 3
TOLERANCE = 1e-4  # of the largest number: f32 summed in another order, through whole networks
LEFT_EARLY = {"silero-vad"}  # its If reads values from outside of it, see is_early


def worst_difference(want, got):
    worst = 0
    for a, b in zip(want, got):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{b.dtype}{b.shape} instead of {a.dtype}{a.shape}"
        if a.size and a.dtype.kind == "f":
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max() / max(1e-30, np.abs(a).max())))
        elif not np.array_equal(a, b):
            return "other integers"
    return worst


def check_model(m):
    alone = session(m.path, provider=False)
    ours, (taken, nodes, groups) = claimed(lambda: session(m.path, log=VERBOSE))
    worst = 0
    for feeds in m.feeds:
        far = worst_difference(alone.run(None, feeds), ours.run(None, feeds))
        if isinstance(far, str):
            return f"{m.name}: {far}"
        worst = max(worst, far)
    print(f"{m.name:12} {taken} of {nodes} nodes in {groups} groups, off by {worst:.1e} of the largest number in "
          f"{len(m.feeds)} runs", flush=True)
    if (taken < LEAST_CLAIMED * nodes or groups > MOST_GROUPS) and not (is_early() and m.name in LEFT_EARLY):
        return f"{m.name}: too few nodes, or too many groups"
    return None if worst <= TOLERANCE else f"{m.name}: numbers differ"


def main():
    register(sys.argv[1])
    print("ONNX Runtime", onnxruntime.__version__)
    with tempfile.TemporaryDirectory() as folder:
        failures = [f for f in (check_model(m) for m in all_models(sys.argv[2], folder)) if f]
    for f in failures:
        print("FAIL", f)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
