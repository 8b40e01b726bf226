"""export.py: writes architectures as ONNX models with inputs, for run.py, which starts it in a Python that has torch.

  export.py --list              prints the architectures' names, one a line
  export.py                     reads lines of NAME, a tab and FOLDER, writes FOLDER/model.onnx and FOLDER/inputs-K.npz for
                                each of the sizes, and answers each line with a line of JSON
Each architecture is exported in a forked process, so that a crash becomes an answer; the libraries are loaded before the fork."""

import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings

import numpy as np
import torch

import architecture
from torch.onnx import TensorProtoDataType

# A torch for graphics processors reserves much more addresses than it uses.
SECONDS, BYTES = 300, (64 if torch.version.cuda else 16) << 30


def export(a, folder):
    os.makedirs(folder, exist_ok=True)
    model = os.path.join(folder, "model.onnx")
    if a.file:
        shutil.copy(os.path.join(os.environ["ONNX_XLA_DATA"], a.file), model)
    elif a.write:
        a.write(model)
    else:
        trace(a, model)
    for k, sizes in enumerate(a.sizes):
        values = a.draw(model, sizes) if a.draw else {n: v.numpy() for n, v in architecture.draw_inputs(a, sizes).items()}
        np.savez(os.path.join(folder, f"inputs-{k}.npz"), **values)


def trace(a, path):
    """Exports by the exporter that is torch's own choice: since version 2.9, the one of torch.export."""
    flat, inputs = architecture.build(a)
    open_dims = {
        i.name: {axis: d for axis, d in enumerate(i.dims) if not isinstance(d, int)}
        for i in a.inputs
    }
    if architecture.TORCH_EXPORT:
        shapes = tuple(dict.fromkeys(open_dims[name], torch.export.Dim.DYNAMIC) for name in inputs)
        program = torch.onnx.export(
            flat,
            tuple(inputs.values()),
            dynamo=True,
            verbose=False,
            input_names=list(inputs),
            opset_version=architecture.opset_of(a),
            dynamic_shapes=(shapes,),
        )
        program.save(path)
        return
    # Gradients stay enabled: without them torch's attention uses a fused operator that cannot be exported.
    torch.onnx.export(
        flat,
        tuple(inputs.values()),
        path,
        input_names=list(inputs),
        opset_version=architecture.opset_of(a),
        dynamic_axes=open_dims,
    )


def either(g, a, b):
    return g.op("Or", a, b)


def both(g, a, b):
    return g.op("And", a, b)


def expanded(g, x, dims):
    from torch.onnx.symbolic_opset9 import expand

    return expand(g, x, dims, None)


def root(g, x):
    from torch.onnx import symbolic_helper

    return g.op("Sqrt", x if symbolic_helper._is_fp(x) else g.op("Cast", x, to_i=TensorProtoDataType.FLOAT))


def teach_exporter():
    """Registers exports of torch operators that this version of the exporter lacks.  "bitwise" operators become logical ones,
    since the architectures here use them on booleans only."""
    for version in range(13, 18):
        for name, symbolic in {"bitwise_or": either, "__or_": either, "bitwise_and": both, "broadcast_to": expanded, "sqrt": root}.items():
            torch.onnx.register_custom_op_symbolic(f"aten::{name}", symbolic, version)


def limited(work):
    """Runs work() in a child process with limits; returns None if it worked, else what it raised or the signal that ended it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.alarm(SECONDS)
        message = ""
        try:
            work()
        except BaseException as error:
            if os.environ.get("MODELS_TRACE"):
                traceback.print_exc()
            message = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        os.write(writer, message.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        message = stream.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else message or None


def main():
    # Libraries may print to standard output; that goes to standard error, so that the answers stand alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    teach_exporter()
    found = architecture.catalogue()
    if sys.argv[1:] == ["--list"]:
        answers.write("".join(name + "\n" for name in found))
        answers.flush()
        return
    for line in sys.stdin:
        name, folder = line.rstrip("\n").split("\t")
        error = limited(lambda: export(found[name], folder))
        answers.write(json.dumps({"name": name, "error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
