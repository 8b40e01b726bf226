"""run.py: exports architectures by torch and compares onnx-xla with ONNX Runtime on them (README says how).

  run.py [--list] [--small] [--only PATTERN] [--table FILE] [--page FILE] [--keep FOLDER]

Each model is exported in one process and compared in another, with limits of time and memory, so that a crash becomes a
result."""

import argparse
import collections
import fnmatch
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import compare
import numpy as np
import onnx
import page
import xla

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS, BYTES = 300, 12 << 30
AHEAD = 2  # models that are exported while others are compared
PEER, OURS = "peer", "ours"  # what a model's process does next: runs ONNX Runtime, or onnx-xla
GOOD = ("right", "refused as expected")


def expected_refusals():
    """Returns {name: (a part of the message, reason)} as the file expected-refusals has them."""
    found = {}
    with open(os.path.join(HERE, "expected-refusals")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, message, reason = (part.strip() for part in line.split("|"))
                found[name] = message, reason
    return found


def chaotic():
    with open(os.path.join(HERE, "chaotic")) as lines:
        return {line.split("|")[0].strip() for line in lines if not line.startswith("#")}


def operators(path):
    """Returns the number of nodes of each operator in a model, subgraphs included."""
    counts = collections.Counter()
    graphs = [onnx.load(path, load_external_data=False).graph]
    while graphs:
        for node in graphs.pop().node:
            counts[node.op_type] += 1
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return counts


def judge(folder, say, optimise):
    """Returns the row of an exported model: {"status", ...}.  say(phase) tells the parent what is done next, so that it knows
    where a crash happened."""
    path = os.path.join(folder, "model.onnx")
    counts = operators(path)
    row = {"nodes": sum(counts.values()), "operators": len(counts), "sizes": 0, "error": 0.0, "allowed": 1.0, "scale": 0.0}
    chaos = 0.0
    for k in range(1000):
        file = os.path.join(folder, f"inputs-{k}.npz")
        if not os.path.exists(file):
            break
        with np.load(file) as values:
            inputs = dict(values)
        say(PEER)
        try:
            peer = compare.Peer(path, inputs, optimise)
        except compare.PeerFails as error:
            if k == 0:
                return {**row, "status": "not run by the peer", "detail": str(error)}
            continue  # the exporter wrote the first size into the model as a constant, so other sizes do not run
        row["sizes"] += 1
        say(OURS)
        try:
            found = peer.compare()
        except xla.XlaError as error:
            return {**row, "status": "refused", "detail": f"inputs-{k}: {error}"}
        except compare.Differs as error:
            return {**row, "status": "WRONG", "detail": f"inputs-{k}: {error}"}
        row["scale"] = max(row["scale"], found["scale"])
        chaos = max([chaos, *peer.doubts])
        if found["error"] / found["allowed"] >= row["error"] / row["allowed"]:
            row.update(error=found["error"], allowed=found["allowed"])
    if chaos > compare.CHAOS:
        return {**row, "status": "chaotic", "detail": f"ONNX Runtime differs from itself by {chaos:.1e}"}
    return {**row, "status": "right"}


def in_child(work):
    """Runs work(say) in a child process; returns (a list of what it said and, last, what it returned; the process's status)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        signal.alarm(SECONDS)

        def say(thing):
            os.write(writer, json.dumps(thing).encode() + b"\n")

        try:
            say(work(say))
        except BaseException as error:
            say({"status": "the tester failed", "detail": f"{type(error).__name__}: {error}"})
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = [json.loads(line) for line in stream]
    return said, os.waitpid(pid, 0)[1]


def limited(folder):
    """Returns the row of an exported model, even if the process that judges it crashes."""
    start = time.time()
    said, status = in_child(lambda say: judge(folder, say, True))
    if os.WIFSIGNALED(status) and said[-1:] == [PEER]:
        # ONNX Runtime's optimiser crashes on some models; the expected values do not need it.
        said, status = in_child(lambda say: judge(folder, say, False))
    seconds = {"seconds": time.time() - start}
    if not os.WIFSIGNALED(status):
        return {**said[-1], **seconds}
    number = os.WTERMSIG(status)
    detail = f"no end in {SECONDS} s" if number == signal.SIGALRM else signal.Signals(number).name
    return {"status": "not run by the peer" if said[-1:] == [PEER] else "CRASHED", "detail": detail, **seconds}


class Exporter:
    """A process of export.py in a Python that has torch."""

    def __init__(self, python):
        self.python = python
        self.process = None

    def names(self):
        command = [self.python, os.path.join(HERE, "export.py"), "--list"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def ask(self, name, folder):
        if not self.process:
            command = [self.python, os.path.join(HERE, "export.py")]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        self.process.stdin.write(f"{name}\t{folder}\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("run.py: the exporter ended: run tests/models/export.py by hand to see why")
        return json.loads(line)


def run(exporter, names, top):
    """Yields (row, folder of the model) for each name; up to AHEAD models are exported in advance."""
    known = expected_refusals()
    waiting = collections.deque()
    left = collections.deque(names)
    while left or waiting:
        while left and len(waiting) <= AHEAD:
            name = left.popleft()
            folder = os.path.join(top, name)
            exporter.ask(name, folder)
            waiting.append((name, folder))
        name, folder = waiting.popleft()
        error = exporter.answer()["error"]
        row = {"status": "not exported", "detail": error} if error else limited(folder)
        if row["status"] == "refused" and name in known and known[name][0] in row["detail"]:
            row.update(status="refused as expected", detail=known[name][1])
        elif name in known:
            row.update(status="expected-refusals is out of date", detail=f"{row['status']}: {row.get('detail', '')}")
        yield {"name": name, **row}, folder


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--list", action="store_true")
    options.add_argument("--small", action="store_true", help="those in the file small")
    options.add_argument("--only", metavar="PATTERN", help="names like timm/*")
    options.add_argument("--table", metavar="FILE", help="writes the results, a line of JSON each")
    options.add_argument("--page", metavar="FILE", help="writes the page for doc/")
    options.add_argument("--keep", metavar="FOLDER", help="leaves the models and their inputs there")
    o = options.parse_args()
    exporter = Exporter(os.environ["MODELS_PYTHON"])
    names = exporter.names()
    if o.small:
        with open(os.path.join(HERE, "small")) as lines:
            small = lines.read().split()
        if missing := set(small) - set(names):
            raise SystemExit(f"run.py: {sorted(missing)} in the file small are not in the catalogue")
        names = small
    if o.only:
        names = dict.fromkeys(n for p in o.only.split(",") for n in names if fnmatch.fnmatch(n, p))
    elif not o.small:
        names = [n for n in names if n not in chaotic()]
    if o.list:
        print("\n".join(names))
        return 0
    rows, top = [], o.keep or tempfile.mkdtemp(prefix="models-")
    table = open(o.table, "w") if o.table else None
    try:
        for row, folder in run(exporter, names, top):
            rows.append(row)
            print(page.line(row), flush=True)
            if table:
                table.write(json.dumps(row) + "\n")
                table.flush()
            if not o.keep:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        if not o.keep:
            shutil.rmtree(top, ignore_errors=True)
    if o.page:
        page.write(o.page, rows)
    bad = sum(row["status"] not in GOOD for row in rows)
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
