"""case.py: descriptions of cases of one node, and how they become folders that `onnx-xla test` reads.

A description names the operator, its inputs and attributes, a range of versions, and where the expected values come from.
It becomes one case for each version in that range that frontend/operators/onnx_ops.def has, so that a new row of that table
gets its case at once.  ONNX's checker checks the models, with the schemas of old versions."""
import os
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import table

onnxruntime.set_default_logger_severity(4)
CASES = []


@dataclass
class Case:
    op: str
    inputs: tuple
    expect: object
    since: int
    until: int
    name: str
    outputs: int
    around: tuple
    attributes: dict = field(default_factory=dict)

    def arrays(self):
        """Returns the model's inputs by name: the node's inputs, then those that only its subgraphs read."""
        return {f"x{k}": x for k, x in enumerate((*self.inputs, *self.around)) if x is not None}

    def versions(self):
        """Returns the versions of the case's range that the table has and the installed ONNX package knows."""
        until = min(self.until, onnx.defs.onnx_opset_version())
        return [v for v in table.versions("", self.op) if self.since <= v <= until]


def case(op, *inputs, expect=None, since=1, until=10000, name="", outputs=1, around=(), **attributes):
    """Describes a case.  inputs: arrays named x0, x1, ..., or None where an optional input is absent.  around: arrays that only
    subgraphs read; their names continue the numbers.  outputs: how many, or a list of flags that say which are wanted.
    expect: a function of the inputs that gives the outputs; or None, then ONNX Runtime computes them at the same version; or
    ort_at(version), for a version that ONNX Runtime has and that means the same.  since, until: the range of versions."""
    CASES.append(Case(op, inputs, expect, since, until, name, outputs, tuple(around), attributes))


# --- inputs ---


def f32(*shape, low=-2.0, high=2.0):
    """Returns numbers that are the same in every run, since the seed is made of the shape and the range.  They are multiples of
    1/128, so that sums of their products are exact in f32 in any order."""
    seed = [len(shape), *shape, int(low * 8) & 0xFFFF, int(high * 8) & 0xFFFF]
    steps = np.random.default_rng(seed).integers(int(low * 128), int(high * 128), shape, endpoint=True)
    return np.asarray(steps, np.float32) / np.float32(128)


def f64(*shape, low=-2.0, high=2.0):
    return f32(*shape, low=low, high=high).astype(np.float64)


def ints(*shape, low=-9, high=9, dtype=np.int64):
    seed = [len(shape), *shape, low & 0xFFFF, high & 0xFFFF]
    return np.asarray(np.random.default_rng(seed).integers(low, high, shape, endpoint=True), dtype)


def bools(*shape):
    return ints(*shape, low=0, high=1).astype(bool)


def i64(*values):
    return np.array(values, np.int64)


# --- models ---


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def graph(nodes, inputs, outputs, name="body"):
    """Makes a subgraph; inputs and outputs are lists of (name, element type, shape)."""
    return helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
    )


node = helper.make_node
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def flags(case):
    return [True] * case.outputs if isinstance(case.outputs, int) else case.outputs


def make_model(c, version, outputs):
    """Makes the model of a case at a version.  outputs: a ValueInfoProto for each wanted output."""
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(c.inputs)]
    kept = iter([o.name for o in outputs])
    n = helper.make_node(c.op, names, [next(kept) if wanted else "" for wanted in flags(c)], **c.attributes)
    ins = [value_info(name, x) for name, x in c.arrays().items()]
    opset = helper.make_opsetid("", version)
    model = helper.make_model(
        helper.make_graph([n], c.op, ins, outputs),
        opset_imports=[opset],
        ir_version=helper.find_min_ir_version_for([opset], ignore_unknown=True),
    )
    return model


def output_names(c):
    return [f"y{k}" for k, wanted in enumerate(flags(c)) if wanted]


# --- expected values ---


def run_ort(c, version):
    outputs = [onnx.ValueInfoProto(name=name) for name in output_names(c)]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = make_model(c, version, outputs)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, c.arrays())


@dataclass
class ort_at:
    """Says that ONNX Runtime computes the expected values from the same node at another version that means the same.  without: an
    attribute that this version does not know, and that is left out."""

    version: int
    without: str = ""


def expected(c, version):
    if c.expect is None:
        return run_ort(c, version)
    if isinstance(c.expect, ort_at):
        attributes = {name: value for name, value in c.attributes.items() if name != c.expect.without}
        return run_ort(replace(c, attributes=attributes), c.expect.version)
    got = c.expect(*c.inputs, *c.around)
    return [np.asarray(y) for y in (got if isinstance(got, (tuple, list)) else [got])]


# --- folders ---


def write_tensor(path, array, name):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name).SerializeToString())


def is_checked(op, version):
    """Returns whether ONNX's checker can check this operator.  It refuses deprecated and formerly experimental operators, though
    models use them."""
    try:
        return not onnx.defs.get_schema(op, version, "").deprecated
    except onnx.defs.SchemaError:
        return False


def write(c, version, folder):
    """Writes the folder of a case at a version; errors of ONNX Runtime and of the checker are raised."""
    want = expected(c, version)
    names = output_names(c)
    if len(want) != len(names):
        raise ValueError(f"{len(want)} expected values for {len(names)} outputs")
    model = make_model(c, version, [value_info(name, y) for name, y in zip(names, want)])
    if is_checked(c.op, version):
        onnx.checker.check_model(model)
    data = os.path.join(folder, c.op, f"{version}-{c.name}" if c.name else f"{version}", "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(data, "..", "model.onnx"))
    for k, (name, x) in enumerate(c.arrays().items()):
        write_tensor(os.path.join(data, f"input_{k}.pb"), x, name)
    for k, (name, y) in enumerate(zip(names, want)):
        write_tensor(os.path.join(data, f"output_{k}.pb"), y, name)
