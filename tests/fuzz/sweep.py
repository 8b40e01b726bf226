"""sweep.py: one-node models of every row (operator, version, type): ref, cpu, and ONNX Runtime or ONNX's own
evaluator."""

import collections
import random

import ml_dtypes
import numpy as np

import check
import peers
import rows
from build import Builder, Operation
from finish import finish
from registry import Skip
from values import type_range
from workers import in_child

TRIES = 25


class OneType(Builder):
    """Chooses a given type for one type variable, and others at random."""

    def choose_type(self, schema, variable, allowed):
        name, since, wanted, type = self.row
        if (schema.name, schema.since, variable) == (name, since, wanted):
            if type not in allowed:
                raise Skip("not among those that are drawn")
            return type
        return self.r.choice(allowed)


SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, "max", "-max", "tiny")


class Special(OneType):
    """Values contain some infinities, NaN and extreme numbers."""

    def fresh(self, array, constant=None):
        type = rows.NAME_OF_NP[array.dtype]
        if array.size and (type in rows.FLOATS or type in rows.INTS) and array.ndim:
            array = self.sprinkle(np.array(array), type)
        return super().fresh(array, constant)

    def sprinkle(self, array, type):
        kind = self.entry.kind
        r = self.r
        if type in rows.INTS:
            if kind in ("exact", "step") and self.row[0] in ELEMENTWISE:
                for k in range(array.size):
                    if r.random() < 0.2:
                        array.flat[k] = r.choice(type_range(type))
            return array
        info = ml_dtypes.finfo(array.dtype)
        numbers = {"max": info.max, "-max": info.min, "tiny": info.smallest_subnormal}
        choice = SPECIAL[:3] if kind == "sum" else SPECIAL
        for k in range(array.size):
            if r.random() < (0.03 if kind == "sum" else 0.3):
                s = r.choice(choice)
                array.flat[k] = numbers.get(s, s)
        return array


ELEMENTWISE = """
    Abs Neg Sign Add Sub Mul Max Min Clip Where Relu Equal Greater GreaterOrEqual Less LessOrEqual
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Cast""".split()


def one(row, table, entries, seed, with_peer, special=False):
    """Returns (what, detail) of a row, where `what` is ok, no draw, refused, fault or wrong."""
    name, since, variable, type = row
    message = "no draw fits"
    refused = None
    for k in range(TRIES):
        r = random.Random(f"{seed} {k} {row}")
        b = (Special if special else OneType)(
            r.getrandbits(32), table, entries, table.opset_for(since, name, r)
        )
        b.row, b.entry, b.special = row, entries[name], special
        schema = table.at[b.opset][name]
        operation = Operation(b, schema, entries[name])
        try:
            b.add(name, *entries[name].generate(b, operation))
        except (ValueError, IndexError, KeyError, TypeError) as e:
            return "mishap", repr(e)
        except Skip as e:
            message = str(e)
            for refusal, text in b.refusals.items():
                if refusal[:2] == row[:2]:
                    refused = text
            if b.faults:
                return "fault", b.faults[0][1]
            continue
        if row not in b.drawn and variable != "-":
            message = "the type was not used"
            continue
        graph = finish(b)
        failures, ran = check.run_all(graph, "short", r, with_peer)
        if failures:
            return "wrong", str(failures[0])
        if not ran and with_peer and not special:
            wrong = second_opinion(graph)
            if wrong:
                return "differs", wrong
        return "ok", "compared" if ran else "alone"
    return ("refused", refused) if refused else ("no draw", message)


# Operators for which onnx.reference differs from the standard (sequence lengths, ranks other than 4, sums in another
# type).
UNRELIABLE = (
    "GRU",
    "LSTM",
    "RNN",
    "GlobalMaxPool",
    "Gemm",
    "Loop",
    "OneHot",
    "QLinearConv",
    "QLinearMatMul",
    "Unique",
    "Scan",
)


def operators(nodes):
    for n in nodes:
        yield n.op_type
        for a in n.attribute:
            yield from operators(a.g.node)


def second_opinion(graph):
    """Compares with ONNX's own evaluator, which computes many operators in float."""
    if any(name in UNRELIABLE for name in operators(graph.model.graph.node)):
        return None
    if any(n.op_type == "Resize" for n in graph.model.graph.node) and any(
        v.type in rows.COMPLEX + ("int64", "uint64") for v in graph.values.values()
    ):
        return None  # which it converts to doubles
    for v in graph.values.values():
        v.error += 0 if v.exact or v.size == 0 else 1e-5 * max(1.0, abs(v.low), abs(v.high))
    try:
        wrong = check.compare(graph, peers.run_reference(graph.model, graph.inputs))
    except Exception:
        return None
    return f"onnx.reference: {wrong[0]}: {wrong[1]}" if wrong else None


def run(table, entries, options, ort):
    wanted = set(options.only.split(",")) if options.only else None
    found = collections.Counter()
    todo = [
        r
        for r in sorted(table.rows())
        if r[0] in entries
        and not (options.specials and entries[r[0]].control)
        and (wanted is None or r[0] in wanted)
    ]
    at = 0
    while at < len(todo):
        chunk = todo[at : at + 100]

        def work(chunk=chunk):
            return [
                (
                    row,
                    *one(
                        row,
                        table,
                        entries,
                        options.seed or 0,
                        ort is not None and not options.specials,
                        options.specials,
                    ),
                )
                for row in chunk
            ]

        died, results = in_child(work)
        if died or results is None:  # one row of the chunk has crashed: each is run alone
            results = []
            for row in chunk:
                died, result = in_child(
                    lambda row=row: one(
                        row,
                        table,
                        entries,
                        options.seed or 0,
                        ort is not None and not options.specials,
                        options.specials,
                    )
                )
                results.append((row, *(("crash", "") if died or result is None else result)))
        for row, what, detail in results:
            found[what if what != "ok" else f"ok, {detail}"] += 1
            if what != "ok":
                print(f"{what:8} {row[0]}-{row[1]} {row[2]} {row[3]}: {(detail or '')[:250]}", flush=True)
        at += len(chunk)
    print("; ".join(f"{what}: {n}" for what, n in found.most_common()))
    return 1 if found["wrong"] or found["fault"] or found["crash"] or found["differs"] else 0
