"""shrink.py: makes a failing graph small, and writes it as a case of ONNX's backend tests.

Every value of a graph is known (build.py), so any node can be removed: its results become inputs with these values."""

import os
import time

import numpy as np
import onnx
from onnx import numpy_helper

import peers
from finish import Graph
from models import make_model, value_info
from workers import in_child


def inner_names(node):
    """Returns the names that bodies of the node use, including those of their own values."""
    names = set()
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            names.update(o.name for o in a.g.output)
            for n in a.g.node:
                names.update(n.input)
                names.update(inner_names(n))
    return names


def part(graph, nodes, outputs=None):
    """Returns the graph of these nodes alone; its outputs are `outputs`, or all results that no node uses."""
    used = {i for n in nodes for i in n.input if i} | {i for n in nodes for i in inner_names(n)}
    made = [o for n in nodes for o in n.output if o]
    outputs = [o for o in outputs or [] if o in made] or [
        o for o in made if o not in used and o in graph.values  # sequences cannot be outputs
    ]
    constants = [i for i in graph.model.graph.initializer if i.name in used]
    held = {i.name for i in constants} | set(made)
    declared = {v.name: v for v in graph.model.graph.input}
    inputs = [v for name, v in graph.values.items() if name in used - held]
    infos = [declared.get(v.name) or declare(graph, v) for v in inputs]
    results = [declare(graph, graph.values[o], known=False) for o in outputs]
    called = {n.op_type for n in nodes if n.domain}
    model = make_model(
        nodes,
        infos,
        results,
        constants,
        graph.opset,
        functions=[f for f in graph.model.functions if f.name in called],
    )
    return Graph(model, {v.name: v.array for v in inputs}, graph.values, graph.opset, graph.places)


def declare(graph, v, known=True):
    """Returns the declaration of an input, with names for the dimensions that differ between sizes; if `known` is false, that of an output,
    without names for these."""
    sizes = list(zip(v.shape, *(place[v.name].shape for place in graph.places)))
    dims = [d[0] if len(set(d)) == 1 else "_".join(["D", *map(str, d)]) if known else None for d in sizes]
    return value_info(v.name, v.array, dims)


def needed(graph, outputs):
    """Returns the nodes on which these outputs depend."""
    wanted, kept = set(outputs), []
    for n in reversed(graph.model.graph.node):
        if wanted & set(n.output):
            kept.append(n)
            wanted.update(n.input)
            wanted.update(inner_names(n))
    return kept[::-1]


def shrink(graph, failure, fails, budget=200, seconds=120):
    """Returns the smallest graph that was found in that time for which fails(graph) returns a Failure like this one."""
    tries = [0]
    end = time.monotonic() + seconds

    def still(candidate):
        tries[0] += 1
        in_time = tries[0] <= budget and time.monotonic() < end
        return in_time and candidate.outputs and failure.like(fails(candidate))

    best = graph
    if not still(graph):  # it does not fail again
        return graph
    if failure.output:
        candidate = part(graph, needed(graph, [failure.output]), [failure.output])
        best = candidate if still(candidate) else best
    size = max(1, len(best.model.graph.node) // 2)
    while size >= 1:
        changed = False
        at = 0
        while at < len(best.model.graph.node):
            nodes = list(best.model.graph.node)
            rest = nodes[:at] + nodes[at + size :]
            made = {o for n in rest for o in n.output}
            candidate = part(graph, rest, [o for o in best.outputs if o in made]) if rest else None
            if candidate and still(candidate):
                best, changed = candidate, True
            else:
                at += size
        size = size // 2 if not changed or size > 1 else size
    return best


def from_elsewhere(graph):
    """Returns the outputs that another implementation computes, and its name; None if no other implementation runs the graph."""
    for name, run in (
        ("ONNX Runtime", lambda: peers.run_ort(graph.model, graph.inputs, optimise=False)),
        ("onnx.reference", lambda: peers.run_reference(graph.model, graph.inputs)),
    ):
        try:
            return run(), name
        except Exception:
            continue
    return None


def expected(graph):
    """Returns the expected outputs, and the name of the implementation that computed them.  Other implementations run in a process of
    their own: they may crash, and they start threads, which a process that forks later must not have."""
    died, found = in_child(lambda: from_elsewhere(graph))
    return found or ({o: graph.values[o].array for o in graph.outputs}, "the reference evaluator")


def save_arrays(arrays, names, path):
    """path: contains "{}", which is replaced by the number of the array."""
    for k, name in enumerate(names):
        with open(path.format(k), "wb") as f:
            f.write(numpy_helper.from_array(np.asarray(arrays[name]), name).SerializeToString())


def save(graph, folder, text):
    """Saves the graph in the layout of ONNX's backend tests, with a note, and with a data set for each set of sizes."""
    for number, values in enumerate([graph.values, *graph.places]):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data, exist_ok=True)
        there = Graph(graph.model, {name: values[name].array for name in graph.inputs}, values, graph.opset)
        outputs, source = expected(there)
        save_arrays(there.inputs, [v.name for v in graph.model.graph.input], os.path.join(data, "input_{}.pb"))
        save_arrays(outputs, graph.outputs, os.path.join(data, "output_{}.pb"))
    onnx.save(graph.model, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "note"), "w") as f:
        f.write(f"{text}\nexpected values: {source}\n\n{onnx.printer.to_text(graph.model)}\n")
