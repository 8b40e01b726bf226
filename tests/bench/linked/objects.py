"""Rows of make bench that measure objects: `onnx-xla compile -o net.o`, linked to a C program.  Each is a function that yields
(what was measured, value, limit, unit), as the functions of rows.py do."""
import glob
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

from bench_models import HERE, Failed, call, find_model, make_array, read_models
from clients import Client, differs
from size_lists import ROWS as LISTS

LINKED = os.path.dirname(os.path.abspath(__file__))
MB = 1e6
WITHIN = 1.1       # the time of an object divided by that of onnx-xla's own tuned run
ROUNDS = 9
START_ROUNDS = 30
GREATEST = 1024    # the room for keys and values


class Case:
    """A model, how it becomes an object, and how it is run."""

    def __init__(self, name, options=(), bind="", most="", steps=None, carries=(), burst=0):
        """bind, most: the open sizes of the header's functions, as C; steps: inputs of a list; burst: runs that are timed together."""
        self.name, self.options, self.bind, self.most = name, list(options), bind, most
        self.steps, self.carries, self.burst = steps, carries, burst
        self.of_ort, self.most_us = math.inf, 0  # limits: of ONNX Runtime's time, and of a run in microseconds

    def prepare(self):
        """Sets the path, the inputs of the first run, and the environment variables of the engine `ours`."""
        if self.name in read_models():
            model = read_models()[self.name]
            model.prepare()
            self.path, self.inputs = model.path, model.inputs
        self.environment = {}
        if self.carries:
            self.environment["BENCH_CARRIED"] = " ".join(f"{output}={name}:{axis}" for output, name, axis in self.carries)

    def program_options(self):
        """Returns the options for a program in a .oxla file: those of the object without --carry, which is for objects only."""
        pairs = zip(self.options[::2], self.options[1::2])
        return [text for pair in pairs if pair[0] != "--carry" for text in pair]

    def seconds(self, client):
        """Returns the least seconds of a run, or for a list of steps the median of its runs."""
        if self.burst:
            return client.burst(self.burst)
        if not self.steps:
            return client.measure(0.2, 3, 1)[0]
        times = sorted(client.run_list(self.steps, self.carries)[1:])
        return times[len(times) // 2]


class Decoder(Case):
    """A decoder that runs token by token, and keeps its keys and values in place."""

    def __init__(self, name, source, tokens):
        sizes = LISTS["gpt2"]()
        options = ["--dim", "length=1"]
        for _, past, axis in sizes.carries:
            options += ["--carry", f"{past.replace('past', 'present')}={past},{axis}"]
        super().__init__(name, options, f", past, {GREATEST}", f"{GREATEST - 1}, {GREATEST}", sizes.steps[:tokens], sizes.carries)
        self.source, self.first = source, sizes.first

    def prepare(self):
        super().prepare()
        self.path = find_model(self.source)
        self.inputs = [saved(self.name, name, value) for name, value in self.first.items()]


def saved(model, name, value):
    folder = os.path.join(os.environ["ONNX_XLA_DATA"], "bench", "inputs", model)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".npy")
    np.save(path, value)
    return name, path


def silero():
    """Windows of sound at 16 kHz; the state goes from run to run, and begins with zeros."""
    steps = [{"input": make_array("normal", [1, 576], k)} for k in range(200)]
    steps[0]["state"] = np.zeros((2, 1, 128), np.float32)
    rate = saved("silero-vad", "sr", make_array("int64:16000", [], 0))
    options = ["--shape", "input=1x576", "--shape", "state=2x1x128", "--input", f"sr={rate[1]}", "--carry", "stateN=state"]
    case = Case("silero-vad", options, ", 1", "1", steps, [(1, "state", -1)])
    case.of_ort = 0.2
    return case


def mlp():
    case = Case("mlp", burst=20000)
    case.most_us = 0.5
    return case


def cases():
    return [Case("resnet50"), Case("mobilenet-v2"), Case("bert-base"), Decoder("gpt2-decoding", "make:gpt2-any", 40), silero(),
            mlp(), Case("lstm")]


def case_of(name):
    found = next((c for c in cases() if c.name == name), None) or Case(name)
    found.prepare()
    return found


# --- making objects and programs ---

def compile_command(case, out, *options):
    return [os.path.join(os.environ["top_builddir"], "onnx-xla"), "compile", "--quiet", "--no-cache", "-o", out, *case.options,
            *options, case.path]


