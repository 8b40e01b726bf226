"""make_hostile.py DIR: writes bad models, each to a file, and DIR/cases, with a line for each:

    NAME <tab> arguments of onnx-xla <tab> extended regular expression that the message must match

Arguments are relative to DIR.  Every case must end with exit status 1 and a message of one line; if the pattern is "*", exit
status 0 is right, too.  Models are valid protobuf unless the name says otherwise, so that they are refused for the rule which
they break.  DIR/net.onnx and DIR/net_open.onnx are valid: a small network with operators of all kinds, for tests that damage
files."""
import os
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

import hostile_more
import hostile_sequences

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BIG = 1 << 40
cases = []


def info(name, dims, kind=F):
    return helper.make_tensor_value_info(name, kind, dims)


def const(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def make(nodes, inputs, outputs, initializers=(), functions=(), opsets=(("", 21),), name="hostile"):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    imports = [helper.make_opsetid(*o) for o in opsets]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def case(name, model, pattern, arguments="run {}", file=None):
    """Writes a model or bytes to NAME.onnx, and notes the pattern of the message."""
    file = file or name + ".onnx"
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with open(file, "wb") as f:
        f.write(data)
    cases.append((name, arguments.format(file), pattern))


def one_node(name, op, pattern, inputs, initializers=(), outputs=("y",), **attributes):
    """Writes a case of one node called n; inputs: (name, dims[, type])."""
    names = [i[0] for i in inputs] + [t.name for t in initializers]
    node = helper.make_node(op, names, list(outputs), name="n", **attributes)
    case(name, make([node], [info(*i) for i in inputs], [info("y", None)], initializers), pattern)


# --- good models -------------------------------------------------------------------------------------------------


def network(batch):
    """Convolution, normalisation, shape arithmetic, If, Loop, Gemm: 2 KB."""
    rng = np.random.default_rng(1)

    def weight(name, *dims):
        return numpy_helper.from_array((rng.standard_normal(dims) / 4).astype(np.float32), name)

    body = helper.make_graph(
        [helper.make_node("Mul", ["s_in", "half"], ["s_out"]), helper.make_node("Identity", ["cond_in"], ["cond_out"])],
        "body", [info("i", [], I64), info("cond_in", [], BOOL), info("s_in", ["b", 10])],
        [info("cond_out", [], BOOL), info("s_out", ["b", 10])])
    then = helper.make_graph([helper.make_node("Exp", ["s"], ["t"])], "then", [], [info("t", None)])
    other = helper.make_graph([helper.make_node("Neg", ["s"], ["e"])], "other", [], [info("e", None)])
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c"], name="conv0", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="bn0"),
        helper.make_node("Relu", ["n"], ["r"], name="relu0"),
        helper.make_node("MaxPool", ["r"], ["p"], name="pool0", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["p_shape"]),
        helper.make_node("Gather", ["p_shape", "zero"], ["n_images"]),
        helper.make_node("Unsqueeze", ["n_images", "axes"], ["n_list"]),
        helper.make_node("Concat", ["n_list", "minus1"], ["target"], axis=0),
        helper.make_node("Reshape", ["p", "target"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w1", "b1"], ["g"], name="fc1", transB=1),
        helper.make_node("Loop", ["trips", "", "g"], ["s"], name="loop0", body=body),
        helper.make_node("ReduceSum", ["s"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "half"], ["positive"]),
        helper.make_node("If", ["positive"], ["picked"], name="if0", then_branch=then, else_branch=other),
        helper.make_node("Softmax", ["picked"], ["y"], axis=-1),
    ]
    tensors = [weight("w0", 4, 2, 3, 3), weight("b0", 4), weight("scale", 4), weight("shift", 4), weight("mean", 4),
               const("var", [1, 2, 3, 4], np.float32), const("zero", 0), const("axes", [0]), const("minus1", [-1]),
               weight("w1", 10, 64), weight("b1", 10), const("trips", 3), const("half", 0.5, np.float32)]
    return make(nodes, [info("x", [batch, 2, 8, 8])], [info("y", [batch, 10])], tensors, name="net")


def good_models():
    for name, batch in (("net", 1), ("net_open", "b")):
        model = network(batch)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, name + ".onnx")


# --- files and protobuf ------------------------------------------------------------------------------------------


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def files():
    case("empty", b"", "empty")
    case("one_byte", b"\x08", "ends inside")
    for name, path in (("folder", "folder"), ("zero_device", "/dev/zero"), ("fifo", "fifo"), ("missing", "no-such.onnx")):
        cases.append((name, "run " + path, os.path.basename(path)))
    os.mkdir("folder")
    os.mkfifo("fifo")
    case("text", b"ir_version: 8\ngraph {\n}\n", "text")
    # A graph in an attribute in a node in a graph ...: ModelProto.graph = 7, .node = 1, .attribute = 5, .g = 6.
    graph = b""
    for _ in range(10000):
        graph = field(1, field(5, field(6, graph)))
    case("nested", varint(1 << 3) + b"\x0a" + field(7, graph), "deep|nest")
    # The same by types: TypeProto.sequence_type = 4, .elem_type = 1.
    kind = field(1, b"\x08\x01")
    for _ in range(10000):
        kind = field(4, field(1, kind))
    case("nested_type", varint(1 << 3) + b"\x0a" + field(7, field(11, field(1, b"x") + field(2, kind))), "deep|nest")


# --- graphs ------------------------------------------------------------------------------------------------------


def graphs():
    x, y = [info("x", [2, 3])], [info("y", None)]
    relu = helper.make_node
    case("cycle", make([relu("Add", ["x", "b"], ["a"], name="first"), relu("Relu", ["a"], ["b"], name="second"),
                        relu("Relu", ["b"], ["y"])], x, y), "first|second.*(cycle|circle|loop|itself)")
    case("self_cycle", make([relu("Add", ["x", "y"], ["y"], name="n")], x, y), "n: Add")
    case("undefined_input", make([relu("Add", ["x", "nowhere"], ["y"], name="n")], x, y), 'n: Add.*nowhere.*not defined')
    case("undefined_output", make([relu("Relu", ["x"], ["z"], name="n")], x, y), "y")
    case("defined_twice", make([relu("Relu", ["x"], ["y"], name="n"), relu("Neg", ["x"], ["y"], name="m")], x, y),
         "m: Neg.*y|y.*twice")
    case("unknown_operator", make([relu("Frobnicate", ["x"], ["y"], name="n")], x, y), "n: .*Frobnicate")
    case("unknown_domain", make([relu("Relu", ["x"], ["y"], name="n", domain="com.acme")], x, y,
                                opsets=(("", 21), ("com.acme", 1))), "n: .*com.acme")
    case("domain_not_imported", make([relu("Relu", ["x"], ["y"], name="n", domain="com.acme")], x, y), "n: .*com.acme")
    case("opset_999", make([relu("Relu", ["x"], ["y"])], x, y, opsets=(("", 999),)), "999")
    case("opset_missing", make([relu("Relu", ["x"], ["y"], name="n")], x, y, opsets=()), "n: Relu|opset")
    case("missing_input", make([relu("Add", ["x"], ["y"], name="n")], x, y), "n: Add.*input")
    case("too_many_inputs", make([relu("Relu", ["x", "x"], ["y"], name="n")], x, y), "n: Relu.*input")
    case("no_subgraph", make([relu("If", ["c"], ["y"], name="n")], [info("c", [], BOOL)], y), "n: If.*then_branch")
    case("no_type", make([relu("Relu", ["x"], ["y"])], [onnx.ValueInfoProto(name="x")], y), "x.*type|type.*x")
    wide = info("x", [2] * 40)
    case("rank_40", make([relu("Relu", ["x"], ["y"], name="n")], [wide], y), "x.*rank|rank.*x")
    strange = make([relu("Relu", ["x"], ["y"], name="two\nlines \x1b[31m")], [info("x", [2], I64)], y)
    strange.graph.node[0].input[0] = "no\nwhere"
    case("strange_names", strange, "two.lines")


def shapes():
    case("k_mismatch", make([helper.make_node("Gemm", ["A", "B"], ["y"], name="fc1")],
                            [info("A", [8, 64]), info("B", [32, 10])], [info("y", None)]),
         r"fc1: Gemm: A is f32\[8,64\] but B is f32\[32,10\]; K 64 != 32")
    one_node("matmul_k", "MatMul", r"n: MatMul: .*f32\[2,3\].*f32\[4,5\].*3 (!=|and) 4", [("A", [2, 3]), ("B", [4, 5])])
    one_node("wrong_rank", "Gemm", r"n: Gemm: A .*rank", [("A", [2, 3, 4]), ("B", [4, 5])])
    one_node("conv_channels", "Conv", r"n: Conv: .*(channels|group)", [("X", [1, 3, 8, 8]), ("W", [4, 5, 3, 3])])
    one_node("conv_rank", "Conv", r"n: Conv: ", [("X", [1, 3]), ("W", [4, 5, 3, 3])])
    one_node("conv_group_0", "Conv", r"n: Conv: .*group", [("X", [1, 3, 8, 8]), ("W", [4, 3, 3, 3])], group=0)
    one_node("conv_stride_0", "Conv", r"n: Conv: .*stride", [("X", [1, 3, 8, 8]), ("W", [4, 3, 3, 3])], strides=[0, 1])
    one_node("conv_dilation", "Conv", r"n: Conv: .*dilation", [("X", [1, 3, 8, 8]), ("W", [4, 3, 3, 3])],
             dilations=[1 << 62, 1])
    one_node("broadcast", "Add", r"n: Add: .*f32\[2,3\].*f32\[2,4\]", [("A", [2, 3]), ("B", [2, 4])])
    one_node("types_differ", "Add", r"n: Add: B is s64.* A is f32", [("A", [2]), ("B", [2], I64)])
    one_node("concat_axis", "Concat", r"n: Concat: .*axis", [("A", [2]), ("B", [2])], axis=7)
    one_node("concat_axis_min", "Concat", r"n: Concat: .*axis", [("A", [2]), ("B", [2])], axis=-(1 << 63))
    one_node("transpose_twice", "Transpose", r"n: Transpose: .*perm", [("A", [2, 3])], perm=[0, 0])
    one_node("reshape_product", "Reshape", r"n: Reshape: ", [("A", [2, 3])], [const("shape", [7])])
    one_node("reshape_two_open", "Reshape", r"n: Reshape: .*-1", [("A", [2, 3])], [const("shape", [-1, -1])])
    one_node("slice_step_0", "Slice", r"n: Slice: .*step", [("A", [4])],
             [const("starts", [0]), const("ends", [4]), const("axes", [0]), const("steps", [0])])
    one_node("einsum", "Einsum", r"n: Einsum: ", [("A", [2, 3])], equation="ij,jk->ik")
    one_node("einsum_long", "Einsum", r"n: Einsum: ", [("A", [2, 3])], equation="i" * 100000)
    one_node("split_too_many", "Split", r"n: Split: ", [("A", [3])], num_outputs=99)
    one_node("topk_k", "TopK", r"n: TopK: .*99", [("A", [3])], [const("k", [99])], ["y", "i"])
    one_node("lstm_rank", "LSTM", r"n: LSTM: ", [("X", [2, 3]), ("W", [1, 8, 3]), ("R", [1, 8, 2])], hidden_size=2)
    one_node("lstm_hidden", "LSTM", r"n: LSTM: ", [("X", [2, 1, 3]), ("W", [1, 8, 3]), ("R", [1, 8, 2])],
             hidden_size=1 << 62)
    one_node("depth_block_0", "DepthToSpace", r"n: DepthToSpace: .*block", [("X", [1, 4, 2, 2])], blocksize=0)
    one_node("gather_constant", "Gather", r"n: Gather: .*(index|indices)", [("A", [3])], [const("i", [7])])
    one_node("wrong_attribute", "LeakyRelu", r"n: LeakyRelu: .*alpha", [("A", [3])], alpha="text")
    case("overflow", make([helper.make_node("Relu", ["x"], ["y"], name="n")], [info("x", [1 << 62, 4])], [info("y", None)]),
         "x.*(too large|overflow|elements|bytes)")
    tensor = TensorProto(name="w", data_type=F, dims=[1 << 62, 4], raw_data=b"1234")
    case("overflow_tensor", make([helper.make_node("Add", ["x", "w"], ["y"], name="n")], [info("x", [1])],
                                 [info("y", None)], [tensor]), "w.*(too large|overflow|elements|bytes)")
    for name, dims, size in (("negative_dim", [-1], 4), ("short_data", [100], 4), ("long_data", [1], 400)):
        tensor = TensorProto(name="w", data_type=F, dims=dims, raw_data=b"1" * size)
        case(name, make([helper.make_node("Add", ["x", "w"], ["y"], name="n")], [info("x", [1])], [info("y", None)],
                        [tensor]), "w")
    tensor = TensorProto(name="w", data_type=99, dims=[1], raw_data=b"1234")
    case("unknown_type", make([helper.make_node("Add", ["x", "w"], ["y"], name="n")], [info("x", [1])], [info("y", None)],
                              [tensor]), "w.*99")


# --- external data -----------------------------------------------------------------------------------------------


def with_data(name, pattern="w: |\"w\"|'w'|tensor w", raw=None, twice=None, **keys):
    """Writes a case beside the data files, whose initializer w has these keys for external data (`twice`: a key that is repeated)."""
    tensor = TensorProto(name="w", data_type=F, dims=[4], data_location=TensorProto.EXTERNAL)
    if raw:
        tensor.raw_data = raw
    for key, value in list(keys.items()) + ([twice] if twice else []):
        tensor.external_data.add(key=key, value=value)
    case("external_" + name, make([helper.make_node("Add", ["x", "w"], ["y"], name="n")], [info("x", [4])],
                                  [info("y", None)], [tensor]), pattern, file=f"models/{name}.onnx")


def external():
    os.mkdir("outside")
    os.mkdir("models")
    for path in ("outside/w.bin", "models/w.bin"):
        with open(path, "wb") as f:
            f.write(b"\0" * 16)
    os.symlink("../outside/w.bin", "models/link.bin")
    os.symlink("../outside", "models/linked")
    os.symlink("w.bin", "models/inner.bin")
    os.link("outside/w.bin", "models/hard.bin")
    os.mkfifo("models/fifo.bin")

    with_data("parent", location="../outside/w.bin")
    with_data("parent_inside", location="../models/w.bin")
    with_data("absolute", location=os.path.abspath("outside/w.bin"))
    with_data("middle", location="linked/../../outside/w.bin")
    with_data("link", location="link.bin")
    with_data("link_folder", location="linked/w.bin")
    with_data("link_inside", location="inner.bin")
    with_data("hard_link", location="hard.bin")
    with_data("fifo", location="fifo.bin")
    with_data("folder", location=".")
    with_data("nothing", location="")
    with_data("missing", location="no.bin")
    with_data("long", location="a/" * 5000)
    with_data("offset_negative", location="w.bin", offset="-4096")
    with_data("offset_beyond", location="w.bin", offset="4096")
    with_data("offset_wraps", location="w.bin", offset="18446744073709551600", length="32")
    with_data("offset_text", location="w.bin", offset="ten")
    with_data("length", location="w.bin", length="12")
    with_data("no_location", offset="0")


# --- functions ---------------------------------------------------------------------------------------------------


def function(name, nodes, inputs=("a",), outputs=("b",)):
    return helper.make_function("local", name, list(inputs), list(outputs), nodes,
                                [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)])


