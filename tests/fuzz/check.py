"""check.py: runs a graph in all configurations and compares the outputs.

The expected outputs were computed node by node when the graph was built.  Exact values (build.py) must be
bit-equal, where all NaNs are equal, and so are -0 and 0.  Of other values each implementation may differ by the value's
error, so two may differ by twice that.  The tolerance is three times the error, since errors are measured by few trials."""

import os
import tempfile

import numpy as np

import algorithms
import peers
import xla
from values import as_wide

# The passes of the cpu's pipeline that can be left out.
PASSES = (
    "attention",
    "batch_norm",
    "cse",
    "dce",
    "transposed_convolution",
    "epilogue",
    "fold",
    "qdq_fusion",
    "layout",
    "loop_fusion",
    "dot_canonicalization",
    "transpose_sinking",
    "concat_in_place",
    "reduce_fusion",
    "gather_to_broadcast",
    "gather_to_slice",
    "row_fusion",
    "simplify",
    "lookup_tables",
)
THREADS = [(f"cpu-threads{n}", {"threads": n}) for n in (2, 3, 8)]
# Other ways to run a graph: the short matrix draws one of them, or one of `BY`, for each graph.
WAYS = THREADS + [
    ("cpu-tuned", {"tune": "fast"}),
    ("cpu-twice", {"runs": 2}),
    ("cpu-exact", {"exact": True}),
    ("cpu-lanes1", {"lanes": 1}),
    ("cpu-lanes4", {"lanes": 4}),
]
BY = "cpu-by-"  # followed by the name of a config, by which every contraction is computed that has it


# The GPU target on the emulator, and on a driver that interprets its PTX.  check_memory cannot look into a device's memory, but
# the emulator has checks of its own.
GPU = [
    ("gpu", {"backend": "gpu:host"}),
    ("gpu-threads", {"backend": "gpu:host", "threads": 3}),
    ("gpu-races", {"backend": "gpu:host", "cpu": "checked"}),
    ("gpu-ptx", {"backend": "gpu", "cpu": "sm_80"}),
]


def configurations(matrix, r):
    """Returns (name, options of a session) of the runs of a graph.  The matrix `plain` has the two targets only, `threads` only
    runs in which ThreadSanitizer can find something, and `gpu` the GPU target."""
    if matrix in ("threads", "gpu"):
        return THREADS if matrix == "threads" else GPU
    checked = {"check_memory": True}  # the WAYS are not checked: their threads and runs share memory, as those of users do
    found = [("ref", {"backend": "ref", **checked}), ("cpu", {"backend": "cpu", **checked})]
    if matrix == "plain":
        return found
    if matrix == "full":
        without = [*PASSES, ",".join(PASSES)]
        found += WAYS
    else:
        without = [",".join(sorted(r.sample(PASSES, r.choice([1, 1, 2, 4]))))]
        found += r.sample(WAYS, r.choice([0, 1, 1, 1]))
    names = [p if p != ",".join(PASSES) else "all" for p in without]
    return found + [(f"cpu-without-{name}", {"skip_passes": p, **checked}) for name, p in zip(names, without)]


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
    """Returns how an array differs from the values.Value `want`, or None."""
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


def compare(graph, outputs, values=None):
    """Returns (name, text) of the first output that is wrong, or None.  values: the expected ones, if inputs have other sizes than
    those at which the graph was built."""
    for name in graph.outputs:
        text = difference((values or graph.values)[name], outputs[name])
        if text:
            return name, text
    return None


def run_one(graph, name, arguments):
    """Runs the graph with these options, and returns a Failure or None."""
    try:
        outputs = xla.run_xla(graph.model.SerializeToString(), graph.inputs, **arguments)
    except xla.XlaError as e:
        return Failure(name, arguments, "error " + e.code, e.message)
    wrong = compare(graph, outputs)
    return Failure(name, arguments, "wrong", f"{wrong[0]}: {wrong[1]}", wrong[0]) if wrong else None


