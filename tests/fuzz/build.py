"""build.py: grows a random valid graph, node by node.

Every value is computed as soon as its node is added (by the reference evaluator, one node at a time), so that a
generator (registry.py) can ask for a value in a range and always gets one: an existing one, an existing one that is
reshaped, sliced, broadcast or cast, or a new input or constant.  Each value also says by how much the results of
implementations may differ:

  exact    not at all, since no rounding was involved: integers, booleans, inputs, and values that are moved or selected
           from these.  All implementations must give the same bits.
  error    if a value is not exact: the most by which two right implementations can differ.  It is the rounding of the
           operation itself plus the effect of the operands' errors.  That effect is measured: the operation is computed
           again with operands that are changed by their errors.

Operations that are not continuous (Round, comparisons, Cast to an integer, ArgMax ...) get exact values only, and a node
that would make the operands' errors too large is not added."""

import collections
import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper

import errors
import rows
import sequences
import xla
from models import is_refused_wrongly, make_model, to_tensor, value_info
from registry import EXACT, STEP, SUM, Skip
from rows import CODE_OF_NP, NP, is_inexact
from values import LARGE, Value, as_wide, draw_array, has_wild, is_degenerate, size_of

# The operators by which exporters compute sizes: their results are known during the import if their operands are.
SHAPE_ARITHMETIC = "Gather Concat Slice Reshape Squeeze Unsqueeze Identity Cast Constant Add Sub Mul".split()
SEQUENCES = 0.02  # the fraction of nodes after which a value goes through a sequence (sequences.py)


# Operators that take each other's operands and attributes.
ALIKE = [
    names.split()
    for names in (
        "ReduceSum ReduceMax ReduceMin ReduceMean",
        "Add Sub Mul",
        "Max Min",
        "And Or Xor",
        "Less Greater Equal",
        "BitwiseAnd BitwiseOr BitwiseXor",
    )
]


class Operation:
    """What a generator knows of the operator that it draws: its schema, and the types that were chosen so far."""

    def __init__(self, builder, schema, entry):
        self.builder, self.schema, self.entry = builder, schema, entry
        self.name, self.since, self.attributes = schema.name, schema.since, schema.attributes
        self.chosen = {}

    def type(self, variable, among=None):
        """Returns the element type of a type variable: of those that the schema allows and that are in `among`, one that was
        drawn least so far."""
        if variable in self.chosen:
            return self.chosen[variable]
        allowed = [t for t in self.schema.types.get(variable, []) if among is None or t in among]
        if not allowed:
            raise Skip(f"{self.name}: {variable} has no type")
        self.chosen[variable] = self.builder.choose_type(self.schema, variable, allowed)
        return self.chosen[variable]

    def has(self, attribute):
        return attribute in self.attributes


