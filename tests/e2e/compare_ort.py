"""compare_ort.py: runs a model in ONNX Runtime and through the command line of onnx-xla, and compares the numbers.

The tests in this folder import it; they run in the Python environment that tests/fetch-data --peers makes."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

ONNX_XLA = os.environ["ONNX_XLA"]


def run_ort(path, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def run_xla(path, inputs, backend):
    """Returns the outputs in the model's order.  Raises RuntimeError with the program's message if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [ONNX_XLA, "run", path, "--backend", backend, "--threads", "2", "--output-dir", folder, "--format", "npy"]
        for k, (name, value) in enumerate(inputs.items()):
            file = os.path.join(folder, f"in_{k}.npy")
            np.save(file, value)
            command += ["--input", f"{name}={file}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-500:]}")
        outputs = []
        while os.path.exists(file := os.path.join(folder, f"output_{len(outputs)}.npy")):
            outputs.append(np.load(file))
        return outputs


def compiled(path, folder, *options):
    """Compiles the model ahead of time, and returns the file.  Without options nothing is said about its sizes."""
    file = os.path.join(folder, os.path.basename(path) + ".oxla")
    subprocess.run([ONNX_XLA, "compile", path, "--quiet", "--tune=off", "-o", file, *options], check=True)
    return file


def difference(got, want):
    """Returns the largest difference of two lists of outputs, divided by the largest number of each output (by 1 if that is smaller,
    so that the tails of sigmoid and softmax are compared absolutely), or a text that says why they cannot be compared."""
    if len(got) != len(want):
        return f"{len(got)} outputs instead of {len(want)}"
    worst = 0.0
    for k, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {k} is {g.dtype}{g.shape} instead of {w.dtype}{w.shape}"
        if not np.all(np.isfinite(g)) or not np.all(np.isfinite(w)):
            return f"output {k} is not finite"
        if w.size:
            g, w = g.astype(np.float64), w.astype(np.float64)
            worst = max(worst, float(np.abs(g - w).max() / max(1.0, np.abs(w).max())))
    return worst


class Report:
    """Prints a line for each comparison, and counts comparisons and failures."""

    def __init__(self):
        self.count = self.bad = 0

    def check(self, label, path, inputs, backend, want, tolerance):
        self.count += 1
        try:
            got = run_xla(path, inputs, backend)
            found = difference(got, want)
        except RuntimeError as error:
            got, found = None, str(error)
        good = isinstance(found, float) and found <= tolerance
        self.bad += not good
        text = f"{found:.2g}, allowed {tolerance:.2g}" if isinstance(found, float) else found
        print(f"{'ok  ' if good else 'FAIL'} {label} on {backend}: {text}", flush=True)
        return got

    def finish(self):
        print(f"{self.count - self.bad} of {self.count} agree with ONNX Runtime {onnxruntime.__version__}")
        sys.exit(1 if self.bad or not self.count else 0)
