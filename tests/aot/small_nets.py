"""small_nets.py WORK MACHINE...: networks as they run on microcontrollers, as objects for the machines; the outputs are compared
with those of `onnx-xla run` on this machine.  A machine whose tools are missing is left out.  With --small the objects and their
arenas must be small, and --max-arena must refuse larger arenas.

- spotter: finds words in sound, a DS-CNN (Zhang et al. 2017, the keyword spotter of MLPerf Tiny) quantised to bytes, in QDQ form;
- digits: reads a digit in a picture of 28 by 28, two convolutions and two products in f32.

The weights are random.
"""
import os
import random
import re
import struct
import sys

import elements
import machines
import onnx_files
import onnx_writer as w
import programs

FLOAT, INT8, INT32, INT64 = 1, 3, 6, 7
SCALE = 0.05  # of all quantised values but weights


def ints(name, values):
    return w.field(5, w.field(1, name) + b"".join(w.field(8, v) for v in values) + w.field(20, 7))


def integer(name, value):
    return w.field(5, w.field(1, name) + w.field(3, value) + w.field(20, 2))


class Net:
    """A network while it is written: each function adds a node and returns the name of its result."""

    def __init__(self, seed):
        self.rng, self.nodes, self.constants = random.Random(seed), [], []

    def constant(self, kind, dims, data):
        self.constants.append(w.tensor(kind, dims, data, f"c{len(self.constants)}"))
        return f"c{len(self.constants) - 1}"

    def floats(self, dims, size):
        n = onnx_files.Tensor(FLOAT, dims, b"").elements()
        return self.constant(FLOAT, dims, struct.pack(f"={n}f", *(self.rng.gauss(0, size) for _ in range(n))))

    def scalar(self, x):
        return self.constant(FLOAT, [], struct.pack("=f", x))

    def node(self, op, inputs, attributes=b""):
        self.nodes.append(w.node(op, inputs, [f"v{len(self.nodes)}"], attributes))
        return f"v{len(self.nodes) - 1}"

    def quantized(self, x):
        """Rounds to bytes, and back."""
        zero = self.constant(INT8, [], b"\0")
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, self.scalar(SCALE), zero]), self.scalar(SCALE), zero])

    def byte_weights(self, dims):
        """Returns weights of which a sum of products is about as large as its operands."""
        taps = onnx_files.Tensor(INT8, dims[1:], b"").elements()
        data = bytes(self.rng.randrange(256) for _ in range(taps * dims[0]))
        self.scale = 1 / (74 * taps ** 0.5)
        return self.node("DequantizeLinear", [self.constant(INT8, dims, data), self.scalar(self.scale)])

    def bias(self, n):
        data = struct.pack(f"={n}i", *(self.rng.randrange(-500, 500) for _ in range(n)))
        return self.node("DequantizeLinear", [self.constant(INT32, [n], data), self.scalar(SCALE * self.scale)])

    def byte_convolution(self, x, dims, strides, pads, groups=1):
        weights = self.byte_weights(dims)
        attributes = ints("strides", strides) + ints("pads", pads) + integer("group", groups)
        return self.quantized(self.node("Relu", [self.node("Conv", [x, weights, self.bias(dims[0])], attributes)]))


def spotter():
    net, channels = Net(1), 64
    x = net.byte_convolution(net.quantized("x"), [channels, 1, 10, 4], [2, 2], [4, 1, 5, 1])
    for _ in range(4):
        x = net.byte_convolution(x, [channels, 1, 3, 3], [1, 1], [1, 1, 1, 1], channels)
        x = net.byte_convolution(x, [channels, channels, 1, 1], [1, 1], [0, 0, 0, 0])
    x = net.quantized(net.node("GlobalAveragePool", [x]))
    x = net.node("Flatten", [x])
    weights = net.byte_weights([12, channels])
    y = net.quantized(net.node("Gemm", [x, weights, net.bias(12)], integer("transB", 1)))
    return net, y, [1, 1, 49, 10], [1, 12]


def digits():
    net, x = Net(2), "x"
    for dims in ([8, 1, 5, 5], [16, 8, 5, 5]):
        x = net.node("Conv", [x, net.floats(dims, (dims[1] * 25) ** -0.5), net.floats(dims[:1], 0.1)])
        x = net.node("MaxPool", [net.node("Relu", [x])], ints("kernel_shape", [2, 2]) + ints("strides", [2, 2]))
    x = net.node("Relu", [net.node("Gemm", [net.node("Flatten", [x]), net.floats([256, 32], 0.06), net.floats([32], 0.1)])])
    return net, net.node("Gemm", [x, net.floats([32, 10], 0.2), net.floats([10], 0.1)]), [1, 1, 28, 28], [1, 10]


# A network, and by how much an output may differ: a byte may be rounded to the next one.
NETS = [("spotter", spotter, 1.01 * SCALE), ("digits", digits, 1e-5)]


