"""ops/control.py: If, Loop and Scan.  Bodies are graphs of their own, which the same builder grows; they may read any value of the
graphs around them."""

import numpy as np
from onnx import helper

import rows
from build import Builder
from models import value_info
from registry import Skip, operators
from rows import CODE_OF_NP
from values import Value

COMMON = ("float", "double", "int32", "int64", "float16", "uint8", "int8", "bool")


def inner(b):
    return Builder(None, b.table, b.registry, b.opset, outer=b)


def body_value(body, array):
    """Adds an input of a body, with its contents in the first iteration."""
    value = Value(body.name("b"), array, varying=True)
    body.values.append(value)
    return value


def graph_of(body, name, inputs, outputs):
    """Returns the body as a GraphProto.  If the graph has other sizes, too, its inputs and outputs are declared without shapes."""
    infos, results = (
        [info_without_sizes(v) if body.root.sizes else value_info(v.name, v.array) for v in values]
        for values in (inputs, outputs)
    )
    return helper.make_graph(body.nodes, body.name(name), infos, results, body.initializers)


def info_without_sizes(v):
    return helper.make_tensor_value_info(v.name, CODE_OF_NP[v.array.dtype], None)


def identity(body, value):
    """Adds an Identity: an output of a body must be computed in the body, and each value may be an output only once."""
    return body.add("Identity", [value], {})[0]


def made_inside(body, value):
    return any(value.name in n.output for n in body.nodes)


def kind_of(values):
    """Returns the kind of the whole operator: "sum" if anything in its bodies rounds."""
    return "exact" if all(v.exact for v in values) else "sum"


def condition_of_size(b):
    """Returns a condition as in scripted models: whether a dimension is equal to a number, or less.  The number is mostly one that
    the dimension has at some of the graph's sizes, so that the answers differ.  None if there is no array."""
    taken = b.table.at[b.opset]["Shape"].types["T"]
    found = [(v, k) for v in b.visible() if v.type in taken and v.type not in rows.TINY_FLOATS and not v.varying
             for k in range(v.rank)]
    operators = [name for name in ("Equal", "Equal", "Less") if name in b.registry]
    if not found or not operators:
        return None
    v, k = b.r.choice(found)
    sizes = [v.shape[k], *(b.root.sizes.at(v, k) if b.root.sizes and b.outer is None else (1,))]
    size = b.constant(np.array([b.r.choice(sizes)], np.int64))
    return b.add(b.r.choice(operators), b.r.sample([b.dim_of(v, k), size], 2), {})[0]


@operators("If", kind="sum", ulps=64, liked=0.5, control=True)
def if_(b, o):
    condition = None
    if b.opset >= 9 and b.r.random() < (0.5 if b.root.sizes else 0.1):
        condition = condition_of_size(b)
    condition = condition or b.tensor("bool", shape=b.r.choice([(), (1,)]), exact=True)
    first = inner(b)
    first.grow(b.r.randint(1, 4))
    t = o.type("V")
    results = [v for v in first.values if made_inside(first, v) and v.type == t][-1:]
    results = results or [identity(first, first.tensor(t))]
    more = [
        v for v in first.values if made_inside(first, v) and v not in results and v.type in o.schema.types["V"]
    ]
    results += b.r.sample(more, b.r.randint(0, min(1, len(more))))
    second = inner(b)
    second.grow(b.r.randint(0, 3))
    others = []
    for v in results:
        w = second.tensor(v.type, shape=v.shape, least=0)
        others.append(identity(second, w))
    branches = {
        "then_branch": graph_of(first, "then", [], results),
        "else_branch": graph_of(second, "else", [], others),
    }
    kind = kind_of(results + others)
    return (
        [condition],
        branches,
        len(results),
        kind,
        None,
        [max(v.error, w.error) for v, w in zip(results, others)],
    )


def errors_of(values, trips):
    """Returns the errors that rounding in a body may cause, which grow with every iteration."""
    return [2 * (trips + 1) * v.error for v in values]


def carried_update(body, v):
    """Returns the next value of a carried one: of the same type and shape, and of similar numbers."""
    for _ in range(3):
        w = body.tensor(v.type, shape=v.shape)
        try:
            if v.type not in COMMON:
                return identity(body, w)
            if v.type == "bool":
                return body.add("Xor", [v, w], {})[0]
            if rows.is_float(v.type):
                return body.add(
                    body.r.choice(["Mean", "Min", "Max"]) if body.opset >= 8 else "Max", [v, w], {}
                )[0]
            return body.add(body.r.choice(["Add", "Sub"]), [v, w], {})[0]
        except Skip:
            continue
    raise Skip("nothing to carry on")


