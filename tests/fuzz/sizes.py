"""sizes.py: the same graph at other sizes.

A graph with open dimensions is grown at one set of sizes (build.py), and each value is also computed at PLACES other sets of
sizes, which this file calls places.  A node that does not fit at one of them is not added.  So the graph is valid at all places,
and its outputs are known at each: the reference evaluator computes them node by node with constant dimensions.

Dimensions of inputs that have equal sizes at all places share a symbol.  A size may be the same at all places, as numbers of channels
are; in half of the graphs such a dimension is open nevertheless.  The last but one place has sizes of 1, and the last one sizes of 0."""

import numpy as np

import check
import errors
from models import make_model, value_info
from registry import Skip
from values import Value, as_wide, draw_array, has_wild

PLACES = 4


class Place:
    """The graph at one of the other sets of sizes, with the members of a Builder that errors.py needs."""

    def __init__(self, b):
        self.outer, self.root, self.opset, self.r, self.most = None, self, b.opset, b.r, b.most
        self.one_node = b.one_node
        self.values, self.makings = {}, {}

    def compute(self, node, schema, entry, kind, ulps, inner, operands, wild):
        """Returns the node's results at this place.  Raises Skip if the node does not fit."""
        here = [self.values[v.name] for v in operands]
        errors.check_exact(self, kind, here)
        outputs = errors.recompute(self, node, here, [v.array for v in here])
        if any(a.size > self.most for a in outputs):
            raise Skip("large elsewhere")
        wide = [as_wide(a) for a in outputs if a.size and a.dtype.kind not in "iub"]
        if not wild and any(not np.all(np.isfinite(a)) or np.max(np.abs(a)) > 1e4 for a in wide):
            raise Skip("large numbers elsewhere")
        errors.check_integers(self, kind, here, outputs)
        off_by = errors.errors_of(self, schema, entry, node, kind, ulps, here, here, outputs)
        if inner:
            off_by = [e if e is None else e + inner[k] for k, e in enumerate(off_by)]
            for output in node.output:
                self.makings.pop(output, None)
        return [
            Value(n, a, e is None, e or 0.0, wild=wild and has_wild(a)) for n, a, e in zip(node.output, outputs, off_by)
        ]


