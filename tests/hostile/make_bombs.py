"""make_bombs.py DIR: writes small models that need more memory or time than any machine has, each to a file in DIR, and
DIR/bombs, with a line for each model:

    NAME <tab> what may happen: refused, or any (a compiler may also find a short way) <tab> extra arguments of onnx-xla run

run_bombs.py runs them.  Inputs are tiny: arrays and numbers of iterations become large by shapes and constants in the model."""
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BIG = 1 << 40
bombs = []
node = helper.make_node


def info(name, dims, kind=F):
    return helper.make_tensor_value_info(name, kind, dims)


def const(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def bomb(name, nodes, tensors=(), inputs=None, outputs=("y",), expect="refused", arguments="", opset=21,
         functions=()):
    inputs = [info("x", [1])] if inputs is None else inputs
    graph = helper.make_graph(nodes, "bomb", inputs, [info(o, None) for o in outputs], list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in (("", opset), ("local", 1))],
                              functions=list(functions), ir_version=10)
    with open(name + ".onnx", "wb") as f:
        f.write(model.SerializeToString())
    bombs.append((name, expect, arguments))


def filled(name, dims, value=1.0):
    """Returns the node and the constant that make a large array of one value."""
    return [node("ConstantOfShape", [name + "_dims"], [name], name=name,
                 value=numpy_helper.from_array(np.array([value], np.float32)))], [const(name + "_dims", dims)]


# --- sizes -------------------------------------------------------------------------------------------------------


def sizes():
    bomb("expand", [node("Expand", ["x", "s"], ["y"], name="n")], [const("s", [BIG])])
    bomb("tile", [node("Tile", ["x", "s"], ["y"], name="n")], [const("s", [BIG])])
    bomb("pad", [node("Pad", ["x", "s"], ["y"], name="n")], [const("s", [BIG, BIG])])
    bomb("pad_reflect", [node("Pad", ["x", "s"], ["y"], name="n", mode="wrap")], [const("s", [0, BIG])])
    bomb("constant", [node("ConstantOfShape", ["s"], ["c"], name="n"), node("Add", ["x", "c"], ["y"])], [const("s", [BIG])])
    bomb("range", [node("Range", ["a", "b", "d"], ["y"], name="n")], [const("a", 0), const("b", BIG), const("d", 1)])
    bomb("range_float", [node("Range", ["a", "b", "d"], ["y"], name="n")],
         [const(n, v, np.float32) for n, v in (("a", 0), ("b", 1), ("d", 1e-30))])
    bomb("range_nan", [node("Range", ["a", "b", "d"], ["y"], name="n")],
         [const(n, v, np.float32) for n, v in (("a", 0), ("b", 1), ("d", np.nan))])
    bomb("range_inf", [node("Range", ["a", "b", "d"], ["y"], name="n")],
         [const(n, v, np.float32) for n, v in (("a", 0), ("b", np.inf), ("d", 1))])
    bomb("one_hot", [node("OneHot", ["i", "d", "v"], ["y"], name="n")], [const("d", BIG), const("v", [0, 1], np.float32)],
         [info("i", [1], I64)])
    bomb("resize", [node("Resize", ["x", "", "", "s"], ["y"], name="n")], [const("s", [BIG])])
    bomb("resize_scale", [node("Resize", ["x", "", "s"], ["y"], name="n")], [const("s", [1e30], np.float32)])
    bomb("upsample", [node("Upsample", ["x", "s"], ["y"], name="n")], [const("s", [1e12], np.float32)], opset=9)
    bomb("eye", [node("EyeLike", ["e"], ["y"], name="n", k=1 << 62), node("Expand", ["x", "s"], ["e"])][::-1],
         [const("s", [1 << 16, 1 << 16])])
    bomb("hann", [node("HannWindow", ["s"], ["y"], name="n")], [const("s", BIG)])
    bomb("mel", [node("MelWeightMatrix", ["m", "d", "r", "lo", "hi"], ["y"], name="n")],
         [const("m", 1 << 20), const("d", 1 << 31), const("r", 16000), const("lo", 0, np.float32), const("hi", 8000, np.float32)])
    doubling = [node("Concat", ["x" if k == 0 else f"c{k}"] * 2, ["y" if k == 39 else f"c{k + 1}"], axis=0, name=f"n{k}")
                for k in range(40)]
    bomb("concat_doubling", doubling)
    wide, dims = filled("w", [1 << 27])
    bomb("gather", wide +
         [node("Sub", ["w", "w"], ["z"]), node("Cast", ["z"], ["i"], to=I64), node("Gather", ["x", "i"], ["y"], name="n")], dims)
    bomb("unpool", [node("MaxUnpool", ["p", "i", "s"], ["y"], name="n", kernel_shape=[1, 1])],
         [const("s", [1, 1, 1 << 20, 1 << 20])], [info("p", [1, 1, 1, 1]), info("i", [1, 1, 1, 1], I64)])
    bomb("col2im", [node("Col2Im", ["c", "s", "b"], ["y"], name="n")], [const("s", [1 << 40, 1]), const("b", [1 << 40, 1])],
         [info("c", [1, 1 << 40, 1])])
    bomb("attention", [node("Expand", ["q", "s"], ["e"]), node("Attention", ["e", "e", "e"], ["y"], name="n")],
         [const("s", [1, 16, 1 << 17, 64])], [info("q", [1, 16, 1, 64])], opset=23)
    sparse = TensorProto(name="v", data_type=F, dims=[1], raw_data=b"\0\0\x80?")
    places = TensorProto(name="i", data_type=I64, dims=[1], raw_data=b"\7" + b"\0" * 7)
    bomb("sparse", [node("Constant", [], ["c"], name="n", sparse_value=helper.make_sparse_tensor(sparse, places, [BIG])),
                    node("Add", ["x", "c"], ["y"])])


