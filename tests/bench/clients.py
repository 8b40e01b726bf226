"""Starts clients and talks to them: each is a process with one engine and one model (client.c, client_jax.py)."""
import glob
import importlib.util
import os
import select
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import helper

from bench_models import HERE, MADE, Failed, call

ENGINES = ("ours", "ort", "openvino", "jax")
TITLES = {"ours": "ours", "ort": "ORT", "openvino": "OpenVINO", "jax": "XLA", "before": "another build"}
OUR_BUILDS = ("ours", "before")  # "before" is another build of onnx-xla, which BEFORE_BUILDDIR names
PATIENCE = 300  # seconds for an answer: XLA compiles some models for minutes


def differs(a, b):
    """Returns the largest difference, divided by the largest element of its output, over all outputs."""
    worst = 0.0
    if len(a) != len(b):
        raise Failed(f"{len(a)} outputs; ONNX Runtime has {len(b)}")
    for k, (x, y) in enumerate(zip(a, b)):
        if x.shape != y.shape:
            raise Failed(f"output {k} is {list(x.shape)}; ONNX Runtime's is {list(y.shape)}")
        x, y = x.astype(np.float64), y.astype(np.float64)
        if not np.isfinite(x).all() or (y.size > 1 and not np.ptp(y) > 0):
            raise Failed(f"output {k} proves nothing: not finite, or all elements are the same")
        worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
    return worst


def build(name, patterns, options):
    """Returns the path of a program, which is compiled if it is older than its sources."""
    program = os.path.join(MADE, name)
    sources = [f for pattern in patterns for f in sorted(glob.glob(os.path.join(HERE, pattern)))]
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, sources)):
        os.makedirs(MADE, exist_ok=True)
        compiler = shlex.split(os.environ.get("CC", "cc"))
        call([*compiler, "-std=gnu11", "-o", program + ".new", *[f for f in sources if f.endswith(".c")], *options])
        os.rename(program + ".new", program)
    return program


def build_client():
    return build("client", ["client.c", "client.h", "engine_*.c"],
                 ["-O2", "-I" + os.path.join(HERE, "../../plugin/api"), "-ldl"])


def library(engine):
    """Returns the path of the engine's library, or None if it is not installed."""
    if engine in OUR_BUILDS:
        build_folder = os.environ["top_builddir" if engine == "ours" else "BEFORE_BUILDDIR"]
        return os.path.join(build_folder, ".libs", "libonnx-xla.so")
    package, pattern = {"ort": ("onnxruntime", "capi/libonnxruntime.so.*"), "openvino": ("openvino", "libs/libopenvino_c.so*"),
                        "jax": ("jaxonnxruntime", "__init__.py")}[engine]
    spec = importlib.util.find_spec(package)
    found = sorted(glob.glob(os.path.join(os.path.dirname(spec.origin), pattern))) if spec else []
    return found[0] if found else None


class Client:
    """Loads the model and runs it once; first_s is the time from the start of the process to the end of that run."""

    def __init__(self, engine, path, threads, feeds, environment=None, program=None):
        """feeds: (name, path of a .npy); raw copies live as long as the client.  program: the client of a linked engine."""
        self.engine = engine
        where = program or library(engine)
        if where is None:
            raise Failed("is not installed: tests/fetch-data --bench gets it")
        self.folder = tempfile.TemporaryDirectory(prefix="onnx-xla-bench-")
        program = [sys.executable, os.path.join(HERE, "client_jax.py")] if engine == "jax" else [program or build_client()]
        command = [*program, "ours" if engine in OUR_BUILDS else engine, where, path, str(threads), *[self.raw(name, np.load(f)) for name, f in feeds]]
        self.errors = tempfile.TemporaryFile("w+")
        start = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        bufsize=1, env={**os.environ, **(environment or {})})
        self.answer()
        self.first_s = time.perf_counter() - start

    def raw(self, name, value):
        """Writes an array to a file, and returns the text by which the client takes it as an input."""
        path = os.path.join(self.folder.name, f"{len(os.listdir(self.folder.name))}.raw")
        np.ascontiguousarray(value).tofile(path)
        return f"{name}:{helper.np_dtype_to_tensor_dtype(value.dtype)}:{'x'.join(map(str, value.shape))}:{path}"

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return line.strip()
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        lines = [x.strip() for x in self.errors if x.strip()] if ready else [f"no answer within {PATIENCE} s"]
        told = [x for x in lines if not x.startswith(("---", "For simplicity, JAX"))]
        raise Failed(told[-1] if told else f"ended with status {self.process.returncode}")

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            pass  # the answer tells why
        return self.answer()

    def measure(self, seconds, runs, warm_up):
        """Returns the least and the median seconds of a run."""
        least, median, _ = map(float, self.ask(f"measure {seconds} {runs} {warm_up}").split())
        return least, median

    def burst(self, runs):
        """Returns the seconds of a run, from the time of `runs` runs between which the clock is not read."""
        return float(self.ask(f"burst {runs}")) / runs

    def set_input(self, name, value):
        """Replaces an input.  The file with its elements is deleted once the client has read it."""
        text = self.raw(name, value)
        self.ask("input " + text)
        os.remove(text.rsplit(":", 1)[1])

    def run_list(self, steps, carries=()):
        """Returns the seconds of one run for each of `steps`, {name: array} of the inputs that it replaces; carries:
        (output, input, axis)."""
        files = []
        with open(os.path.join(self.folder.name, "list"), "w") as f:
            for step in steps:
                files += [self.raw(name, value) for name, value in step.items()]
                f.write(" ".join(files[len(files) - len(step):]) + "\n")
        if carries:
            self.ask("carry " + " ".join(f"{output}={name}" for output, name, _ in carries))
        seconds = [float(s) for s in self.ask("list " + f.name).split()]
        for text in files:
            os.remove(text.rsplit(":", 1)[1])
        return seconds

    def outputs(self):
        out = tempfile.mkdtemp(dir=self.folder.name)
        values = []
        for k in range(int(self.ask("outputs " + out))):
            kind, _, dims = self.process.stdout.readline().strip().partition(" ")
            dtype = helper.tensor_dtype_to_np_dtype(int(kind))
            values.append(np.fromfile(os.path.join(out, f"{k}.bin"), dtype).reshape([int(d) for d in dims.split("x") if d]))
        return values

    def cpu_seconds(self):
        return float(self.ask("cpu"))

    def megabytes(self):
        """Returns the megabytes of memory that the client uses now, and the most that it has used."""
        now, most = map(float, self.ask("memory").split())
        return now, most

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        self.folder.cleanup()
