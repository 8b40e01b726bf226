"""files.py WORK: the files that `onnx-xla compile -o FILE.o` writes: the example and what builds it, what is never overwritten,
and the same bytes whenever and wherever they are written.
"""
import os
import shutil
import struct
import subprocess
import sys

import onnx_writer as w

FLOAT = 1
XLA = os.environ["ONNX_XLA"]
findings = []


def check(what, failure):
    findings.append(failure)
    if failure:
        print(f"FAIL {what}: {failure}")


def run(command, **how):
    """Runs the command; returns what it prints if it fails, otherwise None."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=300, **how)
    return (done.stdout + done.stderr)[-3000:] or f"status {done.returncode}" if done.returncode else None


def compile_model(model, path, *more, **how):
    return run([XLA, "compile", model, "-q", "--no-cache", "-o", path, *more], **how)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write_model(path):
    """Writes a model with weights, a product, and open dimensions."""
    weights = [w.tensor(FLOAT, [48, 32], struct.pack("=1536f", *(k % 7 - 3 for k in range(1536))), "w"),
               w.tensor(FLOAT, [32], struct.pack("=32f", *range(32)), "b")]
    nodes = [w.node("MatMul", ["x", "w"], ["p"]), w.node("Add", ["p", "b"], ["s"]), w.node("Softmax", ["s"], ["y"])]
    w.write(path, w.model(nodes, [w.value("x", FLOAT, ["n", 48])], [w.value("y", FLOAT, ["n", 32])], weights))


def test_examples(model, work):
    """The example is built by make and cmake, whatever the object's name is, and runs."""
    for name in ("net.o", "my-net.o", "libnet.a", "net.so", "a.b.o", "memory.o", "k.o"):
        folder = f"{work}/example.{name}"
        os.mkdir(folder)
        check(name, compile_model(model, f"{folder}/{name}", "--emit-example"))
        check(f"make for {name}", run(["make", "CFLAGS=-std=c99 -Wall -Wextra -Werror -pedantic"], cwd=folder) or run(["./main"], cwd=folder))
        if shutil.which("cmake"):
            check(f"cmake for {name}", run(["cmake", "-B", "build"], cwd=folder) or run(["cmake", "--build", "build"], cwd=folder)
                  or run(["build/main"], cwd=folder))
    for name in ("a b.o", 'q"t.o', "$x.o", "a;b.o", "*.o"):
        refused = compile_model(model, f"{work}/{name}", "--emit-example")
        check(f"the name {name}", None if refused and "--emit-example goes with" in refused else f"it is not refused: {refused}")
    folder = f"{work}/mine"
    os.mkdir(folder)
    w.write(f"{folder}/Makefile", b"mine")
    refused = compile_model(model, f"{folder}/net.o", "--emit-example")
    check("an example over a file", None if refused and os.listdir(folder) == ["Makefile"] else f"{refused}: {os.listdir(folder)}")


def test_overwriting(model, work):
    """No file that is read, and none that was just written, is overwritten."""
    folder = f"{work}/over"
    os.mkdir(folder)
    os.symlink(folder, f"{work}/same")
    w.write(f"{folder}/data", b"weights of somebody")
    for name in ("net.h", "model"):
        shutil.copy(model, f"{folder}/{name}")
    rows = [("net.h", "net.o", None), ("model", "net.o", "model"), ("model", "a.o", f"{folder}/a.o"), ("model", "a.o", f"{work}/same/a.o"),
            ("model", "a.o", f"{folder}/a.h"), ("model", "a.o", f"{folder}/data")]
    before = {name: read(f"{folder}/{name}") for name in os.listdir(folder)}
    for name, out, weights in rows:
        more = ["--weights", weights] if weights else []
        refused = compile_model(f"{folder}/{name}", f"{folder}/{out}", *more, cwd=folder)
        check(f"{name} -o {out} {more}", None if refused and ("overwritten" in refused or "exists" in refused) else f"not refused: {refused}")
    after = {name: read(f"{folder}/{name}") for name in os.listdir(folder)}
    check("files that are there", None if before == after else f"they changed: {before.keys()} {after.keys()}")
    for _ in range(2):
        check("weights twice", compile_model(model, f"{folder}/a.o", "--weights", f"{folder}/a.weights"))
    if os.path.exists("/dev/full"):
        refused = compile_model(model, f"{folder}/b.o", "--weights", "/dev/full")
        check("a full disk", None if refused and "No space" in refused else f"the message is {refused}")
    check("what is left", None if not [n for n in os.listdir(folder) if "tmp" in n] else str(os.listdir(folder)))


def test_limits(work):
    """A compilation keeps to the limits of time and memory, and leaves no file."""
    axes = [w.tensor(7, [], struct.pack("=q", k), f"axis{k}") for k in range(2)]
    nodes = [w.node("CumSum", [f"t{k}", f"axis{k % 2}"], [f"t{k + 1}"]) for k in range(3000)]
    w.write(f"{work}/long.onnx", w.model(nodes, [w.value("t0", FLOAT, ["n", "m"])], [w.value("t3000", FLOAT, [None, None])], axes))
    for limit, value, text in ("--max-time", "0.1", "time limit"), ("--max-memory", "16M", "memory"):
        refused = compile_model(f"{work}/long.onnx", f"{work}/long.o", limit, value)
        check(f"{limit} {value}", None if refused and text in refused and "onnx-xla: " in refused else f"it is not refused: {refused}")
    check("files after a limit", "long.o is there" if os.path.exists(f"{work}/long.o") else None)


def test_same_bytes(model, work):
    """The same command writes the same bytes: again, on one processor only, and with a cache."""
    ways = {"again": ([], ["--no-cache"]), "cached": ([], ["--cache", f"{work}/cache"]), "cached again": ([], ["--cache", f"{work}/cache"])}
    if shutil.which("taskset"):
        ways["on one processor"] = (["taskset", "-c", str(min(os.sched_getaffinity(0)))], ["--no-cache"])
    kinds = {"plain": [], "open": ["--dim", "n=5"], "library": [], "weights": ["--weights", f"{work}/bytes.weights"]}
    if os.uname().machine == "x86_64":
        kinds["two processors"] = ["--cpu", "x86-64-v2,x86-64-v3"]
    for kind, more in kinds.items():
        path, first = f"{work}/bytes.{'a' if kind == 'library' else 'o'}", None
        for way, (before, how) in {"first": ([], ["--no-cache"]), **ways}.items():
            failure = run([*before, XLA, "compile", model, "-q", "-o", path, *how, *more])
            bytes_now = [read(p) for p in (path, f"{work}/bytes.h", more[1] if kind == "weights" else path)]
            first = first or bytes_now
            check(f"{kind}, {way}", failure or (None if bytes_now == first else "other bytes"))


def main():
    work = sys.argv[1]
    model = f"{work}/model.onnx"
    write_model(model)
    test_examples(model, work)
    test_overwriting(model, work)
    test_limits(work)
    test_same_bytes(model, work)
    failed = sum(1 for f in findings if f)
    print(f"{len(findings) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