def write_object(case, folder, *options):
    """Writes net.o, net.h and the sizes with which the client binds it."""
    call(compile_command(case, os.path.join(folder, "net.o"), "--prefix", "net", *options))
    with open(os.path.join(folder, "bench_sizes.h"), "w") as f:
        f.write(f"#define BIND(n, memory) net_bind(n, memory{case.bind})\n#define MOST_BYTES net_arena_bytes({case.most})\n"
                f"#define GROWS {int('past' in case.bind)}\n")


def link(folder, name, sources, *options):
    """Compiles a program from these sources and the object and headers in the folder; returns its path."""
    program = os.path.join(folder, name)
    call([*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-O2", "-I" + folder, "-I" + LINKED, "-I" + HERE,
          "-I" + os.path.join(HERE, "../../plugin/api"), "-o", program, *[os.path.join(LINKED, s) for s in sources], *options,
          "-lm", "-pthread", "-ldl"])
    return program


def client_sources(engine):
    return [engine, os.path.join(HERE, "client.c"), *glob.glob(os.path.join(HERE, "engine_*.c"))]


def object_client(case, folder, threads, weights, *options):
    write_object(case, folder, f"--threads={threads}", *options, *(["--weights", weights] if weights else []))
    program = link(folder, "client", client_sources("object_engine.c"), os.path.join(folder, "net.o"))
    return Client("linked", weights, threads, case.inputs, program=program)


# --- steady times ---

def in_turns(case, clients, rounds=ROUNDS):
    """Returns the least seconds of a run of each client; the clients take turns."""
    times = [[case.seconds(client) for client in clients] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def must_agree(case, clients):
    first = clients[0].outputs()[:1]
    for client in clients[1:]:
        worst = differs(client.outputs()[:1], first)
        if worst > 1e-3:
            raise Failed(f"{case.name}: numbers differ by {worst:.2g} of the largest")


def time_text(seconds):
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.4g} ms"


def compare(case, threads, folder):
    """Compares an object and a tuned object with onnx-xla's own run and, with one thread, with ONNX Runtime's."""
    folders = [os.path.join(folder, how) for how in ("plain", "tuned")]
    for f in folders:
        os.mkdir(f)
    environment = {"ONNX_XLA_CACHE": os.path.join(folder, "cache"), **case.environment}
    clients = [Client("ours", case.path, threads, case.inputs, environment), object_client(case, folders[0], threads, ""),
               object_client(case, folders[1], threads, "", "--tune=fast"), Client("ort", case.path, threads, case.inputs)]
    clients[0].measure(0.1, 3, 1)  # waits until it is tuned
    times = in_turns(case, clients)
    must_agree(case, clients[:3])
    for client in clients:
        client.close()
    return times


def rows_of(case, threads, times):
    ours, plain, tuned, ort = times
    what = f"{case.name}, {threads} thread{'s' * (threads > 1)}"
    yield f"{what}, object {time_text(plain)} / run {time_text(ours)}", plain / ours, WITHIN, ""
    yield f"{what}, tuned object {time_text(tuned)} / run", tuned / ours, WITHIN, ""
    yield f"{what}, object / ONNX Runtime {time_text(ort)}", min(plain, tuned) / ort, case.of_ort, ""
    if case.most_us:
        yield f"{what}, object", 1e6 * plain, case.most_us, "us"


def object_runs():
    """The time of an object's run divided by that of onnx-xla's own tuned run."""
    for threads in (1, 2):
        for case in cases():
            try:
                case.prepare()
                with tempfile.TemporaryDirectory(prefix="onnx-xla-objects-") as folder:
                    times = compare(case, threads, folder)
                yield from rows_of(case, threads, times)
            except Failed as e:
                yield f"{case.name}: {e}", math.inf, WITHIN, ""


# --- emx-onnx-cgen ---

def emx_client(case, folder, dims):
    source = os.path.join(folder, "net.c")
    call([sys.executable, "-m", "emx_onnx_cgen", "compile", case.path, source, "--model-name", "model"])
    with open(os.path.join(folder, "bench_sizes.h"), "w") as f:
        f.write(f"#define OUTPUT_DIMS {', '.join(map(str, dims))}\n")
    code = os.path.join(folder, "net.o")
    call([*shlex.split(os.environ.get("CC", "cc")), "-O3", "-march=native", "-c", "-o", code, source])
    program = link(folder, "client", client_sources("emx_engine.c"), code)
    return Client("linked", os.path.join(folder, "model.bin"), 1, case.inputs, program=program)


