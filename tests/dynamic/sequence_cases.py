"""sequence_cases.py: sequences of tensors between the nodes of a graph; make_cases.py calls make()."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

F, I, B = T.FLOAT, T.INT64, T.BOOL
N = h.make_node
rng = np.random.default_rng(2)


def x(*dims):
    return rng.standard_normal(dims).astype(np.float32)


def number(value):
    return np.array(value, np.int64)


def info(name, kind=F, dims=None):
    return h.make_tensor_value_info(name, kind, dims)


def sequence(name, kind=F):
    return h.make_tensor_sequence_value_info(name, kind, None)


def graph(nodes, inputs, outputs):
    return h.make_graph(nodes, "body", inputs, outputs)


def const(name, value):
    return N("Constant", [], [name], value=nh.from_array(np.asarray(value)))


ONES = [("a", F, [2, 3]), ("b", F, [1, 3]), ("c", F, [4, 3])]
SUM = [N("ConcatFromSequence", ["s"], ["y"], axis=0)]
OUT = [("y", F, [None, 3])]


def abc():
    return [x(2, 3), x(1, 3), x(4, 3)]


def lists(case):
    """Each operator, with positions that are constants."""
    case("construct", [N("SequenceConstruct", ["a", "b", "c"], ["s"]), *SUM, N("SequenceLength", ["s"], ["n"])], ONES,
         OUT + [("n", I, [])], [abc(), abc()])
    inserts = [N("SequenceEmpty", [], ["s0"], dtype=F), N("SequenceInsert", ["s0", "a"], ["s1"]), const("front", number(0)),
               N("SequenceInsert", ["s1", "b", "front"], ["s2"]), const("before", np.int32(-1)),
               N("SequenceInsert", ["s2", "c", "before"], ["s3"]), const("end", number(3)), N("SequenceInsert", ["s3", "b", "end"], ["s"])]
    case("insert", inserts + SUM, ONES, OUT, [abc(), abc()])
    for name, at in (("last", []), ("first", ["p"]), ("back", ["m"])):
        case("erase_" + name, [N("SequenceConstruct", ["a", "b", "c"], ["s0"]), N("SequenceErase", ["s0", *at], ["s"]), *SUM], ONES, OUT,
             [abc()], inits=[("p", number(0)), ("m", np.int32(-2))])
    case("at", [N("SequenceConstruct", ["a", "b", "c"], ["s"]), N("SequenceAt", ["s", "p"], ["y"]), N("SequenceAt", ["s", "m"], ["z"])],
         ONES, [("y", F, [None, 3]), ("z", F, [None, 3])], [abc()], inits=[("p", number(2)), ("m", np.int32(-3))])
    case("empty_length", [N("SequenceEmpty", [], ["s"], dtype=T.DOUBLE), N("SequenceLength", ["s"], ["n"]), N("Add", ["n", "k"], ["y"])],
         [("k", I, [])], [("y", I, [])], [[number(3)]])
    case("stack", [N("SequenceConstruct", ["a", "b"], ["s"]), N("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1),
                   N("ConcatFromSequence", ["s"], ["z"], axis=0, new_axis=1)],
         [("a", F, [2, 3]), ("b", F, [2, 3])], [("y", F, [2, 3, 2]), ("z", F, [2, 2, 3])], [[x(2, 3), x(2, 3)]])
    case("has_element", [N("SequenceConstruct", ["a"], ["r"]), N("OptionalHasElement", ["r"], ["h"]), N("OptionalGetElement", ["r"], ["s"]),
                         *SUM], ONES[:1], [("h", B, [])] + OUT, [[x(2, 3)]])
    case("identity", [N("SequenceConstruct", ["a", "b", "c"], ["r"]), N("Identity", ["r"], ["s"]), *SUM], ONES, OUT, [abc()])


def splits(case):
    matrix, back = [("a", F, [5, 4])], N("SequenceAt", ["s", "last"], ["y"])
    end = [("last", number(-1))]
    for opset in (11, 24):
        name = f"split_{opset}_"
        case(name + "each", [N("SplitToSequence", ["a"], ["s"], axis=-1), back], matrix, [("y", F, [5, 1])], [[x(5, 4)]], inits=end, opset=opset)
        case(name + "drops", [N("SplitToSequence", ["a"], ["s"], keepdims=0), back], matrix, [("y", F, [4])], [[x(5, 4)]], inits=end,
             opset=opset)
        case(name + "size", [N("SplitToSequence", ["a", "k"], ["s"]), back, N("SequenceLength", ["s"], ["n"])], matrix,
             [("y", F, [1, 4]), ("n", I, [])], [[x(5, 4)]], inits=end + [("k", number(2))], opset=opset)
        case(name + "list", [N("SplitToSequence", ["a", "k"], ["s"]), N("SequenceErase", ["s"], ["t"]),
                             N("ConcatFromSequence", ["t"], ["y"], axis=0)], matrix, [("y", F, [3, 4])], [[x(5, 4)]],
             inits=[("k", np.array([1, 0, 2, 2], np.int32))], opset=opset)
    numbers = [("a", I, ["n"]), ("k", I, ["parts"])]
    case("split_given", [N("SplitToSequence", ["a", "k"], ["s"]), N("SequenceLength", ["s"], ["n"]), N("SequenceAt", ["s", "first"], ["y"])],
         numbers, [("n", I, []), ("y", I, [None])], [[np.arange(6), number([2, 4])], [np.arange(5), number([3, 1, 1])]],
         inits=[("first", number(0))])


def given(case):
    """Positions that the caller gives or the model computes."""
    at = ONES + [("p", I, [])]
    case("at_given", [N("SequenceConstruct", ["a", "b", "c"], ["s"]), N("SequenceAt", ["s", "p"], ["y"])], at, OUT,
         [abc() + [number(k)] for k in (0, 2, -1)])
    case("insert_given", [N("SequenceConstruct", ["a", "b"], ["r"]), N("SequenceInsert", ["r", "c", "p"], ["s"]), *SUM], at, OUT,
         [abc() + [number(k)] for k in (0, 2, -1)])
    case("erase_given", [N("SequenceConstruct", ["a", "b", "c"], ["r"]), N("SequenceErase", ["r", "p"], ["s"]), *SUM], at, OUT,
         [abc() + [number(k)] for k in (0, 2, -3)])
    # the number of positive elements, at most 2
    found = [N("Relu", ["v"], ["r"]), N("NonZero", ["r"], ["nz"]), N("Shape", ["nz"], ["sh"]), N("Gather", ["sh", "one"], ["n"]),
             N("Min", ["n", "two"], ["p"])]
    vs = [np.float32([-1, -2, 3]), np.float32([-1, -2, -3]), np.float32([1, 2, 3])]
    inits = [("one", number(1)), ("two", number(2))]
    computed = ONES + [("v", F, [3])]
    made = N("SequenceConstruct", ["a", "b", "c"], ["r0"])
    case("at_computed", found + [made, N("SequenceAt", ["r0", "p"], ["q"]), N("Neg", ["q"], ["y"])], computed, OUT,
         [abc() + [v] for v in vs], inits=inits)
    case("erase_computed", found + [made, N("SequenceErase", ["r0", "p"], ["s"]), *SUM, N("SequenceLength", ["s"], ["l"])], computed,
         OUT + [("l", I, [])], [abc() + [v] for v in vs], inits=inits)
    case("insert_computed", found + [made, N("Neg", ["b"], ["nb"]), N("SequenceInsert", ["r0", "nb", "p"], ["s"]), *SUM], computed, OUT,
         [abc() + [v] for v in vs], inits=inits)
    case("split_computed", [N("Relu", ["v"], ["r"]), N("NonZero", ["r"], ["nz"]), N("SplitToSequence", ["nz"], ["s"], axis=1),
                            N("SequenceLength", ["s"], ["y"])], [("v", F, [3])], [("y", I, [])], [[v] for v in vs])
    case("of_sizes", [N("Relu", ["v"], ["r"]), N("NonZero", ["r"], ["nz"]), N("Neg", ["v"], ["w"]), N("Relu", ["w"], ["wr"]),
                      N("NonZero", ["wr"], ["nw"]), N("SequenceConstruct", ["nw", "nz"], ["s"]),
                      N("ConcatFromSequence", ["s"], ["y"], axis=1)], [("v", F, [3])], [("y", I, [1, 3])], [[v] for v in vs])


def conditions(case):
    two = graph([N("SequenceConstruct", ["a", "b"], ["t"])], [], [sequence("t")])
    one = graph([N("Neg", ["c"], ["d"]), N("SequenceConstruct", ["d"], ["e"])], [], [sequence("e")])
    branch = N("If", ["q"], ["s"], then_branch=two, else_branch=one)
    case("if_constant", [const("q", np.bool_(True)), branch, *SUM], ONES, OUT, [abc()])
    case("if_given", [branch, *SUM], ONES + [("q", B, [])], OUT, [abc() + [np.array(q)] for q in (True, False)])
    case("if_computed", [N("ReduceSum", ["a"], ["ra"], keepdims=0), N("Greater", ["ra", "zero"], ["q"]), branch, *SUM], ONES, OUT,
         [abc() for _ in range(4)], inits=[("zero", np.float32(0))])
    picks = {"then_branch": graph([N("SequenceAt", ["l", "zero"], ["t"])], [], [info("t", F, [2, 3])]),
             "else_branch": graph([N("SequenceAt", ["l", "last"], ["e"])], [], [info("e", F, [2, 3])])}
    case("if_reads", [N("SequenceConstruct", ["a", "b"], ["l"]), N("If", ["q"], ["y"], **picks)],
         [("a", F, [2, 3]), ("b", F, [2, 3]), ("q", B, [])], [("y", F, [2, 3])], [[x(2, 3), x(2, 3), np.array(q)] for q in (True, False)],
         inits=[("zero", number(0)), ("last", number(-1))])


def maps(case):
    body = graph([N("Mul", ["e", "e"], ["f"]), N("Add", ["f", "w"], ["g"])], [info("e", F, [None, 3]), info("w", F, [3])],
                 [info("g", F, [None, 3])])
    case("map", [N("SequenceConstruct", ["a", "b", "c"], ["r"]), N("SequenceMap", ["r", "w"], ["s"], body=body), *SUM],
         ONES + [("w", F, [3])], OUT, [abc() + [x(3)]])
    pair = graph([N("MatMul", ["e", "f"], ["g"]), N("Shape", ["e"], ["h"])], [info("e", F, [None, 3]), info("f", F, [3, None])],
                 [info("g", F, [None, None]), info("h", I, [2])])
    pairs = [N("SequenceConstruct", ["a", "b", "c"], ["r"]), N("SequenceConstruct", ["d", "d", "d"], ["t"]),
             N("SequenceMap", ["r", "t"], ["s", "shapes"], body=pair), *SUM, N("ConcatFromSequence", ["shapes"], ["z"], axis=0, new_axis=1)]
    case("map_two", pairs, ONES + [("d", F, [3, 2])], [("y", F, [None, 2]), ("z", I, [3, 2])], [abc() + [x(3, 2)]])
    nothing = graph([N("Neg", ["e"], ["f"])], [info("e", F, [3])], [info("f", F, [3])])
    case("map_nothing", [N("SequenceEmpty", [], ["r"]), N("SequenceMap", ["r"], ["s"], body=nothing), N("SequenceInsert", ["s", "a"], ["t"]),
                         N("ConcatFromSequence", ["t"], ["y"], axis=0)], [("a", F, [3])], [("y", F, [3])], [[x(3)]])
    sized = graph([N("Relu", ["e"], ["er"]), N("NonZero", ["er"], ["p"])], [info("e", F, [None, 3])], [info("p", I, [2, None])])
    case("map_sizes", [N("SequenceConstruct", ["a", "b", "c"], ["r"]), N("SequenceMap", ["r"], ["s"], body=sized),
                       N("ConcatFromSequence", ["s"], ["y"], axis=1)], ONES, [("y", I, [2, None])], [abc(), abc()])


def collecting(nodes):
    """Returns a loop's body that inserts w, which `nodes` compute from `v`, into the sequence."""
    return graph([N("Identity", ["go"], ["on"]), *nodes, N("SequenceInsert", ["s", "w"], ["t"])],
                 [info("i", I, []), info("go", B, []), sequence("s")], [info("on", B, []), sequence("t")])


