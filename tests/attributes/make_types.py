"""make_types.py DATA FOLDER: for each operator one of ONNX's own cases of its newest version, in every element type that its
schema allows.  One type variable is changed at a time, and the inputs are cast to the type.  The expected values are those of the
reference backend, so of that backend only this is tested: that it takes the type.  The exit status is 0 if it took all types.

Types that are not arrays of numbers are left out, and so are changes that make the node itself invalid.
"""
import glob
import os
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = {"float": "FLOAT", "double": "DOUBLE"}
DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
# Operators for which changing a type is not enough, or proves nothing: BitCast's types must have one width, Mod takes floats only with
# fmod=1, Dropout and Bernoulli draw random numbers, and FlexAttention has subgraphs with types of their own.
SKIPPED = {"BitCast", "Mod", "Dropout", "Bernoulli", "FlexAttention"}


def kinds_of(allowed):
    for text in allowed:
        if text.startswith("tensor("):
            name = text[7:-1]
            if name != "string":
                yield getattr(TensorProto, KINDS.get(name, name.upper()))


def cast(x, kind):
    """Returns x in another type, clamped to what that type holds."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind == "c":
        return (x * (1 if x.dtype.kind == "c" else 1 + 0.5j)).astype(dtype)
    x = np.nan_to_num(x.real.astype(np.float64), posinf=100, neginf=-100)
    if dtype == bool:
        return x > 0
    if "int" in dtype.name:
        info = ml_dtypes.iinfo(dtype)
        low, high = max(float(info.min), -2.0 ** 15), min(float(info.max), 2.0 ** 15)
        return np.trunc(np.abs(x) if low == 0 else x).clip(low, high).astype(dtype)
    if dtype.name == "float8_e8m0fnu":
        return np.abs(x).astype(np.float32).astype(dtype)
    if dtype.name == "float4_e2m1fn":
        x = x.clip(-6, 6)
    with np.errstate(over="ignore"):
        return x.astype(np.float32 if dtype.kind == "V" else dtype).astype(dtype)


class Case:
    """One of ONNX's own cases: a model of one node whose inputs and outputs are arrays."""

    def __init__(self, folder):
        self.folder = folder
        self.model = onnx.load(os.path.join(folder, "model.onnx"))
        graph = self.model.graph
        self.node = graph.node[0]
        opset = {o.domain: o.version for o in self.model.opset_import}[self.node.domain]
        self.schema = onnx.defs.get_schema(self.node.op_type, opset, self.node.domain)
        newest = onnx.defs.get_schema(self.node.op_type, domain=self.node.domain)
        values = [*graph.input, *graph.output]
        self.good = (len(graph.node) == 1 and not self.model.functions and newest.since_version == self.schema.since_version
                     and all(v.type.WhichOneof("value") == "tensor_type" for v in values)
                     and all(v.type.tensor_type.elem_type != TensorProto.STRING for v in values))

    def formals(self):
        """Yields (name, type variable) for each input and output of the node."""
        for names, formal in ((self.node.input, self.schema.inputs), (self.node.output, self.schema.outputs)):
            for k, name in enumerate(names):
                if name:
                    yield name, formal[min(k, len(formal) - 1)].type_str

    def inputs(self):
        for k, value in enumerate(self.model.graph.input):
            with open(os.path.join(self.folder, "test_data_set_0", "input_%d.pb" % k), "rb") as f:
                yield value.name, numpy_helper.to_array(TensorProto.FromString(f.read()))

    def in_type(self, variable, kind):
        """Returns the model in which the type variable is that type, or None if no input or output of the node has the variable."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        changed = {name for name, v in self.formals() if v == variable}
        for value in [*model.graph.input, *model.graph.output]:
            if value.name in changed:
                value.type.tensor_type.elem_type = kind
        if not changed & {v.name for v in model.graph.input}:
            chosen = [a for a in model.graph.node[0].attribute if a.name in DTYPE_ATTRIBUTES]
            if not chosen:
                return None
            chosen[0].i = kind
        for value in model.graph.output:  # the types of other outputs may follow from the changed one
            value.type.Clear()
        inferred = onnx.shape_inference.infer_shapes(model)
        for value, found in zip(model.graph.output, inferred.graph.output):
            value.CopyFrom(found)
        return model if all(v.type.tensor_type.elem_type for v in model.graph.output) else None

    def write(self, folder):
        inputs = list(self.inputs())
        for constraint in self.schema.type_constraints:
            for kind in kinds_of(constraint.allowed_type_strs):
                model = self.in_type(constraint.type_param_str, kind)
                if model is None:
                    continue
                name = "%s_%s_%s" % (self.node.op_type, constraint.type_param_str, TensorProto.DataType.Name(kind).lower())
                data = os.path.join(folder, name, "test_data_set_0")
                os.makedirs(data)
                onnx.save(model, os.path.join(folder, name, "model.onnx"))
                for k, (value, (_, x)) in enumerate(zip(model.graph.input, inputs)):
                    x = cast(x, value.type.tensor_type.elem_type) if value.type.tensor_type.elem_type == kind else x
                    with open(os.path.join(data, "input_%d.pb" % k), "wb") as f:
                        f.write(numpy_helper.from_array(x, value.name).SerializeToString())
                yield data, [value.name for value in model.graph.input]


def run_reference(data, names):
    """Writes the case's outputs; returns what went wrong, or ""."""
    command = [os.environ["ONNX_XLA"], "run", "-q", "--backend", "ref", "--output-dir", data]
    for k, name in enumerate(names):
        command += ["--input", "%s=%s/input_%d.pb" % (name, data, k)]
    command.append(os.path.join(os.path.dirname(data), "model.onnx"))
    return subprocess.run(command, capture_output=True, text=True).stderr.strip()


def main():
    data, folder = sys.argv[1:]
    refused = 0
    chosen = {}
    for path in sorted(glob.glob(os.path.join(data, "*"))):
        case = Case(path)
        if case.good and case.node.op_type not in SKIPPED and case.node.domain in ("", "ai.onnx.preview"):
            best = chosen.setdefault(case.node.op_type, case)
            if len([x for x in case.node.input if x]) > len([x for x in best.node.input if x]):
                chosen[case.node.op_type] = case
    for case in chosen.values():
        for made, names in case.write(folder):
            problem = run_reference(made, names)
            if problem:
                print("FAIL", problem)
                shutil.rmtree(os.path.dirname(made))
                refused += "is not supported yet" not in problem  # an operator that is missing is another matter
    sys.exit(refused > 0)


main()
