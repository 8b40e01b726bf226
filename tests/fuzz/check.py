"""check.py: runs a graph everywhere and compares.

What must come out was computed node by node when the graph was built.  Exact values (build.py) must be
bit-equal, NaN being NaN and -0 being 0.  Of the others each implementation may be off by the value's error, so
two may be apart by twice that; the tolerance is three times, as errors are measured in few directions."""

import os
import tempfile

import numpy as np

import peers
import xla
from values import as_wide

# The passes of the cpu's pipeline that can be left out.
PASSES = (
    "batch_norm",
    "cse",
    "dce",
    "epilogue",
    "fold",
    "layout",
    "loop_fusion",
    "motion",
    "reduce_fusion",
    "simplify",
)


def configurations(matrix, r):
    """(name, arguments of run_xla) of a graph; the short matrix draws some of them, the plain one has none but the two
    targets."""
    found = [("ref", {"backend": "ref"}), ("cpu", {"backend": "cpu"})]
    if matrix == "plain":
        return found
    if matrix == "full":
        found += [("cpu-threads", {"threads": 2}), ("cpu-tuned", {"tune": "fast"})]
        found += [("cpu-lanes1", {"lanes": 1}), ("cpu-lanes4", {"lanes": 4})]
        found += [(f"cpu-without-{p}", {"skip_passes": p}) for p in PASSES]
        found += [("cpu-without-all", {"skip_passes": ",".join(PASSES)})]
    else:
        found += [
            r.choice(
                [
                    ("cpu-threads", {"threads": 2}),
                    ("cpu-tuned", {"tune": "fast"}),
                    ("cpu-twice", {"runs": 2}),
                    ("cpu-lanes1", {"lanes": 1}),
                    ("cpu-lanes4", {"lanes": 4}),
                ]
            )
        ]
        left_out = ",".join(sorted(r.sample(PASSES, r.choice([1, 1, 2, 4]))))
        found += [(f"cpu-without-{left_out}", {"skip_passes": left_out})]
    return found


class Failure:
    def __init__(self, configuration, arguments, kind, message, output=None):
        self.configuration, self.arguments, self.kind, self.message, self.output = (
            configuration,
            arguments,
            kind,
            message,
            output,
        )

    def like(self, other):
        return other is not None and self.configuration == other.configuration and self.kind == other.kind

    def __str__(self):
        return f"{self.configuration}: {self.kind}: {self.message}"


def difference(want, got):
    """How an array differs from what a values.Value says, or None."""
    a = want.array
    if got.dtype != a.dtype or got.shape != a.shape:
        return f"{got.dtype}{list(got.shape)} instead of {a.dtype}{list(a.shape)}"
    if a.size == 0:
        return None
    x, y = (a, got) if a.dtype.kind in "iub" else (as_wide(a), as_wide(got))
    with np.errstate(invalid="ignore", over="ignore"):
        if want.exact:
            bad = ~((x == y) | ((x != x) & (y != y)))
        else:
            far = np.abs(x - y)
            bad = ~((far <= 3 * want.error + 3 * want.relative * np.abs(x)) | (x == y) | ((x != x) & (y != y)))
    if not bad.any():
        return None
    k = int(np.argmax(bad))
    allowed = "exactly" if want.exact else f"within {3 * want.error:.3g}"
    return f"{int(bad.sum())} of {a.size} differ; [{k}] is {got.flat[k]} instead of {a.flat[k]} {allowed}"


def compare(graph, outputs):
    """(name, text) of the first output that is wrong, or None."""
    for name in graph.outputs:
        text = difference(graph.values[name], outputs[name])
        if text:
            return name, text
    return None


def run_one(graph, name, arguments):
    """A Failure or None."""
    try:
        outputs = xla.run_xla(graph.model.SerializeToString(), graph.inputs, **arguments)
    except xla.XlaError as e:
        return Failure(name, arguments, "error " + e.code, e.message)
    wrong = compare(graph, outputs)
    return Failure(name, arguments, "wrong", f"{wrong[0]}: {wrong[1]}", wrong[0]) if wrong else None


def run_saved(graph):
    """Compiled, saved, loaded, run."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.oxla")
        try:
            xla.run_xla(graph.model.SerializeToString(), graph.inputs, save=path)
            outputs = xla.run_xla(None, graph.inputs, path=path)
        except xla.XlaError as e:
            return Failure("saved", {}, "error " + e.code, e.message)
    wrong = compare(graph, outputs)
    return Failure("saved", {}, "wrong", f"{wrong[0]}: {wrong[1]}", wrong[0]) if wrong else None


def type_of(graph, names):
    return graph.values[names[0]].type if names and names[0] in graph.values else None


def run_peer(graph):
    """(Failure or None, whether it ran).  ONNX Runtime's optimiser has faults of its own: what it says counts
    only if it says the same without."""
    if any(
        peers.disagrees(n, type_of(graph, n.input), type_of(graph, n.output))
        for n in graph.model.graph.node
    ) or any(peers.may_disagree(n) for f in graph.model.functions for n in f.node):
        return None, False
    try:
        outputs = peers.run_ort(graph.model, graph.inputs)
    except Exception:
        return None, False
    wrong = compare(graph, outputs)
    if wrong:
        try:
            wrong = compare(graph, peers.run_ort(graph.model, graph.inputs, optimise=False))
        except Exception:
            return None, False
    return (
        Failure("onnxruntime", {}, "wrong", f"{wrong[0]}: it has {wrong[1]}", wrong[0]) if wrong else None
    ), True


def run_named(graph, failure):
    """The configuration of a failure once more."""
    if failure.configuration == "saved":
        return run_saved(graph)
    if failure.configuration == "onnxruntime":
        return run_peer(graph)[0]
    return run_one(graph, failure.configuration, failure.arguments)


def run_all(graph, matrix, r, with_peer, say=lambda stage: None):
    """All failures, and whether the peer ran.  say: told before the peer runs, which may crash, too."""
    found = [run_one(graph, name, arguments) for name, arguments in configurations(matrix, r)]
    if matrix != "plain":
        found.append(run_saved(graph))
    ran = False
    if with_peer:
        say("peer")
        failure, ran = run_peer(graph)
        found.append(failure)
    return [f for f in found if f], ran