def call(name, inputs=("a",), outputs=("b",)):
    return helper.make_node(name, list(inputs), list(outputs), domain="local", name="call_" + name)


def functions():
    x, y, opsets = [info("x", [1])], [info("y", None)], (("", 21), ("local", 1))
    main = [call("f", ["x"], ["y"])]
    recursion = "recurs|calls itself"
    case("recursion", make(main, x, y, functions=[function("f", [call("f")])], opsets=opsets), recursion)
    case("recursion_mutual", make(main, x, y, functions=[function("f", [call("g")]), function("g", [call("f")])],
                                  opsets=opsets), recursion)
    branch = helper.make_graph([call("f", ["a"], ["t"])], "branch", [], [info("t", None)])
    test = [helper.make_node("Cast", ["a"], ["c"], to=BOOL),
            helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch)]
    case("recursion_if", make(main, x, y, functions=[function("f", test)], opsets=opsets), recursion)
    default_bodies(main, x, y, opsets, recursion)
    # Each calls the next twice: 2^60 nodes.
    laughs = [function(f"f{k}", [call(f"f{k + 1}", ["a"], ["t"]), call(f"f{k + 1}", ["t"], ["b"])]) for k in range(60)]
    laughs.append(function("f60", [helper.make_node("Neg", ["a"], ["b"])]))
    case("billion_laughs", make([call("f0", ["x"], ["y"])], x, y, functions=laughs, opsets=opsets), "nodes")
    # A long chain of functions, each of which consists of one call.
    chain = [function(f"f{k}", [call(f"f{k + 1}")]) for k in range(20000)]
    chain.append(function("f20000", [helper.make_node("Frobnicate", ["a"], ["b"])]))
    case("call_chain", make([call("f0", ["x"], ["y"])], x, y, functions=chain, opsets=opsets), "deep|nest|Frobnicate")