# --- work --------------------------------------------------------------------------------------------------------


def work():
    a, dims = filled("a", [100000, 100000])
    bomb("matmul", a + [node("MatMul", ["a", "a"], ["y"], name="n")], dims)
    # There is enough memory, but there are 2^42 multiplications, of numbers that differ, so that they cannot be
    # simplified.
    side = 1 << 13
    bomb("matmul_long", [node("Expand", ["x", "s"], ["e"]), node("Expand", ["z", "t"], ["f"]), node("Mul", ["e", "f"], ["g"])] +
         [node("MatMul", ["g" if k == 0 else f"m{k}", "g"], ["y" if k == 15 else f"m{k + 1}"], name=f"n{k}") for k in range(16)],
         [const("s", [side, side]), const("t", [side, side])], [info("x", [side, 1]), info("z", [1, side])],
         arguments="--max-memory 2G")
    bomb("matmul_double", [node("Expand", ["x", "s"], ["e"]), node("Expand", ["z", "t"], ["f"]), node("Mul", ["e", "f"], ["g"]),
                           node("Cast", ["g"], ["h"], to=TensorProto.DOUBLE), node("MatMul", ["h", "h"], ["y"], name="n")],
         [const("s", [4096, 4096]), const("t", [4096, 4096])], [info("x", [4096, 1]), info("z", [1, 4096])],
         arguments="--max-memory 2G", expect="any")
    k, kd = filled("k", [1, 1, 2048, 2048])
    bomb("conv_kernel", k + [node("Expand", ["x", "s"], ["e"]), node("Conv", ["e", "k"], ["y"], name="n", pads=[1024] * 4)],
         kd + [const("s", [1, 1, 4096, 4096])], [info("x", [1, 1, 1, 4096])], arguments="--max-memory 4G")
    bomb("conv_transpose", k + [node("Expand", ["x", "s"], ["e"]), node("ConvTranspose", ["e", "k"], ["y"], name="n")],
         kd + [const("s", [1, 1, 2048, 2048])], [info("x", [1, 1, 1, 2048])], arguments="--max-memory 4G")
    for op in ("MaxPool", "AveragePool", "LpPool"):
        bomb("pool_" + op.lower(), [node("Expand", ["x", "s"], ["e"]), node(op, ["e"], ["y"], name="n", kernel_shape=[2048, 2048])],
             [const("s", [1, 1, 4096, 4096])], [info("x", [1, 1, 1, 4096])], arguments="--max-memory 1G", expect="any")
    bomb("reduce", [node("Expand", ["x", "s"], ["e"]), node("Exp", ["z"], ["t"]), node("Mul", ["e", "t"], ["g"]),
                    node("Sin", ["g"], ["h"]), node("ReduceSum", ["h"], ["y"], name="n", keepdims=0)],
         [const("s", [1 << 22, 1 << 22])], [info("x", [1, 1 << 22]), info("z", [1 << 22, 1])])
    bomb("reduce_columns", [node("Expand", ["x", "s"], ["e"]), node("Exp", ["z"], ["t"]), node("Mul", ["e", "t"], ["g"]),
                            node("Sin", ["g"], ["h"]), node("ReduceSum", ["h", "axes"], ["y"], name="n")],
         [const("s", [1 << 20, 1 << 22]), const("axes", [0])], [info("x", [1, 1 << 22]), info("z", [1 << 20, 1])])
    bomb("reduce_rows", [node("Expand", ["x", "s"], ["e"]), node("Exp", ["z"], ["t"]), node("Mul", ["e", "t"], ["g"]),
                         node("Sin", ["g"], ["h"]), node("ReduceMax", ["h", "axes"], ["y"], name="n")],
         [const("s", [1 << 22, 1 << 20]), const("axes", [1])], [info("x", [1, 1 << 20]), info("z", [1 << 22, 1])])
    bomb("reduce_plain", [node("Expand", ["x", "s"], ["e"]), node("ReduceSum", ["e"], ["y"], name="n", keepdims=0)],
         [const("s", [BIG])], expect="any")
    bomb("arg_max", [node("Expand", ["x", "s"], ["e"]), node("ArgMax", ["e"], ["y"], name="n")], [const("s", [1 << 38])], expect="any")
    bomb("cumsum", [node("Expand", ["x", "s"], ["e"]), node("CumSum", ["e", "axis"], ["y"], name="n")],
         [const("s", [1 << 27]), const("axis", 0)], expect="any", arguments="--max-memory 4G")
    bomb("top_k", [node("Expand", ["x", "s"], ["e"]), node("TopK", ["e", "k"], ["v", "y"], name="n")],
         [const("s", [1 << 27]), const("k", [5])], expect="any", arguments="--max-memory 4G")
    bomb("einsum", [node("Einsum", ["x"] * 6, ["y"], name="n", equation="a,b,c,d,e,f->")], [], [info("x", [1 << 10])], expect="any")
    bomb("einsum_out", [node("Einsum", ["x"] * 4, ["y"], name="n", equation="a,b,c,d->abcd")], [], [info("x", [1 << 10])])
    bomb("einsum_chain", [node("Expand", ["x", "s"], ["e"]),
                          node("Einsum", ["e"] * 8, ["y"], name="n", equation="ab,bc,cd,de,ef,fg,gh,hi->ai")],
         [const("s", [4096, 4096])], [info("x", [4096, 1])], expect="any", arguments="--max-memory 2G")
    bomb("attention_long", [node("Expand", ["q", "s"], ["e"]), node("Attention", ["e", "e", "e"], ["y"], name="n")],
         [const("s", [1, 8, 8192, 64])], [info("q", [1, 8, 1, 64])], opset=23, arguments="--max-memory 8G", expect="any")
    bomb("det", [node("Expand", ["x", "s"], ["e"]), node("Det", ["e"], ["y"], name="n")], [const("s", [3000, 3000])],
         [info("x", [3000, 1])], expect="any", arguments="--max-memory 1G")
    bomb("dft", [node("DFT", ["x"], ["y"], name="n")], [], [info("x", [1, 1 << 17, 1])], opset=20, expect="any")
    bomb("stft", [node("STFT", ["x", "step", "", "size"], ["y"], name="n")], [const("step", 1), const("size", 1 << 16)],
         [info("x", [1, 1 << 18, 1])], expect="any")
    bomb("lrn", [node("Expand", ["x", "s"], ["e"]), node("LRN", ["e"], ["y"], name="n", size=100001)],
         [const("s", [1, 1 << 18, 1, 8])], [info("x", [1, 1, 1, 8])], expect="any")
    bomb("grid_sample", [node("Expand", ["g", "s"], ["e"]), node("GridSample", ["x", "e"], ["y"], name="n", mode="cubic")],
         [const("s", [1, 4096, 4096, 2])], [info("x", [1, 4, 8, 8]), info("g", [1, 1, 1, 2])], expect="any")
    bomb("roi_align", [node("Expand", ["r", "s"], ["e"]), node("Expand", ["i", "t"], ["j"]),
                       node("RoiAlign", ["x", "e", "j"], ["y"], name="n", output_height=64, output_width=64, sampling_ratio=64)],
         [const("s", [1000, 4]), const("t", [1000])], [info("x", [1, 16, 64, 64]), info("r", [1, 4]), info("i", [1], I64)],
         expect="any")
    bomb("nms", [node("Expand", ["b", "s"], ["e"]), node("Expand", ["c", "t"], ["d"]),
                 node("NonMaxSuppression", ["e", "d", "m"], ["y"], name="n")],
         [const("s", [1, 100000, 4]), const("t", [1, 8, 100000]), const("m", 100000)], [info("b", [1, 1, 4]), info("c", [1, 8, 1])],
         expect="any")
    bomb("gemm_int", [node("Expand", ["x", "s"], ["e"]), node("MatMulInteger", ["e", "e"], ["y"], name="n")],
         [const("s", [8192, 8192])], [info("x", [8192, 1], TensorProto.INT8)], expect="any", arguments="--max-memory 2G")


