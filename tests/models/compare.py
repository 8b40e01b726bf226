"""compare.py: one model in onnx-xla and in ONNX Runtime without its optimiser, at each of its inputs.

How far two right implementations are apart depends on the model: a division by a small number, a softmax of large
scores, a rank that two candidates nearly share.  So the peer is run four times: as it is, with its optimiser, and twice
with inputs that are nudged by 2^-20 of each value.  The largest difference among these is the model's own doubt, but that
the optimiser does not count where it alone is over CHAOS: then it computes something else.  A value may be off by TOLERANCE
of the output's largest one (the sums of a network of float32 of depth 100 are right to about a thousand roundings of
2^-24), or by four times the doubt, as few runs tell little of it.  Where the doubt is over CHAOS, nothing would be found:
then the architecture's weights or inputs are to be mended, not the tolerance."""

import os
import sys

import numpy as np
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import xla  # noqa: E402

TOLERANCE, CHAOS = 1e-4, 1e-2


class Differs(Exception):
    """A result is wrong."""


def session(path, optimise):
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def nudged(inputs, seed):
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(v * (1 + 2.0**-20 * rng.choice([-1, 1], v.shape)), v.dtype)
        if v.dtype.kind == "f"
        else v
        for name, v in inputs.items()
    }


def distance(got, expected):
    """The largest difference, in parts of the largest expected value; infinite where shapes, types, NaN or integers
    differ."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else np.inf
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    odd = ~np.isfinite(expected)
    if not np.array_equal(got[odd], expected[odd], equal_nan=True):
        return np.inf
    if odd.all():
        return 0.0
    got, expected = got[~odd], expected[~odd]
    if not np.isfinite(got).all():
        return np.inf
    scale = np.abs(expected).max()
    return float(np.abs(got - expected).max() / scale) if scale else float(np.abs(got).max())


def doubt(value, one, two, optimised):
    """The doubt of an output, from what the peer made of it."""
    nudge, optimiser = max(distance(one, value), distance(two, value)), distance(optimised, value)
    return nudge if nudge <= CHAOS < optimiser else max(nudge, optimiser)


class PeerFails(Exception):
    """ONNX Runtime does not run the model with these inputs."""


class Peer:
    """What ONNX Runtime makes of a model and inputs."""

    def __init__(self, path, inputs, optimise):
        self.path = path
        try:
            plain = session(path, False)
            taken = {i.name for i in plain.get_inputs()}
            self.inputs = {name: value for name, value in inputs.items() if name in taken}
            self.names = [o.name for o in plain.get_outputs()]
            self.values = plain.run(self.names, self.inputs)
            moved = [plain.run(self.names, nudged(self.inputs, k)) for k in (1, 2)]
            optimised = session(path, True).run(self.names, self.inputs) if optimise else self.values
        except Exception as error:  # its classes have no common one but this
            raise PeerFails(str(error).splitlines()[0]) from error
        self.doubts = [doubt(*values) for values in zip(self.values, *moved, optimised)]

    def compare(self):
        """{"error", "allowed", "scale"}: of the output that uses most of what is allowed, and the largest value.  Raises
        Differs where that is more, and xla.XlaError where onnx-xla refuses."""
        got = xla.run_xla(None, self.inputs, path=self.path, threads=2)
        worst = {"error": 0.0, "allowed": TOLERANCE, "scale": 0.0}
        for name, value, doubt in zip(self.names, self.values, self.doubts):
            allowed = TOLERANCE + 4 * doubt
            error = distance(got[name], value)
            if not error <= allowed:
                raise Differs(f"output {name} {list(value.shape)} is off by {error:.1e}, {allowed:.1e} is allowed")
            if value.dtype.kind == "f" and np.isfinite(value).any():
                worst["scale"] = max(worst["scale"], float(np.abs(value[np.isfinite(value)]).max()))
            if error / allowed > worst["error"] / worst["allowed"]:
                worst.update(error=error, allowed=allowed)
        return worst