def default_bodies(main, x, y, opsets, recursion):
    """Bodies that are defaults of a function's attribute: they are checked like those of nodes."""
    test = helper.make_node("If", ["c"], ["b"])
    for name in ("then_branch", "else_branch"):
        test.attribute.append(onnx.AttributeProto(name=name, ref_attr_name="body", type=onnx.AttributeProto.GRAPH))

    def body(name, nodes, pattern, sparse=0):
        graph = helper.make_graph(nodes, "body", [], [info("t", None)])
        graph.sparse_initializer.extend([onnx.SparseTensorProto()] * sparse)
        f = function("f", [helper.make_node("Cast", ["a"], ["c"], to=BOOL), test])
        f.attribute_proto.append(helper.make_attribute("body", graph))
        case("default_" + name, make(main, x, y, functions=[f], opsets=opsets), pattern)

    negation = helper.make_node("Neg", ["a"], ["t"])
    body("undefined", [helper.make_node("Neg", ["b2"], ["t"])], 'default of body: .*"b2" is not defined')
    body("twice", [negation, negation], "default of body: .*already the name")
    body("sparse", [negation], "default of body: an initializer has no name", sparse=1)
    body("recursion", [call("f", ["a"], ["t"])], recursion)


# --- bombs: small files that ask for 2^40 elements --------------------------------------------------------------------


