"""The models that run-bench measures: rows of the table `models`, and the files that they stand for."""
import fnmatch
import os
import re
import subprocess
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.abspath(os.environ["ONNX_XLA_DATA"])
MADE = os.path.join(DATA, "bench")
CLASSES = ("convolution", "transformer", "small")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from randomize_light import randomize  # noqa: E402


class Failed(Exception):
    pass


class Model:
    """A row of the table.  After prepare(): path, inputs (name, path of a .npy), and compared, the model whose outputs are
    compared."""

    def __init__(self, line):
        self.name, self.kind, self.source, tolerance, *self.texts = line.split()
        self.tolerance = float(tolerance)
        if self.kind not in CLASSES:
            raise SystemExit(f"models: {self.name}: class {self.kind} is none of {', '.join(CLASSES)}")

    def prepare(self):
        self.path = find_model(self.source)
        folder = os.path.join(MADE, "inputs", self.name)
        os.makedirs(folder, exist_ok=True)
        self.compared = before_softmax(self.path, os.path.join(MADE, self.name + ".compared.onnx"))
        self.inputs = []
        for text in self.texts:
            for name, array in make_inputs(text, self.path):
                path = os.path.join(folder, name.replace("/", "-") + ".npy")
                np.save(path, array)
                self.inputs.append((name, path))

    def arguments(self):
        return [a for name, path in self.inputs for a in ("--input", f"{name}={path}")]


def read_models():
    """Returns {name: row of the table}."""
    with open(os.path.join(HERE, "models")) as f:
        rows = [Model(line) for line in f if line.strip() and not line.startswith("#")]
    return {row.name: row for row in rows}


def find_model(source):
    """Returns the path of a model of the table: make:NAME and light:NAME are made if they are not there yet."""
    how, _, what = source.partition(":")
    if how == "make":
        return made(what, lambda out: call([os.path.join(HERE, "make-model"), what, out]))
    if how == "light":
        light = need(os.path.join(DATA, "onnx/backend/test/data/light", f"light_{what}.onnx"))
        return made("light-" + what.replace("_", "-"), lambda out: onnx.save(randomize(onnx.load(light)), out))
    return need(os.path.join(DATA, source))


def made(name, write):
    """Returns the path of a file that write(path) makes if it is not there yet."""
    os.makedirs(MADE, exist_ok=True)
    path = os.path.join(MADE, name + ".onnx")
    if not os.path.exists(path):
        write(path + ".new")
        os.rename(path + ".new", path)
    return path


def need(path):
    if not os.path.exists(path):
        raise Failed(f"{path} is not there: tests/fetch-data gets it")
    return path


def make_inputs(text, model):
    """Returns the names and arrays that NAME=KIND[DIMS] stands for, the same at every call; NAME* stands for all inputs of
    the model whose names begin so."""
    name, kind, dims = re.fullmatch(r"(.*)=([^=\[]*)\[(.*)\]", text).groups()
    dims = [int(d) for d in dims.split(",") if d]
    names = [name]
    if "*" in name:
        graph = onnx.load(model, load_external_data=False).graph
        names = fnmatch.filter([i.name for i in graph.input], name)
    return [(n, make_array(kind, dims, zlib.crc32((n + text).encode()))) for n in names]


def make_array(kind, dims, seed):
    rng = np.random.default_rng(seed)
    kind, *span = kind.split(":")
    if kind == "normal":
        return rng.standard_normal(dims, np.float32)
    if kind == "uniform":
        return rng.random(dims, np.float32)
    if len(span) == 1:
        return np.full(dims, int(span[0]), kind)
    return rng.integers(int(span[0]), int(span[1]), dims).astype(kind)


def before_softmax(path, out):
    """Writes to `out` the model that gives a Softmax's input in place of each output that a Softmax makes, and returns `out`.  Returns
    `path` if a Softmax makes no output."""
    model = onnx.load(path)
    made_by = {name: node for node in model.graph.node for name in node.output}
    changed = False
    for output in model.graph.output:
        node = made_by.get(output.name)
        if node is not None and node.op_type == "Softmax":
            output.CopyFrom(helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, None))
            changed = True
    if not changed:
        return path
    onnx.save(model, out)
    return out


def call(command, **options):
    """Returns what the command prints; raises Failed with the last line of standard error if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          **options)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failed(lines[-1])
    return done.stdout
