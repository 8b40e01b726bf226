"""open_cases.py: open dimensions in every operator that has a rule for dynamic dimensions
(frontend/import/sizes.c), and host-interpreted nodes that read each other's results;
make_cases.py calls make()."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

F, I, B = T.FLOAT, T.INT64, T.BOOL
N = h.make_node
rng = np.random.default_rng(2)


def x(*dims):
    return rng.standard_normal(dims).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def body(name, nodes, inputs, outputs, inits=()):
    return h.make_graph(nodes, name, [h.make_tensor_value_info(*i) for i in inputs],
                        [h.make_tensor_value_info(*o) for o in outputs], initializer=[nh.from_array(np.asarray(v), k) for k, v in inits])


# no rows, and all of them, are among the sets
xs = [[x(4, 5)], [x(4, 5)], [-np.abs(x(4, 5))], [np.abs(x(4, 5))]]
matrix = [("x", F, [4, 5])]
i0 = [("i0", np.array(0, np.int64))]
nonzero = [N("Relu", ["x"], ["r"]), N("NonZero", ["r"], ["nz"])]
rows = nonzero + [N("Gather", ["nz", "i0"], ["ri"], axis=0), N("Gather", ["x", "ri"], ["rows"], axis=0)]
negative = [N("Neg", ["x"], ["n"]), N("Relu", ["n"], ["nr"]), N("NonZero", ["nr"], ["q"])]


def make_rules(case):
    case("axes_from_the_end",
         rows + [N("Unsqueeze", ["rows", "last"], ["u"]), N("Transpose", ["u"], ["t"]), N("Squeeze", ["u", "last"], ["sq"]),
                 N("Concat", ["rows", "rows"], ["cc"], axis=-1), N("Slice", ["rows", "last", "far", "last", "step"], ["sl"]),
                 N("Slice", ["cc", "e8", "e1", "last", "step"], ["sl2"]), N("Gather", ["rows", "g"], ["ga"], axis=-1)],
         matrix, [("t", F, [1, 5, None]), ("sq", F, [None, 5]), ("sl", F, [None, 3]), ("sl2", F, [None, 4]), ("ga", F, [None, 2, 2])],
         xs, inits=i0 + [("last", ints(-1)), ("far", ints(-100)), ("step", ints(-2)), ("e8", ints(8)), ("e1", ints(1)),
                         ("g", np.array([[-1, 0], [-5, 4]], np.int64))])
    case("slices_of_what_is_open",
         rows + [N("Slice", ["rows", "last", "far", "z", "step"], ["sl"]), N("Slice", ["rows", "one", "big"], ["tail"]),
                 N("Concat", ["rows", "tail"], ["c"], axis=0), N("Concat", ["rows", "x"], ["c2"], axis=0)],
         matrix, [("sl", F, [None, 5]), ("c", F, [None, 5]), ("c2", F, [None, 5])], xs,
         inits=i0 + [("last", ints(-1)), ("far", ints(-2**63)), ("step", ints(-2)), ("z", ints(0)), ("one", ints(1)), ("big", ints(2**63 - 1))])
    shapes = [[-1, 5], [0, -1], [0, 5], [-1], [0, 1, 5], [5, -1], [-1, 1, 1, 5], [0, 0], [0, 0, 1]]
    case("reshapes", rows + [N("Reshape", ["rows", f"s{k}"], [f"o{k}"]) for k in range(len(shapes))], matrix,
         [(f"o{k}", F, [None] * len(s)) for k, s in enumerate(shapes)], [xs[0], xs[1], xs[3]],
         inits=i0 + [(f"s{k}", ints(*s)) for k, s in enumerate(shapes)])
    case("scalars_and_rows",
         rows + [N("Greater", ["rows", "zero"], ["gt"]), N("Where", ["gt", "zero", "one"], ["a"]), N("Where", ["gt", "rows", "one"], ["b"]),
                 N("Where", ["yes", "rows", "one"], ["c"]), N("Max", ["rows", "zero", "b"], ["d"]), N("Mul", ["rows", "cube"], ["e"]),
                 N("Add", ["rows", "row"], ["f"])],
         matrix, [(k, F, [None, 5]) for k in "abcd"] + [("e", F, [1, None, 5]), ("f", F, [None, 5])], xs,
         inits=i0 + [("zero", np.float32(0)), ("one", np.float32(1)), ("yes", np.array([[True]])), ("cube", np.ones((1, 1, 1), np.float32)),
                     ("row", np.arange(5, dtype=np.float32))])
    # x[p] as TensorFlow's exporter writes it, without and with the Squeeze; a place outside gives no row
    big = [("big", ints(10**9)), ("axis", ints(0)), ("one", ints(1))]
    place = [N("Slice", ["x", "p", "big", "axis", "big"], ["row"]), N("Relu", ["row"], ["y"]), N("Shape", ["row"], ["n"]),
             N("MatMul", ["row", "w"], ["z"])]
    case("row_at_a_place", place, matrix + [("p", I, [1])], [("y", F, [None, 5]), ("n", I, [2]), ("z", F, [None, 2])],
         [[x(4, 5), ints(p)] for p in (0, 3, 4, -1, -4, -9, 100)], inits=big + [("w", x(5, 2))])
    case("row_at_a_constant_place", [N("Slice", ["x", "two", "big", "axis", "big"], ["y"]), N("Slice", ["x", "last", "big", "axis", "big"], ["z"])],
         [("x", F, ["n", 5])], [("y", F, [None, 5]), ("z", F, [None, 5])], [[x(n, 5)] for n in (4, 3, 2, 1, 0, 7)],
         inits=big + [("two", ints(2)), ("last", ints(-1))])
    largest = [N("Flatten", ["x"], ["f"], axis=0), N("ArgMax", ["f"], ["at"], axis=1, keepdims=0), N("Div", ["at", "five"], ["p"]),
               N("Concat", ["p", "axis"], ["starts"], axis=0), N("Cast", ["starts"], ["fs"], to=F), N("Max", ["fs", "most"], ["fe"]),
               N("Cast", ["fe"], ["ends"], to=I), N("Slice", ["x", "starts", "ends", "both", "steps"], ["row"]), N("Squeeze", ["row", "axis"], ["y"])]
    case("row_of_the_largest", largest, matrix, [("y", F, [5])], [[x(4, 5)] for _ in range(4)],
         inits=big + [("five", ints(5)), ("most", np.full(2, 1e9, np.float32)), ("both", ints(0, 1)), ("steps", ints(10**9, 1))])
    case("two_sizes_at_once",
         nonzero + negative + [N("Gather", ["nz", "i0"], ["a"], axis=0), N("Gather", ["q", "i0"], ["b"], axis=0),
                               N("Unsqueeze", ["a", "one"], ["au"]), N("Mul", ["au", "b"], ["m"]), N("Transpose", ["m"], ["t"]),
                               N("Shape", ["t"], ["s"]), N("Size", ["t"], ["z"]), N("Reshape", ["m", "flat"], ["f"])],
         matrix, [("t", I, [None, None]), ("s", I, [2]), ("z", I, []), ("f", I, [None])], xs,
         inits=i0 + [("one", ints(1)), ("flat", ints(-1))])
    case("bound_of_one", [N("NonZero", ["v"], ["nz"]), N("Squeeze", ["nz", "z"], ["q"]), N("Mul", ["q", "three"], ["b"]),
                          N("Concat", ["q", "q"], ["c"], axis=0), N("Gather", ["v", "q"], ["g"], axis=0)],
         [("v", F, [1])], [("b", I, [None]), ("c", I, [None]), ("g", F, [None])], [[np.array([k], np.float32)] for k in (2, 0)],
         inits=[("z", ints(0)), ("three", ints(3))])
    case("padding_is_never_divided_by", # the elements behind the computed size are zeros
         [N("Cast", ["x"], ["i"], to=I), N("Mul", ["i", "i"], ["ii"]), N("Add", ["ii", "one"], ["p"]), N("Unique", ["p"], ["u"]),
          N("Compress", ["p", "keep"], ["c"], axis=0), N("Div", ["seven", "u"], ["d"]), N("Mod", ["seven", "c"], ["m"])],
         [("x", F, [6]), ("keep", B, [6])], [("d", I, [None]), ("m", I, [None])],
         [[3 * x(6), np.array(k, bool)] for k in ([1, 0, 1, 0, 0, 0], [0] * 6, [1] * 6)],
         inits=[("one", np.array(1, np.int64)), ("seven", np.array(7, np.int64))])


def make_sizes(case):
    """Windows over open extents, and sizes that are large expressions of them."""
    pools = [("MaxPool", [3], [2], [0, 0]), ("AveragePool", [3], [2], [1, 1]), ("MaxPool", [2], [3], [0, 1]), ("AveragePool", [2], [2], [0, 1]),
             ("LpPool", [4], [3], [1, 2]), ("MaxPool", [1], [2], [0, 0])]
    signals = [[x(1, 2, n)] for n in (7, 4, 5, 6, 8, 9, 12)]
    for opset in (18, 19):  # from 19 on AveragePool leaves out a window that starts in the padding after the input
        case(f"ceil_mode_{opset}", [N(kind, ["x"], [f"y{k}"], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=1)
                                    for k, (kind, kernel, strides, pads) in enumerate(pools)],
             [("x", F, [1, 2, "n"])], [(f"y{k}", F, [1, 2, None]) for k in range(len(pools))], signals, opset=opset)
    pictures = [[x(b, 3, n, m)] for b, n, m in ((1, 97, 65), (2, 64, 96), (1, 66, 91), (3, 71, 80))]
    halves = [N("MaxPool", [f"h{k}" if k else "x"], [f"h{k + 1}"], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 0], ceil_mode=1)
              for k in range(4)]
    case("many_pools", halves + [N("Conv", ["h4", "w"], ["y"], pads=[1, 1, 1, 1])], [("x", F, ["b", 3, "n", "m"])],
         [("y", F, [None, 4, None, None])], pictures, inits=[("w", x(4, 3, 3, 3))])
    ways = [dict(mode="cubic"), dict(mode="linear"), dict(mode="nearest"), dict(mode="linear", keep_aspect_ratio_policy="not_larger"),
            dict(mode="nearest", keep_aspect_ratio_policy="not_smaller"), dict(mode="linear", antialias=1)]
    for k, way in enumerate(ways):
        case(f"resize_to_an_input_{k}", [N("Resize", ["x", "", "", "s"], ["y"], **way)], [("x", F, [1, 1, "n", 3]), ("s", I, [4])],
             [("y", F, [1, 1, None, None])], [[x(1, 1, n, 3), ints(1, 1, m, k)] for n, m, k in ((12, 18, 3), (24, 30, 3), (12, 30, 3), (3, 6, 4))],
             opset=18)
    # TensorFlow's crop_and_resize: the region is computed, and may be partly outside of the picture
    crop = dict(coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0)
    regions = [N("Split", ["box"], ["low", "high"], axis=0, num_outputs=2), N("Neg", ["box"], ["turned"]), N("Add", ["turned", "unit"], ["mirrored"]),
               N("Concat", ["none", "low", "all", "high"], ["roi"], axis=0), N("Split", ["mirrored"], ["mlow", "mhigh"], axis=0, num_outputs=2),
               N("Concat", ["none", "mlow", "all", "mhigh"], ["mroi"], axis=0), N("Shape", ["x"], ["s"]), N("Slice", ["s", "zero", "two"], ["kept"]),
               N("Concat", ["kept", "want"], ["sizes"], axis=0), N("Concat", ["kept", "point"], ["ones"], axis=0)]
    regions += [N("Resize", ["x", roi, "", sizes], [f"y{k}"], mode=mode, **crop) for k, (roi, sizes, mode) in enumerate(
        ((r, s, m) for r in ("roi", "mroi") for s in ("sizes", "ones") for m in ("linear", "nearest")))]
    case("computed_regions", regions, [("x", F, ["b", 2, "n", "m"]), ("box", F, [4])], [(f"y{k}", F, [None] * 4) for k in range(8)],
         [[x(b, 2, n, m), np.array(box, np.float32)] for b, n, m, box in (
             (1, 6, 8, [0.13, 0.21, 0.72, 0.94]), (2, 9, 5, [0.31, -0.22, 1.33, 0.57]), (1, 4, 4, [0, 0, 1, 1]), (1, 6, 8, [0.83, 0.91, 0.22, 0.36]))],
         inits=[("none", np.zeros(2, np.float32)), ("all", np.ones(2, np.float32)), ("unit", np.ones(4, np.float32)), ("zero", ints(0)),
                ("two", ints(2)), ("want", ints(5, 7)), ("point", ints(1, 3))], opset=18)
    filters = [dict(mode="linear"), dict(mode="linear", antialias=1)] + [
        dict(mode="cubic", cubic_coeff_a=-0.5, exclude_outside=outside, antialias=antialias) for outside in (0, 1) for antialias in (0, 1)]
    # ONNX Runtime aligns corners by the rounded size of the result, the standard by the product of size and scale
    for name, coordinates, widths in (("filters", ("half_pixel", "pytorch_half_pixel", "asymmetric"), (10, 12, 31, 8)),
                                      ("filters_between_corners", ("align_corners",), (24, 16, 40, 8))):
        resizes = [dict(way, coordinate_transformation_mode=c) for way in filters for c in coordinates]
        case(name, [N("Resize", ["x", "", "s"], [f"y{k}"], **way) for k, way in enumerate(resizes)],
             [("x", F, ["b", 2, "n", "m"])], [(f"y{k}", F, [None, 2, None, None]) for k in range(len(resizes))],
             [[x(b, 2, n, m)] for b, n, m in zip((1, 2, 1, 3), (8, 7, 4, 16), widths)],
             inits=[("s", np.array([1, 1, 2, 0.375], np.float32))], opset=18)
    stretches = [(coordinates, nearest, scale) for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric")
                 for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil") for scale in (2, 3)]
    case("stretches", [N("Resize", ["x", "", f"s{scale}"], [f"y{k}"], mode="nearest", coordinate_transformation_mode=c, nearest_mode=nearest)
                       for k, (c, nearest, scale) in enumerate(stretches)],
         [("x", F, ["b", 2, "n", "m"])], [(f"y{k}", F, [None, 2, None, None]) for k in range(len(stretches))],
         [[x(b, 2, n, m)] for b, n, m in ((1, 4, 5), (2, 7, 1), (1, 1, 9), (1, 0, 3), (0, 2, 0))],
         inits=[(f"s{k}", np.array([1, 1, k, 2], np.float32)) for k in (2, 3)], opset=18)
    names = [f"n{k}" for k in range(18)]
    outer = [N("Concat", names[:9], ["p"], axis=0), N("Concat", names[9:], ["q"], axis=1), N("Mul", ["p", "q"], ["r"]), N("Relu", ["r"], ["y"])]
    case("more_terms_than_an_expression_has", outer,
         [(n, F, [n, 1] if k < 9 else [1, n]) for k, n in enumerate(names)], [("y", F, [None, None])],
         [[x(*((k % m + 1, 1) if k < 9 else (1, k % m + 1))) for k in range(18)] for m in (2, 3, 4)])


def make_apart(case):
    loop = [("i", I, []), ("c", B, [])]
    part = [N("NonZero", ["s"], ["p"]), N("Gather", ["p", "z"], ["p0"], axis=0), N("Gather", ["s", "p0"], ["e0"], axis=0),
            N("Softmax", ["e0"], ["sm"], axis=0), N("ReduceSum", ["sm"], ["e"], keepdims=0), N("ReduceSum", ["late"], ["ls"], keepdims=0),
            N("Add", ["s", "ls"], ["s2"]), N("Identity", ["c"], ["c2"])]
    case("loop_reads_what_waits", # the body computes a size before it reads `late`, which has one, too
         rows + [N("MatMul", ["rows", "w"], ["mm"]), N("Softmax", ["mm"], ["late"], axis=1), N("ReduceMax", ["x"], ["v"], axes=[1], keepdims=0),
                 N("Loop", ["m", "", "v"], ["vo", "es"],
                   body=body("part", part, loop + [("s", F, [4])], [("c2", B, []), ("s2", F, [4]), ("e", F, [])],
                             [("z", np.array(0, np.int64))]))],
         matrix + [("w", F, [5, 3])], [("vo", F, [4]), ("es", F, [None])], [[a[0], x(5, 3)] for a in xs],
         inits=i0 + [("m", np.array(3, np.int64))])
    grow = [N("Identity", ["c"], ["c2"]), N("Concat", ["s", "s"], ["s2"], axis=0), N("ReduceSum", ["s"], ["e"], keepdims=0)]
    grown = [("c2", B, []), ("s2", F, [None]), ("e", F, [])]
    loops = [N("Loop", ["m", "", a], [b, "e" + b], body=body("grow" + b, grow, loop + [("s", F, [None])], grown)) for a, b in (("v", "a"), ("ea", "b"))]
    case("loop_after_loop", loops + [N("Shape", ["b"], ["sb"])], [("m", I, []), ("v", F, [3])],
         [("a", F, [None]), ("eb", F, [None]), ("sb", I, [1])], [[np.array(k, np.int64), x(3)] for k in (0, 1, 3)])
    more = body("more", [N("Identity", ["c"], ["c2"]), N("Concat", ["s", "one"], ["s2"], axis=0), N("ReduceSum", ["s2"], ["e"], keepdims=0)],
                loop + [("s", F, [None])], grown, [("one", np.ones(1, np.float32))])
    case("more_sizes_than_are_kept", [N("Loop", ["m", "", "v"], ["vo", "es"], body=more)], [("m", I, []), ("v", F, [1])],
         [("vo", F, [None]), ("es", F, [None])], [[np.array(k, np.int64), x(1)] for k in (100, 70)])
    inner_if = N("If", ["t"], ["k"], then_branch=body("kept", [N("Clip", ["sm", "low"], ["k0"]), N("NonZero", ["k0"], ["kz"]),
                                                               N("Cast", ["kz"], ["k1"], to=F)], [], [("k1", F, [1, None])]),
                 else_branch=body("none", [N("Unsqueeze", ["sm", "axis"], ["k2"])], [], [("k2", F, [1, None])],
                                      [("axis", ints(0))]))
    clip = h.make_function("local", "clip", ["a", "low"], ["y"], [N("NonZero", ["a"], ["cq"]), N("Clip", ["a", "low"], ["y"])], [h.make_opsetid("", 17)])
    part = h.make_function("local", "part", ["a", "low"], ["y", "n", "k"],
                           [N("Relu", ["a"], ["r"]), N("NonZero", ["r"], ["q"]), N("Transpose", ["q"], ["qt"]), N("GatherND", ["a", "qt"], ["g"]),
                            N("Softmax", ["g"], ["sm"], axis=0), N("clip", ["sm", "low"], ["y"], domain="local"), N("Shape", ["y"], ["n"]),
                            N("Size", ["y"], ["sz"]), N("Constant", [], ["two"], value_int=2), N("Greater", ["sz", "two"], ["t"]), inner_if],
                           [h.make_opsetid("", 17), h.make_opsetid("local", 1)])
    for name, inputs in (("given", ["x", "lo"]), ("left_out", ["x", ""]), ("not_there", ["x"])):
        case("function_input_" + name, [N("part", inputs, ["y", "n", "k"], domain="local"), N("Neg", ["y"], ["ny"])],
             matrix, [("n", I, [1]), ("k", F, [1, None]), ("ny", F, [None])], xs, inits=[("lo", np.float32(0.1))], functions=[part, clip])


def make(case):
    make_rules(case)
    make_sizes(case)
    make_apart(case)