def bombs():
    y, x = [info("y", None)], [info("x", [1])]
    large = "n: .*(too large|extent|bytes|elements|limit|budget)|memory"
    node = helper.make_node

    def bomb(name, nodes, tensors, inputs=x):
        case("bomb_" + name, make(nodes, inputs, y, tensors), large, "run --max-memory 512M --max-time 20 {}")

    bomb("expand", [node("Expand", ["x", "shape"], ["y"], name="n")], [const("shape", [BIG])])
    bomb("tile", [node("Tile", ["x", "repeats"], ["y"], name="n")], [const("repeats", [BIG])])
    bomb("pad", [node("Pad", ["x", "pads"], ["y"], name="n")], [const("pads", [BIG, BIG])])
    bomb("constant_of_shape", [node("ConstantOfShape", ["shape"], ["z"], name="n"), node("Add", ["x", "z"], ["y"])],
         [const("shape", [BIG])])
    bomb("range", [node("Range", ["from", "to", "by"], ["z"], name="n"), node("Add", ["i", "z"], ["y"])],
         [const("from", 0), const("to", BIG), const("by", 1)], [info("i", [1], I64)])
    bomb("one_hot", [node("OneHot", ["i", "depth", "values"], ["y"], name="n")],
         [const("depth", BIG), const("values", [0, 1], np.float32)], [info("i", [1], I64)])
    bomb("resize", [node("Resize", ["x", "", "", "sizes"], ["y"], name="n")], [const("sizes", [BIG])])
    bomb("reshape", [node("Expand", ["x", "shape"], ["e"], name="n"), node("Reshape", ["e", "flat"], ["y"], name="m")],
         [const("shape", [1 << 20, 1 << 20]), const("flat", [-1])])
    # Each array is below the limit for one array, but there are many, and all are constant: folding must have a budget.
    chain = [node("ConstantOfShape", ["shape"], ["c0"], name="n")]
    chain += [node("Exp", [f"c{k}"], [f"c{k + 1}"], name="n") for k in range(64)]
    chain += [node("Concat", [f"c{k}" for k in range(65)] + ["x"], ["y"], name="n", axis=0)]
    bomb("folding", chain, [const("shape", [1 << 26])])
    bomb("matmul", [node("Expand", ["x", "shape"], ["e"], name="n"), node("Transpose", ["e"], ["t"], perm=[1, 0]),
                    node("MatMul", ["t", "e"], ["y"], name="n")], [const("shape", [1, 1 << 22])])
    # This model may be refused for its size while compiling, or when its time is over.
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["s", "one"], ["t"])], "body",
        [info("i", [], I64), info("go", [], BOOL), info("s", [1])], [info("on", [], BOOL), info("t", [1])])
    forever = make([node("Loop", ["", "true", "x"], ["y"], name="n", body=body)], x, y,
                   [const("true", True, np.bool_), const("one", [1], np.float32)])
    case("endless_loop", forever, "time|deadline", "run --max-time 1 {}")
    case("endless_loop_ref", forever, "time|deadline", "run --backend ref --max-time 1 {}")
    constant = make([node("Loop", ["trips", "true", "one"], ["z"], name="n", body=body), node("Add", ["x", "z"], ["y"])],
                    x, y, [const("true", True, np.bool_), const("one", [1], np.float32), const("trips", (1 << 63) - 1)])
    case("endless_constant", constant, "time|deadline", "run --max-time 1 {}")
    # Outputs that grow with every trip.
    scan = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["t"]), node("Identity", ["s"], ["u"])], "body",
        [info("i", [], I64), info("go", [], BOOL), info("s", [1024])],
        [info("on", [], BOOL), info("t", [1024]), info("u", [1024])])
    grows = make([node("Loop", ["trips", "", "x"], ["z", "y"], name="n", body=scan)], [info("x", [1024])], y,
                 [const("trips", BIG)])
    case("bomb_loop_outputs", grows, large, "run --max-memory 512M --max-time 20 {}")


