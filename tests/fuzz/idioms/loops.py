"""idioms/loops.py: loops over the elements of an array, as TensorFlow's map_fn and PyTorch's `while i < n` are exported."""

import numpy as np

from idioms import Kit, idiom
from ops.control import body_value, errors_of, graph_of, identity, inner, kind_of
from registry import EXACT

FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11


class Condition:
    """Compares a counter with the size of a dimension, in one of the ways that exporters write, in and before the body."""

    def __init__(self, k, down):
        self.down = down
        self.number = k.one(None, None, FLOAT, FLOAT, DOUBLE)  # what is compared: the integers, or floats
        self.equal, self.swapped, self.twice = k.chance(0.3), k.chance(0.4), k.chance(0.4)

    def ask(self, k, counter, size, integer):
        a, b = counter, size
        if self.down:
            a, b = k.const(np.array(0 if self.equal else -1, integer)), counter
        elif self.equal:
            b = k.Sub(size, k.const(np.array(1, integer)), kind=EXACT)
        if self.number:
            a, b = (k.Cast(v, to=self.number, kind=EXACT) for v in (a, b))
        name = ("Greater" if self.swapped else "Less") + ("OrEqual" if self.equal else "")
        answer = k.node(name, *((b, a) if self.swapped else (a, b)))
        return k.And(answer, answer) if self.twice else answer


@idiom("any", 1.0, since=13)
def counted_loop(k, x):
    """A Loop without a limit, whose condition compares one or two counters with a size."""
    n = x.shape[0]
    k.need(1 <= n <= 16)
    integer, code = k.one((np.int32, INT32), (np.int64, INT64))
    down, two = k.chance(0.25), k.chance(0.4)
    step = k.one(1, 1, 1, 2, 3)
    size = k.Cast(k.Gather(k.Shape(x), k.const(np.array(0)), axis=0), to=code)
    first = k.Sub(size, k.const(np.array(1, integer)), kind=EXACT) if down else k.const(np.array(k.one(0, 0, 0, n // 2), integer))
    condition = Condition(k, down)
    cond = condition.ask(k, first, size, integer)
    limit = k.one(None, k.const(np.array(2**63 - 1)), k.const(np.array(2**63 - 1)), k.const(np.array(k.one(2, 20))))
    row = k.Gather(x, first, axis=0) if x.size else k.Gather(x, k.const(np.array(0)), axis=0)
    states = [first, first, row] if two else [first, row]

    body = inner(k.b)
    inside = Kit(body)
    inside.type = k.type
    turn, alive = body_value(body, np.array(0, np.int64)), body_value(body, np.array(True))
    carried = [body_value(body, v.array) for v in states]
    for c, v in zip(carried, states):
        c.exact, c.error = v.exact, v.error
    at, total = carried[0], carried[-1]
    element = inside.Gather(x, at, axis=0)
    if k.chance(0.3):
        axes = inside.const(np.array([0]))
        element = inside.Squeeze(inside.Gather(x, inside.Unsqueeze(at, axes), axis=0), axes)
    move = inside.Sub if down else inside.Add
    counters = [move(c, inside.const(np.array(step, integer)), kind=EXACT) for c in carried[:-1]]
    more = condition.ask(inside, counters[0], size, integer)
    if two:
        other = condition.ask(inside, counters[1], size, integer)
        more = inside.And(*inside.shuffled(more, other))
    updates = [*counters, inside.node(k.one("Max", "Min"), total, element)]
    scanned = [inside.Neg(element) if k.chance(0.5) else identity(body, element)]
    graph = graph_of(body, "body", [turn, alive, *carried], [more, *updates, *scanned])
    made = k.b.add(
        "Loop",
        [limit, cond, *states],
        {"body": graph},
        len(updates) + 1,
        kind_of(updates + scanned),
        None,
        errors_of(updates + scanned, n),
    )
    return made[-1] if k.chance(0.7) else made[-2]