# --- folding: nothing depends on an input ----------------------------------------------------------------------


def folding():
    a, dims = filled("a", [1 << 26])
    add = [node("Add", ["x", "r"], ["y"])]
    bomb("fold_reduce", a + [node("Exp", ["a"], ["e"]), node("ReduceSum", ["e"], ["r"], name="n", keepdims=0)] + add, dims, expect="any")
    chain = [node("Exp", ["a" if k == 0 else f"e{k}"], [f"e{k + 1}"], name=f"n{k}") for k in range(64)]
    bomb("fold_chain", a + chain + [node("Concat", [f"e{k + 1}" for k in range(64)] + ["x"], ["y"], axis=0)], dims, expect="any")
    ramp = [node("Range", ["zero", "many", "one"], ["v"])]
    numbers = [const("zero", 0, np.float32), const("many", 1 << 22, np.float32), const("one", 1, np.float32)]
    bomb("fold_range", ramp + [node("Sin", ["v" if k == 0 else f"s{k}"], [f"s{k + 1}"], name=f"n{k}") for k in range(200)] +
         [node("ReduceSum", ["s200"], ["r"], keepdims=0)] + add, numbers, expect="any")
    small = [const("zero", 0, np.float32), const("many", 1 << 12, np.float32), const("one", 1, np.float32)]
    outer = [node("Unsqueeze", ["v", "ax0"], ["row"]), node("Unsqueeze", ["v", "ax1"], ["col"])]
    axes = [const("ax0", [0]), const("ax1", [1])]
    bomb("fold_outer", ramp + outer + [node("MatMul", ["col", "row"], ["m0"])] +
         [node("MatMul", [f"m{k}", "m0"], [f"m{k + 1}"], name=f"n{k}") for k in range(50)] +
         [node("ReduceSum", ["m50"], ["r"], keepdims=0)] + add, small + axes, expect="any")
    bomb("fold_top_k", ramp + [node("TopK", ["v", "all"], [f"t{k}", f"i{k}"], name=f"n{k}") if k == 0 else
                               node("TopK", [f"t{k - 1}", "all"], [f"t{k}", f"i{k}"], name=f"n{k}", largest=k % 2)
                               for k in range(60)] + [node("ReduceSum", ["t59"], ["r"], keepdims=0)] + add,
         numbers + [const("all", [1 << 22])], expect="any")
    bomb("fold_pool", ramp + [node("Reshape", ["v", "image"], ["p"]),
                              node("MaxPool", ["p"], ["q"], name="n", kernel_shape=[1001, 1001], pads=[500] * 4),
                              node("ReduceSum", ["q"], ["r"], keepdims=0)] + add,
         numbers + [const("image", [1, 1, 2048, 2048])], expect="any")
    bomb("fold_gather", ramp + [node("Cast", ["v"], ["i"], to=I64)] +
         [node("Gather", ["v" if k == 0 else f"g{k}", "i"], [f"g{k + 1}"], name=f"n{k}") for k in range(100)] +
         [node("ReduceSum", ["g100"], ["r"], keepdims=0)] + add, numbers, expect="any")
    body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Add", ["s", "one"], ["t"])], "body",
                             [info("i", [], I64), info("go", [], BOOL), info("s", [])], [info("on", [], BOOL), info("t", [])])
    bomb("fold_loop", [node("Loop", ["trips", "true", "zero"], ["r"], name="n", body=body)] + add,
         [const("trips", (1 << 63) - 1), const("true", True, np.bool_)] + numbers[::2])


