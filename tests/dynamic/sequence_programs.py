"""sequence_programs.py: random graphs of the operators of sequences, with bodies in bodies; make_cases.py calls make().

In half of them some positions, trip counts and conditions are computed from an input, so that the graph runs segment by segment
and sequences are passed from segment to segment; in the others all is known while importing."""
import random

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

F, I, B = T.FLOAT, T.INT64, T.BOOL
N = h.make_node
PROGRAMS, STEPS, DEEPEST = 60, 14, 2


def info(name, kind=F, dims=(None, None)):
    return h.make_tensor_value_info(name, kind, dims)


def sequence(name):
    return h.make_tensor_sequence_value_info(name, F, None)


class Graph:
    """A graph in the making: its nodes, and the values that further nodes can read.  Lists are (name, length); tensors have
    four columns."""

    def __init__(self, program, lists, tensors, depth):
        self.program, self.r, self.depth = program, program.r, depth
        self.nodes, self.lists, self.tensors = [], list(lists), list(tensors)

    def name(self):
        self.program.names += 1
        return f"v{self.program.names}"

    def add(self, op, inputs, **attributes):
        self.nodes.append(N(op, inputs, [self.name()], **attributes))
        return self.nodes[-1].output[0]

    def number(self, value):
        """Returns a constant, or the constant plus `none`, a computed zero, so that it is known only when that has been computed."""
        name = self.name()
        self.program.inits[name] = np.array(value, np.int64)
        return self.add("Add", [name, "none"]) if self.program.late and self.r.random() < 0.5 else name

    def condition(self):
        if self.program.late and self.r.random() < 0.6:
            return self.add("Equal", ["none", self.number(self.r.randint(0, 1))])
        name = self.name()
        self.program.inits[name] = np.array(self.r.random() < 0.5)
        return name

    def inner(self, **more):
        """Returns a body that can read the values of this graph."""
        g = Graph(self.program, self.lists, self.tensors, self.depth + 1)
        g.grow(**more)
        return g

    def grow(self, steps=2):
        kinds = [construct, insert, erase, at, split, identity]
        kinds += [concat, length, map_, loop, if_] if self.depth < DEEPEST else []
        for _ in range(steps):
            self.r.choice(kinds)(self)

    def a_list(self, least=0):
        """Returns a list of at least that length, or (None, 0) if there is none."""
        found = [x for x in self.lists if x[1] >= least]
        return self.r.choice(found) if found else (None, 0)


def construct(g):
    parts = [g.r.choice(g.tensors) for _ in range(g.r.randint(1, 3))]
    g.lists.append((g.add("SequenceConstruct", parts), len(parts)))


def insert(g):
    s, n = g.a_list()
    if s:
        at = [g.number(g.r.randint(-n, n))] if g.r.random() < 0.7 else []
        g.lists.append((g.add("SequenceInsert", [s, g.r.choice(g.tensors), *at]), n + 1))


def erase(g):
    s, n = g.a_list(least=2)
    if s:
        at = [g.number(g.r.randint(-n, n - 1))] if g.r.random() < 0.7 else []
        g.lists.append((g.add("SequenceErase", [s, *at]), n - 1))


def at(g):
    s, n = g.a_list(least=1)
    if s:
        g.tensors.append(g.add("SequenceAt", [s, g.number(g.r.randint(-n, n - 1))]))


def concat(g):
    s, n = g.a_list(least=1)
    if s and n <= 6:
        g.tensors.append(g.add("ConcatFromSequence", [s], axis=0))


def split(g):
    s = g.add("SplitToSequence", [g.r.choice(g.tensors), g.number(2)], axis=1)
    g.tensors.append(g.add("ConcatFromSequence", [s], axis=1))


def identity(g):
    s, n = g.a_list()
    if s:
        g.lists.append((g.add("Identity", [s]), n))


def length(g):
    s, _ = g.a_list()
    if s:
        g.tensors.append(g.add("Add", [g.add("Cast", [g.add("SequenceLength", [s])], to=F), g.r.choice(g.tensors)]))


def map_(g):
    s, n = g.a_list(least=1)
    if s:
        body = Graph(g.program, [], [g.name()], DEEPEST)
        element = body.tensors[0]
        body.grow()
        result = body.add("Neg", [body.tensors[-1]])
        g.lists.append((g.add("SequenceMap", [s], body=h.make_graph(body.nodes, "body", [info(element)], [info(result)])), n))


def loop(g):
    s, n = g.a_list()
    if s:
        trips, step, go, carried = g.r.randint(0, 4), g.name(), g.name(), g.name()
        body = g.inner()
        on, grown = body.add("Identity", [go]), body.add("SequenceInsert", [carried, body.tensors[-1]])
        graph = h.make_graph(body.nodes, "body", [info(step, I, []), info(go, B, []), sequence(carried)],
                             [info(on, B, []), sequence(grown)])
        g.lists.append((g.add("Loop", [g.number(trips), "", s], body=graph), n + trips))


def if_(g):
    s, n = g.a_list()
    if s:
        branches = {}
        for name in ("then_branch", "else_branch"):
            body = g.inner(steps=1)
            grown = body.add("SequenceInsert", [s, body.tensors[-1]])
            branches[name] = h.make_graph(body.nodes, name, [], [sequence(grown)])
        g.lists.append((g.add("If", [g.condition()], **branches), n + 1))


class Program:
    """A random program.  Its value `none` is a computed zero: the smallest of 0 and 40 numbers that are not negative."""

    def __init__(self, seed):
        self.r, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.names, self.late = 0, seed % 2 == 0
        self.inits = {"low": np.array(0, np.float32)}
        self.inputs = {f"x{k}": self.array(self.r.randint(1, 3), 4) for k in range(3)}
        self.main = Graph(self, [], self.inputs, 0)
        if self.late:
            self.inputs["many"] = np.abs(self.array(40))
            self.main.nodes = [N("ReduceMin", ["many"], ["least"], keepdims=0), N("Min", ["least", "low"], ["smaller"]),
                               N("Cast", ["smaller"], ["none"], to=I)]
        self.main.grow(STEPS)

    def array(self, *dims):
        return self.rng.standard_normal(dims).astype(np.float32)

    def outputs(self):
        g, out = self.main, [(self.main.add("Neg", [self.main.tensors[-1]]), F, [None, 4])]
        for s, n in g.lists[-2:]:
            out.append((g.add("SequenceLength", [s]), I, []))
            if n:
                out.append((g.add("SequenceAt", [s, g.number(n - 1)]), F, [None, 4]))
        return out


def make(case):
    for seed in range(PROGRAMS):
        p = Program(seed)
        outputs = p.outputs()
        case(f"sequence_program_{seed}", p.main.nodes, [(k, F, list(v.shape)) for k, v in p.inputs.items()], outputs,
             [list(p.inputs.values())], inits=list(p.inits.items()), opset=18)
