"""page_models.py FOLDER: writes the models of which doc/objects.md speaks, and one without inputs."""
import struct
import sys

import onnx_writer as w

FLOAT = 1


def integer(name, value):
    return w.field(5, w.field(1, name) + w.field(3, value) + w.field(20, 2))


def net():
    weights = w.tensor(FLOAT, [4, 2], struct.pack("<8f", 1, 0, 0, 1, 1, 0, 0, 1), "weights")
    bias = w.tensor(FLOAT, [2], struct.pack("<2f", *BIAS), "bias")
    nodes = [w.node("MatMul", ["x", "weights"], ["product"]), w.node("Add", ["product", "bias"], ["y"])]
    return w.model(nodes, [w.value("x", FLOAT, ["batch", 4])], [w.value("y", FLOAT, ["batch", 2])], [weights, bias])


def sums():
    nodes = [w.node("Add", ["x", "state"], ["next"]), w.node("Neg", ["next"], ["y"])]
    inputs, outputs = ([w.value(name, FLOAT, [1]) for name in names] for names in (["x", "state"], ["y", "next"]))
    return w.model(nodes, inputs, outputs)


def cache():
    nodes = [w.node("Concat", ["past", "x"], ["present"], integer("axis", 0)),
             w.node("ReduceMax", ["present"], ["y"], integer("keepdims", 0))]
    inputs = [w.value("x", FLOAT, [1, 2]), w.value("past", FLOAT, ["rows", 2])]
    return w.model(nodes, inputs, [w.value("y", FLOAT, []), w.value("present", FLOAT, [None, 2])])


def constant():
    three = w.tensor(FLOAT, [1], struct.pack("<f", 3), "three")
    return w.model([w.node("Identity", ["three"], ["y"])], [], [w.value("y", FLOAT, [1])], [three])


BIAS = (4.5, 2.5)
for name, model in ("net", net), ("sum", sums), ("cache", cache), ("constant", constant):
    w.write(f"{sys.argv[1]}/{name}.onnx", model())