def run_saved(graph):
    """Compiles the graph, saves it, loads it and runs it; returns a Failure or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.oxla")
        try:
            xla.run_xla(graph.model.SerializeToString(), graph.inputs, save=path)
            outputs = xla.run_xla(None, graph.inputs, path=path)
        except xla.XlaError as e:
            return Failure("saved", {}, "error " + e.code, e.message)
    wrong = compare(graph, outputs)
    return Failure("saved", {}, "wrong", f"{wrong[0]}: {wrong[1]}", wrong[0]) if wrong else None


def measured(graph, folder):
    """Runs the graph by the configs that were measured to be the fastest; returns (Failure or None, lines of the log)."""
    failure = run_one(graph, "cpu-measured", {"tune": "full", "cache": folder})
    return failure, algorithms.read(folder)


def run_by(graph, lines, way):
    """Runs the graph with its contractions computed by that config."""
    with tempfile.TemporaryDirectory() as folder:
        algorithms.force(lines, way, folder)
        return run_one(graph, BY + way, {"tune": "fast", "cache": folder})


def run_algorithms(graph, matrix, r):
    """Runs the graph with each config of contractions (matrix `full`), or with one of them."""
    with tempfile.TemporaryDirectory() as folder:
        failure, lines = measured(graph, folder)
    ways = algorithms.candidates(lines)
    if matrix != "full":
        ways = r.sample(ways, min(1, len(ways)))
    return [failure] + [run_by(graph, lines, way) for way in ways]


def run_way_again(graph, way):
    """Runs the graph with the config with which another graph has failed."""
    with tempfile.TemporaryDirectory() as folder:
        lines = measured(graph, folder)[1]
    return run_by(graph, lines, way) if way in algorithms.candidates(lines) else None


def type_of(graph, names):
    return graph.values[names[0]].type if names and names[0] in graph.values else None


def run_peer(graph, inputs=None, values=None):
    """Runs the graph in ONNX Runtime; returns (Failure or None, whether it ran).  Its optimiser has faults of its own, so a
    difference counts only if there is one without the optimiser, too.  inputs, values: those at other sizes."""
    inputs = inputs or graph.inputs
    if any(
        peers.disagrees(n, type_of(graph, n.input), type_of(graph, n.output))
        for n in graph.model.graph.node
    ) or any(peers.may_disagree(n) for f in graph.model.functions for n in f.node):
        return None, False
    try:
        outputs = peers.run_ort(graph.model, inputs)
    except Exception:
        return None, False
    wrong = compare(graph, outputs, values)
    if wrong:
        try:
            wrong = compare(graph, peers.run_ort(graph.model, inputs, optimise=False), values)
        except Exception:
            return None, False
    return (
        Failure("onnxruntime", {}, "wrong", f"{wrong[0]}: it has {wrong[1]}", wrong[0]) if wrong else None
    ), True


def run_named(graph, failure):
    """Runs the graph again in the configuration of a failure."""
    if failure.configuration == "saved":
        return run_saved(graph)
    if failure.configuration == "cpu-measured":
        with tempfile.TemporaryDirectory() as folder:
            return measured(graph, folder)[0]
    if failure.configuration.startswith(BY):
        return run_way_again(graph, failure.configuration[len(BY) :])
    if failure.configuration == "onnxruntime":
        return run_peer(graph)[0]
    return run_one(graph, failure.configuration, failure.arguments)


def run_all(graph, matrix, r, with_peer, say=lambda stage: None):
    """Returns all failures, and whether the peer ran.  say: is called before the peer runs, which may crash, too."""
    if graph.way:
        failure = run_one(graph, *graph.way)
        return [failure] * bool(failure), False
    found = [run_one(graph, name, arguments) for name, arguments in configurations(matrix, r)]
    if matrix not in ("plain", "threads", "gpu"):
        found.append(run_saved(graph))
        if matrix == "full" or r.random() < 0.25:
            found += run_algorithms(graph, matrix, r)
    ran = False
    if with_peer:
        say("peer")
        failure, ran = run_peer(graph)
        found.append(failure)
    return [f for f in found if f], ran
