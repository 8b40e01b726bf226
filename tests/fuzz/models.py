"""models.py: ONNX messages made of nodes and arrays."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import rows
from rows import CODE_OF_NP


def _ir_versions():
    """The oldest IR version for an operator set; at least 4, since when initializers need not be inputs."""
    found, last = {}, 4
    for opset in range(rows.OLDEST, rows.NEWEST + 1):
        try:
            last = max(last, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
        except ValueError:  # an operator set that is being worked on
            pass
        found[opset] = last
    return found


IR_VERSION = _ir_versions()
FUNCTIONS = "fuzz.functions"  # the domain of functions that a model brings along


def make_model(nodes, inputs, outputs, initializers, opset, name="fuzz", functions=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(FUNCTIONS, 1)] * bool(functions)
    model = helper.make_model(graph, opset_imports=opsets, producer_name="fuzz", functions=functions)
    model.ir_version = IR_VERSION[opset]
    return model


def is_valid(model):
    """As far as ONNX's checker can tell; that a window does not fit, it cannot."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return True
    except Exception:
        return False


def is_refused_wrongly(code, model):
    """Whether the library's error of that code is a fault of its own."""
    return is_valid(model) if code == "INVALID_MODEL" else code not in ("UNSUPPORTED", "RESOURCE")


def to_tensor(name, array):
    """numpy_helper.from_array knows all types of ml_dtypes and packs those of 4 and 2 bits."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def value_info(name, array, dims=None):
    return helper.make_tensor_value_info(name, CODE_OF_NP[array.dtype], array.shape if dims is None else dims)
