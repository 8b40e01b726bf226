"""variants.py: makes further graphs from one that was built.

Building a graph takes most of the time, since each of its values is computed as soon as its node is added.  Once all values are
known, another graph of the same values costs one compilation: some nodes are left out and their results become inputs, other
values become outputs, constants become inputs and inputs constants.  That changes what may be fused, folded, written in place
and kept, while the expected outputs are known already.  A variant is run in one configuration, which is drawn with it.

If a graph has other sizes (sizes.py), the contents of new inputs must not decide sizes, since a program would then be for
these contents only.  So integers are not made inputs in its variants."""

import numpy as np
import onnx
from onnx import numpy_helper

import check
import general
from models import value_info
from shrink import needed, part

# What these operators draw depends on the other nodes of the graph.
DRAWN = ("Random", "Bernoulli", "Multinomial", "Dropout")


def nodes_within(nodes):
    """Yields the nodes and those in their bodies."""
    for n in nodes:
        yield n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from nodes_within(a.g.node)


def can_vary(graph):
    functions = [n for f in graph.model.functions for n in f.node]
    return not any(n.op_type.startswith(DRAWN) for n in nodes_within([*graph.model.graph.node, *functions]))


def leave_out(graph, r):
    """Returns the nodes without a few, whose results are known and can be inputs."""
    nodes = list(graph.model.graph.node)
    rate = r.choice((0, 0.05, 0.15, 0.3))
    return [n for n in nodes if r.random() >= rate or not all(may_be_given(graph, o) for o in n.output if o)]


def may_be_given(graph, name):
    """Returns whether the value is known and may be an input; integers may not if the graph has other sizes."""
    return name in graph.values and (not graph.places or graph.values[name].array.dtype.kind not in "iu")


def choose_outputs(graph, nodes, r):
    """Returns (nodes, outputs): all nodes and an empty list, which stands for all results that no node uses, or a few outputs and
    the nodes that these need."""
    made = [o for n in nodes for o in n.output if o in graph.values]
    if not made or r.random() < 0.3:
        return nodes, []
    outputs = r.sample(made, min(len(made), r.choice((1, 1, 2, 3, 5))))
    return needed_among(graph, nodes, outputs), outputs


def needed_among(graph, nodes, outputs):
    kept = {id(n) for n in nodes}
    return [n for n in needed(graph, outputs) if id(n) in kept]


def may_come_in(value):
    """Returns whether a constant may become an input: not if sizes may depend on it, as on integers and on the scales of Resize, of
    which there are as many as dimensions."""
    return value is not None and value.array.dtype.kind == "f" and (value.array.ndim > 1 or value.array.size > 10)


def exchange(graph, r):
    """Makes some constants inputs, and some inputs constants."""
    g = graph.model.graph
    opened = [t for t in g.initializer if may_come_in(graph.values.get(t.name)) and r.random() < 0.2]
    closed = [i for i in g.input if r.random() < 0.2 and is_same(graph, i.name)]
    for t in opened:
        g.initializer.remove(t)
        g.input.append(value_info(t.name, graph.values[t.name].array))
        graph.inputs[t.name] = graph.values[t.name].array
    for i in closed:
        g.input.remove(i)
        g.initializer.append(numpy_helper.from_array(graph.inputs.pop(i.name), i.name))


def is_same(graph, name):
    """Returns whether the input has the same contents at all sizes."""
    return all(np.array_equal(place[name].array, graph.values[name].array) for place in graph.places)


def choose_way(graph, matrix, r):
    """Returns (name, arguments of run_xla), or what general.run_one takes: without changes, or for one of the other configurations."""
    if graph.places:
        return general.choose_way(graph, matrix, r)
    if matrix in ("threads", "gpu"):
        return r.choice(check.configurations(matrix, r))
    if r.random() < 0.5:
        return "cpu", {"check_memory": True}
    if r.random() < 0.5:
        return r.choice(check.WAYS)
    skipped = ",".join(sorted(r.sample(check.PASSES, r.choice((1, 1, 2, 4)))))
    return f"cpu-without-{skipped}", {"skip_passes": skipped, "check_memory": True}


def vary(graph, matrix, r):
    """Returns another graph, whose `way` says how it is run; None if no node is left of it."""
    nodes, outputs = choose_outputs(graph, leave_out(graph, r), r)
    variant = part(graph, nodes, outputs)
    if not variant.outputs:
        return None
    exchange(variant, r)
    variant.way = choose_way(variant, matrix, r)
    return variant