class Builder:
    """Builds a graph, or a body, which can read the values of the graph `outer` around it."""

    def __init__(self, seed, table, registry, opset, dense=None, outer=None, peer=None, menu=None, large=False):
        self.r = outer.r if outer else random.Random(seed)
        self.table, self.registry, self.opset, self.outer = table, registry, opset, outer
        self.root = outer.root if outer else self
        self.dense = dense  # types that this graph prefers; None: those that were drawn least
        self.menu = outer.menu if outer else menu  # operators that this graph prefers; None: no preference
        self.large = large  # whether the graph has values of many elements
        self.most = (16 if large else 4) * LARGE  # elements of a value
        self.peer = peer  # tells whether ONNX Runtime runs a one-node model; None: it is not asked
        self.values, self.nodes, self.initializers = [], [], []
        self.favourite = None  # a value that is taken wherever it fits
        self.inputs = []
        if not outer:
            self.count = 0
            self.focused = False  # whether the graph is for rows that were not drawn often
            self.open_sizes = False  # whether NonZero and its like get computed values, too
            self.special = False  # whether the graph has infinities, NaN and the like: see sweep.py
            self.drawn = []  # the rows that were drawn, each as often as it was
            self.refusals = {}  # row -> message
            self.statistics = {"values": 0, "degenerate": 0}
            self.skips = collections.Counter()
            self.mishaps = []  # generators that failed
            self.faults = []  # one-node models that our library refuses as invalid
            self.idioms = []  # the names of the idioms that the graph consists of
            self.kept = set()  # names of values that must be outputs of the graph
            self.makings = {}  # name of a value -> how it was computed (errors.py)
            self.sizes = None  # other sizes at which each value is computed too (sizes.py)

    # --- names, values ---

    def name(self, prefix="v"):
        self.root.count += 1
        return f"{prefix}{self.root.count}"

    def visible(self):
        return self.values if self.outer is None else self.outer.visible() + self.values

    def new_input(self, array, fixed=False):
        """Adds an input of the whole graph, which bodies can read, too.  fixed: its shape and contents are the same at all sizes."""
        root = self.root
        value = Value(self.name("in"), array)
        if root.sizes:
            root.sizes.add_input(value, fixed)
        root.inputs.append(value)
        root.values.append(value)
        return value

    def constant(self, array, as_node=None):
        """Adds an initializer or a Constant node."""
        if as_node is None:
            as_node = self.r.random() < 0.15
        value = Value(self.name("c"), np.asarray(array), constant=True)
        if as_node and CODE_OF_NP[value.array.dtype] <= (
            TensorProto.BFLOAT16 if self.opset >= 13 else TensorProto.COMPLEX128
        ):
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=to_tensor("", value.array)))
        else:
            self.initializers.append(to_tensor(value.name, value.array))
        self.values.append(value)
        if self.root.sizes:
            self.root.sizes.add_same(value)
        return value

    def fresh(self, array, constant=None, fixed=False):
        if constant is None:
            chance = self.root.sizes.constants(array) if self.root.sizes else 0.3
            constant = self.r.random() < chance
        return self.constant(array) if constant else self.new_input(array, fixed)

    # --- shapes ---

    def dim(self, least=1):
        r = self.r
        if self.root.sizes:
            return self.root.sizes.dim(least)
        if least == 0 and r.random() < 0.04:
            return 0
        if self.root.large and r.random() < 0.3:
            return r.choice((31, 32, 64, 100, 130))
        d = r.choice((1, 2, 3, 4, 5, 6, 7, 8)) if r.random() < 0.93 else r.choice((9, 12, 16, 17, 33))
        return max(least, d)

    def shape(self, rank=(0, 4), least=0):
        n = (
            rank
            if isinstance(rank, int)
            else self.r.choice([k for k in range(rank[0], rank[1] + 1)] + [max(2, rank[0])] * 2)
        )
        while True:
            s = tuple(self.dim(least) for _ in range(n))
            if size_of(s) <= (8 * LARGE if self.root.large else LARGE // 4):
                return s

    # --- values on demand ---

    def tensor(
        self,
        type,
        rank=(0, 4),
        shape=None,
        lo=None,
        hi=None,
        exact=False,
        least=1,
        fresh=False,
        constant=None,
        new=None,
    ):
        """Returns a value of that type, with the given shape, or with a rank in the given range and dimensions of at least
        `least`, and with numbers in [lo, hi].  new: a function that makes the array if no value is found."""
        rank = (rank, rank) if isinstance(rank, int) else rank
        rank = (len(shape), len(shape)) if shape is not None else rank

        def fits(v, any_shape=False):
            return (
                v.type == type
                and (v.exact or not exact)
                and v.fits(lo, hi)
                and v.finite
                and (
                    any_shape
                    or (
                        v.shape == tuple(shape)
                        if shape is not None
                        else rank[0] <= v.rank <= rank[1] and min(v.shape, default=1) >= least
                    )
                )
            )

        if not fresh and constant is None:
            found = [v for v in self.visible() if fits(v)]
            if found and self.r.random() < 0.9:
                return self.pick(found)
            if self.r.random() < (0.1 if self.root.focused else 0.5):
                adapted = self.adapt(type, rank, shape, lo, hi, exact, least, fits)
                if adapted is not None and fits(adapted):
                    return adapted
        s = tuple(shape) if shape is not None else self.shape(rank, least)
        return self.fresh(new(s) if new else draw_array(self.r, type, s, lo, hi), constant)

    def pick(self, found):
        """Chooses one of the values, preferably one that no node uses yet, and one that was added late."""
        if self.favourite in found:
            return self.favourite
        weights = [
            (1.0 if v.uses else 5.0) * (0.3 if v.constant else 1.0) * (1 + 3 * k / len(found))
            for k, v in enumerate(found)
        ]
        return self.r.choices(found, weights)[0]

    def adapt(self, type, rank, shape, lo, hi, exact, least, fits):
        """Returns an existing value whose shape was changed by nodes that move elements, or its type by Cast; None if none is
        found."""
        try:
            found = [v for v in self.visible() if fits(v, any_shape=True) and v.size]
            if not found:
                found = [
                    v
                    for v in self.visible()
                    if self.may_cast(v, type) and v.fits(lo, hi) and v.size and (v.exact or not exact)
                ]
                if not found:
                    return None
                source = self.add("Cast", [self.pick(found)], {"to": CODE_OF_NP[NP[type]]})[0]
            else:
                source = self.pick(found)
            return self.reshape_to(
                source, shape if shape is not None else self.similar_shape(source, rank, least)
            )
        except Skip:
            return None

    def may_cast(self, v, type):
        """Returns whether the value can be cast to the type: Cast takes both types, the type can represent all numbers, and only
        an exact value is cast to a type that is no float."""
        cast = self.table.at[self.opset]["Cast"]
        if v.type not in cast.types["T1"] or type not in cast.types["T2"] or v.type == type or not v.finite:
            return False
        if (
            v.type in rows.COMPLEX
            or type in rows.COMPLEX
            or v.type in rows.TINY_FLOATS
            or type in rows.TINY_FLOATS
        ):
            return False
        if rows.is_float(type):
            return max(abs(v.low), abs(v.high)) < 1000
        if type == "bool":
            return v.exact
        from values import type_range

        least, most = type_range(type)
        return v.exact and least < v.low and v.high < min(most, 2**53)

    def similar_shape(self, v, rank, least):
        """Returns a shape with as many elements as v, whose rank is in the range."""
        if rank[0] <= v.rank <= rank[1]:
            return v.shape
        shape = list(v.shape)
        while len(shape) < rank[0]:
            shape.insert(self.r.randrange(len(shape) + 1), 1)
        while len(shape) > rank[1]:
            if not shape[1:]:
                if shape[0] != 1:
                    raise Skip("not a scalar")
                shape = []
                break
            k = self.r.randrange(len(shape) - 1)
            shape[k : k + 2] = [shape[k] * shape[k + 1]]
        return tuple(shape)

    def reshape_to(self, v, shape):
        shape = tuple(shape)
        if v.shape == shape:
            return v
        n = size_of(shape)
        if v.size == n:
            return self.add("Reshape", [v, self.ints(shape)], {})[0]
        if v.size > n > 0 and self.opset >= 10:
            flat = self.add("Reshape", [v, self.ints([-1])], {})[0]
            at = self.r.randrange(v.size - n + 1)
            cut = self.add("Slice", [flat, self.ints([at]), self.ints([at + n])], {})[0]
            return self.add("Reshape", [cut, self.ints(shape)], {})[0]
        if (
            v.rank <= len(shape)
            and self.opset >= 8
            and all(a == b or a == 1 for a, b in zip(v.shape[::-1], shape[::-1]))
        ):
            return self.add("Expand", [v, self.ints(shape)], {})[0]
        raise Skip("no way from shape to shape")

    def ints(self, numbers, type="int64", constant=None):
        """Returns a value of sizes, axes or indices: mostly a constant, sometimes an input, sometimes computed from a Shape."""
        array = np.asarray(numbers, dtype=NP[type])
        found = [
            v
            for v in self.visible()
            if v.type == type and v.shape == array.shape and v.static and np.array_equal(v.array, array)
        ]
        if found and self.r.random() < 0.5:
            return (
                self.pick(found)
                if constant is None
                else next((v for v in found if v.constant), None) or self.constant(array)
            )
        chance = self.r.random()
        computed = chance < (0.02 if self.root.focused else 0.8 if self.root.sizes else 0.15)
        if constant is None and type == "int64" and array.ndim == 1 and 0 < array.size <= 4 and computed:
            made = self.ints_of_shapes(array)
            if made is not None:
                return made
        likely = 0.98 if self.root.sizes else 0.9  # a program is for one content of inputs that decide sizes
        return self.fresh(array, constant=True if constant else chance < likely, fixed=True)

    def ints_of_shapes(self, array):
        """Returns a Concat of dimensions that Shape and Gather give, and of constants for numbers that are no dimension."""
        parts = []
        try:
            for n in array.tolist():
                part = self.int_of_shapes(n)
                parts.append(self.constant(np.array([n], np.int64)) if part is None else part)
            return parts[0] if len(parts) == 1 else self.add("Concat", parts, {"axis": 0})[0]
        except Skip:
            return None

    def int_of_shapes(self, n):
        """Returns a dimension of that size as a value or, if the graph has other sizes, also a product of several; None if there is
        none."""
        taken = self.table.at[self.opset]["Shape"].types["T"]
        found = [(v, k) for v in self.visible() if v.type in taken and v.type not in rows.TINY_FLOATS
                 for k in range(v.rank)]
        whole = [f for f in found if f[0].shape[f[1]] == n]
        if not self.root.sizes:
            return self.dim_of(*self.r.choice(whole)) if whole else None
        factors = [f for f in found if 1 < f[0].shape[f[1]] < n and n % f[0].shape[f[1]] == 0]
        if n > 1 and whole and (not factors or self.r.random() < 0.8):
            return self.dim_of(*self.r.choice(whole))
        if not factors:
            return None
        v, k = self.r.choice(factors)
        rest = self.int_of_shapes(n // v.shape[k])
        return None if rest is None else self.add("Mul", [self.dim_of(v, k), rest], {})[0]

    def dim_of(self, v, k):
        shape = self.add("Shape", [v], {})[0]
        return self.add("Gather", [shape, self.constant(np.array([k], np.int64))], {})[0]

    # --- nodes ---

    def choose_type(self, schema, variable, allowed):
        liked = [t for t in allowed if self.root.dense and t in self.root.dense]
        if self.root.focused:
            lacks = [self.table.lack((schema.name, schema.since, variable, t)) for t in allowed]
            return self.r.choices(allowed, [1e-3 + n * (1 if t in liked else 0.02) for t, n in zip(allowed, lacks)])[0]
        if liked and self.r.random() < 0.9:
            return self.r.choice(liked)
        counts = self.table.counts
        weights = [1.0 / (1 + counts[(schema.name, schema.since, variable, t)]) ** 2 for t in allowed]
        return self.r.choices(allowed, weights)[0]

    def grow(self, n_nodes, max_tries=None):
        """Adds nodes until there are that many, or until no further node can be added."""
        ops = [s for name, s in self.table.at[self.opset].items() if name in self.registry]
        weights = [self.weight(s) for s in ops]
        start = len(self.nodes)
        for _ in range(max_tries or 4 * n_nodes):
            if len(self.nodes) - start >= n_nodes:
                break
            self.draw(self.r.choices(ops, weights)[0])
            if self.r.random() < SEQUENCES:
                sequences.detour(self)

    def weight(self, schema):
        entry = self.registry[schema.name]
        if self.root.focused and schema.name in self.menu and not (self.outer and entry.control):
            return 0.1 + min(50, sum(self.table.lack(row) for row in schema.rows if row[3] in (*self.root.dense, "-")))
        if self.outer is not None and entry.control or self.menu and schema.name not in self.menu:
            return 0.02
        if self.root.dense:
            return (
                entry.liked
                if any(t in self.root.dense for types in schema.types.values() for t in types)
                else 0.02
            )
        least = sorted(self.table.counts[row] for row in schema.rows)
        low = sum(least[: len(least) // 2 + 1]) / (len(least) // 2 + 1)
        return min(1, entry.liked) * (1 + math.sqrt(len(schema.rows))) / (1 + low)

    def draw(self, schema):
        """Adds a node of that operator, and what it needs; returns a result of the node, or None if it cannot be added."""
        entry = self.registry[schema.name]
        operation = Operation(self, schema, entry)
        before = len(self.root.drawn)
        try:
            drawn = entry.generate(self, operation)
            made = self.add(schema.name, *drawn)
            if self.r.random() < 0.15:
                self.add_twin(schema.name, *drawn)
            if not self.favourite and self.r.random() < 0.12:
                self.draw_again(schema, made[0])
            if self.root.focused and self.outer is None:
                self.table.counts.update(self.root.drawn[before:])  # those of this process; others get them by the report
            return made
        except Skip as e:
            self.root.skips[str(e)[:40]] += 1
        except (ValueError, IndexError, OverflowError) as e:  # from a generator that does not consider this case
            self.root.mishaps.append(
                f"{schema.name}-{schema.since}: {e!r} in line {e.__traceback__.tb_next.tb_lineno}"
            )
        if entry.control:
            del self.root.drawn[before:]  # those of bodies whose node was not added
        return None

    def draw_again(self, schema, made):
        """Draws the same operator again, on its own result, since passes merge such nodes."""
        self.favourite = made
        self.draw(schema)
        self.favourite = None

    def add_twin(self, name, inputs, attributes, n_outputs=1, *more):
        """Adds a node that differs from another one only in the operator, the order of operands, or the order of dimensions.  A
        pass that wrongly takes the two for equal is found by that."""
        group = next((g for g in ALIKE if name in g), (name,))
        if not more and self.r.random() < 0.5:
            name = self.r.choice(group)
        if attributes.get("perm"):
            attributes = {**attributes, "perm": self.r.sample(attributes["perm"], len(attributes["perm"]))}
        if len(group) > 1 and not name.startswith("Reduce") and len(inputs) == 2 and self.r.random() < 0.5:
            inputs = inputs[::-1]
        schema = self.table.at[self.opset].get(name)
        if schema and name in self.registry and all(a in schema.attributes for a in attributes):
            self.add(name, inputs, attributes, n_outputs, *more)

    def add(self, name, inputs, attributes, n_outputs=1, kind=None, ulps=None, inner=None, wild=False):
        """Adds a node, computes it, and returns its results.  Inputs may be None.  inner: the error of each output that rounding
        in bodies makes.  wild: whether results may be as large as masks, infinite, or all equal.  Raises Skip if the node is
        not wanted."""
        schema = self.table.at[self.opset].get(name)
        if schema is None:
            raise Skip(f"{name} is not in opset {self.opset}")
        entry = self.registry[name]
        kind, ulps = kind or entry.kind, ulps or entry.ulps
        inputs = list(inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = {k: v for k, v in attributes.items() if v is not None}
        domain, op_type = rows.domain_and_type(name)
        given = [v.name if v else "" for v in inputs]
        node = helper.make_node(op_type, given, [self.name() for _ in range(n_outputs)], domain=domain, **attributes)
        captured = self.captures(node)
        operands = [v for v in inputs if v] + captured
        errors.check_exact(self, kind, operands)
        outputs = self.compute(node, schema, inputs, operands)
        rows_used = schema.rows_of(
            [v.type if v else None for v in inputs], [rows.NAME_OF_NP[a.dtype] for a in outputs]
        )
        if any(a.size > self.root.most for a in outputs):
            raise Skip("large")
        degenerate = sum(is_degenerate(a) for a in outputs)
        if self.root.special:
            return self.add_special(node, schema, kind, ulps, operands, outputs, rows_used)
        if not wild and degenerate == len(outputs) and outputs[0].size > 1 and self.r.random() < 0.9:
            raise Skip("degenerate")
        floats = [as_wide(a) for a in outputs if a.size and a.dtype.kind not in "iub"]
        if not wild and any(np.max(np.abs(a)) > 1e4 for a in floats):
            raise Skip("large numbers")
        errors.check_integers(self, kind, operands, outputs)
        off_by = errors.errors_of(self, schema, entry, node, kind, ulps, inputs, operands, outputs)
        if inner:
            off_by = [e if e is None else e + inner[k] for k, e in enumerate(off_by)]
            for output in node.output:
                self.root.makings.pop(output, None)
        if self.root.peer and not self.runs_elsewhere(node, operands, outputs):
            raise Skip("a second implementation refuses it")
        if self.root.sizes and self.outer is None:
            self.root.sizes.follow(node, schema, kind, ulps, inner, operands, outputs, wild)
        varying = any(v.varying for v in operands)
        self.nodes.append(node)
        for v in operands:
            v.uses += 1
        static = kind == "shape" or name in SHAPE_ARITHMETIC and all(v.static for v in operands)
        made = [
            Value(n, a, e is None, e or 0.0, varying=varying, static=static, wild=wild and has_wild(a))
            for n, a, e in zip(node.output, outputs, off_by)
        ]
        self.values.extend(made)
        self.root.statistics["values"] += len(made)
        self.root.statistics["degenerate"] += degenerate
        self.root.drawn.extend(rows_used)
        return made

    def add_special(self, node, schema, kind, ulps, operands, outputs, rows_used):
        """Adds a node on any numbers (sweep.py), whose results may each have a relative error."""
        self.nodes.append(node)
        types = [rows.NAME_OF_NP[a.dtype] for a in outputs]
        made = [
            Value(n, a, exact=kind in (EXACT, STEP, "shape") or not is_inexact(t))
            for n, a, t in zip(node.output, outputs, types)
        ]
        types += ["float"] if self.registry[schema.name].inner or "stash_type" in schema.attributes else []
        precision = max([rows.eps(t) for t in types + [v.type for v in operands] if is_inexact(t)], default=0)
        for v in made:
            v.relative = 0.0 if v.exact else (64 if kind == SUM else ulps) * precision
            finite = (
                np.abs(as_wide(v.array))[np.isfinite(as_wide(v.array))]
                if kind == SUM and v.size
                else np.zeros(1)
            )
            v.error = 64 * precision * float(np.max(finite, initial=0)) if not v.exact else 0.0
        for v in operands:
            v.uses += 1
        self.values.extend(made)
        self.root.drawn.extend(rows_used)
        return made

    def captures(self, node):
        """Returns the values of this graph and of outer graphs that bodies of the node use."""
        names = set()

        def walk(graph):
            own = {i.name for i in graph.initializer} | {i.name for i in graph.input}
            for n in graph.node:
                for a in n.attribute:
                    if a.type == onnx.AttributeProto.GRAPH:
                        walk(a.g)
                own.update(n.output)
            used = {i for n in graph.node for i in n.input} | {o.name for o in graph.output}
            names.update(used)
            inner.update(own)

        inner = set()
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                walk(a.g)
        return [v for v in self.visible() if v.name in names - inner]

    def one_node(self, node, operands, outputs=None):
        """Returns a model of the node alone."""
        seen = {v.name: v for v in operands}
        infos = [value_info(v.name, v.array) for v in seen.values()]
        results = (
            [value_info(n, a) for n, a in zip(node.output, outputs)]
            if outputs is not None
            else [onnx.ValueInfoProto(name=n) for n in node.output]
        )
        return make_model([node], infos, results, [], self.opset, "node")

    def compute(self, node, schema, inputs, operands):
        model = self.one_node(node, operands)
        try:
            out = xla.run_xla(model.SerializeToString(), {v.name: v.array for v in operands}, backend="ref")
        except xla.XlaError as e:
            types = [v.type if v else None for v in inputs]
            for row in schema.rows_of(types, []):
                self.root.refusals.setdefault(row, f"{e}")
            if is_refused_wrongly(e.code, model):
                self.root.faults.append((schema.name, str(e), model, {v.name: v.array for v in operands}))
            raise Skip(str(e)) from None
        return [out[n] for n in node.output]

    def runs_elsewhere(self, node, operands, outputs):
        return self.root.peer(self.one_node(node, operands, outputs), {v.name: v.array for v in operands})
