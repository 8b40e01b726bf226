"""compare.py: compares onnx-xla with a peer, ONNX Runtime without its optimiser, on one model and one set of inputs.

How much two correct implementations differ depends on the model: it may divide by a small number, take a softmax of
large scores, or rank candidates of nearly equal scores. So the peer is run four times: as it is, with its optimiser,
and twice with inputs that are changed by 2^-20 of each value that is no whole number. The largest difference between
the first run and the others is called the doubt of an output. The run with the optimiser does not count if it alone
differs by more than CHAOS, since the optimiser then computes something else.

All differences are divided by the output's largest magnitude.  TOLERANCE + 4 doubts is allowed.  TOLERANCE: the sums of a
float32 network of depth 100 are right to about a thousand roundings of 2^-24.  Four doubts, since the doubt is estimated
from few runs.  If the doubt is more than CHAOS, the comparison would find no error: change the architecture's weights or
inputs then, not the tolerance."""

import os
import sys

import numpy as np
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import xla  # noqa: E402

TOLERANCE, CHAOS = 1e-4, 1e-2


class Differs(Exception):
    """Raised when a result of onnx-xla is wrong."""


def session(path, optimise):
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def nudged(inputs, seed):
    """Returns the inputs with small changes.  Whole numbers stay, since they may be categories or masks."""
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(np.where(v == np.round(v), v, v * (1 + 2.0**-20 * rng.choice([-1, 1], v.shape))), v.dtype)
        if v.dtype.kind == "f"
        else v
        for name, v in inputs.items()
    }


def distance(got, expected):
    """Returns the largest difference divided by the largest expected magnitude (or undivided if all expected values are 0);
    infinity if shapes, types, integers, or the places of NaN and infinities differ."""
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
    """Returns the doubt of an output.  The arguments are the peer's results: the plain run's, those of the two runs with
    changed inputs, and the optimiser's."""
    nudge, optimiser = max(distance(one, value), distance(two, value)), distance(optimised, value)
    return nudge if nudge <= CHAOS < optimiser else max(nudge, optimiser)


class PeerFails(Exception):
    """Raised when ONNX Runtime does not run the model with these inputs."""


class Peer:
    """The outputs that ONNX Runtime computes from a model and inputs, and their doubts."""

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
        except Exception as error:  # ONNX Runtime's exceptions have no other common base class
            raise PeerFails(str(error).splitlines()[0]) from error
        self.doubts = [doubt(*values) for values in zip(self.values, *moved, optimised)]

    def compare(self):
        """Runs onnx-xla and returns {"error", "allowed", "scale"}: the error and the allowed error of the output where their
        ratio is largest, and the largest magnitude of all outputs.  Raises Differs if an error is more than allowed, and
        xla.XlaError if onnx-xla refuses the model."""
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
