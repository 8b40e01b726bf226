"""build.py: grows a random valid graph, node by node.

Every value is computed as soon as its node stands (by the reference evaluator, one node at a time), so that a generator of
operators.py can ask for a value in a range and always gets one: an existing one, an existing one reshaped, cut, broadcast or
cast, or a new input or constant.  Beside the numbers each value carries what implementations may differ by:

  exact    no rounding stands behind it: integers, booleans, inputs and what moves or selects them.  Must be bit-equal.
  error    else: the most that two right implementations can be apart.  Own rounding of each operation, added to what the
           operation makes of the errors of its operands, which is measured: it is computed again for operands moved by
           their errors.

Operations that are not continuous (Round, comparisons, Cast to an integer, ArgMax ...) are only given exact values, and an
operation that makes too much of its operands' errors is not taken."""
import collections
import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import rows
import xla
from rows import CODE_OF_NP, NP, is_inexact
from values import LARGE, Value, as_wide, draw_array, is_degenerate, size_of

# What exporters compute sizes with: what comes of known values by these is known when the graph is imported.
SHAPE_ARITHMETIC = ("Gather", "Concat", "Slice", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "Constant", "Add", "Sub", "Mul")
# Operators that take each other's operands and attributes.
ALIKE = [names.split() for names in ("ReduceSum ReduceMax ReduceMin ReduceMean", "Add Sub Mul", "Max Min", "And Or Xor",
                                     "Less Greater Equal", "BitwiseAnd BitwiseOr BitwiseXor")]
EXACT, ROUND, SUM, STEP = "exact", "round", "sum", "step"  # what an operator does to floats: see operators.py


