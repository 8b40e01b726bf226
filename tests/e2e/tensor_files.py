"""tensor_files.py FOLDER: passes arrays of every element type through .npy and .pb files, as inputs and outputs, on ref and cpu, and
compares them bit by bit.

NumPy with ml_dtypes writes the files that onnx-xla reads, and reads those that it writes.
"""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

os.chdir(sys.argv[1])
rng = np.random.default_rng(5)
types = [t for name, t in TensorProto.DataType.items() if name not in ("UNDEFINED", "STRING")]
failed = 0


def save_named(path, x):
    """Does np.save, but writes the name of the element type, which np.load understands."""
    header = {"descr": x.dtype.name, "fortran_order": False, "shape": x.shape}
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, header)
        f.write(np.ascontiguousarray(x).tobytes())


def save_pb(path, x):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(x, "x").SerializeToString())


def load_pb(path):
    with open(path, "rb") as f:
        return numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))


def bits(x):
    return x.dtype, x.shape, x.tobytes()


def texts(x):
    return x.shape, [s.decode() if isinstance(s, bytes) else s for s in x.ravel().tolist()]


def check(what, file, wanted, compared):
    """Runs the model m.onnx with x from the file, with both backends, and compares the output in files of both kinds."""
    global failed
    for backend in "ref", "cpu":
        for form, load in (("npy", np.load), ("pb", load_pb)):
            run = subprocess.run([os.environ["ONNX_XLA"], "run", "-q", "--backend", backend, "--input", "x=" + file,
                                  "--output-dir", ".", "--format", form, "m.onnx"], capture_output=True, text=True)
            if run.returncode or compared(load("output_0." + form)) != compared(wanted):
                print("FAIL", what, file, backend, form, run.stderr.strip())
                failed += 1


def write_model(t, shape):
    info = [helper.make_tensor_value_info(n, t, shape) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12), "m.onnx")


for t in types:
    dtype = helper.tensor_dtype_to_np_dtype(t)
    narrow = {"bool": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
    x = rng.integers(0, 1 << narrow.get(dtype.name, 8), (3, 5 * dtype.itemsize), np.uint8).view(dtype)
    write_model(t, x.shape)
    files = {"numpy.npy": np.save, "x.pb": save_pb}
    if dtype.kind == "V" or dtype.name.startswith(("float8", "int4", "uint4", "int2", "uint2", "float4", "bfloat")):
        files["named.npy"] = save_named
    for file, save in files.items():
        save(file, x)
        check(dtype.name, file, x, bits)
words = np.array([["cat", "", "\u732b\U0001f431"], ["\xe9meu", "cat", "a longer one"]])
write_model(TensorProto.STRING, words.shape)
for file, save, x in (("text.npy", np.save, words), ("big.npy", np.save, words.astype(words.dtype.newbyteorder(">"))),
                      ("columns.npy", np.save, np.asfortranarray(words)), ("bytes.npy", np.save, np.char.encode(words, "utf-8")),
                      ("x.pb", save_pb, words.astype(object))):
    save(file, x)
    check("str", file, words, texts)
print("%d types, %d failed" % (len(types) + 1, failed))
sys.exit(failed > 0)
