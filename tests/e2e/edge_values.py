"""edge_values.py ONNX_XLA DIR: runs two models of many nodes, with operators on NaN, infinities and denormals and on arrays
without elements: on both targets, compiled for the baseline x86-64 processor, and on one processor only.  Expected are the results
of ONNX's reference evaluator: NaN and infinities at the same elements, and other elements within a relative 1e-5 (a few roundings
of f32; functions of libm differ by less).  The last line printed is "N passed, N failed"."""
import os
import subprocess
import sys
import warnings

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F = TensorProto.FLOAT
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 1.0, -1.0, 0.5, 88.8, -104.0, 1e10],
               np.float32)
UNARY = ["Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Erf",
         "Softsign", "HardSigmoid", "LeakyRelu", "Elu", "Selu", "Log", "Identity", "IsNaN", "IsInf", "Sinh", "Atan"]
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Greater", "Equal", "LessOrEqual"]


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, tensors=()):
    outputs = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for n in nodes for o in n.output]
    graph = helper.make_graph(nodes, "edges", inputs, outputs, list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def odd_values():
    other = np.roll(ODD, 5)
    nodes = [helper.make_node(op, ["x"], [f"u_{op}"]) for op in UNARY]
    nodes += [helper.make_node(op, ["x", "z"], [f"b_{op}"]) for op in BINARY]
    inputs = [helper.make_tensor_value_info(n, F, [16]) for n in "xz"]
    return model(nodes, inputs), {"x": ODD, "z": other}


def no_elements():
    """Returns a model of all operators that take an array of [0, 3] or [3, 0]."""
    node = helper.make_node
    nodes = [node(op, ["e"], [f"u_{op}"]) for op in UNARY] + [node(op, ["e", "e"], [f"b_{op}"]) for op in BINARY]
    nodes += [node(op, ["e"], [f"r_{op}"], keepdims=0) for op in ("ReduceSum", "ReduceProd", "ReduceL1")]
    nodes += [node("ReduceMax", ["e", "one"], ["kept_max"]), node("ReduceSum", ["e", "zero"], ["kept_sum"])]
    nodes += [node("MatMul", ["e", "m"], ["mm_rows"]), node("MatMul", ["m", "f"], ["mm_columns"]), node("MatMul", ["f", "e"], ["mm_zeros"]),
              node("Gemm", ["f", "e", "c"], ["gemm_bias"]), node("Transpose", ["e"], ["t"]), node("Reshape", ["e", "flat"], ["r"]),
              node("Concat", ["e", "m", "e"], ["cat"], axis=0), node("Slice", ["e", "zero", "one", "one"], ["sl"]),
              node("Gather", ["m", "none"], ["g_none"], axis=0), node("Gather", ["e", "zero"], ["g_inner"], axis=1),
              node("Expand", ["e", "wide"], ["ex"]), node("Tile", ["m", "no_times"], ["ti"]), node("Pad", ["e", "pads"], ["pa"]),
              node("Softmax", ["e"], ["sm"], axis=-1), node("Where", ["cond", "e", "e"], ["wh"]), node("Cast", ["e"], ["ca"], to=7),
              node("Flatten", ["e"], ["fl"], axis=1), node("Squeeze", ["e3", "one"], ["sq"]), node("Unsqueeze", ["e", "zero"], ["us"]),
              node("CumSum", ["e", "axis0"], ["cs"]), node("Shape", ["e"], ["sh"]), node("Size", ["e"], ["si"]),
              node("Split", ["e"], ["sp1", "sp2", "sp3"], axis=1, num_outputs=3), node("Trilu", ["e"], ["tr"]),
              node("ScatterND", ["m", "no_places", "no_updates"], ["sn"]), node("Einsum", ["f", "e"], ["ei"], equation="ij,jk->ik"),
              node("ConstantOfShape", ["zeros"], ["cos"]), node("Conv", ["image", "w"], ["conv"]),
              node("MaxPool", ["image"], ["mp"], kernel_shape=[2, 2]), node("GlobalAveragePool", ["image"], ["gap"]),
              node("TopK", ["e", "one"], ["tkv", "tki"], axis=1), node("LayerNormalization", ["e", "scale"], ["ln"])]
    tensors = [ints("zero", [0]), ints("one", [1]), ints("flat", [0, 1, 3]), ints("none", []),
               ints("wide", [2, 0, 3]), ints("no_times", [0, 1]), ints("pads", [0, 1, 2, 1]), ints("zeros", [0, 4]),
               numpy_helper.from_array(np.array(0), "axis0"),
               numpy_helper.from_array(np.zeros((0, 1), np.int64), "no_places"),
               numpy_helper.from_array(np.zeros((0, 3), np.float32), "no_updates"),
               numpy_helper.from_array(np.ones((4, 2, 3, 3), np.float32), "w"),
               numpy_helper.from_array(np.ones(3, np.float32), "scale"),
               numpy_helper.from_array(np.zeros((0, 3), bool), "cond")]
    values = {"e": np.zeros((0, 3), np.float32), "f": np.zeros((3, 0), np.float32), "m": np.arange(9, dtype=np.float32).reshape(3, 3),
              "c": np.ones((3, 3), np.float32), "e3": np.zeros((0, 1, 3), np.float32), "image": np.zeros((0, 2, 5, 5), np.float32)}
    inputs = [helper.make_tensor_value_info(n, F, list(v.shape)) for n, v in values.items()]
    return model(nodes, inputs, tensors), values


def run(program, way, name, proto, values):
    """Returns the outputs by name, or the error message."""
    before, behind = way
    arguments = before + [program, "run", "--quiet", name + ".onnx", "--format", "npy", "-O", "out"] + behind
    for key, value in values.items():
        np.save(f"{name}_{key}.npy", value)
        arguments += ["--input", f"{key}={name}_{key}.npy"]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
    if done.returncode:
        return done.stderr.decode(errors="replace").strip()
    return {o.name: np.load(f"out/output_{k}.npy") for k, o in enumerate(proto.graph.output)}


# Where the reference evaluator is not what the standard says: Gather of no indices keeps the other dimensions.
STANDARD = {"g_none": np.zeros((0, 3), np.float32)}


def expected(proto, values):
    """Returns what the reference evaluator computes for each node, without the nodes for which it fails."""
    wanted = {}
    for n in proto.graph.node:
        inputs = [i for i in proto.graph.input if i.name in n.input]
        tensors = [t for t in proto.graph.initializer if t.name in n.input]
        try:
            results = ReferenceEvaluator(model([n], inputs, tensors)).run(None, {i.name: values[i.name] for i in inputs})
        except Exception:  # noqa: BLE001 - whatever numpy raises
            continue
        wanted.update(zip(n.output, [STANDARD.get(name, r) for name, r in zip(n.output, results)]))
    return wanted


def differs(got, want):
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if got.dtype != want.dtype:
        return f"{got.dtype}, not {want.dtype}"
    if not np.issubdtype(want.dtype, np.floating):
        return None if np.array_equal(got, want) else f"{got}, not {want}"
    tiny = np.abs(want) < 1.2e-38  # denormals may be flushed to zero by functions of libm
    near = np.isclose(got, want, rtol=1e-5, atol=0, equal_nan=True) | (tiny & (np.abs(got) < 1.2e-38))
    return None if near.all() else f"at {np.flatnonzero(~near.ravel())}: {got.ravel()[~near.ravel()]}, not {want.ravel()[~near.ravel()]}"


def main():
    program = os.path.abspath(sys.argv[1])
    os.chdir(sys.argv[2])
    warnings.simplefilter("ignore")
    one_processor = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    ways = {"cpu": ([], ["--backend", "cpu"]), "ref": ([], ["--backend", "ref"]), "plain x86-64": ([], ["--cpu", "x86-64"]),
            "one lane": ([], ["--lanes", "1"]), "one processor": (one_processor, []), "many threads": ([], ["--threads", "64"])}
    if os.uname().machine != "x86_64":
        del ways["plain x86-64"]
    passed = failed = 0
    for name, make in (("odd", odd_values), ("empty", no_elements)):
        proto, values = make()
        with open(name + ".onnx", "wb") as f:
            f.write(proto.SerializeToString())
        with np.errstate(all="ignore"):
            wanted = expected(proto, values)
        for label, way in ways.items():
            got = run(program, way, name, proto, values)
            if isinstance(got, str):
                failed += 1
                print(f"FAIL {name}, {label}: {got}")
                continue
            for output, want in wanted.items():
                wrong = differs(got[output], want)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"FAIL {name}, {label}: {output}: {wrong}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