def _ir_versions():
    """The oldest IR version for an operator set; at least 4, since when initializers need not be inputs."""
    found, last = {}, 4
    for opset in range(rows.OLDEST, rows.NEWEST + 1):
        try:
            last = max(last, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
        except ValueError:  # an operator set that is being worked on
            pass
        found[opset] = last
    return found


IR_VERSION = _ir_versions()


class Skip(Exception):
    """This draw leads nowhere: draw again."""


class Crash(Exception):
    pass


FUNCTIONS = "fuzz.functions"  # the domain of functions that a model brings along


def make_model(nodes, inputs, outputs, initializers, opset, name="fuzz", functions=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(FUNCTIONS, 1)] * bool(functions)
    model = helper.make_model(graph, opset_imports=opsets, producer_name="fuzz", functions=functions)
    model.ir_version = IR_VERSION[opset]
    return model


def is_valid(model):
    """As far as ONNX's checker can tell; that a window does not fit, it cannot."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return True
    except Exception:
        return False


def to_tensor(name, array):
    """numpy_helper.from_array knows all types of ml_dtypes and packs those of 4 and 2 bits."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def value_info(name, array, dims=None):
    return helper.make_tensor_value_info(name, CODE_OF_NP[array.dtype], array.shape if dims is None else dims)


class Operation:
    """What a generator sees of the operator it draws for: the schema in force, and the types chosen so far."""

    def __init__(self, builder, schema, entry):
        self.builder, self.schema, self.entry = builder, schema, entry
        self.name, self.since, self.attributes = schema.name, schema.since, schema.attributes
        self.chosen = {}

    def type(self, variable, among=None):
        """The element type of a type variable: of those that the schema allows (and `among`), one drawn least so far."""
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
    """One graph, or the body of one that captures values of `outer`."""

    def __init__(self, seed, table, registry, opset, dense=None, outer=None, peer=None, menu=None, large=False):
        self.r = outer.r if outer else random.Random(seed)
        self.table, self.registry, self.opset, self.outer = table, registry, opset, outer
        self.root = outer.root if outer else self
        self.dense = dense  # types that this graph prefers; None: those drawn least
        self.menu = outer.menu if outer else menu  # operators that this graph prefers; None: all alike
        self.large = large  # has values of many elements
        self.peer = peer    # tells whether a one-node model runs elsewhere; None: not asked
        self.values, self.nodes, self.initializers = [], [], []
        self.inputs = []
        if not outer:
            self.count = 0
            self.open_sizes = False  # NonZero and others of computed values too
            self.special = False  # has infinities, NaN and the like: see sweep.py
            self.drawn = []      # rows, one a use
            self.refusals = {}   # row -> message
            self.statistics = {"values": 0, "degenerate": 0}
            self.skips = collections.Counter()
            self.mishaps = []    # generators that failed
            self.faults = []     # one-node models that our library calls wrong

    # --- names, values ---

    def name(self, prefix="v"):
        self.root.count += 1
        return f"{prefix}{self.root.count}"

    def visible(self):
        return self.values if self.outer is None else self.outer.visible() + self.values

    def new_input(self, array):
        """An input of the whole graph; bodies capture it."""
        root = self.root
        value = Value(self.name("in"), array)
        root.inputs.append(value)
        root.values.append(value)
        return value

    def constant(self, array, as_node=None):
        """An initializer, or a Constant node."""
        if as_node is None:
            as_node = self.r.random() < 0.15
        value = Value(self.name("c"), np.asarray(array), constant=True)
        if as_node and CODE_OF_NP[value.array.dtype] <= (TensorProto.BFLOAT16 if self.opset >= 13 else TensorProto.COMPLEX128):
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=to_tensor("", value.array)))
        else:
            self.initializers.append(to_tensor(value.name, value.array))
        self.values.append(value)
        return value

    def fresh(self, array, constant=None):
        if constant is None:
            constant = self.r.random() < 0.3
        return self.constant(array) if constant else self.new_input(array)

    # --- shapes ---

    def dim(self, least=1):
        r = self.r
        if least == 0 and r.random() < 0.04:
            return 0
        if self.root.large and r.random() < 0.3:
            return r.choice((31, 32, 64, 100, 130))
        d = r.choice((1, 2, 3, 4, 5, 6, 7, 8)) if r.random() < 0.93 else r.choice((9, 12, 16, 17, 33))
        return max(least, d)

    def shape(self, rank=(0, 4), least=0):
        n = rank if isinstance(rank, int) else self.r.choice([k for k in range(rank[0], rank[1] + 1)] + [max(2, rank[0])] * 2)
        while True:
            s = tuple(self.dim(least) for _ in range(n))
            if size_of(s) <= (8 * LARGE if self.root.large else LARGE // 4):
                return s

    # --- values on demand ---

    def tensor(self, type, rank=(0, 4), shape=None, lo=None, hi=None, exact=False, least=1, fresh=False, constant=None,
               new=None):
        """A value of that type; its shape as given, or of a rank in that range with dims of `least` at least; its numbers
        in [lo, hi].  new: makes the array where none is found."""
        rank = (rank, rank) if isinstance(rank, int) else rank
        rank = (len(shape), len(shape)) if shape is not None else rank

        def fits(v, any_shape=False):
            return (v.type == type and (v.exact or not exact) and v.fits(lo, hi) and v.finite
                    and (any_shape or (v.shape == tuple(shape) if shape is not None else
                                       rank[0] <= v.rank <= rank[1] and min(v.shape, default=1) >= least)))
        if not fresh and constant is None:
            found = [v for v in self.visible() if fits(v)]
            if found and self.r.random() < 0.9:
                return self.pick(found)
            if self.r.random() < 0.5:
                adapted = self.adapt(type, rank, shape, lo, hi, exact, least, fits)
                if adapted is not None and fits(adapted):
                    return adapted
        s = tuple(shape) if shape is not None else self.shape(rank, least)
        return self.fresh(new(s) if new else draw_array(self.r, type, s, lo, hi), constant)

    def pick(self, found):
        """What nobody uses yet, and what is young, is liked best."""
        weights = [(1.0 if v.uses else 5.0) * (0.3 if v.constant else 1.0) * (1 + 3 * k / len(found))
                   for k, v in enumerate(found)]
        return self.r.choices(found, weights)[0]

    def adapt(self, type, rank, shape, lo, hi, exact, least, fits):
        """An existing value, brought into shape by nodes of movement, or to its type by Cast; None: there is none."""
        try:
            found = [v for v in self.visible() if fits(v, any_shape=True) and v.size]
            if not found:
                found = [v for v in self.visible() if self.may_cast(v, type) and v.fits(lo, hi) and v.size
                         and (v.exact or not exact)]
                if not found:
                    return None
                source = self.add("Cast", [self.pick(found)], {"to": CODE_OF_NP[NP[type]]})[0]
            else:
                source = self.pick(found)
            return self.reshape_to(source, shape if shape is not None else self.similar_shape(source, rank, least))
        except Skip:
            return None

    def may_cast(self, v, type):
        """Whether Cast is allowed, exact values only to what is not a float, and whether all numbers can be represented."""
        cast = self.table.at[self.opset]["Cast"]
        if v.type not in cast.types["T1"] or type not in cast.types["T2"] or v.type == type or not v.finite:
            return False
        if v.type in rows.COMPLEX or type in rows.COMPLEX or v.type in rows.TINY_FLOATS or type in rows.TINY_FLOATS:
            return False
        if rows.is_float(type):
            return max(abs(v.low), abs(v.high)) < 1000
        if type == "bool":
            return v.exact
        from values import type_range
        least, most = type_range(type)
        return v.exact and least < v.low and v.high < min(most, 2 ** 53)

    def similar_shape(self, v, rank, least):
        """A shape of a rank in the range with as many elements."""
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
            shape[k:k + 2] = [shape[k] * shape[k + 1]]
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
        if v.rank <= len(shape) and self.opset >= 8 and all(
                a == b or a == 1 for a, b in zip(v.shape[::-1], shape[::-1])):
            return self.add("Expand", [v, self.ints(shape)], {})[0]
        raise Skip("no way from shape to shape")

    def ints(self, numbers, type="int64", constant=None):
        """Sizes, axes, places: constants mostly, sometimes an input, sometimes computed from a Shape."""
        array = np.asarray(numbers, dtype=NP[type])
        found = [v for v in self.visible() if v.type == type and v.shape == array.shape and np.array_equal(v.array, array)
                 and v.static]
        if found and self.r.random() < 0.5:
            return self.pick(found) if constant is None else next((v for v in found if v.constant), None) or self.constant(array)
        chance = self.r.random()
        if constant is None and type == "int64" and array.ndim == 1 and 0 < array.size <= 4 and chance < 0.15:
            made = self.ints_of_shapes(array)
            if made is not None:
                return made
        return self.fresh(array, constant=True if constant else chance < 0.9)

    def ints_of_shapes(self, array):
        """Concat of dims that Shape and Gather find, numbers where there are none."""
        parts = []
        for n in array.tolist():
            found = [(v, k) for v in self.visible() for k, d in enumerate(v.shape) if d == n and v.type not in rows.TINY_FLOATS]
            found = [f for f in found if f[0].type in self.table.at[self.opset]["Shape"].types["T"]]
            if not found:
                parts.append(self.constant(np.array([n], np.int64)))
                continue
            v, k = self.r.choice(found)
            try:
                shape = self.add("Shape", [v], {})[0]
                parts.append(self.add("Gather", [shape, self.constant(np.array([k], np.int64))], {})[0])
            except Skip:
                return None
        try:
            return parts[0] if len(parts) == 1 else self.add("Concat", parts, {"axis": 0})[0]
        except Skip:
            return None

    # --- nodes ---

    def choose_type(self, schema, variable, allowed):
        liked = [t for t in allowed if self.root.dense and t in self.root.dense]
        if liked and self.r.random() < 0.9:
            return self.r.choice(liked)
        counts = self.table.counts
        weights = [1.0 / (1 + counts[(schema.name, schema.since, variable, t)]) ** 2 for t in allowed]
        return self.r.choices(allowed, weights)[0]

    def grow(self, n_nodes, max_tries=None):
        """Adds nodes until there are that many, or nothing more fits."""
        ops = [s for name, s in self.table.at[self.opset].items() if name in self.registry]
        weights = [self.weight(s) for s in ops]
        start = len(self.nodes)
        for _ in range(max_tries or 4 * n_nodes):
            if len(self.nodes) - start >= n_nodes:
                break
            self.draw(self.r.choices(ops, weights)[0])

    def weight(self, schema):
        entry = self.registry[schema.name]
        if self.outer is not None and entry.control or self.menu and schema.name not in self.menu:
            return 0.02
        if self.root.dense:
            return entry.liked if any(t in self.root.dense for types in schema.types.values() for t in types) else 0.02
        least = sorted(self.table.counts[row] for row in schema.rows)
        low = sum(least[:len(least) // 2 + 1]) / (len(least) // 2 + 1)
        return min(1, entry.liked) * (1 + math.sqrt(len(schema.rows))) / (1 + low)

    def draw(self, schema):
        """One node of that operator, with what it needs; None if it cannot be."""
        entry = self.registry[schema.name]
        operation = Operation(self, schema, entry)
        try:
            drawn = entry.generate(self, operation)
            made = self.add(schema.name, *drawn)
            if self.r.random() < 0.1:
                self.add_twin(schema.name, *drawn)
            return made
        except Skip as e:
            self.root.skips[str(e)[:40]] += 1
        except (ValueError, IndexError, OverflowError) as e:  # of a generator that did not think of this case
            self.root.mishaps.append(f"{schema.name}-{schema.since}: {e!r} in line {e.__traceback__.tb_next.tb_lineno}")
        return None

    def add_twin(self, name, inputs, attributes, n_outputs=1, *more):
        """The same once more but for the operator, the order of its operands, or that of dimensions: whoever takes what only
        looks alike for equal is found out."""
        group = next((g for g in ALIKE if name in g), (name,))
        if not more:
            name = self.r.choice(group)
        if attributes.get("perm"):
            attributes = {**attributes, "perm": self.r.sample(attributes["perm"], len(attributes["perm"]))}
        if len(group) > 1 and not name.startswith("Reduce") and len(inputs) == 2 and self.r.random() < 0.5:
            inputs = inputs[::-1]
        schema = self.table.at[self.opset].get(name)
        if schema and all(a in schema.attributes for a in attributes):
            self.add(name, inputs, attributes, n_outputs, *more)

    def add(self, name, inputs, attributes, n_outputs=1, kind=None, ulps=None, inner=None):
        """A node, computed.  Inputs may be None.  inner: errors that bodies make, by output.  Raises Skip where it is not
        wanted."""
        schema = self.table.at[self.opset].get(name)
        if schema is None:
            raise Skip(f"{name} is not in opset {self.opset}")
        entry = self.registry[name]
        kind, ulps = kind or entry.kind, ulps or entry.ulps
        inputs = list(inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(name, [v.name if v else "" for v in inputs], [self.name() for _ in range(n_outputs)],
                                **attributes)
        captured = self.captures(node)
        operands = [v for v in inputs if v] + captured
        self.check_exact(kind, operands)
        outputs = self.compute(node, schema, inputs, operands)
        rows_used = schema.rows_of([v.type if v else None for v in inputs], [rows.NAME_OF_NP[a.dtype] for a in outputs])
        if any(a.size > (16 if self.root.large else 4) * LARGE for a in outputs):
            raise Skip("large")
        degenerate = sum(is_degenerate(a) for a in outputs)
        if self.root.special:
            return self.add_special(node, kind, ulps, operands, outputs, rows_used)
        if degenerate == len(outputs) and outputs[0].size > 1 and self.r.random() < 0.9:
            raise Skip("degenerate")
        if any(a.size and a.dtype.kind not in "iub" and np.max(np.abs(as_wide(a))) > 1e4 for a in outputs):
            raise Skip("large numbers")
        self.check_integers(kind, operands, outputs)
        errors = self.errors_of(schema, entry, node, kind, ulps, inputs, operands, outputs)
        errors = [e if e is None else e + (inner[k] if inner else 0) for k, e in enumerate(errors)]
        if self.root.peer and not self.runs_elsewhere(node, inputs, operands, outputs, rows_used):
            raise Skip("a second implementation refuses it")
        varying = any(v.varying for v in operands)
        self.nodes.append(node)
        for v in operands:
            v.uses += 1
        static = kind == "shape" or name in SHAPE_ARITHMETIC and all(v.static for v in operands)
        made = [Value(n, a, exact=e is None, error=e or 0.0, varying=varying, static=static) for n, a, e in zip(node.output, outputs, errors)]
        self.values.extend(made)
        self.root.statistics["values"] += len(made)
        self.root.statistics["degenerate"] += degenerate
        self.root.drawn.extend(rows_used)
        return made

    def add_special(self, node, kind, ulps, operands, outputs, rows_used):
        """Of any numbers: each result may be off by a part of itself."""
        self.nodes.append(node)
        types = [rows.NAME_OF_NP[a.dtype] for a in outputs]
        made = [Value(n, a, exact=kind in (EXACT, STEP, "shape") or not is_inexact(t)) for n, a, t in
                zip(node.output, outputs, types)]
        precision = max([rows.eps(t) for t in types + [v.type for v in operands] if is_inexact(t)], default=0)
        for v in made:
            v.relative = 0.0 if v.exact else (64 if kind == SUM else ulps) * precision
            finite = np.abs(as_wide(v.array))[np.isfinite(as_wide(v.array))] if kind == SUM and v.size else np.zeros(1)
            v.error = 64 * precision * float(np.max(finite, initial=0)) if not v.exact else 0.0
        for v in operands:
            v.uses += 1
        self.values.extend(made)
        self.root.drawn.extend(rows_used)
        return made

    def captures(self, node):
        """Values of this and outer graphs that bodies of the node use."""
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
        """A model of the node alone."""
        seen = {v.name: v for v in operands}
        infos = [value_info(v.name, v.array) for v in seen.values()]
        results = [value_info(n, a) for n, a in zip(node.output, outputs)] if outputs is not None else [
            onnx.ValueInfoProto(name=n) for n in node.output]
        return make_model([node], infos, results, [], self.opset, "node")

    def compute(self, node, schema, inputs, operands):
        model = self.one_node(node, operands)
        try:
            out = xla.run_xla(model.SerializeToString(), {v.name: v.array for v in operands}, backend="ref")
        except xla.XlaError as e:
            types = [v.type if v else None for v in inputs]
            for row in schema.rows_of(types, []):
                self.root.refusals.setdefault(row, f"{e}")
            if e.code not in ("UNSUPPORTED", "RESOURCE", "INVALID_MODEL") or e.code == "INVALID_MODEL" and is_valid(model):
                self.root.faults.append((schema.name, str(e), model, {v.name: v.array for v in operands}))
            raise Skip(str(e)) from None
        return [out[n] for n in node.output]

    # --- exactness ---

    def check_exact(self, kind, operands):
        if kind == STEP and any(not v.exact for v in operands):
            raise Skip("a step of inexact values")

    def check_integers(self, kind, operands, outputs):
        """Integers made of rounded numbers could differ by one anywhere; Shape and Size do not look at numbers."""
        inexact = any(not v.exact for v in operands)
        if inexact and kind != "shape" and any(a.dtype.kind in "iub" or a.dtype.name.startswith(("int", "uint"))
                                               for a in outputs):
            raise Skip("an integer of inexact values")

    def errors_of(self, schema, entry, node, kind, ulps, inputs, operands, outputs):
        """For each output None (exact) or the error it may have."""
        rounding = kind in (ROUND, SUM)
        if kind in (EXACT, STEP, "shape"):
            worst = max((v.error for v in operands if not v.exact), default=None)
            return [worst if is_inexact(rows.NAME_OF_NP[a.dtype]) else None for a in outputs]
        if all(v.exact for v in operands) and not rounding:
            return [None] * len(outputs)
        floats = [is_inexact(rows.NAME_OF_NP[a.dtype]) for a in outputs]
        if not any(floats):
            return [None] * len(outputs)
        carried = self.carried(node, operands, outputs)
        scales = self.scales(node, kind, operands, outputs)
        errors = []
        for a, isf, moved, scale in zip(outputs, floats, carried, scales):
            if not isf:
                errors.append(None)
                continue
            types = [rows.NAME_OF_NP[a.dtype]] + [v.type for v in operands if is_inexact(v.type)
                                                  and v.type not in rows.TINY_FLOATS]
            if entry.inner or "stash_type" in schema.attributes:
                types.append(entry.inner or "float")  # what they compute in, of doubles too
            precision = max(rows.eps(t) for t in types)
            # Of 16 bits and less: most implementations compute in f32 and round once.
            error = moved + (ulps if precision < 1e-4 else 1 + ulps / 16) * precision * max(scale, entry.unit)
            limit = 0.05 if precision < 1e-4 else 0.2
            if a.size and not (error <= limit * max(1e-3, float(np.max(np.abs(as_wide(a)), initial=0)))):
                raise Skip("errors grow too large")
            errors.append(error)
        return errors

    def recompute(self, node, operands, arrays):
        model = self.one_node(node, operands)
        try:
            out = xla.run_xla(model.SerializeToString(), {v.name: x for v, x in zip(operands, arrays)}, backend="ref")
        except xla.XlaError:
            raise Skip("not for moved operands") from None
        return [out[n] for n in node.output]

    def carried(self, node, operands, outputs):
        """How far outputs move when operands move by their errors."""
        if all(v.exact for v in operands):
            return [0.0] * len(outputs)
        g = np.random.Generator(np.random.PCG64(self.r.getrandbits(64)))
        worst = [0.0] * len(outputs)
        for _ in range(2):
            arrays = [v.array if v.exact else (as_wide(v.array) + v.error * g.choice([-1.0, 1.0], v.shape)).astype(v.array.dtype)
                      for v in operands]
            moved = self.recompute(node, operands, arrays)
            for k, (a, b) in enumerate(zip(outputs, moved)):
                if a.shape != b.shape:
                    raise Skip("a size of inexact values")
                if a.size and is_inexact(rows.NAME_OF_NP[a.dtype]):
                    far = np.abs(as_wide(a) - as_wide(b))
                    worst[k] = max(worst[k], 2 * float(np.max(far[np.isfinite(far)], initial=0)))
        return worst

    def scales(self, node, kind, operands, outputs):
        """What roundings are relative to: the largest number; for sums that of the terms' absolute values, and there are
        as many roundings as terms (their square root, as they do not all go one way)."""
        largest = [float(np.max(np.abs(as_wide(a)), initial=0)) if a.size else 0.0 for a in outputs]
        if kind != SUM:
            return largest
        arrays = [np.abs(as_wide(v.array)).astype(v.array.dtype) if is_inexact(v.type) else v.array for v in operands]
        try:
            sums = self.recompute(node, operands, arrays)
            absolute = [float(np.max(np.abs(as_wide(a)), initial=0)) if a.size and np.all(np.isfinite(as_wide(a))) else 0.0
                        for a in sums]
        except Skip:
            absolute = largest
        terms = max([v.size for v in operands] + [1])
        return [max(x, y) * (1 + math.sqrt(min(terms, 1000)) / 4) for x, y in zip(largest, absolute)]

    def runs_elsewhere(self, node, inputs, operands, outputs, rows_used):
        texts = tuple(sorted((a.name, a.s) for a in node.attribute if a.type == onnx.AttributeProto.STRING))
        key = (tuple(sorted(rows_used)), tuple(v.type if v else "" for v in inputs), texts)
        return self.root.peer(key, lambda: self.one_node(node, operands, outputs),
                              {v.name: v.array for v in operands})


class Graph:
    """A finished graph: the model, what goes in, what must come out, and how far off that may be."""

    def __init__(self, model, inputs, values, opset):
        self.model, self.inputs, self.values, self.opset = model, inputs, values, opset
        self.outputs = [o.name for o in model.graph.output]


def prune(b, r):
    """Inputs and constants that nobody uses are left over from nodes that could not be; most of them go."""
    unused = {v.name for v in b.values if v.uses == 0 and (v.constant or v in b.inputs) and r.random() < 0.95}
    b.inputs = [v for v in b.inputs if v.name not in unused]
    b.initializers = [t for t in b.initializers if t.name not in unused]
    b.nodes = [n for n in b.nodes if n.op_type != "Constant" or n.output[0] not in unused]


# Outputs that a node may leave out, by number.
OPTIONAL = {"LSTM": (0, 1, 2), "GRU": (0, 1), "RNN": (0, 1), "MaxPool": (1,), "Dropout": (1,), "LayerNormalization": (1, 2),
            "SoftmaxCrossEntropyLoss": (1,), "Unique": (1, 2, 3), "Attention": (1, 2)}


def leave_out(b, r):
    """Some outputs that nobody uses and that need not be, lose their names."""
    unused = {v.name for v in b.values if v.uses == 0}
    for n in b.nodes:
        for k in OPTIONAL.get(n.op_type, ()):
            if k < len(n.output) and n.output[k] in unused and sum(map(bool, n.output)) > 1 and r.random() < 0.3:
                n.output[k] = ""


def make_function(b, r, outputs):
    """Now and then a few nodes in a row become a function of the model's, called once."""
    if IR_VERSION[b.opset] < 8 or len(b.nodes) < 4 or r.random() > 0.2:
        return ()
    at = r.randrange(len(b.nodes) - 2)
    inside = b.nodes[at:at + r.randint(2, 6)]
    if any(a.type == onnx.AttributeProto.GRAPH for n in inside for a in n.attribute):
        return ()
    if any(n.op_type.startswith(("Random", "Bernoulli", "Multinomial")) for n in inside):
        return ()  # what they draw depends on where they stand
    made = [o for n in inside for o in n.output if o]
    taken = list(dict.fromkeys(i for n in inside for i in n.input if i and i not in made))
    wanted = {o.name for o in outputs} | {v.name for n in b.nodes if n not in inside for v in b.captures(n)} | {
        i for n in b.nodes if n not in inside for i in n.input}
    given = [o for o in made if o in wanted]
    if not given or len(set(given)) != len(given):
        return ()
    name = b.name("Function")
    function = helper.make_function(FUNCTIONS, name, taken, given, inside, [helper.make_opsetid("", b.opset)])
    b.nodes[at:at + len(inside)] = [helper.make_node(name, taken, given, domain=FUNCTIONS)]
    return (function,)


def finish(b):
    """Outputs: all that nobody uses, some others, and a few inputs and constants.  Inputs get symbolic dims now and then, equal
    ones for equal sizes."""
    r = b.r
    leave_out(b, r)
    made = {n for node in b.nodes for n in node.output}
    outputs = [v for v in b.values if v.name in made and not v.constant and (v.uses == 0 or r.random() < 0.1)]
    outputs = outputs or [v for v in b.values if v.name in made and not v.constant][-1:]
    if not outputs:
        return None
    prune(b, r)
    constants = {t.name for t in b.initializers} | {i.name for i in b.inputs}
    outputs += [v for v in b.values if v.name in constants and v.uses and r.random() < 0.02]
    functions = make_function(b, r, outputs)
    symbolic = r.random() < 0.4
    names = {}

    def declared(v):
        dims = []
        for d in v.shape:
            if symbolic and r.random() < 0.6:
                dims.append(None if r.random() < 0.15 else names.setdefault(d, f"N{len(names)}"))
            else:
                dims.append(d)
        return value_info(v.name, v.array, dims)
    inputs = [declared(v) for v in b.inputs]
    infos = [helper.make_tensor_value_info(v.name, CODE_OF_NP[v.array.dtype], None if symbolic else v.shape) for v in outputs]
    model = make_model(b.nodes, inputs, infos, b.initializers, b.opset, functions=functions)
    return Graph(model, {v.name: v.array for v in b.inputs}, {v.name: v for v in b.values}, b.opset)
