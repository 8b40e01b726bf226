"""Models whose inputs and outputs are sequences; the sets of a case have sequences of other lengths, and arrays of other shapes."""
import numpy as np
from onnx import TensorProto, helper

from runtime_cases import F32, floats

S64, BOOL = TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def sequence_of(kind=F32):
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None))


def lists(*lengths):
    """A set for each length, with the arrays xs [k+1, 3]."""
    return [{"xs": [floats(k + 1, 3) for k in range(n)]} for n in lengths]


def body(nodes, inputs, outputs):
    def info(name, kind):
        scalar = name in ("i", "go", "on")  # for which ONNX Runtime wants a shape
        return helper.make_tensor_value_info(name, kind, [] if scalar else None) if isinstance(kind, int) else helper.make_value_info(name, kind)
    return helper.make_graph(nodes, "body", [info(*v) for v in inputs], [info(*v) for v in outputs])


def write(w):
    def add(name, nodes, sets, outputs, constants=()):
        w.add_graph("sequences_" + name, nodes, sets, outputs, constants, one_program=False, opset=17)

    add("concat", [node("ConcatFromSequence", ["xs"], ["y"], axis=0)], lists(1, 4, 2), {"y": F32})
    add("identity", [node("Identity", ["xs"], ["ys"])], lists(3, 1), {"ys": sequence_of()})
    add("at_computed", [node("SequenceLength", ["xs"], ["n"]), node("Sub", ["n", "one"], ["last"]), node("SequenceAt", ["xs", "last"], ["a"]),
                        node("MatMul", ["a", "w"], ["y"]), node("SequenceInsert", ["xs", "y"], ["ys"])],
        [s | {"one": np.array(1), "w": floats(3, 5)} for s in lists(2, 5)], {"y": F32, "ys": sequence_of(), "n": S64}, ["one"])
    add("map", [node("SequenceMap", ["xs", "w"], ["ys", "shapes"],
                     body=body([node("MatMul", ["x", "v"], ["t"]), node("Tanh", ["t"], ["y"]), node("Shape", ["x"], ["s"])],
                               [("x", F32), ("v", F32)], [("y", F32), ("s", S64)]))],
        [s | {"w": floats(3, 4)} for s in lists(1, 3, 6)], {"ys": sequence_of(), "shapes": sequence_of(S64)})
    grow = body([node("Add", ["i", "one"], ["k0"]), node("Reshape", ["k0", "one1"], ["k"]), node("Identity", ["go"], ["on"]),
                 node("Slice", ["x", "zero", "k"], ["part"]), node("SequenceInsert", ["t", "part"], ["u"])],
                [("i", S64), ("go", BOOL), ("t", sequence_of())], [("on", BOOL), ("u", sequence_of())])
    add("loop", [node("SequenceEmpty", [], ["e"]), node("Loop", ["trips", "", "e"], ["ys"], body=grow)],
        [{"x": floats(9, 2), "trips": np.array(n), "zero": np.array([0]), "one": np.array(1), "one1": np.array([1])} for n in (1, 5, 3)],
        {"ys": sequence_of()}, ["zero", "one", "one1"])
    add("split", [node("SplitToSequence", ["x"], ["ys"], axis=0, keepdims=0), node("SequenceErase", ["ys", "one"], ["zs"])],
        [{"x": floats(n, 4), "one": np.array(1)} for n in (3, 7, 2)], {"ys": sequence_of(), "zs": sequence_of()}, ["one"])
    add("choice", [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "nought"], ["c"]),
                   node("If", ["c"], ["ys"],
                        then_branch=body([node("SequenceConstruct", ["x", "x"], ["a"])], [], [("a", sequence_of())]),
                        else_branch=body([node("Neg", ["x"], ["m"]), node("SequenceConstruct", ["m"], ["b"])], [], [("b", sequence_of())]))],
        [{"x": sign * np.abs(floats(n)), "nought": np.array(0, np.float32)} for n, sign in ((3, 1), (3, -1), (6, -1), (6, 1))],
        {"ys": sequence_of()}, ["nought"])
