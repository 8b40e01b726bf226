"""quantized_models.py: runs small quantised models in every form that exporters write, and compares them with ONNX Runtime without
its optimisations, which computes QuantizeLinear and DequantizeLinear node by node in f32.

One byte in a thousand may differ, by one; results of integer operators must not differ.  onnx-xla sums products of bytes exactly,
while f32 arithmetic rounds, so that a number near the middle between two bytes may be rounded to the other one."""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from compare_ort import run_xla

FEW = 1e-3          # the fraction of bytes that may differ by one
ROUNDING = 1e-5     # the difference of f32 results relative to the largest: sums of up to 200 products in another order


class Model:
    """Nodes and constants of a model, with generated names."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], {}, []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def packed(self, value, kind):
        """Adds a constant of 4-bit integers, and returns its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, kind, value.shape, value.flatten().tolist()))
        return name

    def node(self, kind, inputs, n=1, **attributes):
        outputs = [f"v{len(self.nodes)}_{k}" for k in range(n)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def input(self, name, value):
        self.inputs[name] = value
        return name

    def bytes(self, shape, kind):
        low, high = (0, 256) if kind == np.uint8 else (-128, 128)
        return self.rng.integers(low, high, shape).astype(kind)

    def weights(self, shape, zero=0, kind=np.int8):
        """Returns random weights of 7 bits: with 8, ONNX Runtime's sums of pairs saturate on processors without VNNI."""
        return self.rng.integers(zero - 63, zero + 64, shape).astype(kind)

    def quantize(self, x, scale, zero):
        return self.node("QuantizeLinear", [x, self.constant(np.float32(scale)), self.constant(zero)])

    def dequantize(self, x, scale, zero, **attributes):
        return self.node("DequantizeLinear", [x, self.constant(np.float32(scale)), self.constant(zero)], **attributes)

    def save(self, path):
        def empty(name):
            return helper.make_empty_tensor_value_info(name)

        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                  for n, v in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, [empty(n) for n in self.outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        model.ir_version = 10
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def qdq_convolution(m, kind, x_zero, y_zero, channels=16, outputs=24, kernel=3, stride=1, groups=1, per_channel=True, relu=True):
    x = m.input("x", m.bytes((2, channels, 12, 11), kind))
    scale = (m.rng.random(outputs if per_channel else ()) * 0.004 + 0.001).astype(np.float32)
    x = m.dequantize(x, 0.02, kind(x_zero))
    w = m.dequantize(m.constant(m.weights((outputs, channels // groups, kernel, kernel))), scale,
                     np.zeros(scale.shape, np.int8), axis=0)
    b = m.dequantize(m.constant(m.rng.integers(-9000, 9000, outputs).astype(np.int32)), scale * np.float32(0.02),
                     np.zeros(scale.shape, np.int32), axis=0)
    y = m.node("Conv", [x, w, b], pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups)
    y = m.node("Relu", [y]) if relu else y
    y = m.quantize(y, 0.06, kind(y_zero))
    m.outputs.append(y)
    return y


def qdq_block(m, kind):
    """Two convolutions, their sum, a maximum and a mean, with quantised arrays between all of them."""
    y = qdq_convolution(m, kind, 3, 7, relu=False)
    a = m.dequantize(y, 0.06, kind(7))
    w = m.dequantize(m.constant(m.weights((24, 24, 1, 1))), np.full(24, 0.003, np.float32), np.zeros(24, np.int8), axis=0)
    z = m.quantize(m.node("Conv", [a, w]), 0.1, kind(1))
    s = m.quantize(m.node("Relu", [m.node("Add", [a, m.dequantize(z, 0.1, kind(1))])]), 0.12, kind(0))
    d = m.dequantize(s, 0.12, kind(0))
    p = m.quantize(m.node("MaxPool", [d], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 0.12, kind(0))
    g = m.quantize(m.node("GlobalAveragePool", [m.dequantize(p, 0.12, kind(0))]), 0.05, kind(0))
    m.outputs += [z, s, p, g]


def qdq_products(m, kind):
    x = m.dequantize(m.input("x", m.bytes((3, 17, 64), kind)), 0.05, kind(9))
    w = m.dequantize(m.constant(m.weights((64, 48))), (m.rng.random(48) * 0.01).astype(np.float32), np.zeros(48, np.int8), axis=1)
    y = m.node("Add", [m.node("MatMul", [x, w]), m.constant(m.rng.standard_normal(48).astype(np.float32))])
    y = m.quantize(y, 0.2, kind(5))
    v = m.dequantize(m.constant(m.weights((40, 48))), 0.004, np.int8(0))
    flat = m.node("Reshape", [m.dequantize(y, 0.2, kind(5)), m.constant(np.array([51, 48], np.int64))])
    z = m.node("Gemm", [flat, v, m.constant(m.rng.standard_normal(40).astype(np.float32))], transB=1)
    m.outputs += [y, m.quantize(z, 0.2, kind(100)), z]


def qlinear(m, kind):
    x, zero = m.input("x", m.bytes((1, 16, 9, 9), kind)), m.constant(kind(5))
    scale = (m.rng.random(32) * 0.01 + 0.001).astype(np.float32)
    y = m.node("QLinearConv", [x, m.constant(np.float32(0.03)), zero, m.constant(m.weights((32, 16, 3, 3))), m.constant(scale),
                               m.constant(np.zeros(32, np.int8)), m.constant(np.float32(0.4)), m.constant(kind(77)),
                               m.constant(m.rng.integers(-9000, 9000, 32).astype(np.int32))], pads=[1, 1, 1, 1])
    a = m.input("a", m.bytes((33, 80), kind))
    z = m.node("QLinearMatMul", [a, m.constant(np.float32(0.03)), zero, m.constant(m.weights((80, 40))), m.constant(np.float32(0.01)),
                                 m.constant(np.int8(0)), m.constant(np.float32(0.5)), m.constant(kind(100))])
    m.outputs += [y, z]


def integers(m, kind):
    a, x = m.input("a", m.bytes((33, 80), kind)), m.input("x", m.bytes((1, 16, 9, 9), kind))
    m.outputs.append(m.node("MatMulInteger", [a, m.constant(m.weights((80, 40))), m.constant(kind(11)), m.constant(np.int8(0))]))
    m.outputs.append(m.node("ConvInteger", [x, m.constant(m.weights((24, 16, 3, 3), 64, np.uint8)), m.constant(kind(4)),
                                            m.constant(np.uint8(64))], pads=[1, 1, 1, 1]))


def requantized_by_hand(m, kind):
    """Bytes between two products, clipped at numbers with fractions, which the conversion to bytes cuts off."""
    sums = m.node("MatMulInteger", [m.input("a", m.bytes((33, 16), kind)), m.constant(m.weights((16, 24)))])
    scaled = m.node("Mul", [m.node("Cast", [sums], to=TensorProto.FLOAT), m.constant(np.float32(0.01))])
    shifted = m.node("Add", [m.node("Round", [scaled]), m.constant(np.float32(3))])
    clipped = m.node("Clip", [shifted, m.constant(np.float32(0.5)), m.constant(np.float32(9.5))])
    q = m.node("Cast", [clipped], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    m.outputs.append(m.node("MatMulInteger", [q, m.constant(m.weights((24, 8))), m.constant(kind(3))]))


def dynamic(m, kind):
    """A linear layer as ONNX Runtime's dynamic quantisation writes it."""
    del kind
    q, scale, zero = m.node("DynamicQuantizeLinear", [m.input("x", m.rng.standard_normal((4, 20, 96)).astype(np.float32))], 3)
    y = m.node("MatMulInteger", [q, m.constant(m.weights((96, 72))), zero, m.constant(np.int8(0))])
    factor = m.node("Mul", [scale, m.constant(np.float32(0.01))])
    y = m.node("Mul", [m.node("Cast", [y], to=TensorProto.FLOAT), factor])
    m.outputs.append(m.node("Add", [y, m.constant(m.rng.standard_normal(72).astype(np.float32))]))


def blocks(m, kind):
    """4-bit weights with a scale and a zero point for each 32 of a column; there are so many that they stay 4-bit integers
    (cpu_takes_quantized_weights)."""
    code, low, high = (TensorProto.UINT4, 0, 16) if kind == np.uint8 else (TensorProto.INT4, -8, 8)
    w = m.packed(m.rng.integers(low, high, (640, 528)), code)
    scale = m.constant((m.rng.random((20, 528)) * 0.1).astype(np.float32))
    zero = m.packed(m.rng.integers(low, high, (20, 528)), code)
    w = m.node("DequantizeLinear", [w, scale, zero], axis=0, block_size=32)
    m.outputs.append(m.node("MatMul", [m.input("x", m.rng.standard_normal((1, 640)).astype(np.float32)), w]))


CASES = {
    "convolution": lambda m, kind: qdq_convolution(m, kind, 0, 3),
    "convolution, padding by a zero point": lambda m, kind: qdq_convolution(m, kind, 120, 0, stride=2),
    "convolution, 1x1, one scale": lambda m, kind: qdq_convolution(m, kind, 2, 60, kernel=1, per_channel=False, relu=False),
    "convolution, groups": lambda m, kind: qdq_convolution(m, kind, 1, 0, groups=2),
    "convolution, depthwise": lambda m, kind: qdq_convolution(m, kind, 1, 9, outputs=16, groups=16),
    "residual and pools": qdq_block,
    "matrix products": qdq_products,
    "QLinearConv, QLinearMatMul": qlinear,
    "MatMulInteger, ConvInteger": integers,
    "requantized by hand": requantized_by_hand,
    "dynamic": dynamic,
    "blocks of 4 bits": blocks,
}


def spelled_out(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def wrong(got, want, exact):
    """Returns what is wrong with one output, or ''."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
    if got.dtype == np.float32:
        most = apart.max() / max(1.0, np.abs(want).max())
        return "" if most <= ROUNDING else f"off by {most:.2g}"
    few = 0 if exact or got.dtype == np.int32 else max(FEW * got.size, 1)
    return "" if apart.max() <= 1 and (apart > 0).sum() <= few else f"{(apart > 0).sum()} of {got.size} differ, by up to {apart.max()}"


def main():
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        for name, build in CASES.items():
            for kind in (np.uint8, np.int8):
                m = Model(len(name))
                build(m, kind)
                m.save(path)
                want = spelled_out(path, m.inputs)
                for backend in ("ref", "cpu", "gpu:host"):
                    count += 1
                    try:
                        got = run_xla(path, m.inputs, backend)
                        faults = [w for w in (wrong(g, e, "QLinear" in name) for g, e in zip(got, want)) if w]
                        faults += [] if len(got) == len(want) else ["outputs are missing"]
                    except RuntimeError as error:
                        faults = [str(error)]
                    bad += bool(faults)
                    print(f"{'FAIL' if faults else 'ok  '} {name}, {np.dtype(kind)}, {backend} {'; '.join(faults)}", flush=True)
    print(f"{count - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
