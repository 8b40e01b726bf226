"""variants.py: further graphs out of one that is built.

Building a graph takes most of the time, since each of its values is computed as soon as its node stands.  Once they are all
known, other graphs of them cost one compilation each: some nodes are left out and what they made comes in as an input, other
values come out, constants become inputs and inputs constants.  That changes what may be fused, folded, written in place
and kept, while what must come out is known already.  A variant is run in one way, drawn with it.

Of a graph that has other sizes (sizes.py) what comes in must not decide sizes by its contents, since a program is then for
these contents: integers are computed in variants, too."""

import numpy as np
import onnx
from onnx import numpy_helper

import check
import general
from models import value_info
from shrink import needed, part

# What these draw depends on where they stand among the others.
DRAWN = ("Random", "Bernoulli", "Multinomial", "Dropout")


def nodes_within(nodes):
    """The nodes and those of their bodies."""
    for n in nodes:
        yield n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from nodes_within(a.g.node)


def can_vary(graph):
    functions = [n for f in graph.model.functions for n in f.node]
    return not any(n.op_type.startswith(DRAWN) for n in nodes_within([*graph.model.graph.node, *functions]))


def leave_out(graph, r):
    """The nodes without a few, whose results are known arrays and can come in."""
    nodes = list(graph.model.graph.node)
    rate = r.choice((0, 0.05, 0.15, 0.3))
    return [n for n in nodes if r.random() >= rate or not all(may_be_given(graph, o) for o in n.output if o)]


def may_be_given(graph, name):
    """Whether the value is known, and may come in where there are other sizes."""
    return name in graph.values and (not graph.places or graph.values[name].array.dtype.kind not in "iu")


def choose_outputs(graph, nodes, r):
    """All that nobody uses, or a few of any, with what those need alone."""
    made = [o for n in nodes for o in n.output if o in graph.values]
    if not made or r.random() < 0.3:
        return nodes, []
    outputs = r.sample(made, min(len(made), r.choice((1, 1, 2, 3, 5))))
    return needed_among(graph, nodes, outputs), outputs


def needed_among(graph, nodes, outputs):
    kept = {id(n) for n in nodes}
    return [n for n in needed(graph, outputs) if id(n) in kept]


def may_come_in(value):
    """Not what sizes may depend on: integers, and scales of Resize, of which there is one a dimension."""
    return value is not None and value.array.dtype.kind == "f" and (value.array.ndim > 1 or value.array.size > 10)


def exchange(graph, r):
    """Some arrays that were constants come in, some inputs become constants."""
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
    """Whether the input has one content at all sizes."""
    return all(np.array_equal(place[name].array, graph.values[name].array) for place in graph.places)


def choose_way(graph, matrix, r):
    """(name, arguments of run_xla), or what general.py runs: as it is, or in one of the other ways."""
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
    """Another graph with graph.way, how it is run; None where nothing is left of it."""
    nodes, outputs = choose_outputs(graph, leave_out(graph, r), r)
    variant = part(graph, nodes, outputs)
    if not variant.outputs:
        return None
    exchange(variant, r)
    variant.way = choose_way(variant, matrix, r)
    return variant
