"""The floor: what a model's contractions take at this machine's measured peaks (floor.c).

The time of a contraction is that of its multiply-adds at the peak of fp32 or, if the weights of the model do not fit into the
last-level cache, that of reading its weights from memory, whichever is longer; everything else takes no time.  A 3x3 convolution
of stride 1 counts with the multiplications that Winograd's F(2x2, 3x3) has, 2.25 times fewer."""
import json
import math
import os

import numpy as np
import onnx
import onnxruntime

from bench_models import MADE
from clients import build

WINOGRAD = 2.25


def program():
    return build("floor", ["floor.c"], ["-O3", "-march=native", "-ffp-contract=fast", "-lpthread"])


def now(threads, peaks):
    """Returns the peaks with the GFLOP/s that the machine reaches at this moment, which may be fewer on a host that others use."""
    return {**peaks, "gflops": float(os.popen(f"{program()} {threads} now").read())}


def machine(threads):
    """Returns the GFLOP/s and GB/s of the machine, the best of three short measurements, and the bytes of its cache."""
    looks = [[float(x) for x in os.popen(f"{program()} {threads}").read().split()] for _ in range(3)]
    return {"gflops": max(look[0] for look in looks), "gbytes": max(look[1] for look in looks), "cache": looks[0][2]}


def attribute(node, name, default):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def multiply_adds(node, dims):
    """Returns the multiply-adds of a node, and whether Winograd's algorithm applies; None if it is no contraction."""
    shapes = [dims.get(name) for name in list(node.input)[:3]]
    kind = node.op_type
    if kind == "Conv":
        weights = shapes[1]
        winograd = (weights[2:] == [3, 3] and set(attribute(node, "strides", [1])) == {1} and weights[1] > 4
                    and set(attribute(node, "dilations", [1])) == {1} and attribute(node, "group", 1) == 1)
        return math.prod(dims[node.output[0]]) * math.prod(weights[1:]), winograd
    if kind == "ConvTranspose":
        return math.prod(shapes[0]) * math.prod(shapes[1][1:]), False
    if kind == "MatMul":
        return math.prod(dims[node.output[0]]) * shapes[0][-1], False
    if kind == "Gemm":
        return math.prod(dims[node.output[0]]) * shapes[0][0 if attribute(node, "transA", 0) else 1], False
    if kind in ("LSTM", "GRU", "RNN"):
        steps, batch = shapes[0][:2]
        return steps * batch * (math.prod(shapes[1]) + math.prod(shapes[2])), False
    return None


def shapes_in(model, inputs):
    """Returns {name: dims} of all arrays that contractions read and write, by running ONNX Runtime with these as outputs."""
    graph = model.graph
    dims = {t.name: list(t.dims) for t in graph.initializer}
    dims.update({name: list(np.load(path).shape) for name, path in inputs})
    wanted = {name for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN")
              for name in [*node.input[:3], node.output[0]] if name and name not in dims}
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(wanted))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    values = session.run(names, {name: np.load(path) for name, path in inputs})
    dims.update({name: list(value.shape) for name, value in zip(names, values)})
    return dims


def work(model):
    """Returns [multiply-adds, bytes of weights, whether Winograd applies] for each contraction of a prepared row of the
    table, but not for those in subgraphs."""
    cached = os.path.join(MADE, model.name + ".work.json")
    if os.path.exists(cached):
        with open(cached) as f:
            return json.load(f)
    loaded = onnx.load(model.path)
    rows = []
    if not any(a.HasField("g") for node in loaded.graph.node for a in node.attribute):
        weights = {t.name: 4 * math.prod(t.dims) for t in loaded.graph.initializer}
        nodes = list(loaded.graph.node)
        dims = shapes_in(loaded, model.inputs)
        for node in nodes:
            counted = multiply_adds(node, dims) if node.output[0] in dims else None
            if counted:
                rows.append([counted[0], sum(weights.get(name, 0) for name in node.input), counted[1]])
    with open(cached, "w") as f:
        json.dump(rows, f)
    return rows


def floor_ms(model, peaks):
    """Returns the floor in milliseconds, or None if nothing is known of the model's work."""
    rows = work(model)
    from_memory = sum(row[1] for row in rows) > max(peaks["cache"], 1 << 20)
    seconds = sum(max(2e-9 * macs / (WINOGRAD if winograd else 1) / peaks["gflops"],
                      1e-9 * bytes_ / peaks["gbytes"] if from_memory else 0) for macs, bytes_, winograd in rows)
    return 1e3 * seconds or None


def describe(threads, peaks):
    return f"floor with {threads} threads: {peaks['gflops']:.0f} GFLOP/s in registers, {peaks['gbytes']:.1f} GB/s from memory"