# --- loops -------------------------------------------------------------------------------------------------------


def looping(trips, inner=None, shape=(1,)):
    """Returns a Loop node with `trips` iterations (None: for ever) of `inner`, a list of nodes that compute t from s."""
    inner = inner or [node("Add", ["s", "one"], ["t"])]
    body = helper.make_graph([node("Identity", ["go"], ["on"])] + inner, "body",
                             [info("i", [], I64), info("go", [], BOOL), info("s", list(shape))],
                             [info("on", [], BOOL), info("t", list(shape))])
    return node("Loop", [trips or "", "true", "x"], ["y"], name="n", body=body)


def loops():
    t = [const("true", True, np.bool_), const("one", [1], np.float32)]
    bomb("loop_forever", [looping(None)], t)
    bomb("loop_longest", [looping("trips")], t + [const("trips", (1 << 63) - 1)], expect="any")
    nest = None
    for k in range(6):
        step = looping("trips", nest)
        step.input[2], step.output[0] = "s", "t"
        nest = [step]
    nest[0].input[2], nest[0].output[0] = "x", "y"
    bomb("loop_nested", nest, t + [const("trips", 1 << 12)], expect="any")
    body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["t"]), node("Identity", ["s"], ["u"])],
                             "body", [info("i", [], I64), info("go", [], BOOL), info("s", [1024])],
                             [info("on", [], BOOL), info("t", [1024]), info("u", [1024])])
    bomb("loop_outputs", [node("Loop", ["trips", "", "x"], ["z", "y"], name="n", body=body)], [const("trips", BIG)],
         [info("x", [1024])])
    bomb("loop_heavy", [looping(None, [node("MatMul", ["s", "s"], ["t"])], (2048, 2048))], t[:1], [info("x", [2048, 2048])],
         arguments="--max-memory 1G")
    scan = helper.make_graph([node("Add", ["s", "e"], ["t"]), node("Sin", ["t"], ["u"])], "body", [info("s", []), info("e", [])],
                             [info("t", []), info("u", [])])
    bomb("scan", [node("Expand", ["x", "many"], ["e"]), node("Squeeze", ["x"], ["first"]),
                  node("Scan", ["first", "e"], ["last", "y"], name="n", body=scan, num_scan_inputs=1)], [const("many", [1 << 25])],
         arguments="--max-memory 1G")
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        bomb(op.lower(), [node("Expand", ["x", "s"], ["e"]), node(op, ["e", "w", "r"], ["y"], name="n", hidden_size=8)],
             [const("s", [1 << 22, 1, 8]), const("w", np.full((1, gates * 8, 8), .1), np.float32),
              const("r", np.full((1, gates * 8, 8), .1), np.float32)], [info("x", [1, 1, 8])], arguments="--max-memory 2G",
             expect="any")


