"""make_products.py FOLDER: writes models whose products or attention GPUs compute in tiles in shared memory, on tensor
cores if possible, and models that load vectors of bytes from odd addresses."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
rng = np.random.default_rng(1)


def array(name, kind, *shape):
    return numpy_helper.from_array(rng.uniform(-1, 1, shape).astype(kind), name)


def save(name, nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), f"{folder}/{name}")


for bits, kind, tensor in ((16, np.float16, TensorProto.FLOAT16), (32, np.float32, TensorProto.FLOAT),
                           (64, np.float64, TensorProto.DOUBLE)):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"]),
             helper.make_node("Relu", ["s"], ["y"])]
    save(f"matmul{bits}", nodes, [("x", tensor, ["rows", 160])], [("y", tensor, ["rows", 96])],
         [array("w", kind, 160, 96), array("b", kind, 96)])
    save(f"conv{bits}", [helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])],
         [("x", tensor, [2, 16, 12, "rows"])], [("y", tensor, [2, 64, 12, "rows"])],
         [array("w", kind, 64, 16, 3, 3), array("b", kind, 64)])
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
             helper.make_node("Softmax", ["s"], ["p"]), helper.make_node("MatMul", ["p", "v"], ["y"])]
    save(f"attention{bits}", nodes, [("q", tensor, [2, "rows", 64]), ("k", tensor, [2, "keys", 64]),
                                     ("v", tensor, [2, "keys", 64])], [("y", tensor, [2, "rows", 64])], [])
save("matmul8", [helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])], [("x", TensorProto.UINT8, ["rows", 160])],
     [("y", TensorProto.INT32, ["rows", 96])],
     [numpy_helper.from_array(rng.integers(-128, 128, (160, 96)).astype(np.int8), "w"),
      numpy_helper.from_array(np.uint8(7), "zero")])
save("odd_bytes", [helper.make_node("Slice", ["x", "start", "end"], ["y"])], [("x", TensorProto.UINT8, ["rows"])],
     [("y", TensorProto.UINT8, ["shorter"])],
     [numpy_helper.from_array(np.array([37]), "start"), numpy_helper.from_array(np.array([100000]), "end")])
# Each of these loads vectors of bytes that begin anywhere.
for step in (-1, 2, 3):
    save(f"bytes_by_{step}", [helper.make_node("Slice", ["x", "start", "end", "axes", "step"], ["y"])],
         [("x", TensorProto.UINT8, ["rows"])], [("y", TensorProto.UINT8, ["fewer"])],
         [numpy_helper.from_array(np.array([n]), name) for name, n in
          (("start", 1 if step > 0 else -2), ("end", 100000 if step > 0 else -100000), ("axes", 0), ("step", step))])
# Values of 70 keys for attention32, the last of which is infinite: a tile of keys reaches beyond it.
values = rng.standard_normal((2, 70, 64)).astype(np.float32)
values[:, -1] = np.inf
np.save(f"{folder}/infinite_values.npy", values)