def object_peers():
    """C source of emx-onnx-cgen, compiled with -O3 -march=native, beside an object: how many times as fast the object is."""
    case = case_of("mobilenet-v2")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        ours = object_client(case, folder, 1, "")
        clients = [ours, emx_client(case, other, ours.outputs()[0].shape)]
        must_agree(case, clients)
        plain, emx = in_turns(case, clients, 3)
        for client in clients:
            client.close()
    yield f"mobilenet-v2, object {time_text(plain)} / C source of emx-onnx-cgen {time_text(emx)}", plain / emx, 0.1, ""


# --- sizes ---

def section_bytes(path, *names):
    """Returns the bytes of the sections whose names begin with one of these."""
    rows = [line.split() for line in call(["size", "-A", "-d", path]).splitlines()]
    return sum(int(row[1]) for row in rows if len(row) >= 2 and row[0].startswith(names))


def object_sizes():
    """The bytes of objects: code and tables, without weights."""
    for name, limit in (("silero-vad", 100e3), ("ds-cnn", 100e3), ("resnet50", MB)):
        case = case_of(name)
        with tempfile.TemporaryDirectory() as folder:
            write_object(case, folder, "--threads=1", "--weights", os.path.join(folder, "net.bin"))
            bytes_of_code = section_bytes(os.path.join(folder, "net.o"), ".text", ".rodata")
        yield f"{name}, .text and .rodata without weights", bytes_of_code / 1e3, limit / 1e3, "kB"


# --- starts ---

def object_starts():
    """The time from the start of a process until the object is ready, with its files in the page cache, and the memory of a second
    process."""
    for name, limit_ms in (("resnet50", 5), ("bert-base", 10)):
        case = case_of(name)
        for where in ("in the object", "in a file"):
            with tempfile.TemporaryDirectory() as folder:
                weights = os.path.join(folder, "net.bin") if where == "in a file" else ""
                write_object(case, folder, "--threads=1", *(["--weights", weights] if weights else []))
                program = link(folder, "start", ["object_start.c"], os.path.join(folder, "net.o"))
                ready, ready_median, first, _, private, arena = map(float, call([program, weights, str(START_ROUNDS)]).split())
            what = f"{name}, weights {where}"
            yield f"{what}, start until ready (median {ready_median:.3g} ms)", ready, limit_ms, "ms"
            yield f"{what}, start until the first run has ended", first, math.inf, "ms"
            yield f"{what}, private memory of a second process, arena {arena / 1024:.1f} MB", private / 1024, arena / 1024 + 4, "MB"


# --- compiling ---

def peak_megabytes(command):
    """Runs the command; returns its seconds and its peak of memory.  The peak is read while it runs: getrusage would give that of this
    process, if that is larger."""
    peak, start = 0.0, time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as f:
                peak = max([peak, *[float(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM:")]])
        except OSError:
            pass
        time.sleep(0.005)
    seconds = time.perf_counter() - start
    complaint = process.stderr.read().decode().strip()
    process.stderr.close()
    if process.returncode:
        raise Failed(complaint or "the compiler failed")
    return seconds, peak


def object_compiling():
    """Seconds and peak memory of compiling an object beside those of a program in a .oxla file."""
    for name in ("mobilenet-v2", "resnet50", "bert-base", "gpt2-decoding"):
        case, results = case_of(name), []
        program = Case(name, case.program_options())
        program.path = case.path
        with tempfile.TemporaryDirectory() as folder:
            for out, options in (("net.o", []), ("net.oxla", ["--own-kernels", "--threads=1", "--tune=off"])):
                command = compile_command(case if out == "net.o" else program, os.path.join(folder, out), *options)
                results.append([min(column) for column in zip(*[peak_megabytes(command) for _ in range(2)])])
        (seconds, peak), (seconds_oxla, peak_oxla) = results
        yield f"{name}, compiling an object, {seconds:.3g} s / a program, {seconds_oxla:.3g} s", seconds / seconds_oxla, 1.5, ""
        yield f"{name}, peak memory, {peak:.0f} MB / {peak_oxla:.0f} MB", peak / peak_oxla, 1.5, ""


ROWS = {"object-runs": object_runs, "object-peers": object_peers, "object-sizes": object_sizes, "object-starts": object_starts,
        "object-compiling": object_compiling}
