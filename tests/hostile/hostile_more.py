"""hostile_more.py - more of make_hostile.py's models: damaged fields, tensors, attributes, quantisation, sizes at run time.

add(h) is called with make_hostile as h.  If a pattern is "*", a model may be refused or run: then only the exit status (0
or 1), the message of one line and the absence of crashes are checked, since values such as NaN scales allow both."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I64, I32, I8, U8, BOOL = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8,
                             TensorProto.BOOL)
INT64_MIN, HUGE = -(1 << 63), 1 << 62
node = helper.make_node


def add(h):
    wire(h)
    graphs(h)
    tensors(h)
    external(h)
    windows(h)
    movement(h)
    recurrent(h)
    indices(h)
    quantisation(h)
    numbers(h)
    gradients(h)


# --- protobuf (items 1 to 5) -------------------------------------------------------------------------------------


def wire(h):
    good = h.network(1).SerializeToString()
    case = h.case
    for name, tail in (("varint_long", b"\x08" + b"\xff" * 11 + b"\1"), ("field_0", b"\0\1"), ("field_0_bytes", b"\2\1x"),
                       ("wire_type_6", b"\x0e\0"), ("wire_type_7", b"\x0f\0"), ("group_end", b"\x54"),
                       ("length_beyond", b"\x12\x7f"), ("length_huge", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                       ("length_negative", b"\x12" + b"\xff" * 9 + b"\1"), ("fixed64_cut", b"\x09\0\0"),
                       ("fixed32_cut", b"\x0d\0")):
        case("wire_" + name, good + tail, "wire_" + name)
    for name, tail in (("group", b"\x53\x08\1\x54"), ("unknown", b"\xba\x3e\4\1\2\3\4"), ("twice", b"\x08\x0a\x08\x0a"),
                       ("graph_twice", h.field(7, b"\x12\1z"))):
        case("wire_" + name, good + tail, "*")
    case("wire_graph_as_int", h.varint(7 << 3) + b"\5" + good, "*")
    dims = helper.make_tensor("w", F, [2], [1.0, 2.0])
    model = h.make([node("Add", ["x", "w"], ["y"], name="n")], [h.info("x", [2])], [h.info("y", None)], [dims])
    packed = b"".join(h.varint(v) for v in (2,))
    unpacked = model.SerializeToString().replace(b"\x08\2\x10\1\x22", h.field(1, packed) + b"\x10\1\x22", 1)
    case("wire_packed", unpacked, "*")
    with open("sparse.onnx", "wb") as f:
        f.truncate(4 << 30)
    h.cases.append(("sparse_4g", "run --max-memory 512M sparse.onnx", "sparse.onnx"))
    large(h)
    case("gzip", b"\x1f\x8b\x08\0" + bytes(100), "gz")
    case("ort", b"\x1c\0\0\0ORTM" + bytes(100), "*", file="model.ort")
    case("ort_refused", b"\x1c\0\0\0ORTM" + bytes(100), "model.ort", file="model.ort")
    case("zip", b"PK\3\4" + bytes(100), "zip.onnx")
    for name, text in (("nul", "a\0b"), ("long", "x" * 1000000), ("path", "../../../etc/passwd"), ("format", "%s%n%s%n"),
                       ("quote", "\"'`$(touch pwned);"), ("escape", "\x1b]0;t\x07")):
        case("name_" + name, h.make([node("Frobnicate", ["x"], ["y"], name=text)], [h.info("x", [2])], [h.info("y", None)]),
             "Frobnicate|UTF-8")
        case("name_in_" + name, h.make([node("Relu", [text], ["y"], name="n")], [h.info("x", [2])], [h.info("y", None)]), "n: Relu|UTF-8")
    text = h.make([node("Relu", ["bad-name"], ["y"])], [h.info("bad-name", [2])], [h.info("y", None)]).SerializeToString()
    long = h.make([node("Relu", ["continuation"], ["y"])], [h.info("continuation", [2])], [h.info("y", None)])
    case("name_continuation", long.SerializeToString().replace(b"continuation", b"\x80" * 12), "UTF-8")
    case("name_not_utf8", text.replace(b"bad-name", b"bad\xff\xfe\x80me"), "*")


def large(h):
    """A model of more than 2 GiB; all of the file is a hole, except for its beginning and end."""
    count = 3 << 28
    tensor = b"\x08" + h.varint(count) + b"\x10\1" + h.field(8, b"w")
    raw = h.varint(9 << 3 | 2) + h.varint(4 * count)
    graph = b"".join(h.field(1, n.SerializeToString()) for n in (
        node("Slice", ["w", "from", "to"], ["first"], name="n"), node("Add", ["x", "first"], ["y"])))
    graph += b"".join(h.field(5, h.const(name, [k]).SerializeToString()) for k, name in enumerate(("from", "to")))
    graph += h.field(11, h.info("x", [1]).SerializeToString()) + h.field(12, h.info("y", None).SerializeToString())
    inner = len(tensor) + len(raw) + 4 * count
    graph += h.varint(5 << 3 | 2) + h.varint(inner) + tensor + raw
    with open("large.onnx", "wb") as f:
        f.write(b"\x08\x0a" + h.field(8, h.field(1, b"") + b"\x10\x15") + h.varint(7 << 3 | 2) + h.varint(len(graph) + 4 * count) + graph)
        f.truncate(f.tell() + 4 * count)
    h.cases.append(("large_model", "run --max-memory 512M --max-time 20 large.onnx", "*"))


# --- graphs (12, 14, 15) -----------------------------------------------------------------------------------------


def graphs(h):
    x, y, info, make, case, const = [h.info("x", [2])], [h.info("y", None)], h.info, h.make, h.case, h.const
    case("no_graph", onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 21)]), "graph")
    case("opset_0", make([node("Relu", ["x"], ["y"])], x, y, opsets=(("", 0),)), "opset|operator set|version")
    case("opset_negative", make([node("Relu", ["x"], ["y"])], x, y, opsets=(("", -7),)), "opset|operator set|version|-7")
    case("opset_twice", make([node("Relu", ["x"], ["y"])], x, y, opsets=(("", 21), ("", 13))), "*")
    case("empty_required", make([node("Add", ["x", ""], ["y"], name="n")], x, y), "n: Add")
    case("no_output", make([node("Relu", ["x"], [], name="n")], x, y), "Relu|y")
    case("shadow", make([node("Relu", ["x"], ["w"], name="n"), node("Neg", ["w"], ["y"])], x, y, [const("w", [1.0], np.float32)]), "w")
    many = [node("Relu", ["x"], [f"u{k}"]) for k in range(100000)] + [node("Neg", ["x"], ["y"])]
    case("unused_nodes", make(many, x, y), "*", "run --max-time 20 {}")
    chain = [node("Relu" if k % 2 else "Neg", [f"c{k}" if k else "x"], [f"c{k + 1}"]) for k in range(50000)]
    case("long_chain", make(chain + [node("Neg", ["c50000"], ["y"])], x, y), "*", "check {}")

    def body(ins, outs):
        return helper.make_graph([node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["t"])], "body",
                                 [info("i", [], I64), info("go", [], BOOL), info("s", [2]), info("extra", [2])][:ins],
                                 [info("on", [], BOOL), info("t", [2]), info("s", [2])][:outs])

    for ins, outs in ((0, 2), (2, 2), (4, 2), (3, 0), (3, 1)):
        case(f"loop_arity_{ins}_{outs}", make([node("Loop", ["trips", "", "x"], ["y"], name="n", body=body(ins, outs))], x, y,
                                              [const("trips", 3)]), "n|body")
    for name, count in (("underflow", 7), ("negative", -1), ("minimum", INT64_MIN), ("zero", 0)):
        scan = helper.make_graph([node("Add", ["s", "e"], ["t"])], "body", [info("s", [2]), info("e", [2])], [info("t", [2])])
        case("scan_" + name, make([node("Scan", ["x", "z"], ["y"], name="n", body=scan, num_scan_inputs=count)],
                                  [info("x", [2]), info("z", [3, 2])], y), "n|body")
    branch = helper.make_graph([node("Relu", ["x"], ["t"])], "b", [], [info("t", None)])
    for name, dims in (("wide", [2]), ("empty", [0]), ("rank_1", [1])):
        case("if_" + name, make([node("If", ["c"], ["y"], name="n", then_branch=branch, else_branch=branch)],
                                [info("c", dims, BOOL), x[0]], y), "*" if name == "rank_1" else "n: If")
    case("if_type", make([node("If", ["x"], ["y"], name="n", then_branch=branch, else_branch=branch)], x, y), "n: If")
    case("elem_type_0", make([node("Relu", ["x"], ["y"])], [info("x", [2], 0)], y), "x")
    case("elem_type_99", make([node("Relu", ["x"], ["y"])], [info("x", [2], 99)], y), "x.*99|99")
    contradiction = make([node("Relu", ["x"], ["m"], name="n"), node("Neg", ["m"], ["y"])], x, y)
    contradiction.graph.value_info.append(info("m", [5, 5]))
    case("value_info", contradiction, "*")
    case("output_declared", make([node("Relu", ["x"], ["y"], name="n")], x, [info("y", [7], I64)]), "*")
    case("initializer_shape", make([node("Relu", ["x"], ["y"])], [info("x", [3])], y, [const("x", [1, 2], np.float32)]), "*")
    sequence = onnx.ValueInfoProto(name="x")
    sequence.type.sequence_type.elem_type.tensor_type.elem_type = F
    case("input_sequence", make([node("SequenceLength", ["x"], ["y"], name="n")], [sequence], y), "x|n: ")


# --- tensors (11) ------------------------------------------------------------------------------------------------


def tensors(h):
    def with_tensor(name, pattern="w", **fields):
        tensor = TensorProto(name="w", **fields)
        kind = fields.get("data_type", F)
        model = h.make([node("Identity", ["w"], ["y"], name="n")], [h.info("x", [1])], [h.info("y", None)], [tensor])
        h.case("tensor_" + name, model, pattern)
        assert kind is not None

    with_tensor("negative", data_type=F, dims=[-2, -2], raw_data=bytes(16))
    with_tensor("product", data_type=F, dims=[1 << 31, 1 << 31, 4], raw_data=bytes(16))
    with_tensor("many_dims", data_type=F, dims=[1] * 1000000, raw_data=bytes(4))
    with_tensor("not_multiple", data_type=F, dims=[2], raw_data=bytes(7))
    with_tensor("wrong_field", data_type=I8, dims=[2], float_data=[1, 2])
    with_tensor("wrong_field_64", data_type=I64, dims=[2], int32_data=[1, 2])
    with_tensor("two_fields", "*", data_type=F, dims=[2], float_data=[1, 2], raw_data=bytes(8))
    with_tensor("few", data_type=F, dims=[3], float_data=[1, 2])
    with_tensor("type_0", data_type=0, dims=[2], raw_data=bytes(8))
    with_tensor("type_negative", data_type=-5, dims=[2], raw_data=bytes(8))
    with_tensor("int4_odd", "*", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x21\x03")
    with_tensor("int4_short", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x21")
    with_tensor("int4_long", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x21\x03\x00")
    with_tensor("int4_data", "*", data_type=TensorProto.INT4, dims=[3], int32_data=[0x21, 3])
    with_tensor("bool_bytes", "*", data_type=BOOL, dims=[4], raw_data=b"\0\1\2\xff")
    with_tensor("empty", "*", data_type=F, dims=[0, 5])
    with_tensor("empty_with_data", data_type=F, dims=[0, 5], raw_data=bytes(4))
    with_tensor("out_of_range", "*", data_type=U8, dims=[1], int32_data=[70000])
    with_tensor("segment", "*", data_type=F, dims=[1], raw_data=bytes(4), segment=TensorProto.Segment(begin=5, end=-1))
    for name, places, dims in (("range", [9], [4]), ("negative", [-1], [4]), ("unsorted", [2, 1], [4]), ("twice", [1, 1], [4]),
                               ("rank", [[0, 1]], [4]), ("huge", [HUGE], [1 << 62])):
        values = h.const("w", np.ones(len(places)), np.float32)
        sparse = onnx.SparseTensorProto(values=values, indices=h.const("", places), dims=dims)
        model = h.make([node("Identity", ["w"], ["y"], name="n")], [h.info("x", [1])], [h.info("y", None)])
        model.graph.sparse_initializer.append(sparse)
        h.case("sparse_" + name, model, "*" if name in ("unsorted", "twice") else "w")


# --- external data (6 to 10) -------------------------------------------------------------------------------------


def external(h):
    h.with_data("good", "*", location="w.bin")
    h.with_data("dot", location="./.")
    h.with_data("inner_parent", location="a/../../models/w.bin")
    h.with_data("junk_parent", location="junk/../../outside/w.bin")
    h.with_data("passwd", location="junk/../../../../../../../../etc/passwd")
    h.with_data("backslash", location="..\\outside\\w.bin")
    h.with_data("slashes", location="//etc/passwd")
    h.with_data("trailing", location="w.bin/")
    h.with_data("nul", "UTF-8", location="w.bin\0.txt")
    h.with_data("proc", location="../../proc/self/environ")
    h.with_data("home", location="~/w.bin")
    h.with_data("url", location="file:///etc/passwd")
    h.with_data("length_negative", location="w.bin", length="-16")
    h.with_data("length_text", location="w.bin", length="0x10")
    h.with_data("length_huge", location="w.bin", length="18446744073709551615")
    h.with_data("length_zero", "*", location="w.bin", length="0")
    h.with_data("offset_plus", "*", location="w.bin", offset="+0")
    h.with_data("offset_space", "*", location="w.bin", offset=" 0")
    h.with_data("offset_1", location="w.bin", offset="1")
    h.with_data("sum", location="w.bin", offset="9223372036854775807", length="9223372036854775807")
    h.with_data("unknown_key", "*", location="w.bin", __class__="os.system")
    h.with_data("location_twice", "*", location="w.bin", twice=("location", "../outside/w.bin"))
    h.with_data("both", "*", raw=bytes(16), location="../outside/w.bin")
    h.with_data("only_raw", raw=bytes(16))


# --- windows (16) ------------------------------------------------------------------------------------------------


def windows(h):
    image, kernel = ("X", [1, 3, 8, 8]), ("W", [4, 3, 3, 3])

    def conv(name, pattern="n: Conv", op="Conv", w=kernel, x=image, **attributes):
        h.one_node(f"{op.lower()}_{name}", op, pattern.replace("Conv", op), [x, w], **attributes)

    for op in ("Conv", "ConvTranspose"):
        good = kernel if op == "Conv" else ("W", [3, 4, 3, 3])
        conv("rank_high", op=op, w=("W", [4, 3, 3, 3, 3]))
        conv("rank_low", op=op, w=("W", [4, 3]))
        conv("strides_negative", op=op, w=good, strides=[-1, 1])
        conv("strides_few", op=op, w=good, strides=[1])
        conv("strides_min", op=op, w=good, strides=[INT64_MIN, 1])
        conv("dilations_0", op=op, w=good, dilations=[0, 0])
        conv("dilations_huge", op=op, w=good, dilations=[HUGE, HUGE])
        conv("pads_negative", "*", op=op, w=good, pads=[-9, -9, -9, -9])
        conv("pads_huge", op=op, w=good, pads=[HUGE] * 4)
        conv("pads_few", op=op, w=good, pads=[1, 1])
        conv("group_divides", op=op, w=good, group=2)
        conv("group_negative", op=op, w=good, group=-1)
        conv("group_huge", op=op, w=good, group=HUGE)
        conv("kernel_shape", op=op, w=good, kernel_shape=[5, 5])
        conv("kernel_0", "*", op=op, w=("W", [4, 3, 0, 0] if op == "Conv" else [3, 4, 0, 0]))
        conv("channels_0", "*", op=op, w=("W", [4, 0, 3, 3] if op == "Conv" else [0, 4, 3, 3]), x=("X", [1, 0, 8, 8]))
        conv("auto_pad", op=op, w=good, auto_pad="SIDEWAYS")
    conv("output_padding", op="ConvTranspose", w=("W", [3, 4, 3, 3]), output_padding=[9, 9])
    conv("output_shape", "*", op="ConvTranspose", w=("W", [3, 4, 3, 3]), output_shape=[1, 1])
    conv("output_huge", op="ConvTranspose", w=("W", [3, 4, 3, 3]), output_shape=[HUGE, HUGE])
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for name, pattern, attributes in (
                ("kernel_0", None, {"kernel_shape": [0, 0]}), ("kernel_none", None, {}), ("kernel_few", None, {"kernel_shape": [2]}),
                ("kernel_large", "*", {"kernel_shape": [99, 99]}), ("kernel_huge", None, {"kernel_shape": [HUGE, HUGE]}),
                ("strides_0", None, {"kernel_shape": [2, 2], "strides": [0, 1]}),
                ("pads_wide", "*", {"kernel_shape": [2, 2], "pads": [9, 9, 9, 9]}),
                ("dilations_huge", None, {"kernel_shape": [2, 2], "dilations": [HUGE, 1]})):
            h.one_node(f"{op.lower()}_{name}", op, pattern or f"n: {op}", [image], **attributes)
    h.one_node("maxpool_ceil", "MaxPool", "*", [image], kernel_shape=[3, 3], strides=[100, 100], ceil_mode=1)
    h.one_node("maxpool_empty", "MaxPool", "*", [("X", [1, 3, 0, 8])], kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    h.one_node("globalpool_rank", "GlobalAveragePool", "n: Global", [("X", [3])])
    h.one_node("lrn_0", "LRN", "n: LRN", [image], size=0)
    h.one_node("lrn_negative", "LRN", "n: LRN", [image], size=-3)
    h.one_node("roi_align", "RoiAlign", "*", [("X", [1, 2, 4, 4]), ("r", [1, 4])], [h.const("b", [99])])
    h.one_node("roi_align_sizes", "RoiAlign", "n: RoiAlign", [("X", [1, 2, 4, 4]), ("r", [1, 4])], [h.const("b", [0])],
               output_height=-1, output_width=0)
    h.one_node("unpool_range", "MaxUnpool", "*", [("X", [1, 1, 1, 1])], [h.const("i", [[[[99]]]])], kernel_shape=[2, 2])
    h.one_node("unpool_negative", "MaxUnpool", "*", [("X", [1, 1, 1, 1])], [h.const("i", [[[[-99]]]])], kernel_shape=[2, 2])
    h.one_node("col2im_huge", "Col2Im", "n: Col2Im", [("X", [1, 5, 5])], [h.const("s", [HUGE, HUGE]), h.const("b", [1, 5])])
    h.one_node("col2im_block", "Col2Im", "n: Col2Im", [("X", [1, 5, 5])], [h.const("s", [5, 5]), h.const("b", [0, 5])])


# --- shapes and movement (17, 18, 20) ----------------------------------------------------------------------------


def movement(h):
    one, const = h.one_node, h.const
    x = [("A", [2, 3])]

    def ints(name, values):
        return const(name, values)

    h.case("gemm_6", h.make([node("Gemm", ["A", "B", "C"], ["y"], name="n", broadcast=-436, transB=823)],
                            [h.info("A", [2, 3]), h.info("B", []), h.info("C", [1])], [h.info("y", None)], opsets=(("", 6),)),
           "n: Gemm")
    one("einsum_scalar", "Einsum", "*", [("A", [])], equation="->")
    for k, equation in enumerate(("", "ij", "i", "ijk", "ij->k", "ij->ii", "i.j", "...ij...", "ij-", "->->", "ij,", "\n", "i j->ij", "ÿ")):
        one(f"einsum_{k}", "Einsum", "*" if equation in ("ij", "i j->ij") else "n: Einsum", x, equation=equation)
    one("slice_min", "Slice", "*", x, [ints("s", [INT64_MIN]), ints("e", [(1 << 63) - 1]), ints("a", [0]), ints("t", [INT64_MIN + 1])])
    one("slice_step_min", "Slice", "*", x, [ints("s", [5]), ints("e", [INT64_MIN]), ints("a", [0]), ints("t", [INT64_MIN])])
    one("slice_axes_twice", "Slice", "*", x, [ints("s", [0, 0]), ints("e", [1, 1]), ints("a", [0, 0])])
    one("slice_axis", "Slice", "n: Slice", x, [ints("s", [0]), ints("e", [1]), ints("a", [7])])
    one("slice_lengths", "Slice", "n: Slice", x, [ints("s", [0, 0]), ints("e", [1])])
    one("slice_empty", "Slice", "*", [("A", [0, 3])], [ints("s", [-1]), ints("e", [-9]), ints("a", [0]), ints("t", [-1])])
    one("split_sum", "Split", "n: Split", x, [ints("s", [5, 5])], ["y", "z"], axis=1)
    one("split_negative", "Split", "n: Split", x, [ints("s", [-1, 4])], ["y", "z"], axis=1)
    one("split_0", "Split", "n: Split", x, outputs=["y"], num_outputs=0)
    one("split_count", "Split", "n: Split", x, outputs=["y"], num_outputs=3, axis=1)
    one("reshape_negative", "Reshape", "n: Reshape", x, [ints("s", [-2, -3])])
    one("reshape_0_behind", "Reshape", "n: Reshape", x, [ints("s", [2, 3, 0])])
    one("reshape_allowzero", "Reshape", "n: Reshape", x, [ints("s", [0, -1])], allowzero=1)
    one("reshape_wraps", "Reshape", "n: Reshape", x, [ints("s", [HUGE, 4, 6])])
    one("reshape_rank", "Reshape", "n: Reshape", x, [ints("s", [1] * 40)])
    one("transpose_few", "Transpose", "n: Transpose", x, perm=[0])
    one("transpose_range", "Transpose", "n: Transpose", x, perm=[0, 99])
    one("transpose_negative", "Transpose", "n: Transpose", x, perm=[-1, INT64_MIN])
    one("squeeze_3", "Squeeze", "n: Squeeze", x, [ints("a", [1])])
    one("squeeze_axis", "Squeeze", "n: Squeeze", x, [ints("a", [INT64_MIN])])
    one("unsqueeze_twice", "Unsqueeze", "n: Unsqueeze", x, [ints("a", [0, 0])])
    one("unsqueeze_many", "Unsqueeze", "n: Unsqueeze", x, [ints("a", list(range(40)))])
    one("expand_overflow", "Expand", "n: Expand", x, [ints("s", [HUGE, HUGE, 2, 3])])
    one("expand_negative", "Expand", "n: Expand", x, [ints("s", [-1, 3])])
    one("expand_mismatch", "Expand", "n: Expand", x, [ints("s", [2, 4])])
    one("tile_negative", "Tile", "n: Tile", x, [ints("r", [-1, 1])])
    one("tile_length", "Tile", "n: Tile", x, [ints("r", [1])])
    one("tile_0", "Tile", "*", x, [ints("r", [0, 1])])
    one("pad_length", "Pad", "n: Pad", x, [ints("p", [1])])
    one("pad_negative", "Pad", "n: Pad", x, [ints("p", [-9, 0, 0, 0])])
    one("pad_overflow", "Pad", "n: Pad", x, [ints("p", [(1 << 63) - 1] * 4)])
    one("pad_reflect", "Pad", "*", x, [ints("p", [9, 9, 9, 9])], mode="reflect")
    one("pad_reflect_empty", "Pad", "n: Pad", [("A", [0, 3])], [ints("p", [1, 1, 1, 1])], mode="reflect")
    one("pad_edge_empty", "Pad", "n: Pad", [("A", [0, 3])], [ints("p", [1, 1, 1, 1])], mode="edge")
    one("pad_mode", "Pad", "n: Pad", x, [ints("p", [1, 1, 1, 1])], mode="sideways")
    h.case("constant_of_shape_negative", h.make([node("ConstantOfShape", ["s"], ["y"], name="n")], [], [h.info("y", None)],
                                                [ints("s", [-1])]), "n: ConstantOfShape")
    for name, a, b, d in (("0", 0, 5, 0), ("nan", 0, 5, np.nan), ("inf", 0, 5, np.inf), ("nan_start", np.nan, 5, 1)):
        h.case("range_" + name, h.make([node("Range", ["a", "b", "d"], ["y"], name="n")], [], [h.info("y", None)],
                                       [const(k, v, np.float32) for k, v in (("a", a), ("b", b), ("d", d))]), "n: Range" if name == "0" else "*")
    for name, depth in (("negative", -1), ("minimum", INT64_MIN), ("zero", 0)):
        one("one_hot_" + name, "OneHot", "*" if depth == 0 else "n: OneHot", [("i", [2], I64)],
            [const("d", depth), const("v", [0, 1], np.float32)])
    for name, scale in (("0", 0), ("nan", np.nan), ("inf", np.inf), ("negative", -1), ("tiny", 1e-40)):
        one("resize_" + name, "Resize", "n: Resize" if name != "tiny" else "*", [("A", [1, 1, 4, 4])],
            [const("r", [], np.float32), const("s", [1, 1, scale, 1], np.float32)])
    one("resize_sizes", "Resize", "n: Resize", [("A", [1, 1, 4, 4])],
        [const("r", [], np.float32), const("s", [], np.float32), ints("z", [1, 1, -4, 4])])
    for name, k in (("negative", -1), ("minimum", INT64_MIN), ("large", 4)):
        one("top_k_" + name, "TopK", "n: TopK", [("A", [3])], [ints("k", [k])], ["y", "i"])
    one("top_k_axis", "TopK", "n: TopK", [("A", [3])], [ints("k", [1])], ["y", "i"], axis=5)
    one("crop_axes", "CenterCropPad", "n: CenterCropPad", x, [ints("s", [1])], axes=[7])
    one("crop_huge", "CenterCropPad", "n: CenterCropPad|memory", x, [ints("s", [HUGE, HUGE])])
    one("eye_min", "EyeLike", "*", x, k=INT64_MIN)
    one("eye_rank", "EyeLike", "n: EyeLike", [("A", [3])])
    one("depth_not_dividing", "DepthToSpace", "n: DepthToSpace", [("A", [1, 5, 2, 2])], blocksize=2)
    one("depth_huge", "DepthToSpace", "n: DepthToSpace", [("A", [1, 4, 2, 2])], blocksize=HUGE)
    one("space_0", "SpaceToDepth", "n: SpaceToDepth", [("A", [1, 4, 2, 2])], blocksize=0)
    one("flatten_axis", "Flatten", "n: Flatten", x, axis=9)
    one("softmax_axis", "Softmax", "n: Softmax", x, axis=INT64_MIN)
    one("reduce_axes", "ReduceSum", "n: ReduceSum", x, [ints("a", [0, 9])])
    one("reduce_twice", "ReduceSum", "*", x, [ints("a", [0, 0])])
    one("arg_max_axis", "ArgMax", "n: ArgMax", x, axis=-9)
    one("arg_max_empty", "ArgMax", "*", [("A", [0, 3])], axis=0)
    one("cumsum_axis", "CumSum", "n: CumSum", x, [const("a", 9)])
    one("trilu_k", "Trilu", "*", x, [const("k", INT64_MIN)])
    one("shape_range", "Shape", "*", x, start=-(1 << 40), end=1 << 40)
    one("cast_to", "Cast", "n: Cast", x, to=99)
    one("cast_none", "Cast", "n: Cast", x)
    one("bitcast", "BitShift", "n: BitShift", [("A", [2], U8), ("B", [2], U8)], direction="SIDEWAYS")
    one("det_shape", "Det", "n: Det", x)
    one("hann_negative", "HannWindow", "n: HannWindow", [], [const("s", -5)])
    one("stft_step_0", "STFT", "n: STFT", [("A", [1, 16, 1])], [const("t", 0), const("w", np.ones(4), np.float32)])
    one("dft_axis", "DFT", "n: DFT", [("A", [1, 16, 1])], [const("l", 16), const("ax", 9)])
    one("reverse_rank", "ReverseSequence", "n: ReverseSequence", [("A", [3])], [ints("l", [1])])


# --- recurrent networks (19) -------------------------------------------------------------------------------------


def recurrent(h):
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        def cell(name, pattern=None, x=(2, 1, 3), w=None, r=None, hidden_size=2, **attributes):
            h.one_node(f"{op.lower()}_{name}", op, pattern or f"n: {op}",
                       [("X", list(x)), ("W", w or [1, 2 * gates, 3]), ("R", r or [1, 2 * gates, 2])],
                       hidden_size=hidden_size, **attributes)

        cell("hidden_0", hidden_size=0)
        cell("hidden_negative", hidden_size=-2)
        cell("hidden_mismatch", hidden_size=3)
        cell("rank", x=(2, 3))
        cell("w_rank", w=[2 * gates, 3])
        cell("r_shape", r=[1, 2 * gates, 9])
        cell("direction", direction="sideways")
        cell("bidirectional", direction="bidirectional")
        cell("activations_few", direction="bidirectional", w=[2, 2 * gates, 3], r=[2, 2 * gates, 2], activations=["Tanh"])
        cell("activation_name", activations=["Frob"] * 3)
        cell("clip_nan", "*", clip=float("nan"))
        cell("layout", "*", layout=7)
        cell("no_steps", "*", x=(0, 1, 3))
        cell("no_batch", "*", x=(2, 0, 3))


# --- indices that are known only at run time (70)
# ------------------------------------------------------------------------


def indices(h):
    """Each operator with indices far out of range on both sides.  They are inputs, so that the compiler does not know them.  The run may be
    refused or give any numbers."""
    for side, value in (("high", 1 << 40), ("low", -(1 << 40)), ("max", (1 << 63) - 1), ("min", INT64_MIN)):
        np.save(f"i1_{side}.npy", np.full([2], value, np.int64))
        np.save(f"i2_{side}.npy", np.full([2, 2], value, np.int64))
        np.save(f"i3_{side}.npy", np.full([2, 1], value, np.int64))
        for name, op, inputs, file in (
                ("gather", "Gather", [("A", [3, 3]), ("i", [2], I64)], "i1"),
                ("gather_nd", "GatherND", [("A", [3, 3]), ("i", [2, 2], I64)], "i2"),
                ("gather_elements", "GatherElements", [("A", [3, 3]), ("i", [2, 2], I64)], "i2"),
                ("scatter_elements", "ScatterElements", [("A", [3, 3]), ("i", [2, 2], I64), ("u", [2, 2])], "i2"),
                ("scatter_nd", "ScatterND", [("A", [3, 3]), ("i", [2, 1], I64), ("u", [2, 3])], "i3"),
                ("reverse_sequence", "ReverseSequence", [("A", [3, 2]), ("i", [2], I64)], "i1"),
                ("one_hot", "OneHot", [("i", [2], I64)], "i1"), ("tensor_scatter", "TensorScatter", [], "i1")):
            if not inputs:
                continue
            extra = [h.const("d", 4), h.const("v", [0, 1], np.float32)] if op == "OneHot" else []
            names = [i[0] for i in inputs] + [t.name for t in extra]
            model = h.make([node(op, names, ["y"], name="n")], [h.info(*i) for i in inputs], [h.info("y", None)], extra)
            run, refused = f"run {{}} --input i={file}_{side}.npy", "*" if op == "OneHot" else f"n: {op} .check.: "
            h.case(f"index_{name}_{side}", model, refused, run, file=f"index_{name}.onnx")
            h.case(f"index_{name}_{side}_unchecked", model, "*", run + " --unchecked", file=f"index_{name}.onnx")
    h.case("gather_rank", h.make([node("GatherND", ["A", "i"], ["y"], name="n")], [h.info("A", [2]), h.info("i", [2, 7], I64)],
                                 [h.info("y", None)]), "n: GatherND")
    h.case("gather_batch", h.make([node("GatherND", ["A", "i"], ["y"], name="n", batch_dims=9)],
                                  [h.info("A", [2]), h.info("i", [2, 1], I64)], [h.info("y", None)]), "n: GatherND")
    h.one_node("scatter_reduction", "ScatterND", "n: ScatterND", [("A", [2]), ("i", [1, 1], I64), ("u", [1])], reduction="frob")
    h.one_node("scatter_updates", "ScatterND", "n: ScatterND", [("A", [2]), ("i", [1, 1], I64), ("u", [7])])
    h.one_node("grid_nan", "GridSample", "*", [("A", [1, 1, 2, 2])], [h.const("g", np.full([1, 2, 2, 2], np.nan), np.float32)])
    h.one_node("grid_inf", "GridSample", "*", [("A", [1, 1, 2, 2])], [h.const("g", np.full([1, 2, 2, 2], np.inf), np.float32)],
               padding_mode="reflection")


# --- quantisation (21) -------------------------------------------------------------------------------------------


def quantisation(h):
    x, const = [("A", [4, 6])], h.const

    def quantize(name, pattern, scale, zero=None, op="QuantizeLinear", inputs=x, **attributes):
        tensors = [const("s", scale, np.float32)] + ([zero] if zero is not None else [])
        h.one_node(f"{op.lower()}_{name}", op, pattern, inputs, tensors, **attributes)

    q = [("A", [4, 6], U8)]
    for name, value in (("0", 0), ("nan", np.nan), ("inf", np.inf), ("negative", -1), ("denormal", 1e-42)):
        quantize(name, "*", value, const("z", 3, np.uint8))
        quantize(name, "*", value, const("z", 3, np.uint8), "DequantizeLinear", q)
    for op, inputs in (("QuantizeLinear", x), ("DequantizeLinear", q)):
        quantize("zero_type", f"n: {op}", 1, const("z", 3, np.int16 if op == "DequantizeLinear" else np.float32), op, inputs)
        quantize("zero_shape", f"n: {op}", [1, 2, 3, 4], const("z", [3, 3], np.uint8), op, inputs, axis=0)
        quantize("length", f"n: {op}", [1, 2, 3], None, op, inputs, axis=0)
        quantize("axis", f"n: {op}", [1, 2, 3, 4], None, op, inputs, axis=9)
        quantize("axis_min", f"n: {op}", [1, 2, 3, 4], None, op, inputs, axis=INT64_MIN)
        quantize("block_0", "*", np.ones([4, 3]), None, op, inputs, axis=1, block_size=0)
        quantize("block_negative", f"n: {op}", np.ones([4, 3]), None, op, inputs, axis=1, block_size=-2)
        quantize("block_not_dividing", f"n: {op}", np.ones([4, 3]), None, op, inputs, axis=1, block_size=5)
        quantize("block_huge", f"n: {op}", np.ones([4, 3]), None, op, inputs, axis=1, block_size=HUGE)
    quantize("output_dtype", "n: QuantizeLinear", 1, None, output_dtype=99)
    h.one_node("dynamic_quantize_empty", "DynamicQuantizeLinear", "*", [("A", [0])], outputs=("y", "s", "z"))
    h.one_node("matmul_integer_zero", "MatMulInteger", "n: MatMulInteger", [("A", [2, 3], U8), ("B", [3, 2], I8)],
               [const("z", [1, 2, 3, 4, 5], np.uint8)])
    experts = node("QMoE", ["x", "r", "w1", "s1", "", "w2", "s2"], ["y"], name="n", domain="com.microsoft", k=1,
                   expert_weight_bits=8)
    for hidden, inner in ((0, 4), (4, 0), (0, 0)):
        tensors = [const("w1", np.zeros([2, inner, hidden]), np.uint8), const("s1", np.ones([2, inner]), np.float32),
                   const("w2", np.zeros([2, hidden, inner]), np.uint8), const("s2", np.ones([2, hidden]), np.float32)]
        h.case(f"experts_{hidden}_{inner}",
               h.make([experts], [h.info("x", [2, hidden]), h.info("r", [2, 2])], [h.info("y", None)], tensors,
                      opsets=(("", 21), ("com.microsoft", 1))), "*")
    h.one_node("conv_integer_zero", "ConvInteger", "n: ConvInteger", [("A", [1, 1, 3, 3], U8), ("B", [1, 1, 2, 2], U8)],
               [const("z", 1, np.int8)])


# --- derivatives that do not exist (22) ------------------------------------------------------------------------------


def gradients(h):
    domain = "ai.onnx.preview.training"

    def gradient(xs, y, inputs=None, outputs=("d",), **more):
        inputs = xs if inputs is None else inputs
        return node("Gradient", inputs, outputs, name="n", domain=domain, xs=xs, y=y, **more)

    def case(name, nodes, pattern, output="d", opset=21, kind=F):
        model = h.make(nodes, [h.info("x", [2]), h.info("i", [2], I64)], [h.info(output, None, kind)],
                       opsets=(("", opset), (domain, 1)))
        h.case("gradient_" + name, model, pattern)

    square = node("Mul", ["x", "x"], ["y"], name="m")
    case("nowhere", [square, gradient(["x"], "z")], "n: .*Gradient: y names 'z', which is no value of the graph")
    case("no_name", [square, gradient(["x"], "")], "n: .*Gradient: y names '', which is no value of the graph")
    case("of_nothing", [square, gradient(["nil"], "y", ["x"])], "xs names 'nil', which is no value of the graph")
    case("of_nothing_z", [square, gradient(["x"], "y", ["x", "x"], zs=["nil"])], "zs names 'nil', which is no value of the graph")
    case("no_xs", [square, node("Gradient", ["x"], ["d"], name="n", domain=domain, y="y")], "n: .*Gradient: xs names no value")
    case("empty_x", [square, gradient([""], "y", ["x"])], 'xs and zs must not name ""')
    case("twice", [square, gradient(["x", "x"], "y")], "xs and zs name 'x' twice")
    case("x_and_z", [square, gradient(["x"], "y", ["x", "x"], zs=["x"])], "xs and zs name 'x' twice")
    case("few_inputs", [square, gradient(["x", "y"], "y", ["x"])], "name 2 values, but the node has 1 inputs")
    case("many_outputs", [square, gradient(["x"], "y", outputs=["d", "e"])], "names 1 values, but the node has 2 outputs")
    case("missing_input", [square, gradient(["x", "i"], "y", ["x", ""], outputs=["d"])], "input 1, the value of 'i', is missing")
    case("by_integers", [square, gradient(["i"], "y")], "'i' of xs is s64.2.; derivatives exist with respect to floats only")
    case("of_integers", [node("Shape", ["x"], ["y"]), gradient(["x"], "y")], "y .'y'. is s64.1.; only tensors of floats have derivatives")
    case("itself", [gradient(["x"], "y"), node("Mul", ["d", "x"], ["y"])], "y .'y'. is computed from what this node gives")
    case("each_other", [gradient(["x"], "b"), node("Mul", ["d", "x"], ["a"]), gradient(["x"], "a", outputs=["e"]),
                        node("Mul", ["e", "x"], ["b"])], "is computed from what this node gives")
    case("without_rule", [node("Compress", ["x", "p"], ["c"], axis=0), node("ReduceSum", ["c"], ["y"]),
                          node("Greater", ["x", "x"], ["p"]), gradient(["x"], "y")], "depends on data")
    case("other_shape", [node("Reshape", ["x", "s"], ["r"], name="r"), node("MatMul", ["r", "x"], ["y"]),
                         node("Shape", ["x"], ["s"]), gradient(["r"], "y", ["three"]),
                         node("Concat", ["x", "x"], ["three"], axis=0)], "B is f32.2.; K 4 != 2")
    strings = helper.make_attribute("xs", "x")
    wrong = node("Gradient", ["x"], ["d"], name="n", domain=domain, y="y")
    wrong.attribute.append(strings)
    case("xs_string", [square, wrong], "xs")
    case("no_y", [square, node("Gradient", ["x"], ["d"], name="n", domain=domain, xs=["x"])], "y")
    ladder = [node("Mul", ["x", "x"], ["y0"])]
    for k in range(12):
        ladder.append(node("Gradient", ["x"], [f"y{k + 1}"], domain=domain, xs=["x"], y=f"y{k}"))
    case("order", ladder, "derivatives of an order above 8", output="y12")
    chain = [node("Sin", ["x" if k == 0 else f"c{k}"], [f"c{k + 1}"]) for k in range(20000)]
    case("long", chain + [gradient(["x"], "c20000")], "*")
    fan = [node("Mul", ["x" if k == 0 else f"c{k}"] * 2, [f"c{k + 1}"]) for k in range(300)]
    fan += [gradient(["x"], f"c{k + 1}", outputs=[f"d{k}"]) for k in range(300)]
    fan.append(node("Sum", [f"d{k}" for k in range(300)], ["d"]))
    case("many", fan, "*")


# --- arithmetic that traps (20) ----------------------------------------------------------------------------------


def numbers(h):
    for dtype, kind in ((np.int64, I64), (np.int32, I32), (np.int8, I8), (np.uint8, U8)):
        name, low = np.dtype(dtype).name, np.iinfo(dtype).min
        np.save(f"low_{name}.npy", np.full([4], low, dtype))
        np.save(f"by_{name}.npy", np.array([0, -1 if low else 0, 1, low], dtype))
        for op in ("Div", "Mod", "Pow"):
            model = h.make([node(op, ["a", "b"], ["y"], name="n")], [h.info("a", [4], kind), h.info("b", [4], kind)], [h.info("y", None)])
            h.case(f"trap_{op.lower()}_{name}", model, "*", f"run {{}} --input a=low_{name}.npy --input b=by_{name}.npy")
    np.save("shift.npy", np.array([8, 9, 200, 255], np.uint8))
    for direction in ("LEFT", "RIGHT"):
        model = h.make([node("BitShift", ["a", "b"], ["y"], name="n", direction=direction)],
                       [h.info("a", [4], U8), h.info("b", [4], U8)], [h.info("y", None)])
        h.case("shift_" + direction.lower(), model, "*", "run {} --input b=shift.npy")
    np.save("odd.npy", np.array([np.nan, np.inf, -np.inf, 1e30], np.float32))
    for kind in (I64, I32, U8, BOOL, TensorProto.FLOAT8E4M3FN, TensorProto.INT4):
        h.case(f"cast_{kind}", h.make([node("Cast", ["a"], ["y"], name="n", to=kind)], [h.info("a", [4])], [h.info("y", None)]), "*",
               "run {} --input a=odd.npy")
