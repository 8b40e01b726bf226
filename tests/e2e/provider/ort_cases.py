"""ort_cases.py PLUGIN DATA [PATTERN]: ONNX's conformance cases through ONNX Runtime with our provider first and
everything claimed, beside ONNX Runtime alone: what it passes alone must pass with the provider too.

Cases run in worker processes that are sent one case at a time: a case that ends its process, or takes more than a
minute, is a failure with a name, and another process goes on.  A case runs wholly in our provider if ONNX Runtime makes
its session with the config entry session.disable_cpu_ep_fallback, which forbids it to run any node itself."""
import concurrent.futures
import ctypes
import fnmatch
import glob
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ort_sessions import VERBOSE, claimed, is_early, register, session  # noqa: E402

LEAST_WHOLLY = 1300
CASE_SECONDS = 60
ALL_SECONDS = 1500  # no more cases are begun then
CASES_A_WORKER = 250  # a fresh process now and then, so that nothing piles up
# ONNX Runtime 1.23 asks for the nodes of a body as if it were a graph of its own; once they are taken it cannot write out
# a SequenceMap around them any more.
LOST_EARLY = "test_sequence_map_*"

# --- cases: folders with a model and arrays, and those that name a light model ---


def find_cases(data, pattern):
    found = sorted(glob.glob(os.path.join(data, "onnx/backend/test/data/*/*/")))
    return [c for c in found if fnmatch.fnmatch(os.path.basename(c[:-1]), pattern)]


def read_array(path, kind):
    """Returns an array, a list of arrays, or None; kind: the TypeProto that the model declares."""
    with open(path, "rb") as f:
        content = f.read()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def read_arrays(prefix, values):
    return [read_array(f"{prefix}_{k}.pb", v.type) for k, v in enumerate(values) if os.path.exists(f"{prefix}_{k}.pb")]


def light_input(value):
    """Returns the input that ONNX's test runner gives light models: element i of n is i/n."""
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
    n = int(np.prod(dims))
    return (np.arange(n).astype(np.float32) / n).reshape(dims)


def read_case(folder):
    """Returns the model's path, its graph, and (inputs, outputs) of each data set."""
    path = os.path.join(folder, "model.onnx")
    if os.path.exists(path):
        graph = onnx.load(path, load_external_data=False).graph
        sets = sorted(glob.glob(os.path.join(folder, "test_data_set_*")))
        return path, graph, [(read_arrays(os.path.join(s, "input"), graph.input),
                              read_arrays(os.path.join(s, "output"), graph.output)) for s in sets]
    with open(os.path.join(folder, "data.json")) as f:
        light = os.path.basename(json.load(f)["url"])
    path = os.path.join(folder, "../../light", light)
    graph = onnx.load(path).graph
    constants = {t.name for t in graph.initializer}
    inputs = [light_input(v) for v in graph.input if v.name not in constants]
    return path, graph, [(inputs, read_arrays(path[:-len(".onnx")] + "_output", graph.output))]


# --- running ---

def is_native(x):
    """Returns whether ONNX Runtime's Python interface takes and returns x as an array."""
    return not isinstance(x, np.ndarray) or x.dtype.isbuiltin == 1


def bits_of(dtype):
    """Returns the bits of an element: 2 or 4 for types that ONNX Runtime packs, otherwise 8 for each byte."""
    name = dtype.name
    if name.endswith("int2"):
        return 2
    return 4 if name.endswith("int4") or name.startswith("float4") else 8 * dtype.itemsize


