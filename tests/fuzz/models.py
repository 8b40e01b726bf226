"""models.py: ONNX messages made of nodes and arrays."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import rows
from rows import CODE_OF_NP


def _ir_versions():
    """Returns the oldest IR version for each operator set; at least 4, since before that initializers must be inputs."""
    found, last = {}, 4
    for opset in range(rows.OLDEST, rows.NEWEST + 1):
        try:
            last = max(last, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
        except ValueError:  # an operator set that is not released yet
            pass
        found[opset] = last
    return found


IR_VERSION = _ir_versions()
FUNCTIONS = "fuzz.functions"  # the domain of the functions that a model defines


def opsets_of(opset):
    return [helper.make_opsetid("", opset), helper.make_opsetid(rows.MICROSOFT, 1)]


def make_model(nodes, inputs, outputs, initializers, opset, name="fuzz", functions=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    opsets = opsets_of(opset) + [helper.make_opsetid(FUNCTIONS, 1)] * bool(functions)
    model = helper.make_model(graph, opset_imports=opsets, producer_name="fuzz", functions=functions)
    model.ir_version = IR_VERSION[opset]
    return model


def is_valid(model):
    """Returns whether ONNX's checker accepts the model.  It does not notice a window that does not fit, for instance."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return True
    except Exception:
        return False


def is_refused_wrongly(code, model):
    """Returns whether an error with that code is a fault of the library."""
    return is_valid(model) if code == "INVALID_MODEL" else code not in ("UNSUPPORTED", "RESOURCE")


def to_tensor(name, array):
    """Returns the array as a TensorProto.  numpy_helper.from_array knows all types of ml_dtypes and packs those of 4 and 2 bits."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def value_info(name, array, dims=None):
    return helper.make_tensor_value_info(name, CODE_OF_NP[array.dtype], array.shape if dims is None else dims)