def write(path, make):
    """Writes a model, whose input x has random contents, which are returned."""
    net, y, dims, out = make()
    net.nodes.append(w.node("Identity", [y], ["y"]))
    w.write(path, w.model(net.nodes, [w.value("x", FLOAT, dims)], [w.value("y", FLOAT, out)], net.constants))
    n = onnx_files.Tensor(FLOAT, dims, b"").elements()
    return onnx_files.Tensor(FLOAT, dims, struct.pack(f"={n}f", *(net.rng.gauss(0, 1) for _ in range(n))))


def compare(o, program, model, x, tolerance, path):
    """Returns what is wrong with an object's output, or None."""
    try:
        (dims, data), = programs.run(program, o, [x], path)
    except programs.Failed as e:
        return str(e)
    expected = programs.run_model(model, ["x"], [x], path)
    if isinstance(expected, str):
        return expected
    if len(set(elements.values(FLOAT, data))) < 5:
        return "the outputs are nearly all the same"
    return None if dims != expected[0].dims else elements.difference(FLOAT, data, expected[0].data, 0, tolerance)


def try_machine(name, machine, work):
    """Returns how many networks failed."""
    failed = 0
    for net, make, tolerance in NETS:
        path = f"{work}/{name}-{net}"
        x = write(f"{path}.onnx", make)
        o = programs.Object(work, f"{net}_{name.replace('-', '_')}", machine)
        o.compile(f"{path}.onnx")
        wrong = o.failure or programs.check_symbols([o]).get(o.prefix) or programs.link([o], path)
        wrong = wrong or compare(o, path, f"{path}.onnx", x, tolerance, path)
        if wrong:
            print(f"FAIL {net} on {name}: {wrong}")
            failed += 1
    return failed


CORTEX_M4 = ["--target", "thumbv7em-none-eabihf", "--cpu", "cortex-m4"]
# A network, and the bytes that its object and its arena have at most with --small.
MOST_BYTES = [("spotter", spotter, 48_000, 20_000), ("digits", digits, 60_000, 28_000)]


def compiled(work, prefix, *options):
    """Returns the message if a network is refused, the bytes of the object, and those of its arena, None if these are open."""
    o = programs.Object(work, prefix)
    o.compile(f"{work}/{prefix}.onnx", (), [*CORTEX_M4, *options])
    if o.failure:
        return o.failure, 0, None
    with open(o.path("h"), encoding="utf-8") as f:
        arena = re.search(r"_ARENA_BYTES \(\(size_t\)(\d+)u\)", f.read())
    return None, os.path.getsize(o.path("o")), arena and int(arena[1])


def wrong_sizes(work, prefix, make, most_object, most_arena):
    """Yields what is wrong with the sizes of a network's object and with --max-arena."""
    write(f"{work}/{prefix}.onnx", make)
    _, plain_object, plain_arena = compiled(work, prefix)
    _, small_object, small_arena = compiled(work, prefix, "--small")
    yield None if small_object <= min(most_object, plain_object) else f"the object has {small_object} bytes"
    yield None if small_arena <= min(most_arena, plain_arena) else f"the arena has {small_arena} bytes"
    yield compiled(work, prefix, "--small", f"--max-arena={small_arena}")[0]
    message = compiled(work, prefix, "--small", f"--max-arena={small_arena - 1}")[0] or ""
    listed = re.search(r"has (\d+) bytes, and (\d+) are allowed; the largest values in it are (.*)", message)
    is_right = listed and (int(listed[1]), int(listed[2])) == (small_arena, small_arena - 1) and "Conv" in listed[3]
    sizes = [int(n) for n in re.findall(r"(\d+) bytes for ", listed[3])] if listed else []
    yield None if is_right and len(sizes) == 3 and sizes == sorted(sizes, reverse=True) else f"the message is {message}"


def wrong_open(work):
    """Yields what is wrong with --max-arena where sizes are open."""
    x, y = (w.value(name, FLOAT, ["n"]) for name in "xy")
    w.write(f"{work}/relu.onnx", w.model([w.node("Relu", ["x"], ["y"])], [x], [y]))
    message = compiled(work, "relu", "--max-arena=1G")[0] or ""
    yield None if "depends on open dimensions" in message else f"the message is {message}"
    message = compiled(work, "relu", "--max-arena=1G", "--shape", "x=4")[0] or ""  # a shape is only likely
    yield None if "--dim sets" in message and "--shape" not in message else f"the message is {message}"
    yield compiled(work, "relu", "--max-arena=1G", "--dim", "n=4")[0]


def try_sizes(work):
    """Returns how many checks of sizes were made, and how many failed."""
    checks = [(net, wrong) for net, *row in MOST_BYTES for wrong in wrong_sizes(work, net, *row)]
    checks += [("open sizes", wrong) for wrong in wrong_open(work)]
    for net, wrong in checks:
        if wrong:
            print(f"FAIL {net}: {wrong}")
    return len(checks), sum(1 for _, wrong in checks if wrong)


def main():
    work, *names = sys.argv[1:]
    ran, failed = try_sizes(work)
    for name in names:
        machine = machines.machine(name)
        if missing := machine.lacks():
            print(f"{name}: {missing}")
            continue
        ran += len(NETS)
        failed += try_machine(name, machine, work)
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
