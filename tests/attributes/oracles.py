"""Computes expected values by other implementations: ONNX Runtime, and the reference evaluator of the package onnx."""
import numpy as np
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)


def one_node(op, inputs, kinds, attributes, opset, domain=""):
    """Returns a model of one node; kinds: its outputs' element types, None for one that is left out."""
    given = ["" if x is None else "x%d" % k for k, x in enumerate(inputs)]
    wanted = ["" if t is None else "y%d" % k for k, t in enumerate(kinds)]
    node = helper.make_node(op, given, wanted, domain=domain, **attributes)
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(given, inputs) if n]
    out = [helper.make_tensor_value_info(n, t, None) for n, t in zip(wanted, kinds) if n]
    model = helper.make_model(helper.make_graph([node], "oracle", info, out),
                              opset_imports=[helper.make_opsetid(domain, opset)])
    model.ir_version = 10
    return model


def run(engine, op, inputs, kinds, attributes, opset):
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    model = one_node(op, inputs, kinds, attributes, opset)
    feeds = {"x%d" % k: x for k, x in enumerate(inputs) if x is not None}
    if engine == "reference":
        y = ReferenceEvaluator(model).run(None, feeds)
    else:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        y = session.run(None, feeds)
    rest = iter(y)
    return [None if t is None else np.asarray(next(rest)) for t in kinds]


def run_graph(graph, feeds, opset):
    """Returns the first output of a graph, as ONNX Runtime without its optimiser computes it."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]
