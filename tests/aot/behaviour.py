"""behaviour.py WORK: small models as objects, in a program that uses them wrongly and in threads (behaviour.h), and with names
that no C program could have.
"""
import os
import struct
import subprocess
import sys
import time

import machines
import onnx_writer as w
import programs

FLOAT, INT64 = 1, 7
CXX = os.environ.get("CXX", "g++").split()
CXX_STRICT = ["-std=c++11", "-DONNX_XLA_POOL", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", "c++"]
POSIX = ["-D_POSIX_C_SOURCE=200809L", "-pthread"]
ADDRESS, THREAD = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"], ["-g", "-fsanitize=thread"]
findings = []


def check(what, failure):
    findings.append(failure)
    if failure:
        print(f"FAIL {what}: {failure}")


def run(command):
    """Returns what the command prints if it fails, otherwise None."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=300)
    return (done.stdout + done.stderr)[-3000:] or f"status {done.returncode}" if done.returncode else None


def attribute(name, values):
    return w.field(5, w.field(1, name) + b"".join(w.field(8, v) for v in values) + w.field(20, 7))


def models():
    """Yields the names and the models of behaviour.h."""
    a, b, y = (w.value(name, FLOAT, [3, 5]) for name in "aby")
    yield "still", w.model([w.node("Tanh", ["a"], ["t"]), w.node("Add", ["t", "b"], ["y"])], [a, b], [y])
    pool = w.node("AveragePool", ["x"], ["y"], attribute("kernel_shape", [3]))
    yield "open", w.model([pool], [w.value("x", FLOAT, [1, 1, "n"])], [w.value("y", FLOAT, [1, 1, None])])
    some = w.node("NonZero", ["x"], ["y"])
    yield "some", w.model([some], [w.value("x", FLOAT, [2, 3])], [w.value("y", INT64, [2, None])])
    inputs = [w.value("x", FLOAT, [5]), w.value("index", INT64, [1]), w.value("value", FLOAT, [1])]
    yield "update", w.model([w.node("ScatterElements", ["x", "index", "value"], ["y"])], inputs, [w.value("y", FLOAT, [5])])
    inputs, outputs = ([w.value(f"{word}{k}", FLOAT, [64, 500]) for k in range(6)] for word in "xy")
    yield "group", w.model([w.node("Tanh", [f"x{k}"], [f"y{k}"]) for k in range(6)], inputs, outputs)
    table = w.tensor(FLOAT, [100], struct.pack("=100f", *range(100)), "table")
    apart = w.node("Gather", ["table", "index"], ["y"])
    yield "apart", w.model([apart], [w.value("index", INT64, [2])], [w.value("y", FLOAT, [2])], [table])
    inputs = [w.value("data", FLOAT, [5]), w.value("index", INT64, [2])]
    yield "pick", w.model([w.node("Gather", ["data", "index"], ["y"])], inputs, [w.value("y", FLOAT, [2])])
    square = w.node("MatMul", ["x", "x"], ["y"])
    yield "square", w.model([square], [w.value("x", FLOAT, [2, 2])], [w.value("y", FLOAT, [2, 2])])


def compile_model(work, prefix, model, more=()):
    w.write(f"{work}/{prefix}.onnx", model)
    o = programs.Object(work, prefix)
    o.compile(f"{work}/{prefix}.onnx", (), more)
    check(prefix, o.failure)
    return o


def works(work, flags):
    """Returns whether programs can be compiled with these flags and run."""
    w.write(f"{work}/empty.c", b"int main(void) { return 0; }\n")
    return not run([*machines.CC, *flags, "-o", f"{work}/empty", f"{work}/empty.c"]) and not run([f"{work}/empty"])


def test_behaviour(work):
    weights = f"{work}/weights"
    more = {"apart": ["--weights", weights], "group": ["--threads", "2"]}
    objects = [compile_model(work, name, model, more.get(name, ())) for name, model in models()]
    for prefix, failure in programs.check_symbols(objects).items():
        check(prefix, failure)
    text = "#define ONNX_XLA_POOL\n" + "".join(f'#include "{o.prefix}.h"\n' for o in objects) + f'#include "{programs.HERE}/mains/behaviour.h"\n'
    w.write(f"{work}/behaviour.c", text.encode())
    files = [f"{work}/behaviour.c", *(o.path("o") for o in objects), "-lm"]
    for flags in ([], ADDRESS, THREAD):
        if not works(work, flags):
            print(f"no programs with {' '.join(flags)} here")
            continue
        program = f"{work}/behaviour"
        check(f"behaviour with {flags}", run([*machines.CC, *machines.STRICT, *POSIX, *flags, "-o", program, *files]) or run([program, weights]))


def peak_megabytes(command):
    """Runs the command; returns its peak of memory in megabytes, as it was last read while the command ran."""
    peak = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
                peak = max([peak, *(int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM:"))])
            time.sleep(0.002)
    return peak


def test_memory(work, megabytes=96):
    """Compiling needs memory for the model and for the object, not for the copies of the weights that LLVM would make."""
    table = w.tensor(FLOAT, [megabytes << 18], struct.pack("=4096f", *range(4096)) * (megabytes << 6), "table")
    nodes = [w.node("Gather", ["table", "index"], ["y"])]
    w.write(f"{work}/large.onnx", w.model(nodes, [w.value("index", INT64, [2])], [w.value("y", FLOAT, [2])], [table]))
    small, large = (peak_megabytes([os.environ["ONNX_XLA"], "compile", "-q", "--no-cache", f"{work}/{name}.onnx", "-o", f"{work}/{name}.o"])
                    for name in ("apart", "large"))
    grown = large - small
    check("memory", f"{grown} MB for {megabytes} MB of weights" if not megabytes < grown < 4 * megabytes else None)


LONG = "x" * 5000
NAMES = [
    ["a b", "a-b", "A.B", "a_b", "a_b_2"],
    ['"', "\\", "'", "\n", "\r\n\t"],
    ["*/ int x; /*", "//", "/*", "??/", "%s%n"],
    ["int", "class", "1st", "_", "__"],
    ["\u00fc", "\u00f6", "\u4e2d\u6587", "\U0001f600", "\u202e"],
    [LONG, LONG + "1", LONG + "2", "x", "X"],
    ["put", "put_dims", "puts", "it", "fo"],
    ["align", "arena_bytes", "ok", "error_cpu", "run"],
    ["elements", "dim0", "x_elements", "x_dim0", "x"],
]


def hostile_model(names):
    """Returns a model whose inputs, outputs and open dimensions have these names, which must be different."""
    inputs = [w.value(n, FLOAT, [n, 3, n + "d" if k else None]) for k, n in enumerate(names)]
    nodes = [w.node("Neg", [n], [n + "y"]) for n in names]
    return w.model(nodes, inputs, [w.value(n + "y", FLOAT, [None, 3, None]) for n in names], name=names[0])


def test_names(work):
    objects = [compile_model(work, f"names{k}", hostile_model(names)) for k, names in enumerate(NAMES)]
    objects = [o for o in objects if not o.failure]
    for prefix, failure in programs.check_symbols(objects).items():
        check(prefix, failure)
    text = "".join(f'#include "{o.prefix}.h"\n' for o in objects)
    text += "int main(void) {\n" + "".join(f"  {o.prefix} n{k};\n  if ({o.prefix}_init(&n{k}, 0)) return 1;\n"
                                           for k, o in enumerate(objects)) + "  return 0;\n}\n"
    w.write(f"{work}/names.c", text.encode())
    files = [o.path("o") for o in objects]
    check("names in C", run([*machines.CC, *machines.STRICT, "-o", f"{work}/names", f"{work}/names.c", *files, "-lm"])
          or run([f"{work}/names"]))
    check("names in C++", run([*CXX, *CXX_STRICT, "-c", "-o", f"{work}/names.cc.o", f"{work}/names.c"])
          or run([*CXX, "-o", f"{work}/names_cxx", f"{work}/names.cc.o", *files, "-lm"]) or run([f"{work}/names_cxx"]))


def test_prefixes(work):
    """Names of C and C++ are no prefixes; a file may have any name."""
    model = f"{work}/still.onnx"
    for prefix in ("int", "class", "main", "_Bool", "linux", "onnx_xla_pool", "1st", "a-b", "", "\u00fc", "a" * 3000):
        o = programs.Object(work, "prefix")
        o.compile(model, (), ["--prefix", prefix])
        good = prefix == "a" * 3000
        check(f"the prefix {prefix[:20]!r}", None if bool(o.failure) != good else o.failure or "it is not refused")
    for name in ("int.o", "unix.o", "class.o", "1st.o", "a b.o", "\u00fc.o", "*.o", '".o', ".o", "a.b.o"):
        folder = f"{work}/files"
        os.makedirs(folder, exist_ok=True)
        failure = run([os.environ["ONNX_XLA"], "compile", model, "-q", "--no-cache", "-o", f"{folder}/{name}"])
        header = f"{folder}/{name[:-2]}.h"
        check(f"the file {name}", failure or run([*machines.CC, *machines.STRICT, "-fsyntax-only", "-x", "c", header])
              or run([*CXX, *CXX_STRICT, "-fsyntax-only", header]))


def test_pinned(work):
    """A node that adds 64 numbers to n numbers makes n 64.  An object that is for one size only must not be written where one for a
    range was asked for, and otherwise the report says that it is."""
    numbers = w.tensor(FLOAT, [64], bytes(4 * 64), "numbers")
    only = "the model is for one set of sizes only: n = 64 (plus"
    rows = [(["n"], [], only, True), (["n"], ["--dim", "n=1..64"], only, False), (["n"], ["--dim", "n=64"], "kernels", True),
            (["m", "n"], [], "for all sizes but n = 64\nsymbol            m: x[0]\npin               n = 64: plus", True), (["m", "n"], ["--dim", "n=1..64"], "no object serves the whole range of n: n = 64 (plus", False),
            (["m", "n"], ["--dim", "m=1..9"], "guard             m <= 9", True)]
    for dims, more, text, is_written in rows:
        plus = w.node("Add", ["x", "numbers"], ["y"], w.field(3, "plus"))
        w.write(f"{work}/plus.onnx", w.model([plus], [w.value("x", FLOAT, dims)], [w.value("y", FLOAT, dims)], [numbers]))
        command = [os.environ["ONNX_XLA"], "compile", f"{work}/plus.onnx", "--no-cache", "-o", f"{work}/plus.o", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        good = text in done.stdout + done.stderr and done.returncode == (0 if is_written else 1)
        check(f"pinned {dims} {more}", None if good else done.stdout + done.stderr)
        done = subprocess.run([os.environ["ONNX_XLA"], "check", f"{work}/plus.onnx"], capture_output=True, text=True, check=False, timeout=300)
        good = ("one program can serve all sizes" in done.stdout) == (dims != ["n"])
        check(f"the sizes of {dims}", None if good else done.stdout)


def main():
    work = sys.argv[1]
    test_behaviour(work)
    if os.path.exists("/proc/self/status"):
        test_memory(work)
    test_names(work)
    test_prefixes(work)
    test_pinned(work)
    failed = sum(1 for f in findings if f)
    print(f"{len(findings) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
