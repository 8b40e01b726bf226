"""sizes.py DATA WORK: models with open dimensions, each as one object that is run for several sizes.

The outputs are compared with those of `onnx-xla run`, which may use libraries, so they are not the same bits.  Sizes that an
object cannot take must give an error whose text says why.
"""
import os
import random
import re
import struct
import subprocess
import sys

import elements
import onnx_files
import onnx_writer as w
import programs

FLOAT, INT32, INT64 = 1, 6, 7
HALVES, TO_MASK, TABLE = "halves", "to-mask", "table"  # models of this file (write_models)
MODELS = "rapidocr_onnxruntime/models/"
SILERO = "silero_vad/data/"


def silero(batch):
    return {"input": (FLOAT, [batch, 576]), "state": (FLOAT, [2, batch, 128]), "sr": (INT64, [])}


def image(*dims):
    return {"x": (FLOAT, list(dims))}


# A model, what the compiler is told of its inputs (shapes, and in some rows the content of `sr`), the relative and the absolute
# tolerance, the inputs of each run, and inputs that are refused, with a part of the message.
ROWS = [
    ("magika/models/standard_v3_3/model.onnx", [], 1e-3, 1e-6,
     [{"bytes": (INT32, [n, 2048])} for n in (1, 2, 5)], []),
    (SILERO + "silero_vad_16k_sequence.onnx", [], 1e-3, 1e-5,
     [{"input": (FLOAT, [n, 576]), "h": (FLOAT, [1, 1, 128]), "c": (FLOAT, [1, 1, 128])} for n in (1, 3, 40)],
     [({"input": (FLOAT, [0, 576]), "h": (FLOAT, [1, 1, 128]), "c": (FLOAT, [1, 1, 128])}, "LSTM: the object is for sizes with")]),
    (SILERO + "silero_vad.onnx", ["--shape", "input=2x576", "--shape", "state=2x2x128"], 1e-3, 1e-5, [silero(n) for n in (1, 2, 5)], []),
    (SILERO + "silero_vad_16k_op15.onnx", ["--dim", "sequence=576"], 1e-3, 1e-5, [silero(n) for n in (1, 2, 5)], []),
    (MODELS + "ch_ppocr_mobile_v2.0_cls_infer.onnx", ["--shape", "x=1x3x48x192"], 1e-3, 1e-5,
     [image(1, 3, 48, 192), image(2, 3, 48, 96), image(3, 3, 64, 100)], []),
    (MODELS + "ch_PP-OCRv4_rec_infer.onnx", ["--shape", "x=1x3x48x320"], 1e-3, 1e-5,
     [image(1, 3, 48, 320), image(2, 3, 48, 97), image(1, 3, 48, 500)],
     [(image(1, 3, 48, 1), "the object is for sizes with")]),
    (MODELS + "ch_PP-OCRv4_det_infer.onnx", [], 1e-3, 1e-5,
     [image(1, 3, 64, 96), image(1, 3, 96, 32), image(2, 3, 32, 160)],
     [(image(1, 3, 33, 64), "sizes are negative, too large, or not those of the model")]),
    (HALVES, [], 1e-5, 1e-6, [image(1, 1, d) for d in (3, 9, 33)], [(image(1, 1, 8), "not those of the model")]),
    (TO_MASK, [], 1e-5, 1e-6,
     [{"x": (FLOAT, [n, 1, d]), "mask": (FLOAT, [n, 1, e])} for n, d, e in ((1, 4, 4), (2, 3, 6), (1, 9, 5), (3, 2, 16))], []),
    (TABLE, [], 1e-5, 1e-6, [image(*dims) for dims in ((2, 1, 10), (3, 7, 10), (1, 40, 10))],
     [(image(2, 41, 10), "the object is for sizes with")]),
]


def write_models(work):
    """Writes models that are valid for few sizes, of which none has a fixed one."""
    def ints(name, *values):
        return field(1, name) + b"".join(field(8, v) for v in values) + field(20, 7)

    def attribute(*what):
        return field(5, ints(*what))

    def number(name, value):
        return field(5, field(1, name) + field(3, value) + field(20, 2))

    field, node, floats, any3 = w.field, w.node, struct.pack("=3f", 0.5, 0.25, 2), [None] * 3
    x, y = w.value("x", FLOAT, any3), w.value("y", FLOAT, any3)
    half = node("MaxPool", ["x"], ["a"], attribute("kernel_shape", 3) + attribute("strides", 2))
    whole = node("ConvTranspose", ["a", "w"], ["b"], attribute("strides", 2))  # b has the size of x if that is odd
    w.write(f"{work}/{HALVES}", w.model([half, whole, node("Add", ["x", "b"], ["y"])], [x], [y], [w.tensor(FLOAT, [1, 1, 3], floats, "w")]))
    sizes = [node("Shape", ["mask"], ["m"], number("start", 2)), node("Shape", ["x"], ["n"], number("end", 2)),
             node("Concat", ["n", "m"], ["sizes"], number("axis", 0)), node("Resize", ["x", "", "", "sizes"], ["r"])]
    w.write(f"{work}/{TO_MASK}", w.model([*sizes, node("Concat", ["r", "mask"], ["y"], number("axis", 1))], [x, w.value("mask", FLOAT, any3)], [y]))
    first = [node("Shape", ["x"], ["n"], number("start", 1) + number("end", 2)), node("Slice", ["table", "zero", "n", "zero"], ["rows"])]
    table = [w.tensor(FLOAT, [40, 10], struct.pack("=400f", *range(400)), "table"), w.tensor(INT64, [1], bytes(8), "zero")]
    w.write(f"{work}/{TABLE}", w.model([*first, node("Add", ["x", "rows"], ["y"])], [x], [y], table))