def steps_of(b):
    """Returns the number of iterations: as a value, as a number at the first sizes, and the largest that it is at all sizes.  If
    the graph has other sizes, it is mostly a dimension."""
    r = b.r
    found = sorted({n for v in b.visible() for n in v.shape if 0 < n < 9})
    if b.root.sizes and b.outer is None and found and r.random() < 0.7:
        limit = b.int_of_shapes(r.choice(found))
        if limit is not None:
            there = [int(place.values[limit.name].array.item()) for place in b.root.sizes.places]
            return limit, int(limit.array.item()), max(there)
    trips = r.randint(0, 4)
    return b.fresh(np.array(trips, np.int64), constant=r.random() < 0.8), trips, trips


@operators("Loop", kind="sum", ulps=256, liked=0.5, control=True)
def loop(b, o):
    r = b.r
    limit, trips, most = steps_of(b)
    go_on = b.fresh(np.array(True), constant=r.random() < 0.8) if r.random() < 0.5 else None
    states = [b.tensor(t, rank=(0, 3)) for t in [o.type("V"), r.choice(COMMON)][: r.randint(1, 2)]]
    if r.random() < 0.3:
        states = [states[0], b.tensor(states[0].type, shape=states[0].shape, least=0, fresh=True)]
    body = inner(b)
    turn, alive = body_value(body, np.array(0, np.int64)), body_value(body, np.array(True))
    carried = [body_value(body, v.array) for v in states]
    for c, v in zip(carried, states):
        c.exact, c.error = v.exact, v.error
    body.grow(r.randint(1, 4))
    alike = len(states) == 2 and states[0].type == states[1].type and states[0].shape == states[1].shape
    if alike and r.random() < 0.5:
        updates = [identity(body, c) for c in reversed(carried)]  # they change places
        updates[0].error = updates[1].error = max(c.error for c in carried)
    else:
        updates = [carried_update(body, c) for c in carried]
    scanned = [v for v in body.values if made_inside(body, v) and v not in updates and v.type in COMMON][:1]
    scanned = [identity(body, v) for v in scanned] if r.random() < 0.7 and trips else []
    if go_on and r.random() < 0.5:  # without the input `cond`, the condition that the body returns is ignored
        last = body.constant(np.array(r.randint(0, 4), np.int64), as_node=False)
        more = body.add("Not", [body.add("Equal", [turn, last], {})[0]], {})[0]
    else:
        more = identity(body, alive)
    graph = graph_of(body, "body", [turn, alive] + carried, [more] + updates + scanned)
    return (
        [limit, go_on] + states,
        {"body": graph},
        len(updates) + len(scanned),
        kind_of(updates + scanned),
        None,
        errors_of(updates + scanned, max(trips, most)),
    )


@operators("Scan", kind="sum", ulps=256, liked=0.5, control=True)
def scan(b, o):
    """In version 8 of Scan all arrays have a batch as their first dimension."""
    r, old = b.r, o.since < 9
    n, batch = r.randint(1, 4), (r.randint(1, 3),) if old else ()
    states = [b.tensor(r.choice(COMMON), shape=batch + b.shape((0, 2))) for _ in range(r.randint(0, 2))]
    rows_of = [
        b.tensor(t, shape=batch + (n,) + b.shape((0, 2)))
        for t in [o.type("V"), r.choice(COMMON)][: r.randint(1, 2)]
    ]
    lengths = b.tensor("int64", shape=batch, lo=0, hi=n, exact=True) if old and r.random() < 0.5 else None
    body = inner(b)
    backwards = [r.randint(0, 1) for _ in rows_of]
    first = [v.array[0] if old else v.array for v in states + rows_of]
    carried = [body_value(body, a) for a in first[: len(states)]]
    carried += [body_value(body, a[-1 if back else 0]) for a, back in zip(first[len(states) :], backwards)]
    for c, v in zip(carried, states + rows_of):
        c.exact, c.error = v.exact, v.error
    body.grow(r.randint(1, 4))
    updates = [carried_update(body, c) for c in carried[: len(states)]]
    scanned = [v for v in body.values if made_inside(body, v) and v not in updates and v.type in COMMON][:2]
    scanned = [identity(body, v) for v in scanned]
    if not updates + scanned:
        raise Skip("nothing comes out")
    graph = graph_of(body, "body", carried, updates + scanned)
    attributes = {"body": graph, "num_scan_inputs": len(rows_of)}
    if any(backwards) or r.random() < 0.5:
        attributes["directions" if old else "scan_input_directions"] = backwards
    if scanned and not old and r.random() < 0.3:
        attributes["scan_output_directions"] = [r.randint(0, 1) for _ in scanned]
    return (
        ([lengths] if old else []) + states + rows_of,
        attributes,
        len(updates) + len(scanned),
        kind_of(updates + scanned),
        None,
        errors_of(updates + scanned, n),
    )
