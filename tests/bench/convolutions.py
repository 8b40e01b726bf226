"""Measures the time of each convolution of a model in onnx-xla (by onnx-xla profile) and in ONNX Runtime (by its profiler), and the
time of what onnx-xla runs between the convolutions."""
import json
import os
import statistics
import tempfile

import numpy as np
import onnx
import onnxruntime

import chart
from bench_models import call, read_models

MODELS = ("mobilenet-v2", "resnet50")
RUNS = 30


def ours(model, threads):
    """Returns what onnx-xla profile writes as JSON, after tuning anew."""
    program = os.path.join(os.environ["top_builddir"], "onnx-xla")
    with tempfile.TemporaryDirectory() as cache:
        return json.loads(call([program, "profile", "--json", "--cache", cache, "--threads", str(threads), "--seconds", "0.5",
                                model.path, *model.arguments()]))


def ours_by_node(profile, names):
    times = {node["name"].rsplit(": ", 1)[0]: node["median_ms"] for node in profile["nodes"]}
    return [times.get(name, 0.0) for name in names]


def profiled(model, threads):
    """Returns ONNX Runtime's convolutions: {name of the node or array after which a kernel is named: its milliseconds in each run}."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "p")
        session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
        feeds = {name: np.load(path) for name, path in model.inputs}
        for _ in range(RUNS + 3):
            session.run(None, feeds)
        with open(session.end_profiling()) as f:
            events = json.load(f)
    times = {}
    for event in events:
        if event.get("cat") == "Node" and "Conv" in event["args"].get("op_name", ""):
            written = event["name"].removesuffix("_kernel_time").removesuffix("_nchwc")
            times.setdefault(written, []).append(event["dur"] / 1e3)
    return times


def theirs_by_node(model, graph, names, threads):
    """Returns the median milliseconds of the convolutions with these names, 0 for unknown ones.  ONNX Runtime names a kernel after the
    last node that is fused into it, so its convolution is the nearest one on the way back from that node."""
    made_by = {name: node for node in graph.node for name in node.output}
    by_name = {node.name: node for node in graph.node}
    found = {}
    kernels = profiled(model, threads)
    for written in sorted(kernels, key=lambda w: getattr(made_by.get(w), "op_type", "") != "Conv"):
        wave = [made_by.get(written, by_name.get(written))]
        while wave and not any(n.op_type == "Conv" and n.name not in found for n in wave if n):
            wave = [made_by.get(name) for n in wave if n for name in n.input]
        for node in wave:
            if node and node.op_type == "Conv" and node.name not in found:
                found[node.name] = statistics.median(kernels[written][-RUNS:])
                break
    return [found.get(name, 0.0) for name in names]


def fusions(profile):
    """Returns how many convolutions are fused with what follows them, how many are not, and the labels of all other thunks."""
    thunks = profile["thunks"]
    convolutions = [t for t in thunks if t["kind"] == "cpu.convolution" or t["note"].startswith("convolution")]
    labels = {t["label"] for t in convolutions}  # one may run as several thunks
    inside = sum("fusion" in label for label in labels)
    return inside, len(labels) - inside, [t["label"] for t in thunks if t not in convolutions]


def write(folder, threads):
    """Writes a chart for each model, and returns lines of Markdown."""
    lines = ["## Each convolution", ""]
    for name in MODELS:
        model = read_models()[name]
        model.prepare()
        graph = onnx.load(model.path, load_external_data=False).graph
        names = [node.name for node in graph.node if node.op_type == "Conv"]
        profile = ours(model, threads)
        mine, their = ours_by_node(profile, names), theirs_by_node(model, graph, names, threads)
        title = f"{name}: milliseconds of each convolution, {threads} threads"
        file = f"convolutions-{name}.svg"
        with open(os.path.join(folder, file), "w") as f:
            f.write(chart.pairs(title, names, [("onnx-xla", "#3b6fb6", mine), ("ONNX Runtime", "#c9c9c9", their)]))
        inside, alone, others = fusions(profile)
        lines += [f"![{title}]({file})", "", f"{name}: {inside} convolutions are fused with the operations after them, {alone} are not; "
                  f"{sum(mine):.2f} ms in convolutions, ONNX Runtime {sum(their):.2f} ms.  Other kernels: "
                  + "; ".join(others) + ".", ""]
    return "\n".join(lines)