def fill(rng, kind, dims):
    """Returns a random tensor; a scalar integer is the sampling rate."""
    tensor = onnx_files.Tensor(kind, dims, b"")
    n = tensor.elements()
    if kind == FLOAT:
        tensor.data = struct.pack(f"={n}f", *(rng.gauss(0, 0.5) for _ in range(n)))
    elif kind == INT32:
        tensor.data = struct.pack(f"={n}i", *(rng.randrange(257) for _ in range(n)))
    else:
        tensor.data = struct.pack("=q", 16000)
    return tensor


class Model:
    """A model with the object that was compiled from it."""

    def __init__(self, data, work, number, row):
        self.model, self.how, self.rtol, self.atol, self.runs, self.refused = row
        self.path, self.work, self.prefix = f"{data if '/' in self.model else work}/{self.model}", work, f"m{number}"
        self.rng = random.Random(number)
        self.names = [v.name for v in onnx_files.read_model(self.path)[0]]
        self.object = programs.Object(work, self.prefix)
        rate = f"{work}/sr.pb"
        w.write(rate, w.tensor(INT64, [], struct.pack("=q", 16000)))
        self.object.compile(self.path, [("sr", rate)] if "sr" in self.names else [], self.how)

    def inputs(self, described):
        return [fill(self.rng, *described[name]) for name in self.names]

    def compare(self, program, described):
        """Returns what is wrong with a run, or None."""
        inputs = self.inputs(described)
        try:
            outputs = programs.run(program, self.object, inputs, f"{self.work}/{self.prefix}")
        except programs.Failed as e:
            return str(e)
        expected = programs.run_model(self.path, self.names, inputs, f"{self.work}/{self.prefix}")
        if isinstance(expected, str):
            return f"onnx-xla run refuses it: {expected}"
        for k, (tensor, (dims, data)) in enumerate(zip(expected, outputs)):
            wrong = elements.difference(tensor.kind, data, tensor.data, self.rtol, self.atol)
            if dims != tensor.dims or wrong:
                return f"output {k}: {dims} for {tensor.dims}: {wrong}"
        return None

    def is_refused(self, program, described, text):
        try:
            programs.run(program, self.object, self.inputs(described), f"{self.work}/{self.prefix}")
        except programs.Failed as e:
            return None if re.match(r"bind \d+: ", str(e)) and text in str(e) else f"the message is {e}"
        return "it is not refused"


def reported_wrongly(data, work):
    """Comparisons in silero-vad make the length of its input 512*m+64 for a symbol m, and pin m.  Returns what is wrong if the report
    does not say of the length itself that it is 576."""
    model = f"{data}/{SILERO}silero_vad_16k_op15.onnx"
    command = [os.environ["ONNX_XLA"], "compile", model, "--no-cache", "-o", f"{work}/pinned.o", "--shape", "input=1x576"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return None if "one object for all sizes but sequence = 576" in done.stdout else done.stdout + done.stderr


def refused_wrongly(data, work):
    """The content of sr decides the structure of silero-vad.  Returns what is wrong if the refusal does not say how to tell it."""
    command = [os.environ["ONNX_XLA"], "compile", f"{data}/{SILERO}silero_vad.onnx", "--no-cache", "-o", f"{work}/refused.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    good = done.returncode == 1 and "content of input 'sr'" in done.stderr and "--input NAME=FILE" in done.stderr
    return None if good else done.stderr


def described_wrongly(model):
    """Returns what is wrong if the header does not say that the object is for one content of the input sr."""
    with open(model.object.path("h"), encoding="utf-8") as f:
        text = f.read()
    return None if '/* input "sr": s64[];\n * element 0 must be 16000 */' in text else "it does not say that sr must be 16000"


def main():
    data, work = sys.argv[1:]
    write_models(work)
    models = [Model(data, work, k, row) for k, row in enumerate(ROWS)]
    findings = [(m.model, m.object.failure) for m in models if m.object.failure]
    models = [m for m in models if not m.object.failure]
    error = programs.link([m.object for m in models], f"{work}/program")
    wrong = programs.check_symbols([m.object for m in models])
    findings += [("the program", error), ("the report", reported_wrongly(data, work))] + [(m.model, wrong.get(m.prefix)) for m in models]
    findings.append(("the refusal", refused_wrongly(data, work)))
    findings += [(f"the header of {m.model}", described_wrongly(m)) for m in models if m.model == SILERO + "silero_vad.onnx"]
    for m in models if not error else ():
        findings += [(f"{m.model} for {described}", m.compare(f"{work}/program", described)) for described in m.runs]
        findings += [(f"{m.model} for {d}", m.is_refused(f"{work}/program", d, text)) for d, text in m.refused]
    for what, failure in findings:
        if failure:
            print(f"FAIL {what}: {failure}")
    failed = sum(1 for _, failure in findings if failure)
    print(f"{len(findings) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
