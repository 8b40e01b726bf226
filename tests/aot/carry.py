"""carry.py WORK: objects that keep states from run to run (--carry), in a program that also uses them wrongly (carry.h)."""
import struct
import subprocess
import sys

import machines
import onnx_writer as w
import programs

FLOAT, INT64 = 1, 7
STREAM = ["--carry", "present=past,1", "--carry", "wider=wide,2", "--carry", "count=counted"]
SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"]


def concat(a, b, out, axis):
    return w.node("Concat", [a, b], [out], w.field(5, w.field(1, "axis") + w.field(3, axis) + w.field(20, 2)))


def stream_model():
    one = w.tensor(FLOAT, [], struct.pack("=f", 1), "one")
    axis = w.tensor(INT64, [1], struct.pack("=q", 1), "axis")
    nodes = [concat("past", "x", "present", 1), concat("wide", "z", "wider", 2), w.node("Add", ["counted", "one"], ["count"]),
             w.node("ReduceSum", ["present", "axis"], ["y"])]
    inputs = {"x": ["b", "n", 3], "past": ["b", "p", 3], "z": ["b", 2, "n"], "wide": ["b", 2, "q"], "counted": ["b"]}
    outputs = {"y": ["b", 1, 3], "present": ["b", None, 3], "wider": ["b", 2, None], "count": ["b"]}
    return w.model(nodes, [w.value(n, FLOAT, d) for n, d in inputs.items()],
                   [w.value(n, FLOAT, d) for n, d in outputs.items()], [one, axis])


def models():
    """Yields the names of the objects, their models, and how they are compiled."""
    yield "stream", stream_model(), STREAM
    yield "duo", stream_model(), [*STREAM, "--cpu", "x86-64,x86-64-v2"]
    values = {n: w.value(n, FLOAT, [4]) for n in ("x", "a", "b", "a2", "b2")}
    nodes = [w.node("Identity", ["b"], ["a2"]), w.node("Add", ["a", "x"], ["b2"])]
    swap = w.model(nodes, [values[n] for n in "xab"], [values["a2"], values["b2"]])
    yield "swap", swap, ["--carry", "a2=a", "--carry", "b2=b"]
    nodes = [w.node("ScatterElements", ["s", "i", "v"], ["s2"]), w.node("ReduceSum", ["s"], ["y"])]
    inputs = [w.value("s", FLOAT, [5]), w.value("i", INT64, [1]), w.value("v", FLOAT, [1])]
    yield "spot", w.model(nodes, inputs, [w.value("s2", FLOAT, [5]), w.value("y", FLOAT, [1])]), ["--carry", "s2=s"]


def run(command):
    """Runs the command; returns what it prints if it fails, otherwise None."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=300)
    return (done.stdout + done.stderr)[-3000:] or f"status {done.returncode}" if done.returncode else None


def main():
    work, objects, failed = sys.argv[1], [], 0
    for prefix, model, how in models():
        w.write(f"{work}/{prefix}.onnx", model)
        o = programs.Object(work, prefix)
        o.compile(f"{work}/{prefix}.onnx", (), how)
        objects.append(o)
        if o.failure:
            print(f"FAIL {prefix}: {o.failure}")
            return 1
    text = "".join(f'#include "{o.prefix}.h"\n' for o in objects) + f'#include "{programs.HERE}/mains/carry.h"\n'
    w.write(f"{work}/carry.c", text.encode())
    for flags in ([], SANITIZE):
        error = run([*machines.CC, *machines.STRICT, *flags, "-o", f"{work}/carry", f"{work}/carry.c",
                     *(o.path("o") for o in objects), "-lm"]) or run([f"{work}/carry"])
        failed += error is not None
        print(f"FAIL states with {flags}: {error}" if error else f"passed with {flags}")
    return 1 if failed else 0


sys.exit(main())