def apart():
    """Loops whose bodies the host runs one by one, since sizes depend on what they compute."""
    t = [const("true", True, np.bool_), const("trips", BIG), const("one", [1], np.float32)]
    for name, by in (("apart_doubles", "s"), ("apart_grows", "one")):
        bomb(name, [looping("trips", [node("Concat", ["s", by], ["t"], axis=0)], [None])], t)
    step = [node("Identity", ["go"], ["on"]), node("NonZero", ["s"], ["p"]), node("Cast", ["p"], ["q"], to=F),
            node("Softmax", ["q"], ["r"]), node("ReduceSum", ["r"], ["u"], keepdims=0)]
    body = helper.make_graph(step, "body", [info("i", [], I64), info("go", [], BOOL), info("s", [1])],
                             [info("on", [], BOOL), info("s", [1]), info("u", [])])
    bomb("apart_outputs", [node("Loop", ["trips", "", "x"], ["z", "y"], name="n", body=body)], t, arguments="--max-memory 32M")
    calls = [helper.make_function("local", f"f{k}", ["a"], ["b"], [
        node("NonZero", ["a"], ["p"]), node("Cast", ["p"], ["q"], to=F), node("Softmax", ["q"], ["r"]),
        node(f"f{k + 1}", ["a"], ["b"], domain="local") if k < 999 else node("Neg", ["a"], ["b"])],
        [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]) for k in range(1000)]
    bomb("apart_calls", [node("f0", ["x"], ["y"], domain="local")], functions=calls)