# --- at run time -------------------------------------------------------------------------------------------------


def run_time():
    np.save("double.npy", np.zeros((1, 2, 8, 8)))
    np.save("small.npy", np.zeros((1, 2, 8, 7), np.float32))
    np.save("flat.npy", np.zeros(128, np.float32))
    np.save("right.npy", np.zeros((1, 2, 8, 8), np.float32))
    with open("right.npy", "rb") as f:
        right = f.read()
    for name, data in (("cut.npy", right[:200]), ("header.npy", right[:20]), ("empty.npy", b""),
                       ("huge.npy", right.replace(b"(1, 2, 8, 8)", b"(4294967296,)"))):
        with open(name, "wb") as f:
            f.write(data)
    with open("cut.pb", "wb") as f:
        f.write(numpy_helper.from_array(np.zeros((1, 2, 8, 8), np.float32), "x").SerializeToString()[:-7])
    for name, argument, pattern in (
            ("input_type", "x=double.npy", "x.*(f64|f32)"), ("input_shape", "x=small.npy", "x.*7"),
            ("input_rank", "x=flat.npy", r"x.*f32\[128\]"), ("input_name", "nobody=right.npy", "nobody"),
            ("input_cut", "x=cut.npy", "cut.npy"), ("input_header", "x=header.npy", "header.npy"),
            ("input_empty", "x=empty.npy", "empty.npy"), ("input_huge", "x=huge.npy", "huge.npy"),
            ("input_missing", "x=no.npy", "no.npy"), ("input_pb", "x=cut.pb", "cut.pb"),
            ("input_folder", "x=folder", "folder")):
        cases.append((name, f"run net.onnx --input {argument}", pattern))
    cases.append(("output_folder", "run net.onnx --output-dir right.npy", "right.npy"))
    cases.append(("compile_full", "compile net.onnx -o /dev/full", "/dev/full"))
    cases.append(("compile_folder", "compile net.onnx -o folder", "folder"))
    cases.append(("compile_nowhere", "compile net.onnx -o no/where.oxla", "no/where.oxla"))


