"""hostile_sequences.py - more of make_hostile.py's models: sequences where tensors are wanted, tensors where sequences are, and
positions, lengths and types that do not fit.  Each is tested in a model that is compiled as one module, and in one that runs
segment by segment, since a size depends on what it computes.

add(h) is called with make_hostile as h."""
from onnx import TensorProto, helper

F, I64, BOOL, F64 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE
INT64_MIN, HUGE = -(1 << 63), 1 << 62
node = helper.make_node


def value(name, kind=F):
    return helper.make_tensor_sequence_value_info(name, kind, None)


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def add(h):
    x = [h.info("x", [32])]  # so many that the import does not ask for their contents to compute a size
    list_of_two = [node("SequenceConstruct", ["x", "x"], ["s"])]
    # The sequence comes from an earlier segment, since its length depends on the input of a loop.
    grow = graph([node("Identity", ["go"], ["on"]), node("SequenceInsert", ["t", "x"], ["u"])],
                 [h.info("i", [], I64), h.info("go", [], BOOL), value("t")], [h.info("on", [], BOOL), value("u")])
    late = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Mul", ["sum", "none"], ["zero"]), node("Cast", ["zero"], ["z"], to=I64),
            node("Add", ["z", "two"], ["m"]), node("SequenceEmpty", [], ["e"]), node("Loop", ["m", "", "e"], ["s"], body=grow)]
    data = [h.const("none", 0, "float32"), h.const("two", 2)]

    def both(name, nodes, pattern, more=()):
        for which, before, tensors in (("", list_of_two, ()), ("_late", late, data)):
            h.case("sequence_" + name + which, h.make(before + nodes, x, [h.info("y", None)], [*tensors, *more]), pattern)

    # positions
    for k, p in enumerate((2, -3, HUGE, INT64_MIN)):
        at = [h.const("p", p)]
        both(f"at_{k}", [node("SequenceAt", ["s", "p"], ["y"], name="n")], rf"n: SequenceAt: position is {p}; .* within \[-2, 2\)", at)
        both(f"erase_{k}", [node("SequenceErase", ["s", "p"], ["t"], name="n"), node("SequenceLength", ["t"], ["y"])],
             rf"n: SequenceErase: position is {p}; .* within \[-2, 2\)", at)
        both(f"insert_{k}", [node("SequenceInsert", ["s", "x", "p"], ["t"], name="n"), node("SequenceLength", ["t"], ["y"])],
             "*" if p == 2 else rf"n: SequenceInsert: position is {p}; .* within \[-2, 2\]", at)
    both("at_many", [node("SequenceAt", ["s", "p"], ["y"], name="n")], "position", [h.const("p", [0, 1])])
    both("at_float", [node("SequenceAt", ["s", "p"], ["y"], name="n")], "position is f32", [h.const("p", 0, "float32")])
    both("at_sequence", [node("SequenceAt", ["s", "s"], ["y"], name="n")], "position is seq<f32>")
    h.case("sequence_erase_empty", h.make([node("SequenceEmpty", [], ["s"]), node("SequenceErase", ["s"], ["t"], name="n"),
                                           node("SequenceLength", ["t"], ["y"])], [], [h.info("y", None)]), "n: SequenceErase: position is -1")
    # types
    both("add", [node("Add", ["s", "x"], ["y"], name="n")], "n: Add: A is seq<f32>")
    both("add_behind", [node("Add", ["x", "s"], ["y"], name="n")], "n: Add: B is seq<f32>")
    both("shape", [node("Shape", ["s"], ["y"], name="n")], "n: Shape: data is seq<f32>")
    both("nested", [node("SequenceConstruct", ["s"], ["t"], name="n"), node("SequenceLength", ["t"], ["y"])], "is seq<f32>")
    both("insert_sequence", [node("SequenceInsert", ["s", "s"], ["t"], name="n"), node("SequenceLength", ["t"], ["y"])],
         "n: SequenceInsert: tensor is seq<f32>")
    both("insert_type", [node("Cast", ["x"], ["c"], to=F64), node("SequenceInsert", ["s", "c"], ["t"], name="n"),
                         node("SequenceLength", ["t"], ["y"])], r"n: SequenceInsert: tensor is f64\[32\], but the sequence is seq<f32>")
    both("output", [node("Identity", ["s"], ["y"], name="n")], "output 'y' is seq<f32> but declared as")
    both("length_of_tensor", [node("SequenceLength", ["x"], ["y"], name="n")], r"n: SequenceLength: input_sequence is f32\[32\]")
    both("if", [node("If", ["s"], ["y"], name="n", then_branch=graph([node("Neg", ["x"], ["a"])], [], [h.info("a", None)]),
                     else_branch=graph([node("Abs", ["x"], ["b"])], [], [h.info("b", None)]))], "cond is seq<f32>")
    both("condition", [node("Loop", ["four", "yes"], ["y"], name="n",
                            body=graph([node("Identity", ["s"], ["on"]), node("Neg", ["x"], ["a"])],
                                       [h.info("i", [], I64), h.info("go", [], BOOL)], [value("on", BOOL), h.info("a", None)]))],
         "condition", [h.const("four", 4), h.const("yes", True, "bool")])
    both("trips", [node("Loop", ["s", ""], ["y"], name="n",
                        body=graph([node("Identity", ["go"], ["on"]), node("Neg", ["x"], ["a"])],
                                   [h.info("i", [], I64), h.info("go", [], BOOL)], [h.info("on", [], BOOL), h.info("a", None)]))],
         "M is seq<f32>")
    both("scanned", [node("Loop", ["four", ""], ["y"], name="n",
                          body=graph([node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["a"])],
                                     [h.info("i", [], I64), h.info("go", [], BOOL)], [h.info("on", [], BOOL), value("a")]))],
         "scan output 0 is (a sequence|seq<f32>)", [h.const("four", 4)])
    both("state_becomes_tensor", [node("Loop", ["four", "", "s"], ["l"], name="n",
                                       body=graph([node("Identity", ["go"], ["on"]), node("Neg", ["x"], ["a"])],
                                                  [h.info("i", [], I64), h.info("go", [], BOOL), value("q")],
                                                  [h.info("on", [], BOOL), h.info("a", None)])), node("Identity", ["l"], ["y"])],
         r"state 0 is seq<f32> before a step but f32\[32\] after it", [h.const("four", 4)])
    both("state_becomes_sequence", [node("Loop", ["four", "", "x"], ["l"], name="n",
                                         body=graph([node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["a"])],
                                                    [h.info("i", [], I64), h.info("go", [], BOOL), h.info("q", None)],
                                                    [h.info("on", [], BOOL), value("a")])), node("SequenceLength", ["l"], ["y"])],
         r"state 0 is f32\[32\] before a step but seq<f32> after it", [h.const("four", 4)])
    scan = graph([node("Neg", ["q"], ["a"])], [h.info("q", None)], [h.info("a", None)])
    both("scan", [node("Scan", ["s"], ["y"], name="n", num_scan_inputs=1, body=scan)], "is seq<f32>")
    training = "ai.onnx.preview.training"
    for name, y, pattern in (("y", "s", r"y \('s'\) is seq<f32>"), ("x", "a", "Inputs is seq<f32>")):
        h.case("sequence_gradient_" + name, h.make(list_of_two + [node("SequenceAt", ["s", "zero"], ["a"]), node(
            "Gradient", ["x" if name == "y" else "s"], ["y"], name="n", domain=training, xs=["x" if name == "y" else "s"], y=y)], x,
            [h.info("y", None)], [h.const("zero", 0)], opsets=(("", 21), (training, 1))), pattern)
    # the body must return a tensor, but returns a list
    mixed = graph([node("SequenceConstruct", ["e"], ["a"])], [h.info("e", None)], [value("a")])
    both("map_of_lists", [node("SequenceMap", ["s"], ["t"], name="n", body=mixed), node("SequenceLength", ["t"], ["y"])],
         "output 0 is seq<f32>; a tensor")
    neg = graph([node("Neg", ["e"], ["a"])], [h.info("e", None)], [h.info("a", None)])
    both("map_inputs", [node("SequenceMap", ["s", "x"], ["t"], name="n", body=neg), node("SequenceLength", ["t"], ["y"])], "inputs")
    both("map_outputs", [node("SequenceMap", ["s"], ["t", "u"], name="n", body=neg), node("SequenceLength", ["t"], ["y"])], "outputs")
    both("map_lengths", [node("SequenceConstruct", ["x"], ["r"]), node("SequenceMap", ["s", "r"], ["t"], name="n", body=neg),
                         node("SequenceLength", ["t"], ["y"])], "input 1 is a sequence of 1 tensors, but input 0 is one of 2")
    both("map_without_body", [node("SequenceMap", ["s"], ["t"], name="n"), node("SequenceLength", ["t"], ["y"])], "body")
    # shapes
    both("concat_axis", [node("ConcatFromSequence", ["s"], ["y"], name="n", axis=1)], "n: ConcatFromSequence: axis 1 is outside")
    both("concat_without_axis", [node("ConcatFromSequence", ["s"], ["y"], name="n")], "n: ConcatFromSequence: .*axis")
    both("concat_ranks", [node("Unsqueeze", ["x", "axes"], ["w"]), node("SequenceInsert", ["s", "w"], ["t"]),
                          node("ConcatFromSequence", ["t"], ["y"], name="n", axis=0)], "n: ConcatFromSequence", [h.const("axes", [0])])
    both("stack_shapes", [node("Concat", ["x", "x"], ["w"], axis=0), node("SequenceInsert", ["s", "w"], ["t"]),
                          node("ConcatFromSequence", ["t"], ["y"], name="n", axis=0, new_axis=1)],
         r"n: ConcatFromSequence: tensor 2 of the sequence is f32\[64\]")
    h.case("sequence_concat_nothing", h.make([node("SequenceEmpty", [], ["s"]), node("ConcatFromSequence", ["s"], ["y"], name="n", axis=0)], [],
                                             [h.info("y", None)]), "n: ConcatFromSequence: input_sequence is empty")
    h.case("sequence_empty_type", h.make([node("SequenceEmpty", [], ["s"], name="n", dtype=77), node("SequenceLength", ["s"], ["y"])], [],
                                         [h.info("y", None)]), "n: SequenceEmpty: attribute dtype: 77")
    for k, split in enumerate(([1, 1], [32, 1], [-1, 33], [HUGE, HUGE, HUGE, HUGE], 0, -1, INT64_MIN)):
        h.case(f"sequence_split_{k}", h.make([node("SplitToSequence", ["x", "k"], ["s"], name="n"), node("SequenceLength", ["s"], ["y"])], x,
                                             [h.info("y", None)], [h.const("k", split)]), "n: SplitToSequence: .*split")
    h.case("sequence_split_long", h.make([node("Expand", ["x", "k"], ["w"]), node("SplitToSequence", ["w"], ["s"], name="n"),
                                          node("SequenceLength", ["s"], ["y"])], x, [h.info("y", None)], [h.const("k", [10**9, 32])]),
           "n: SplitToSequence: a sequence of 1000000000 tensors")
    h.case("sequence_unknown_domain", h.make(list_of_two + [node("Sum", ["s"], ["y"], name="n", domain="org.example")], x,
                                             [h.info("y", None)], opsets=(("", 21), ("org.example", 1))), "org.example")