class Sizes:
    """What each size is at the other places, and the values there.  fixed: sizes that are the same at all places."""

    def __init__(self, b, fixed=()):
        self.b, self.r = b, b.r
        self.places = [Place(b) for _ in range(PLACES)]
        self.of = {d: (d,) * PLACES for d in fixed}
        self.open_fixed = self.r.random() < 0.5  # whether dimensions that are the same at all places are open, too
        self.rate = self.r.choice((0.0, 0.15, 0.4))  # the fraction of sizes that are the same at all places
        self.usual = [1] + self.r.sample((2, 3, 4, 5, 6, 7, 8, 9, 12, 17), self.r.randint(2, 4))

    # --- sizes ---

    def dim(self, least):
        """Returns a size for a new value: mostly one of a few, so that values fit together."""
        if self.r.random() < 0.07:
            return max(least, self.r.choice((1, 2, 3, 10, 16, 33)))
        return max(least, self.r.choice(self.usual))

    def draw(self, number):
        r = self.r
        if number == PLACES - 1 and r.random() < 0.3:
            return 0
        if number == PLACES - 2 and r.random() < 0.6:
            return 1
        return r.choice((1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 21, 35))

    def elsewhere(self, d):
        """Returns what a dimension of a new input is at each place.  If an existing value has a dimension of that size, it is mostly what
        that dimension is at each place."""
        if d in self.of:
            return self.of[d]
        found = [self.at(v, k) for v in self.b.values for k, n in enumerate(v.shape) if n == d]
        if found and d > 1 and self.r.random() < 0.8:
            return self.r.choice(found)
        same = self.r.random() < (0.7 if d == 1 else self.rate)
        self.of[d] = (d,) * PLACES if same else tuple(self.draw(k) for k in range(PLACES))
        return self.of[d]

    def at(self, v, k):
        """Returns dimension k of the value at each place."""
        return tuple(place.values[v.name].shape[k] for place in self.places)

    def least(self, v, k):
        """Returns the smallest size of dimension k of the value at all places where it is known; values in bodies are known at the first
        sizes only."""
        return min([v.shape[k]] + [place.values[v.name].shape[k] for place in self.places if v.name in place.values])

    def constants(self, array):
        """Returns the probability with which an array of these sizes is a constant."""
        return 0.3 if all(self.of.get(d) == (d,) * PLACES for d in array.shape) else 0.02

    # --- values ---

    def add_input(self, v, fixed):
        if fixed:
            self.add_same(v)
            return
        shapes = zip(*[self.elsewhere(d) for d in v.shape]) if v.rank else [()] * PLACES
        for place, shape in zip(self.places, shapes):
            if int(np.prod(shape)) > place.most:
                raise Skip("large elsewhere")
            place.values[v.name] = Value(v.name, resampled(self.r, v, shape))

    def add_same(self, v):
        for place in self.places:
            place.values[v.name] = v

    def add_alias(self, made, v):
        """Makes `made` the same as v at all places; v may be a value of a body."""
        for place in [p for p in self.places if v.name in p.values]:
            w = place.values[v.name]
            place.values[made.name] = Value(made.name, w.array, w.exact, w.error)
            place.values[made.name].relative = w.relative

    def follow(self, node, schema, kind, ulps, inner, operands, outputs, wild):
        """Computes the node at each place.  Raises Skip if it does not fit at one of them."""
        if any(v.name not in place.values for place in self.places for v in operands):
            raise Skip("not known elsewhere")
        entry = self.b.registry[schema.name]
        made = [p.compute(node, schema, entry, kind, ulps, inner, operands, wild) for p in self.places]
        if self.b.peer and not self.agrees(node, operands, outputs, made):
            raise Skip("a second implementation has something else elsewhere")
        if any(w.rank != a.ndim for values in made for w, a in zip(values, outputs)):
            raise Skip("other ranks elsewhere")
        for place, values in zip(self.places, made):
            place.values.update((v.name, v) for v in values)

    def agrees(self, node, operands, outputs, made):
        """Returns whether ONNX Runtime gives the same results at each place.  Its results for empty arrays, for products of no terms and
        for scales that do not give an integer size are faults or choices of its own, which the test of single nodes finds
        (fuzz.py --sweep)."""
        names = {v.name: v for v in operands}
        infos = [value_info(v.name, v.array, [None] * v.rank) for v in names.values()]
        results = [value_info(n, a, [None] * a.ndim) for n, a in zip(node.output, outputs)]
        model = make_model([node], infos, results, [], self.b.opset, "node")
        found = self.b.peer.runs(model, [{n: p.values[n].array for n in names} for p in self.places])
        return found is not None and not any(
            check.difference(v, there[v.name]) for values, there in zip(made, found) for v in values if v.name
        )

    # --- declarations ---

    def dims(self, v, names):
        """Returns the declared dimensions of an input: names, none, or constants.  names: those that were given
        so far, {sizes at all places: name}."""
        found = []
        for k, d in enumerate(v.shape):
            key = (d, *self.at(v, k))
            if len(set(key)) == 1 and not self.open_fixed:
                found.append(d)
            else:
                found.append(None if self.r.random() < 0.1 else names.setdefault(key, f"N{len(names)}"))
        return found


def resampled(r, v, shape):
    """Returns an array of that shape with numbers of the value."""
    if v.size == 0:
        return draw_array(r, v.type, shape, 1, 2)
    if tuple(shape) == v.shape and r.random() < 0.5:
        return v.array
    g = np.random.Generator(np.random.PCG64(r.getrandbits(64)))
    return v.array.reshape(-1)[g.integers(0, v.size, shape)]