# --- HLO text ----------------------------------------------------------------------------------------------------


def hlo_text():
    def text(name, body, pattern):
        with open(name + ".hlo", "w") as f:
            f.write(body)
        cases.append(("hlo_" + name, f"opt -p dce {name}.hlo", pattern))

    def entry(*lines, params="%x: f32[4]"):
        body = "\n".join("    " + line for line in lines)
        return f'onnx-xla hlo 1\nmodule "m" {{\n  entry main({params}) {{\n{body}\n  }}\n}}\n'

    good = entry("%y = negate(%x) : f32[4]", "return %y")
    text("empty", "", "version|1:1|empty")
    text("version", good.replace("hlo 1", "hlo 99"), "99")
    text("cut", good[:-30], "cut.hlo.*[0-9]+:[0-9]+")
    text("operation", entry("%y = frobnicate(%x) : f32[4]", "return %y"), "4:.*frobnicate")
    text("undefined", entry("%y = negate(%z) : f32[4]", "return %y"), "4:.*z")
    text("shape", entry("%y = negate(%x) : f32[5]", "return %y"), r"f32\[5\]|f32\[4\]")
    text("no_return", entry("%y = negate(%x) : f32[4]"), "return")
    text("overflow", entry("%y = negate(%x) : f32[4611686018427387904,4]", "return %y",
                           params="%x: f32[4611686018427387904,4]"), "4611686018427387904|large|overflow")
    text("splat", entry("%y = constant() {value=f32[1099511627776] splat 1} : f32[1099511627776]", "return %y"),
         "large|bytes|memory|limit")
    text("dims", entry("return %x", params="%x: f32[" + "(" * 100000 + "n" + ")" * 100000 + "]"), "deep|nest|[0-9]+:")
    text("attribute", entry("%y = transpose(%x) {permutation=[0,0]} : f32[4]", "return %y"), "transpose|permutation")
    text("operands", entry("%y = add(%x) : f32[4]", "return %y"), "add")
    for name, path in (("folder", "folder"), ("zero_device", "/dev/zero"), ("fifo", "fifo"), ("missing", "no.hlo"),
                       ("is_model", "net.onnx")):
        cases.append(("hlo_" + name, "opt -p dce " + path, os.path.basename(path)))
    text("symbol", entry("%y = iota() {dimension=0} : f32[m]", "return %y"), "m")
    cases[-1] = ("hlo_symbol", "run --specialise=full symbol.hlo", "no input tells the size m")
    text("sizes", entry("%y = negate(%x) : f32[n,6-n]", "return %y", params="%x: f32[n,6-n]"), "n")
    cases[-1] = ("hlo_sizes", "run --specialise=full --dim n=9 sizes.hlo", r"f32\[n,6-n\] must be -3")
    text("pass", good, "frobnicate")
    cases[-1] = ("hlo_pass", "opt -p frobnicate pass.hlo", "frobnicate")


def main():
    os.chdir(sys.argv[1])
    for group in (good_models, files, graphs, shapes, external, functions, bombs, run_time, hlo_text):
        group()
    hostile_more.add(sys.modules[__name__])
    hostile_sequences.add(sys.modules[__name__])
    with open("cases", "w") as f:
        for row in cases:
            f.write("\t".join(row) + "\n")


main()