# --- sequences ----------------------------------------------------------------------------------------------------


def sequences():
    t = [const("true", True, np.bool_), const("trips", BIG), const("one", [1], np.float32)]
    grow = collecting("x")
    bomb("sequence_loop", [node("SequenceEmpty", [], ["e"]), node("Loop", ["trips", "", "e"], ["s"], name="n", body=grow),
                           node("SequenceLength", ["s"], ["y"])], t)
    wide, dims = filled("w", [1 << 16])
    bomb("sequence_loop_wide", wide + [node("SequenceEmpty", [], ["e"]), node("Loop", ["trips", "", "e"], ["s"], name="n", body=collecting("w")),
                                       node("SequenceLength", ["s"], ["y"])], t + dims)
    bomb("sequence_split", [node("Expand", ["x", "s"], ["w"]), node("SplitToSequence", ["w"], ["l"], name="n"),
                            node("SequenceLength", ["l"], ["y"])], [const("s", [BIG])])
    split = [node("Expand", ["x", "size"], ["w"]), node("SplitToSequence", ["w"], ["l0"])]
    # The longest list that is allowed, moved by thousands of nodes, and maps within maps of it.
    moved = sum(([node("SequenceErase", [f"l{k}", "front"], [f"e{k}"]), node("SequenceInsert", [f"e{k}", "x", "front"], [f"l{k + 1}"])]
                 for k in range(20000)), [])
    bomb("sequence_moved", split + moved + [node("SequenceLength", ["l20000"], ["y"])],
         [const("size", [4096]), const("front", 0)], expect="any")
    inner = helper.make_graph([node("Neg", ["a0"], ["b0"])], "m0", [info("a0", None)], [info("b0", None)])
    for k in range(1, 4):
        nodes = [node("SequenceMap", ["l0"], [f"m{k}"], body=inner), node("ConcatFromSequence", [f"m{k}"], [f"b{k}"], axis=0)]
        inner = helper.make_graph(nodes, f"m{k}", [info(f"a{k}", None)], [info(f"b{k}", None)])
    bomb("sequence_maps", split + [node("SequenceMap", ["l0"], ["l"], name="n", body=inner), node("SequenceLength", ["l"], ["y"])],
         [const("size", [4096])])
    # 4,096 different slices of one array, in reverse order: nothing simplifies their concatenation.
    pieces = [f"p{k}" for k in range(4096)]
    bomb("concat_slices", [node("Split", ["a"], pieces, axis=0, num_outputs=4096), node("Concat", pieces[::-1], ["y"], axis=0)],
         inputs=[info("a", [4096])], expect="any")
    bomb("sequence_concat", split + [node("ConcatFromSequence", ["l0"], ["y"], axis=0)], [const("size", [4096])], expect="any")


