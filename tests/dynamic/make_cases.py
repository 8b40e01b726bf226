"""make_cases.py FOLDER: models whose sizes depend on what they compute, as ONNX test cases of several data sets each, so that
one model runs with different sizes one after the other.  What is expected comes from ONNX Runtime.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import nms_cases
import open_cases
import sequence_cases
import sequence_programs

F, I, B = T.FLOAT, T.INT64, T.BOOL
N = h.make_node
out = sys.argv[1]
rng = np.random.default_rng(0)


def info(name, kind, dims):
    return h.make_tensor_value_info(name, kind, dims)


def const(name, value):
    return N("Constant", [], [name], value=nh.from_array(np.asarray(value)))


def ints(name, *values):
    return const(name, np.array(values, np.int64))


def x(*dims):
    return rng.standard_normal(dims).astype(np.float32)


def write(path, value):
    with open(path, "wb") as f:
        f.write(nh.from_array(value).SerializeToString())


def case(name, nodes, inputs, outputs, sets, inits=(), functions=(), opset=17, check=True):
    graph = h.make_graph(nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs],
                         initializer=[nh.from_array(np.asarray(v), k) for k, v in inits])
    opsets = [h.make_opsetid("", opset)] + ([h.make_opsetid("local", 1)] if functions else [])
    model = h.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8)
    if check:
        onnx.checker.check_model(model)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options)
    for k, values in enumerate(sets):
        path = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(path, exist_ok=True)
        results = session.run(None, {i[0]: v for i, v in zip(inputs, values)})
        for j, v in enumerate(values):
            write(os.path.join(path, f"input_{j}.pb"), v)
        for j, v in enumerate(results):
            write(os.path.join(path, f"output_{j}.pb"), v)


# the last one makes empty arrays
xs = [[x(4, 5)], [x(4, 5)], [-np.abs(x(4, 5))]]
matrix = [("x", F, [4, 5])]

# --- results of NonZero and what follows them ---

case("nonzero", [N("Relu", ["x"], ["r"]), N("NonZero", ["r"], ["nz"]), N("Transpose", ["nz"], ["t"], perm=[1, 0]),
                 N("GatherND", ["x", "t"], ["y"])],
     matrix, [("nz", I, [2, None]), ("y", F, [None])], xs)
case("shape_of_nonzero", [N("Relu", ["x"], ["r"]), N("NonZero", ["r"], ["nz"]), N("Shape", ["nz"], ["s"]), ints("two", 2),
                          ints("one", 1), N("Gather", ["s", "one"], ["n"]), N("Concat", ["two", "n"], ["sh"], axis=0),
                          N("ConstantOfShape", ["sh"], ["z"], value=nh.from_array(np.array([3.5], np.float32))),
                          N("ReduceSum", ["z"], ["sum"], keepdims=0), N("MatMul", ["x2", "x"], ["mm"]),
                          N("Add", ["mm", "sum"], ["y"])],
     matrix + [("x2", F, [3, 4])], [("z", F, [2, None]), ("y", F, [3, 5])], [[a[0], x(3, 4)] for a in xs])
case("unique", [N("Round", ["x"], ["r"]), N("Unique", ["r"], ["u", "ui", "uv", "uc"]), N("Mul", ["u", "u"], ["u2"])],
     matrix, [("u", F, [None]), ("ui", I, [None]), ("uv", I, [20]), ("uc", I, [None]), ("u2", F, [None])], xs)
case("compress", [N("ReduceSum", ["x", "one"], ["s"], keepdims=0), const("zero", np.float32(0)), N("Greater", ["s", "zero"], ["c"]),
                  N("Compress", ["x", "c"], ["rows"], axis=0), N("Compress", ["x", "c"], ["flat"]), N("Exp", ["rows"], ["e"])],
     matrix, [("rows", F, [None, 5]), ("flat", F, [None]), ("e", F, [None, 5])], xs, inits=[("one", np.array([1], np.int64))])

rows = [N("Relu", ["x"], ["r"]), N("NonZero", ["r"], ["nz"]), ints("zero", 0), ints("one", 1), ints("two", 2),
        N("Gather", ["nz", "i0"], ["ri"], axis=0), N("Gather", ["x", "ri"], ["rows"], axis=0)]
i0 = [("i0", np.array(0, np.int64))]
case("gather_rows", rows + [N("Mul", ["rows", "rows"], ["sq"]), N("Greater", ["rows", "sq"], ["gt"]), N("Where", ["gt", "rows", "sq"], ["w"]), N("Unsqueeze", ["w", "one"], ["u"]),
      N("Concat", ["u", "u"], ["c"], axis=1), N("Slice", ["c", "one", "two", "two"], ["sl"]), N("Transpose", ["sl"], ["t"], perm=[2, 0, 1]),
      N("Cast", ["t"], ["y"], to=T.INT32)],
     matrix, [("rows", F, [None, 5]), ("y", T.INT32, [5, None, 2])], xs, inits=i0)
case("reshape_rows", rows + [N("Reshape", ["rows", "sh"], ["a"]), N("Squeeze", ["a", "one"], ["b"]), N("Reshape", ["rows", "flat"], ["c"]),
                             N("Size", ["rows"], ["size"]), N("Shape", ["b"], ["shape"])],
     matrix, [("b", F, [None, 5]), ("c", F, [None]), ("size", I, []), ("shape", I, [2])], xs,
     inits=i0 + [("sh", np.array([-1, 1, 5], np.int64)), ("flat", np.array([-1], np.int64))])
case("rows_that_leave", rows + [N("MatMul", ["rows", "w"], ["m"]), N("Relu", ["m"], ["mr"]), N("ReduceMean", ["mr"], ["mean"], axes=[1], keepdims=0),
                                N("Softmax", ["m"], ["sm"], axis=1)],
     matrix + [("w", F, [5, 3])], [("mean", F, [None]), ("sm", F, [None, 3])], [[a[0], x(5, 3)] for a in xs], inits=i0)
case("two_sizes", [N("Relu", ["x"], ["r"]), N("NonZero", ["r"], ["p"]), N("Neg", ["x"], ["n"]), N("Relu", ["n"], ["nr"]), N("NonZero", ["nr"], ["q"]),
                   N("Concat", ["p", "q"], ["all"], axis=1), N("Shape", ["all"], ["s"])],
     matrix, [("all", I, [2, None]), ("s", I, [2])], xs)
case("unique_axis", [N("Round", ["x"], ["r0"]), N("Clip", ["r0", "lo", "hi"], ["r"]), N("Unique", ["r"], ["u", "ui", "uv", "uc"], axis=1),
                     N("Unique", ["r"], ["v", "vi", "vv", "vc"], sorted=0)],
     [("x", F, [2, 9])], [("u", F, [2, None]), ("ui", I, [None]), ("uv", I, [9]), ("uc", I, [None]), ("v", F, [None]), ("vi", I, [None]),
                          ("vv", I, [18]), ("vc", I, [None])], [[x(2, 9)], [x(2, 9)], [np.zeros((2, 9), np.float32)]],
     inits=[("lo", np.float32(-1)), ("hi", np.float32(1))])

# --- sizes that are computed ---

magnitude = [N("ReduceMax", ["x"], ["mx"], keepdims=0), N("Abs", ["mx"], ["ma"]), N("Ceil", ["ma"], ["mc"]),
             N("Cast", ["mc"], ["ci"], to=I)]
case("topk", magnitude + [ints("one", 1), ints("four", 4), N("Min", ["ci", "four"], ["k1"]), N("Max", ["k1", "one"], ["k2"]),
                          N("TopK", ["x", "k2"], ["v", "i"], axis=1)],
     matrix, [("v", F, [4, None]), ("i", I, [4, None])], xs)
case("range_slice_pad_tile", magnitude + [const("fz", np.float32(0)), const("fo", np.float32(1)), N("Range", ["fz", "mc", "fo"], ["r"]),
                                          ints("sh1", 1), N("Reshape", ["ci", "sh1"], ["c1"]), ints("z1", 0),
                                          N("Slice", ["x", "z1", "c1"], ["sl"]), N("Concat", ["z1", "c1", "c1", "z1"], ["pads"], axis=0),
                                          N("Pad", ["x", "pads"], ["pd"]), N("Tile", ["r", "c1"], ["tl"])],
     matrix, [("r", F, [None]), ("sl", F, [None, 5]), ("pd", F, [None, None]), ("tl", F, [None])], xs)
case("expand_reshape", magnitude + [ints("sh1", 1), N("Reshape", ["ci", "sh1"], ["c1"]), ints("rest", 4, 5),
                                    N("Concat", ["c1", "rest"], ["sh"], axis=0), N("Expand", ["x", "sh"], ["e"]),
                                    N("Concat", ["c1", "minus"], ["sh2"], axis=0), N("Reshape", ["e", "sh2"], ["y"])],
     matrix, [("e", F, [None, 4, 5]), ("y", F, [None, None])], xs[:2], inits=[("minus", np.array([-1], np.int64))])
image = [("x", F, [1, 2, 4, 5])]
case("resize", [N("Shape", ["x"], ["s"])] + magnitude +
     [ints("ones", 1, 1, 1, 1), N("Add", ["ci", "ones"], ["sz0"]), ints("z0", 0), ints("two", 2), ints("four", 4),
      N("Slice", ["s", "z0", "two"], ["s01"]), N("Slice", ["sz0", "two", "four"], ["s23"]),
      N("Concat", ["s01", "s23"], ["sz"], axis=0), N("Resize", ["x", "", "", "sz"], ["y"], mode="linear")],
     image, [("y", F, [1, 2, None, None])], [[x(1, 2, 4, 5)], [3 * x(1, 2, 4, 5)]])

# --- control flow ---

grow = h.make_graph([N("Identity", ["c"], ["c2"]), N("Concat", ["s", "s"], ["s2"], axis=0), N("ReduceSum", ["s"], ["e"], keepdims=0)],
                    "grow", [info("i", I, []), info("c", B, []), info("s", F, [None])],
                    [info("c2", B, []), info("s2", F, [None]), info("e", F, [])])
growing = [("vo", F, [None]), ("es", F, [None])]
case("loop_growing", [N("Loop", ["m", "", "v"], ["vo", "es"], body=grow)], [("m", I, []), ("v", F, [3])], growing,
     [[np.array(k, np.int64), x(3)] for k in (0, 1, 4)])
case("loop_growing_computed", [N("ReduceSum", ["v"], ["sv"], keepdims=0), N("Cast", ["sv"], ["mi"], to=I), N("Abs", ["mi"], ["m"]),
                               N("Loop", ["m", "", "v"], ["vo", "es"], body=grow)], [("v", F, [3])], growing,
     [[np.array(v, np.float32)] for v in ([1, 1, 1], [1, 1, 3], [0, 0, 0])])
# no rank is declared, which onnx.checker refuses and ONNX Runtime accepts: if no step is made, the empty output has the
# dimensions that a step would give it
unranked = h.make_graph([N("Identity", ["c"], ["c2"]), N("Concat", ["s", "s"], ["s2"], axis=0), N("Neg", ["pair"], ["e"])], "unranked",
                        [info("i", I, []), info("c", B, []), info("s", F, None)], [info("c2", B, []), info("s2", F, None), info("e", F, None)])
case("loop_growing_unranked", [N("ReduceSum", ["v"], ["sv"], keepdims=0), N("Cast", ["sv"], ["m"], to=I),
                               N("Loop", ["m", "", "v"], ["vo", "es"], body=unranked)], [("v", F, [3]), ("pair", F, [2, 5])],
     [("vo", F, None), ("es", F, None)], [[np.array(v, np.float32), x(2, 5)] for v in ([0, 0, 0], [1, 1, 1], [-1, 0, 0])],
     check=False)
double = h.make_graph([N("Mul", ["s", "two"], ["s2"]), N("ReduceMax", ["s2"], ["mx"], keepdims=0), N("Less", ["mx", "lim"], ["c2"]),
                       N("Add", ["s", "cap"], ["e"])], "double", [info("i", I, []), info("c", B, []), info("s", F, [3])],
                      [info("c2", B, []), info("s2", F, [3]), info("e", F, [3])],
                      initializer=[nh.from_array(np.float32(2), "two"), nh.from_array(np.float32(100), "lim")])
for bits in (63, 55): # 2^55 steps are a size, but 2^55 steps of 3 numbers are none
    case(f"loop_until_{bits}", [N("Add", ["v", "v"], ["cap"]), const("big", np.array(2**bits - 1, np.int64)), const("t", np.array(True)),
                                N("Loop", ["big", "t", "v"], ["vo", "es"], body=double)], [("v", F, [3])],
         [("vo", F, [3]), ("es", F, [None, 3])], [[np.array([1, 2, 3], np.float32)], [np.array([60, 2, 3], np.float32)]])
bounded = h.make_graph(list(double.node), "bounded", list(double.input), list(double.output), initializer=list(double.initializer))
case("loop_at_most", [N("Add", ["v", "v"], ["cap"]), const("big", np.array(9, np.int64)), const("t", np.array(True)),
                      N("Loop", ["big", "t", "v"], ["vo", "es"], body=bounded),
                      N("Neg", ["es"], ["nes"]), N("Exp", ["nes"], ["y"])], [("v", F, [3])],
     [("vo", F, [3]), ("es", F, [None, 3]), ("y", F, [None, 3])],
     [[np.array([1, 2, 3], np.float32)], [np.array([60, 2, 3], np.float32)], [np.array([0, 0, 0], np.float32)]])
some = h.make_graph([N("NonZero", ["x"], ["a"])], "some", [], [info("a", I, [2, None])])
none = h.make_graph([const("b", np.array([[1], [2]], np.int64))], "none", [], [info("b", I, [2, 1])])
case("if_shapes", [N("ReduceSum", ["x"], ["s"], keepdims=0), const("z", np.float32(0)), N("Greater", ["s", "z"], ["c"]),
                   N("If", ["c"], ["y"], then_branch=some, else_branch=none)], matrix, [("y", I, [2, None])], xs)
steps = h.make_graph([N("NonZero", ["e"], ["q"]), N("Shape", ["q"], ["w"]), N("Cast", ["w"], ["wf"], to=F),
                      N("ReduceSum", ["wf"], ["ws"], keepdims=0), N("Add", ["st", "ws"], ["st2"]), N("Identity", ["st2"], ["o"])],
                     "steps", [info("st", F, []), info("e", F, [5])], [info("st2", F, []), info("o", F, [])])
case("scan", [const("z", np.float32(0)), N("Relu", ["x"], ["r"]), N("Scan", ["z", "r"], ["fin", "seq"], body=steps, num_scan_inputs=1)],
     matrix, [("fin", F, []), ("seq", F, [4])], xs)
nest = h.make_graph([N("NonZero", ["acc"], ["q"]), N("Shape", ["q"], ["w"]), N("Slice", ["w", "c1", "c2"], ["k"]),
                     N("ReduceSum", ["acc"], ["sum"], keepdims=0), N("Greater", ["sum", "lim"], ["big"]),
                     N("If", ["big"], ["acc2"], then_branch=h.make_graph([N("Concat", ["acc", "x0"], ["t"], axis=0)], "t", [], [info("t", F, [None])]),
                       else_branch=h.make_graph([N("Concat", ["acc", "acc"], ["e"], axis=0)], "e", [], [info("e", F, [None])])),
                     N("Identity", ["c"], ["c2o"]), N("Identity", ["k"], ["ko"])], "nest",
                    [info("i", I, []), info("c", B, []), info("acc", F, [None])],
                    [info("c2o", B, []), info("acc2", F, [None]), info("ko", I, [1])],
                    initializer=[nh.from_array(np.array([1], np.int64), "c1"), nh.from_array(np.array([2], np.int64), "c2"),
                                 nh.from_array(np.float32(1), "lim")])
case("loop_if_concat", [const("m", np.array(4, np.int64)), N("Relu", ["x0"], ["start"]), N("Loop", ["m", "", "start"], ["acc", "ks"], body=nest)],
     [("x0", F, [3])], [("acc", F, [None]), ("ks", I, [4, 1])], [[x(3)], [x(3)], [np.array([2, -1, 3], np.float32)]])
inner = h.make_function("local", "zeros_of", ["a"], ["b"],
                        [N("Relu", ["a"], ["r"]), N("NonZero", ["r"], ["q"]), N("Shape", ["q"], ["w"]),
                         N("ConstantOfShape", ["w"], ["b"])], [h.make_opsetid("", 17)])
case("function", [N("Neg", ["x"], ["n"]), N("zeros_of", ["n"], ["y"], domain="local")], matrix, [("y", F, [2, None])], xs,
     functions=[inner])

# --- more of them ---

nms_cases.make(case)
open_cases.make(case)
sequence_cases.make(case)
sequence_programs.make(case)