def as_value(x, kind):
    """Returns x as an OrtValue, which keeps the array alive as long as itself."""
    if is_native(x):
        return ort.OrtValue.ortvalue_from_numpy(x)
    x, bits = np.ascontiguousarray(x), bits_of(x.dtype)
    if bits < 8:  # ONNX Runtime reads as many bytes as there are packed, and takes the shape from the array
        loose = np.unpackbits(x.view(np.uint8).reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
        packed = np.packbits(loose.reshape(-1), bitorder="little")
        bytes_ = np.zeros(x.shape, np.uint8)
        bytes_.reshape(-1)[:packed.size] = packed
        x = bytes_
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(x, kind.tensor_type.elem_type)


def as_array(value, like):
    if is_native(like):
        return value.numpy()
    n, bits = int(np.prod(value.shape())), bits_of(like.dtype)
    raw = np.frombuffer(ctypes.string_at(value.data_ptr(), (n * bits + 7) // 8), np.uint8)
    if bits < 8:
        loose = np.unpackbits(raw, bitorder="little")[:n * bits].reshape(n, bits)
        raw = np.packbits(loose, axis=1, bitorder="little").reshape(-1)
        signed = like.dtype.name[0] == "i"  # then the last bit is extended, as numpy keeps these types
        raw = np.where(signed & (loose[:, -1] == 1), raw | np.uint8(256 - (1 << bits)), raw).astype(np.uint8)
    return np.frombuffer(raw.tobytes(), like.dtype).reshape(value.shape())


def run(s, graph, inputs, want):
    kinds = {v.name: v.type for v in graph.input}
    names = [i.name for i in s.get_inputs()]
    feeds = dict(zip(names, inputs))
    if all(map(is_native, inputs + want)):
        return s.run(None, feeds)
    got = s.run_with_ort_values(None, {name: as_value(x, kinds[name]) for name, x in feeds.items()})
    return [as_array(g, w) for g, w in zip(got, want)]


def same(want, got):
    if want is None or got is None:
        return want is got
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    got = np.asarray(got)
    if want.shape != got.shape or want.dtype != got.dtype:
        return False
    if want.dtype.kind in "OSUbiu" or "int" in want.dtype.name:
        return np.array_equal(want, got)
    # The relative tolerance is ONNX's own, or the last bit of a type with fewer bits.  The absolute one is for sums that would be zero
    # in another order.
    coarse = want.dtype.itemsize < 4
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    last_bit = float(ml_dtypes.finfo(want.dtype).eps) if coarse else 0
    return np.allclose(got.astype(wide), want.astype(wide), max(1e-3, last_bit), 1e-5, equal_nan=True)


def problem(make, case):
    """Returns None, or one line that says why the case does not pass."""
    _, graph, sets = case
    try:
        s = make()
        for inputs, want in sets:
            got = run(s, graph, inputs, want)
            for value, w, g in zip(graph.output, want, got):
                if not same(w, g):
                    return f"'{value.name}' has other values"
    except Exception as e:  # of any kind: ONNX Runtime has several
        return str(e).strip().replace("\n", " ")[:300] or type(e).__name__
    return None


def run_case(folder):
    """Returns (whether the case runs wholly in our provider, the problem with our provider, the problem of ONNX Runtime alone)."""
    case = read_case(folder)
    path = case[0]
    ours = {"options": {"claim": "all"}, "log": VERBOSE}
    only = {"session.disable_cpu_ep_fallback": "1"}
    with_us, (taken, _, _) = claimed(lambda: problem(lambda: session(path, config=only, **ours), case))
    wholly = with_us is None and taken > 0
    if with_us is not None:
        with_us, _ = claimed(lambda: problem(lambda: session(path, **ours), case))
    alone = problem(lambda: session(path, provider=False, log=4), case)
    return [wholly, with_us, alone]


# --- workers ---

def work():
    """Reads folders, a line each, and answers each with a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        try:
            answer = run_case(line.strip())
        except Exception as e:  # a case that cannot be read
            answer = [False, f"{type(e).__name__}: {e}", f"{type(e).__name__}: {e}"]
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    def __init__(self):
        self.done = 0
        self.noise = tempfile.TemporaryFile()
        command = [sys.executable, "-B", __file__, sys.argv[1], "--worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.noise)

    def ask(self, folder):
        """Returns the answer, or a text that says how the process ended."""
        self.done += 1
        self.process.stdin.write((folder + "\n").encode())
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], CASE_SECONDS)[0]:
            return f"takes more than {CASE_SECONDS} s"
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else self.ending()

    def ending(self):
        code = self.process.wait()
        self.noise.seek(max(0, self.noise.seek(0, os.SEEK_END) - 300))
        last = self.noise.read().decode(errors="replace").strip().splitlines()[-1:]
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return f"ends its process: {how} {' '.join(last)}"

    def close(self):
        self.process.kill()
        self.process.wait()
        self.noise.close()


def worker_loop(todo, results, end):
    """Takes cases until there are none, or the time is over."""
    worker = None
    while time.monotonic() < end:
        try:
            folder = todo.get_nowait()
        except queue.Empty:
            break
        worker = worker or Worker()
        answer = worker.ask(folder)
        results[os.path.basename(folder[:-1])] = answer
        if isinstance(answer, str) or worker.done >= CASES_A_WORKER:
            worker.close()
            worker = None
    if worker:
        worker.close()


def run_all(cases):
    todo, results, end = queue.Queue(), {}, time.monotonic() + ALL_SECONDS
    for c in cases:
        todo.put(c)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for running in [pool.submit(worker_loop, todo, results, end) for _ in range(os.cpu_count() or 1)]:
            running.result()
    return results


def judge(cases, results):
    failures, lost, wholly, both, neither = [], 0, 0, 0, 0
    for name, answer in sorted(results.items()):
        if isinstance(answer, str):
            failures.append(f"{name}: {answer}")
            continue
        whole, with_us, alone = answer
        wholly += whole
        both += not with_us and not alone
        neither += bool(with_us and alone)
        if with_us and not alone and is_early() and fnmatch.fnmatch(name, LOST_EARLY):
            lost += 1
        elif with_us and not alone:
            failures.append(f"{name}: {with_us}")
    only_ours = [name for name, a in results.items() if not isinstance(a, str) and a[2] and not a[1]]
    print(f"{len(cases)} cases: {wholly} pass wholly in our provider, {both} pass with it and without, "
          f"{len(only_ours)} only with it, {neither} neither way, {lost} expected only without")
    if len(results) < len(cases):
        failures.append(f"{len(cases) - len(results)} cases were not reached in {ALL_SECONDS} s")
    return failures, wholly


def main():
    if sys.argv[2] == "--worker":
        register(sys.argv[1], quiet=False)
        work()
        return
    pattern = sys.argv[3] if len(sys.argv) > 3 else "*"
    print("ONNX Runtime", ort.__version__)
    cases = find_cases(sys.argv[2], pattern)
    results = run_all(cases)
    failures, wholly = judge(cases, results)
    if pattern == "*" and wholly < LEAST_WHOLLY:
        failures.append(f"only {wholly} cases run wholly in our provider")
    for f in failures:
        print("FAIL", f)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