def loops(case):
    start = N("SequenceEmpty", [], ["s0"])
    vector = [("v", F, [3])]
    scaled = collecting([N("Cast", ["i"], ["f"], to=F), N("Mul", ["v", "f"], ["w"])])
    rest = [N("Loop", ["m", "", "s0"], ["s"], body=scaled), N("SequenceLength", ["s"], ["n"])]
    outs = [("y", F, [None]), ("n", I, [])]
    case("loop", [start, const("m", number(5)), *rest, *SUM], vector, outs, [[x(3)]])
    case("loop_given", [start, *rest, *SUM], vector + [("m", I, [])], outs, [[x(3), number(k)] for k in (1, 4)])
    case("loop_long", [start, const("m", number(300)), *rest, *SUM], vector, outs, [[x(3)]])
    case("loop_never", [start, const("m", number(0)), *rest], vector, outs[1:], [[x(3)]])
    # as many steps as v has positive elements, of growing arrays
    growing = collecting([N("Shape", ["nz"], ["sh"]), N("Gather", ["sh", "zero"], ["rank"]), N("Add", ["i", "rank"], ["length"]),
                          N("Unsqueeze", ["length", "zeros"], ["shape"]), N("Expand", ["half", "shape"], ["w"])])
    found = [N("Relu", ["v"], ["r"]), N("NonZero", ["r"], ["nz"]), N("Shape", ["nz"], ["all"]), N("Gather", ["all", "one"], ["m"])]
    inits = [("one", number(1)), ("zero", number(0)), ("zeros", number([0])), ("half", np.float32([0.5]))]
    vs = [[np.float32([1, 2, 3])], [np.float32([1, -2, 3])], [np.float32([-1, -2, 3])]]
    case("loop_computed", [*found, start, N("Loop", ["m", "", "s0"], ["s"], body=growing), N("SequenceLength", ["s"], ["n"]), *SUM],
         vector, outs, vs, inits=inits)
    # the body reads what it has collected, and the number of iterations depends on that
    reading = graph([N("SequenceAt", ["s", "last"], ["e"]), N("Add", ["e", "e"], ["w"]), N("SequenceInsert", ["s", "w"], ["t"]),
                     N("ReduceMax", ["w"], ["mx"], keepdims=0), N("Less", ["mx", "limit"], ["on"]), N("SequenceLength", ["t"], ["l"])],
                    [info("i", I, []), info("go", B, []), sequence("s")], [info("on", B, []), sequence("t"), info("l", I, [])])
    case("loop_reads", [N("Abs", ["v"], ["va"]), N("SequenceConstruct", ["va"], ["s0"]), const("yes", np.bool_(True)),
                        N("Loop", ["", "yes", "s0"], ["s", "ls"], body=reading), *SUM], vector, [("y", F, [None]), ("ls", I, [None])],
         [[x(3)], [x(3)]], inits=[("last", number(-1)), ("limit", np.float32(50))])
    # elements by the number of the step
    summing = graph([N("Identity", ["go"], ["on"]), N("SequenceAt", ["l", "i"], ["e"]), N("ReduceSum", ["e"], ["f"], keepdims=0),
                     N("Add", ["s", "f"], ["t"])],
                    [info("i", I, []), info("go", B, []), info("s", F, [])], [info("on", B, []), info("t", F, [])])
    case("loop_picks", [N("SequenceConstruct", ["a", "b", "c"], ["l"]), N("SequenceLength", ["l"], ["m"]),
                        N("Loop", ["m", "", "zero"], ["y"], body=summing)], ONES, [("y", F, [])], [abc()], inits=[("zero", np.float32(0))])
    case("loop_picks_given", [N("SequenceConstruct", ["a", "b", "c"], ["l"]), N("Loop", ["m", "", "zero"], ["y"], body=summing)],
         ONES + [("m", I, [])], [("y", F, [])], [abc() + [number(k)] for k in (2, 3)], inits=[("zero", np.float32(0))])
    # a loop around a loop
    outer = graph([N("Identity", ["more"], ["all"]), N("SequenceEmpty", [], ["s1"]), N("Add", ["k", "one"], ["m"]),
                   N("Loop", ["m", "", "s1"], ["s2"], body=scaled), N("ConcatFromSequence", ["s2"], ["w2"], axis=0),
                   N("SequenceInsert", ["o", "w2"], ["p"])],
                  [info("k", I, []), info("more", B, []), sequence("o")], [info("all", B, []), sequence("p")])
    case("loop_nested", [N("SequenceEmpty", [], ["o0"]), const("three", number(3)), N("Loop", ["three", "", "o0"], ["q"], body=outer),
                         N("ConcatFromSequence", ["q"], ["y"], axis=0), N("SequenceLength", ["q"], ["n"])], vector, outs, [[x(3)]],
         inits=[("one", number(1))])


def make(case):
    def named(name, *rest, opset=18, **more):
        case("sequence_" + name, *rest, opset=opset, **more)

    for group in (lists, splits, given, conditions, maps, loops):
        group(named)
