"""check_values.py ONNX_XLA DIR PLUGIN: runs one model for each operator whose result the standard does not define for some
integers, such as an index out of range or a divisor of 0.  Exactly the runs that fail in ONNX Runtime must fail in onnx-xla: on
both targets, with one and with two threads, from a compiled file, and as ONNX Runtime's execution provider.  The message must name
the node, the input and the number.  With --unchecked no run may fail.  The last line printed is "N passed, N failed"."""
import os
import subprocess
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "provider"))
from ort_sessions import register, session  # noqa: E402

node, F = helper.make_node, np.float32
TABLE = np.arange(12, dtype=F).reshape(4, 3)
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
DIVISOR = "holds 0, by which integers cannot be divided"


def info(name, array):
    array = np.asarray(array)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def result(name):
    return ValueInfoProto(name=name)


def typed(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def model(nodes, feeds, constants=(), outputs=("y",), opset=18):
    graph = helper.make_graph(nodes, "g", [info(k, v) for k, v in feeds.items()], [result(o) for o in outputs], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def single(op, says, *, opset=18, constants=(), attributes=None, **feeds):
    """Returns a model of one node n, its inputs, and a pattern of the error; says: what the message must contain, or None if
    runs succeed."""
    feeds = {k: np.asarray(v) for k, v in feeds.items()}
    inputs = list(feeds) + [c.name for c in constants]
    return model([node(op, inputs, ["y"], name="n", **(attributes or {}))], feeds, constants, opset=opset), feeds, says and f"n: {op} .* {says}"


def looped(steps, rows=4):
    body = helper.make_graph([node("Gather", ["x", "k"], ["row"], name="n"), node("Identity", ["c"], ["go"])], "body",
                             [typed("k", TensorProto.INT64, []), typed("c", TensorProto.BOOL, [])],
                             [typed("go", TensorProto.BOOL, []), typed("row", TensorProto.FLOAT, [3])])
    feeds = {"x": TABLE[:rows], "steps": np.array(steps)}
    return (model([node("Loop", ["steps", "yes"], ["y"], name="loop", body=body)], feeds, [constant("yes", True)]), feeds,
            f"n: Gather .*indices holds {rows}," if steps > rows else None)


def branched(condition):
    """A Gather in each branch of an If, one with a wrong index: only the branch that is taken may fail."""
    def branch(name, indices):
        return helper.make_graph([node("Gather", ["x", indices], [name], name="n")], name, [],
                                 [typed(name, TensorProto.FLOAT, [2, 3])])
    feeds = {"c": np.array(condition), "x": TABLE, "i": np.array([7, 0]), "j": np.array([0, 1])}
    return (model([node("If", ["c"], ["y"], name="if", then_branch=branch("t", "i"), else_branch=branch("e", "j"))], feeds), feeds,
            "n: Gather .*indices holds 7," if condition else None)


def counted(mask, op, says):
    """Indices or divisors whose number is known only when the model runs: the elements behind that number must not be checked."""
    feeds = {"m": np.array(mask, F), "x": TABLE}
    nodes = [node("NonZero", ["m"], ["nz"]), node("Squeeze", ["nz", "first"], ["at"]), node("Sub", ["at", "one"], ["less"]),
             node("Add", ["at", "one"], ["more"]),
             node("Gather", ["x", "more"], ["y"], name="n") if op == "Gather" else node("Div", ["hundred", "less"], ["y"], name="n")]
    constants = [constant("first", [0]), constant("one", [1]), constant("hundred", [100])]
    return model(nodes, feeds, constants), feeds, says and f"n: {op} .*{says}"


def computed_k(largest, says):
    """A TopK of 4 elements whose K is the largest of 300 numbers."""
    feeds = {"m": np.linspace(-9, largest, 300, dtype=F), "x": TABLE}
    nodes = [node("ReduceMax", ["m"], ["most"]), node("Cast", ["most"], ["k"], to=TensorProto.INT64),
             node("TopK", ["x", "k"], ["y", "at"], name="n", axis=0)]
    return model(nodes, feeds), feeds, says and f"n: TopK .*K holds {says}"


def row_of(place, says):
    """x[place] as TensorFlow's exporter writes it: the step and the end of the Slice are beyond the array.  The place is computed."""
    feeds = {"p": np.array([place], np.int64), "x": TABLE}
    nodes = [node("Add", ["p", "p"], ["twice"]), node("Slice", ["x", "twice", "far", "first", "far"], ["rows"]),
             node("Squeeze", ["rows", "first"], ["y"], name="n")]
    return model(nodes, feeds, [constant("first", [0]), constant("far", [10**9])]), feeds, says and f"n: Squeeze .*{says}"


def recurrent(op, lengths, says):
    """A layer of one cell on two sequences of three steps."""
    rows = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    return single(op, says and f"sequence_lens holds {says}, outside of [0, 4)", opset=14, x=np.zeros([3, 2, 1], F), w=np.ones([1, rows, 1], F),
                  r=np.ones([1, rows, 1], F), b=np.zeros([1, 2 * rows], F), i=np.array(lengths, "i4"), attributes={"hidden_size": 1})


def scanned(lengths, says):
    """A Scan of version 8, which adds up the numbers of two sequences."""
    body = helper.make_graph([node("Add", ["s", "v"], ["sum"])], "body", [typed(k, TensorProto.FLOAT, [1]) for k in "sv"],
                             [typed("sum", TensorProto.FLOAT, [1])])
    return single("Scan", says and f"sequence_lens holds {says}, outside of [0, 4)", opset=8, i=np.array(lengths), s=np.zeros([2, 1], F),
                  v=np.ones([2, 3, 1], F), attributes={"num_scan_inputs": 1, "body": body})


def all_cases():
    x, square = TABLE, TABLE[:3, :3]
    long = np.zeros(300_000, np.int64)
    far = long.copy()
    far[277_777] = 4
    cases = {
        "row_behind": row_of(2, "the last position in an axis that is removed holds -1,"),
        "row_last": row_of(-2, None),
        "gather": single("Gather", "indices holds 4, outside of .-4, 4)", x=x, i=[1, 4]),
        "gather_last": single("Gather", None, x=x, i=[3, -4]),
        "gather_below": single("Gather", "indices holds -5,", x=x, i=np.array([1, -5], "i4")),
        "gather_one": single("Gather", "indices holds 9,", x=x, i=np.array(9)),
        "gather_axis": single("Gather", "indices holds 3, outside of .-3, 3)", x=x, i=[3], attributes={"axis": 1}),
        "gather_vocabulary": single("Gather", "indices holds 50257,", x=np.zeros([50257, 2], F), i=[[11, 50257, 3]]),
        "gather_long": single("Gather", "indices holds 4,.*element 277777", x=x[:, 0].copy(), i=far),
        "gather_long_fine": single("Gather", None, x=x[:, 0].copy(), i=long),
        "gather_elements": single("GatherElements", "indices holds 3,", x=x, i=[[0, 1], [2, -3], [0, 3], [1, 1]], attributes={"axis": 1}),
        "gather_elements_fine": single("GatherElements", None, x=x, i=[[0, 1], [2, -3], [0, 2], [1, 1]], attributes={"axis": 1}),
        "gather_nd": single("GatherND", "indices holds 3, outside of .-3, 3)", x=x, i=[[3, 2], [2, 3]]),
        "gather_nd_rows": single("GatherND", "indices holds 4, outside of .-4, 4)", x=x, i=[[3, 2], [4, 0]]),
        "gather_nd_fine": single("GatherND", None, x=x, i=[[3, 2], [-4, -3]]),
        "gather_nd_batch": single("GatherND", "indices holds 3,", x=square, i=[[0], [3], [1]], attributes={"batch_dims": 1}),
        "scatter": single("Scatter", "indices holds 4,", opset=10, x=x, i=[[0, 4, 1]], u=x[:1]),
        "scatter_elements": single("ScatterElements", "indices holds 4,", x=x, i=[[0, 4, 1]], u=x[:1]),
        "scatter_elements_add": single("ScatterElements", "indices holds -5,", x=x, i=[[0, -5, 1]], u=x[:1], attributes={"reduction": "add"}),
        "scatter_elements_fine": single("ScatterElements", None, x=x, i=[[0, 3, -4]], u=x[:1]),
        "scatter_nd": single("ScatterND", "indices holds -5,", x=x, i=[[0], [-5]], u=x[:2]),
        "scatter_nd_fine": single("ScatterND", None, x=x, i=[[0], [-4]], u=x[:2]),
        "reverse": single("ReverseSequence", "sequence_lens holds 5,", x=x, i=[1, 5, 2]),
        "reverse_fine": single("ReverseSequence", None, x=x, i=[1, 4, 0]),
        "unpool": single("MaxUnpool", "I holds 16,", x=np.ones([1, 1, 2, 2], F), i=np.array([0, 3, 9, 16]).reshape(1, 1, 2, 2),
                         attributes={"kernel_shape": [2, 2], "strides": [2, 2]}),
        "roi_pool": single("MaxRoiPool", "batch index of rois holds 2, outside of [0, 2)", x=np.ones([2, 1, 4, 4], F),
                           rois=np.array([[0, 0, 0, 3, 3], [2, 0, 0, 3, 3]], F), attributes={"pooled_shape": [2, 2]}),
        "roi_pool_negative": single("MaxRoiPool", "batch index of rois holds -1,", x=np.ones([2, 1, 4, 4], F),
                                    rois=np.array([[-1, 0, 0, 3, 3]], F), attributes={"pooled_shape": [2, 2]}),
        "roi_pool_fine": single("MaxRoiPool", None, x=np.arange(32, dtype=F).reshape(2, 1, 4, 4),
                                rois=np.array([[1, 0, 0, 3, 3]], F), attributes={"pooled_shape": [2, 2]}),
        "loss": single("NegativeLogLikelihoodLoss", "target holds 3,", x=x, i=[0, 1, 3, 1]),
        "loss_ignored": single("NegativeLogLikelihoodLoss", None, x=x, i=[0, 1, -100, 1], attributes={"ignore_index": -100}),
        "one_hot": single("OneHot", None, i=[1, 9, -9], constants=[constant("depth", 4), constant("values", np.array([0, 1], F))]),
        "top_k": computed_k(5, "5, outside of [0, 5)"), "top_k_negative": computed_k(-1, "-1, outside of [0, 5)"),
        "top_k_all": computed_k(4, None), "top_k_one": computed_k(1, None), "top_k_none": computed_k(0, None),
        "scan_long": scanned([4, 2], "4"), "scan_negative": scanned([2, -1], "-1"), "scan_fine": scanned([3, 1], None),
        "gather_none": single("Gather", "indices holds 0,", x=x[:0], i=[0]), "gather_none_fine": single("Gather", None, x=x[:0], i=long[:0]),
        "gather_nd_none": single("GatherND", "indices holds 0,", x=x[:0], i=[[0, 2]]),
        "loop_none": looped(2, rows=0), "loop_none_fine": looped(0, rows=0), "loop": looped(5), "loop_fine": looped(4), "if": branched(True), "if_fine": branched(False),
        "counted_gather": counted([1, 0, 0, 1], "Gather", "indices holds 4,"), "counted_gather_fine": counted([1, 0, 1, 0], "Gather", None),
        "counted_div": counted([1, 1, 0, 0], "Div", DIVISOR), "counted_div_fine": counted([1, 0, 1, 0], "Div", None),
        "mod_c": single("Mod", DIVISOR, a=np.array([7, 8], "i4"), b=np.array([2, 0], "i4"), attributes={"fmod": 1}),
        "mod_float": single("Mod", None, a=np.array([7, 8], F), b=np.array([2, 3], F), attributes={"fmod": 1}),
        "div_float": single("Div", None, a=np.array([7, 8], F), b=np.array([2, 0], F)),
    }
    for op in ("RNN", "GRU", "LSTM"):
        cases[f"{op}_long"], cases[f"{op}_negative"] = recurrent(op, [3, 4], "4"), recurrent(op, [-1, 3], "-1")
        cases[f"{op}_fine"] = recurrent(op, [0, 3], None)
    for t in INTEGERS:
        for op in ("Div", "Mod"):
            cases[f"{op}_{t}"] = single(op, DIVISOR, a=np.array([7, 8, 9], t), b=np.array([2, 3, 0], t))
            cases[f"{op}_{t}_fine"] = single(op, None, a=np.array([7, 8, 9], t), b=np.array([2, 3, 1], t))
    return cases


# --- running ---


def theirs(path, feeds):
    """Returns the outputs of ONNX Runtime without our provider, or its error."""
    try:
        return session(path, provider=False, log=4).run(None, feeds)
    except Exception as e:  # its exceptions have no class of their own in common
        return str(e)


class Ours:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def inputs(self, feeds):
        given = []
        for name, value in feeds.items():
            file = os.path.join(self.folder, name + ".npy")
            np.save(file, value)
            given += ["--input", f"{name}={file}"]
        return given

    def run(self, path, feeds, *options):
        """Returns the outputs, or the line on standard error; a crash ends the test."""
        command = [self.program, "run", "--no-cache", "--tune=off", path, "-O", os.path.join(self.folder, "out"), "--format=npy", *options,
                   *self.inputs(feeds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), f"{command}: {done}"
        return [np.load(os.path.join(self.folder, "out", "output_0.npy"))] if done.returncode == 0 else done.stderr

    def compiled(self, path, sizes, feeds):
        """Compiles the model and runs the compiled file.  sizes: the inputs that decide shapes, which are given to the compiler."""
        file = os.path.join(self.folder, "model.oxla")
        command = [self.program, "compile", "-q", "--no-cache", "--tune=off", path, "-o", file, *self.inputs(sizes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return self.run(file, feeds)


def in_onnx_runtime(path, feeds):
    try:
        return session(path, options={"claim": "all", "tune": "off"}, log=4).run(None, feeds)
    except Exception as e:
        return str(e)


def same(got, want):
    return not isinstance(got, str) and got[0].dtype == want[0].dtype and np.array_equal(got[0], want[0])


def says(text, pattern):
    """Returns whether the parts of the pattern occur in the text, in this order."""
    at = 0
    for part in pattern.replace(" .* ", ".*").split(".*"):
        at = text.find(part.replace("of .-", "of [-"), at)
        if at < 0:
            return False
    return True


def judge(name, way, got, want, pattern):
    """Returns what is wrong with a result, or None.  want: what ONNX Runtime gives, or its error."""
    if isinstance(want, str) != (pattern is not None) or (pattern and "while running" not in want):
        return f"{name}: ONNX Runtime: {want}"
    if pattern is None and not same(got, want):
        return f"{name}, {way}: {got} instead of {want}"
    if pattern is not None and not (isinstance(got, str) and says(got, pattern)):
        return f"{name}, {way}: {got!r} instead of '{pattern}'"
    return None


def main():
    program, folder, plugin = sys.argv[1:]
    register(plugin)
    ours, problems, passed = Ours(program, folder), [], 0
    for name, (made, feeds, pattern) in all_cases().items():
        path = os.path.join(folder, name + ".onnx")
        with open(path, "wb") as f:
            f.write(made.SerializeToString())
        want = theirs(path, feeds)
        ways = {"ref": ours.run(path, feeds, "--backend=ref"), "1 thread": ours.run(path, feeds, "--threads=1"),
                "2 threads": ours.run(path, feeds, "--threads=2"), "plugin": in_onnx_runtime(path, feeds)}
        if not name.startswith("counted"):  # such a model's compiled file carries the model
            ways["compiled"] = ours.compiled(path, {k: v for k, v in feeds.items() if k == "steps"}, feeds)
        found = [judge(name, way, got, want, pattern) for way, got in ways.items()]
        if pattern and isinstance(ours.run(path, feeds, "--unchecked"), str):
            found.append(f"{name}: fails with --unchecked")
        problems += [p for p in found if p]
        passed += not any(found)
    print("\n".join(problems))
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
