"""Test cases as ONNX keeps them: DIR/NAME/model.onnx and test_data_set_0."""
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

    def add(self, op, inputs, expected, attributes=None, *, opset=OPSET, domain="", name="", ranked=True):
        """Writes a case of one node.  inputs, expected: arrays; None for an input or output that is left out.  ranked: whether
        the model says the shapes of its inputs and outputs."""
        given = ["" if x is None else "x%d" % k for k, x in enumerate(inputs)]
        wanted = ["" if y is None else "y%d" % k for k, y in enumerate(expected)]
        node = helper.make_node(op, given, wanted, domain=domain, **(attributes or {}))
        self._write(op, name, [node], inputs, expected, [helper.make_opsetid("", opset)] +
                    ([helper.make_opsetid(domain, 1)] if domain else []), ranked)

    def add_many(self, op, inputs, variants, *, opset=OPSET, name=""):
        """Writes a case of several nodes with the same inputs: variants are (attributes, expected array)."""
        given = ["" if x is None else "x%d" % k for k, x in enumerate(inputs)]
        nodes = [helper.make_node(op, given, ["y%d" % k], **a) for k, (a, _) in enumerate(variants)]
        self._write(op, name, nodes, inputs, [y for _, y in variants], [helper.make_opsetid("", opset)])

    def add_graph(self, name, graph, inputs, expected, opsets):
        """Writes a case of a whole graph.  inputs, expected: names with arrays."""
        self._save(name, graph, inputs, expected, opsets)

    def _write(self, op, name, nodes, inputs, expected, opsets, ranked=True):
        stem = "%s_%s" % (op, name) if name else op
        given = [("x%d" % k, np.asarray(x)) for k, x in enumerate(inputs) if x is not None]
        wanted = [("y%d" % k, np.asarray(y)) for k, y in enumerate(expected) if y is not None]
        graph = helper.make_graph(nodes, "case", [_info(*v, ranked) for v in given], [_info(*v, ranked) for v in wanted])
        self._save(stem, graph, given, wanted, opsets)

    def _save(self, stem, graph, given, wanted, opsets):
        self.names[stem] = self.names.get(stem, 0) + 1
        path = os.path.join(self.folder, "%s_%d" % (stem, self.names[stem]))
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 12
        data = os.path.join(path, "test_data_set_0")
        os.makedirs(data)
        onnx.save(model, os.path.join(path, "model.onnx"))
        for kind, arrays in (("input", given), ("output", wanted)):
            for k, (n, x) in enumerate(arrays):
                with open(os.path.join(data, "%s_%d.pb" % (kind, k)), "wb") as f:
                    f.write(numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), n).SerializeToString())


def _info(name, x, ranked):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape if ranked else None)
