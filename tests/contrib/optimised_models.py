"""optimised_models.py: whole models as ONNX Runtime's optimiser and quantiser write them, compared with ONNX Runtime: a small BERT and
a small GPT-2 (tests/e2e/transformer_models.py), and a convolutional network and an LSTM with random weights; and a small Llama with
weights of 4 bits as exporters write it (decoder_model.py)."""
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import decoder_model as decoders  # noqa: E402
import transformer_models as transformers  # noqa: E402
from compare_ort import Report, run_ort  # noqa: E402

F32_ERROR = 1e-4     # sums of some hundred products in another order, through a few layers
BYTE_ERROR = 3e-2    # a number near the middle between two bytes may be rounded to the other one, in each of ten layers


def optimised(path, to):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = to
    options.log_severity_level = 4
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return to


def network():
    """Convolutions with a residual sum, pools, a concatenation and a matrix product."""
    rng = np.random.default_rng(3)
    nodes, constants = [], []

    def weight(*dims):
        constants.append(numpy_helper.from_array((rng.standard_normal(dims) / np.sqrt(np.prod(dims[1:]) or 1)).astype("f"), "w%d" % len(constants)))
        return constants[-1].name

    def op(kind, *inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, ["v%d" % len(nodes)], "n%d" % len(nodes), **attributes))
        return nodes[-1].output[0]

    x = op("Relu", op("Conv", "x", weight(8, 3, 3, 3), weight(8), pads=[1, 1, 1, 1]))
    y = op("LeakyRelu", op("Conv", x, weight(8, 8, 3, 3), weight(8), pads=[1, 1, 1, 1]), alpha=0.2)
    x = op("AveragePool", op("Add", x, y), kernel_shape=[2, 2], strides=[2, 2])
    x = op("Concat", x, op("Mul", x, op("Sigmoid", x)), axis=1)
    x = op("Flatten", op("GlobalAveragePool", op("Relu", op("Conv", x, weight(12, 16, 1, 1), weight(12)))))
    y = op("Gemm", x, weight(12, 10), weight(10))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("x", ["batch", 3, 12, 12]), (y, ["batch", 10]))]
    model = helper.make_model(helper.make_graph(nodes, "network", info[:1], info[1:], constants), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


def recurrent():
    """An LSTM in both directions."""
    rng = np.random.default_rng(11)
    weights = {"w": (2, 64, 12), "r": (2, 64, 16), "b": (2, 128)}
    constants = [numpy_helper.from_array((rng.standard_normal(d) / 4).astype("f"), n) for n, d in weights.items()]
    node = helper.make_node("LSTM", ["x", *weights], ["y", "h"], "lstm", direction="bidirectional", hidden_size=16)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", 12])
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (("y", ["steps", 2, "batch", 16]), ("h", [2, "batch", 16]))]
    model = helper.make_model(helper.make_graph([node], "recurrent", [x], out, constants), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


class Reader(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


def check(report, path, wanted, feeds, tolerance):
    """wanted: operators that the model must have, so that the test is about them."""
    have = collections.Counter(n.op_type for n in onnx.load(path).graph.node if n.domain == "com.microsoft")
    missing = [op for op in wanted if op not in have]
    if missing:
        print("FAIL %s: the optimiser wrote no %s, but %s" % (os.path.basename(path), missing, dict(have)))
        report.bad += 1
    for k, f in enumerate(feeds):
        report.check("%s %d" % (os.path.basename(path), k), path, f, "cpu", run_ort(path, f), tolerance)


def main():
    report = Report()
    rng = np.random.default_rng(5)
    models = {"bert": (transformers.bert(layers=2), [transformers.bert_feeds(rng, 2, 16), transformers.bert_feeds(rng, 1, 7)]),
              "gpt2": (transformers.gpt2(layers=2), [transformers.gpt2_feeds(rng, 1, 0, 9, layers=2), transformers.gpt2_feeds(rng, 2, 6, 1, layers=2)]),
              "network": (network(), [{"x": rng.standard_normal((n, 3, 12, 12)).astype("f")} for n in (1, 3)])}
    with tempfile.TemporaryDirectory() as folder:
        def at(name):
            return os.path.join(folder, name + ".onnx")

        for name, (model, feeds) in models.items():
            onnx.save(model, at(name))
            fused = {"bert": ["FusedMatMul", "BiasGelu", "FusedGemm"], "gpt2": ["BiasGelu"], "network": ["FusedConv"]}[name]
            check(report, optimised(at(name), at(name + "_optimised")), fused, feeds, F32_ERROR)
        onnx.save(decoders.decoder(), at("decoder"))
        check(report, at("decoder"), [], [decoders.decoder_feeds(rng, *d) for d in ((1, 0, 7), (1, 7, 1), (2, 9, 1), (1, 5, 3))], F32_ERROR)
        quantization.quantize_dynamic(at("bert"), at("bert_dynamic"), weight_type=quantization.QuantType.QInt8)
        check(report, optimised(at("bert_dynamic"), at("bert_bytes")), ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"], models["bert"][1],
              BYTE_ERROR)
        onnx.save(recurrent(), at("lstm"))
        quantization.quantize_dynamic(at("lstm"), at("lstm_bytes"), weight_type=quantization.QuantType.QInt8)
        feeds = [{"x": rng.standard_normal((*d, 12)).astype("f")} for d in ((7, 2), (1, 1))]
        check(report, at("lstm_bytes"), ["DynamicQuantizeLSTM"], feeds, BYTE_ERROR)
        for kind in (quantization.QuantType.QUInt8, quantization.QuantType.QInt8):
            path = at("network_" + str(kind))
            quantization.quantize_static(at("network"), path, Reader(models["network"][1]), quant_format=quantization.QuantFormat.QOperator,
                                         activation_type=kind, weight_type=quantization.QuantType.QInt8)
            check(report, path, ["QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool",
                                 "QLinearGlobalAveragePool", "QGemm"], models["network"][1], BYTE_ERROR)
    sys.exit(report.finish())


main()