def collecting(value):
    """Returns a loop's body that appends the same value in each iteration."""
    sequence = helper.make_tensor_sequence_value_info
    return helper.make_graph([node("Identity", ["go"], ["on"]), node("SequenceInsert", ["q", value], ["r"])], "body",
                             [info("i", [], I64), info("go", [], BOOL), sequence("q", F, None)],
                             [info("on", [], BOOL), sequence("r", F, None)])


# --- compiling ---------------------------------------------------------------------------------------------------


def compiling():
    n = 20000
    bomb("chain_elementwise", [node("Sin", ["x" if k == 0 else f"a{k}"], ["y" if k == n - 1 else f"a{k + 1}"]) for k in range(n)],
         expect="any")
    bomb("chain_shared", [node("Add", ["x" if k == 0 else f"a{k}"] * 2 if k % 2 else ["x" if k == 0 else f"a{k}", "x"],
                               ["y" if k == n - 1 else f"a{k + 1}"]) for k in range(n)], expect="any")
    wide = 1000
    bomb("many_kernels", [node("Softmax", ["x"], ["s"], axis=-1)] +
         sum(([node("Pad", ["s" if k == 0 else f"a{k}", "p"], [f"b{k}"]),
               node("Softmax", [f"b{k}"], ["y" if k == wide - 1 else f"a{k + 1}"], axis=-1)] for k in range(wide)), []),
         [const("p", [0, 1])], [info("x", [4])], expect="any")
    bomb("tree", [node("Mul", [f"a{k}", f"a{k}"], [f"a{k + 1}"]) for k in range(60)] + [node("Identity", ["a60"], ["y"])],
         [], [info("a0", [4])], expect="any")
    bomb("fibonacci", [node("Add", [f"a{k}", f"a{k + 1}"], [f"a{k + 2}"]) for k in range(300)] +
         [node("ReduceSum", ["a301", "axes"], ["y"])], [const("axes", [0])], [info("a0", [64]), info("a1", [64])], expect="any")
    bomb("gathers", [node("Gather", [f"a{k}", "i"], [f"b{k}"]) if j == 0 else node("Add", [f"b{k}", f"a{k}"], [f"a{k + 1}"])
                     for k in range(60) for j in range(2)] + [node("Identity", ["a60"], ["y"])], [],
         [info("a0", [64]), info("i", [64], I64)], expect="any")
    nest = [node("Sin", ["x"], ["r0"])]
    for k in range(20):
        branch = helper.make_graph(nest, f"b{k}", [], [info(f"r{k}", None)])
        nest = [node("If", ["c"], [f"r{k + 1}"], then_branch=branch,
                     else_branch=helper.make_graph([node("Neg", ["x"], [f"q{k}"])], f"e{k}", [], [info(f"q{k}", None)]))]
    bomb("if_nested", nest + [node("Identity", ["r20"], ["y"])], [], [info("c", [], BOOL), info("x", [1])], expect="any")
    many = [const(f"w{k}", np.arange(64) + k, np.float32) for k in range(5000)]
    bomb("concat_many", [node("Concat", [f"w{k}" for k in range(5000)] + ["x"], ["y"], axis=0)], many, expect="any")
    bomb("split_many", [node("Split", ["x"], [f"s{k}" for k in range(5000)], num_outputs=5000, name="n"),
                        node("Concat", [f"s{k}" for k in range(4999, -1, -1)], ["y"], axis=0)], [], [info("x", [5000])], expect="any")


def main():
    os.chdir(sys.argv[1])
    for group in (sizes, work, folding, loops, apart, sequences, compiling):
        group()
    with open("bombs", "w") as f:
        for row in bombs:
            f.write("\t".join(row) + "\n")


main()
