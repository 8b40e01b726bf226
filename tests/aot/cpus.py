"""cpus.py WORK: an object for several x86-64 CPUs runs the version that is best for the processor.

The sum of a row depends on the number of lanes, and a matrix product on whether operations are fused, so each CPU's code rounds
differently, and the bits of the results tell which version ran: they must be those of an object for this CPU only.  qemu emulates
lesser processors.
"""
import random
import re
import shutil
import struct
import sys

import machines
import onnx_files
import onnx_writer as w
import programs

FLOAT, INT64 = 1, 7
ROWS, COLUMNS = 5, 999
V2, V3, V4 = "x86-64-v2", "x86-64-v3", "x86-64-v4"
# The processors: the emulator with its options, and the CPUs whose code they run, the best last.
PROCESSORS = [
    ("Nehalem", ["qemu-x86_64", "-cpu", "Nehalem"], [V2]),
    ("Haswell", ["qemu-x86_64", "-cpu", "Haswell"], [V2, V3]),
]
findings = []


def check(what, failure):
    findings.append(failure)
    if failure:
        print(f"FAIL {what}: {failure}")


def random_floats(n):
    rng = random.Random(n)
    return struct.pack(f"={n}f", *(rng.uniform(-1, 1) for _ in range(n)))


def model():
    x, sums, product = w.value("x", FLOAT, [ROWS, COLUMNS]), w.value("sums", FLOAT, [ROWS]), w.value("product", FLOAT, [ROWS, 3])
    axes = w.tensor(INT64, [1], struct.pack("=q", 1), "axes")
    weights = w.tensor(FLOAT, [COLUMNS, 3], random_floats(COLUMNS * 3), "weights")
    keep = w.field(5, w.field(1, "keepdims") + w.field(3, 0) + w.field(20, 2))
    nodes = [w.node("ReduceSum", ["x", "axes"], ["sums"], keep), w.node("MatMul", ["x", "weights"], ["product"])]
    return w.model(nodes, [x], [sums, product], [axes, weights])


def native_features():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((set(line.split()) for line in f if line.startswith("flags")), set())


def native_cpus():
    """Returns the CPUs whose code this machine runs, the best last."""
    features = native_features()
    cpus = [(V2, {"sse4_2"}), (V3, {"avx2", "fma", "bmi2", "movbe"}), (V4, {"avx512f", "avx512bw", "avx512vl", "avx512dq"})]
    return [cpu for cpu, needed in cpus if needed <= features]


def has_emulator(program):
    """Returns whether qemu is there and knows AVX2."""
    if not shutil.which(program):
        return False
    version = re.search(r" version (\d+)\.(\d+)", machines.outcome([program, "--version"]).stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (7, 2)


class Objects:
    """A program with an object for each list of CPUs."""

    def __init__(self, work):
        self.program, self.by_cpus = f"{work}/program", {}
        w.write(f"{work}/model.onnx", model())
        for number, cpus in enumerate([[V2], [V3], [V4], [V2, V3], [V3, V4], [V2, V3, V4]]):
            o = self.by_cpus[",".join(cpus)] = programs.Object(work, f"c{number}")
            o.compile(f"{work}/model.onnx", (), ["--cpu", ",".join(cpus)])
            check(o.prefix, o.failure)
        check("the program", programs.link(list(self.by_cpus.values()), self.program))
        x = onnx_files.Tensor(FLOAT, [ROWS, COLUMNS], random_floats(ROWS * COLUMNS))
        self.inputs, self.path = [x], f"{work}/data"

    def run(self, cpus, processor):
        """Returns the bytes of the outputs, or the message if the object refuses the processor."""
        o = self.by_cpus[",".join(cpus)]
        o.machine = processor
        try:
            outputs = programs.run(self.program, o, self.inputs, self.path)
            return b"".join(data for _, data in outputs)
        except programs.Failed as e:
            return str(e)


def check_processor(objects, name, processor, can_run):
    alone = {cpu: objects.run([cpu], processor) for cpu in (V2, V3, V4)}
    for cpu, output in alone.items():
        if cpu in can_run:
            check(f"{name}, {cpu}", None if isinstance(output, bytes) else output)
        else:
            check(f"{name}, {cpu}", None if "processor" in str(output) else f"it gives {output}")
    for a in can_run:
        for b in can_run:
            check(f"{name}, {a} and {b}", "their results are equal" if a != b and alone[a] == alone[b] else None)
    for cpus in ([V2, V3], [V3, V4], [V2, V3, V4]):
        best = next((cpu for cpu in reversed(cpus) if cpu in can_run), V4)
        output = objects.run(cpus, processor)
        check(f"{name}, {cpus}", None if output == alone[best] else f"it does not run {best}: {output}")


def main():
    objects = Objects(sys.argv[1])
    for name, emulator, can_run in PROCESSORS:
        if has_emulator(emulator[0]):
            check_processor(objects, name, machines.Machine(emulator=emulator), can_run)
        else:
            print(f"there is no {emulator[0]} of version 7.2 or later")
    check_processor(objects, "this machine", machines.Machine(), native_cpus())
    failed = sum(1 for failure in findings if failure)
    print(f"{len(findings) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
