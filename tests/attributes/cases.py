"""Test cases as ONNX keeps them: DIR/NAME/model.onnx and test_data_set_0, of one node each."""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 27  # of models that name no other


class Writer:
    """Writes cases below `folder`; a name that is taken gets a number."""

    def __init__(self, folder):
        self.folder = folder
        self.names = {}

    def add(self, op, inputs, expected, attributes=None, *, opset=OPSET, domain="", name="", outputs=None):
        """inputs, expected: arrays; None for an input or output that is left out.

        A graph attribute is a GraphProto; outputs: names to use, where a subgraph needs them.
        """
        stem = "%s_%s" % (op, name) if name else op
        self.names[stem] = self.names.get(stem, 0) + 1
        path = os.path.join(self.folder, "%s_%d" % (stem, self.names[stem]))
        given = [("" if x is None else "x%d" % k, x) for k, x in enumerate(inputs)]
        wanted = [("" if y is None else "y%d" % k, y) for k, y in enumerate(expected)]
        node = helper.make_node(op, [n for n, _ in given], [n for n, _ in wanted], domain=domain, **(attributes or {}))
        given = [(n, np.asarray(x)) for n, x in given if n]
        wanted = [(n, np.asarray(y)) for n, y in wanted if n]
        graph = helper.make_graph([node], "case", [_info(n, x) for n, x in given], [_info(n, y) for n, y in wanted])
        opsets = [helper.make_opsetid("", opset)]
        if domain:
            opsets.append(helper.make_opsetid(domain, 1))
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 12
        data = os.path.join(path, "test_data_set_0")
        os.makedirs(data)
        onnx.save(model, os.path.join(path, "model.onnx"))
        for kind, arrays in (("input", given), ("output", wanted)):
            for k, (n, x) in enumerate(arrays):
                with open(os.path.join(data, "%s_%d.pb" % (kind, k)), "wb") as f:
                    f.write(numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), n).SerializeToString())
        return model


def _info(name, x):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
