"""programs.py: compiles models to objects and links several objects to a C program, whose main function is in run_case.h."""
import os
import re
import shutil
import struct
import subprocess

import machines
import onnx_files
import onnx_writer

HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = machines.machine("native")
Failed = machines.Failed


class Object:
    """An object as it was compiled: its prefix, and its open dimensions as the header describes them."""

    def __init__(self, folder, prefix, machine=NATIVE):
        self.folder, self.prefix, self.machine, self.number = folder, prefix, machine, None
        self.failure, self.dims = None, []

    def path(self, ending):
        return f"{self.folder}/{self.prefix}.{ending}"

    def compile(self, model, inputs=(), more=()):
        """Compiles the model for inputs, pairs of a name and a file; sets failure to the message if that is refused."""
        command = [os.environ["ONNX_XLA"], "compile", model, "-q", "--no-cache", "-o", self.path("o"), "--prefix", self.prefix]
        command += self.machine.compile_options
        for name, path in inputs:
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command + list(more), capture_output=True, text=True, errors="replace", check=False, timeout=600)
        if done.returncode == 0:
            self.read_header()
        elif done.returncode == 1:
            lines = done.stderr.strip().splitlines()
            self.failure = lines[-1] if lines else "no message"
        else:
            self.failure = f"crashed with status {done.returncode}: {done.stderr[-500:]}"

    def read_header(self):
        """Reads which dimensions are open: for each argument its name, `dimension` or `element`, a number and an input."""
        with open(self.path("h"), encoding="utf-8") as f:
            text = f.read()
        self.dims = [(name, kind, int(number), int(port)) for name, kind, number, port in re.findall(
            r"^ \* (dim_\w+): (dimension|element) (\d+) of input (\d+)", text, re.M)]

    def sizes(self, inputs):
        """Returns the arguments for the open dimensions, which depend on the inputs, tensors."""
        out = []
        for _, kind, number, port in self.dims:
            tensor = inputs[port]
            size = len(tensor.data) // max(1, tensor.elements())
            content = tensor.data[number * size:(number + 1) * size]
            out.append(tensor.dims[number] if kind == "dimension" else int.from_bytes(content, "little", signed=True))
        return out


ADAPTERS = """
static int {p}_case_init(void *n) {{ return {p}_init(({p} *)n, NULL); }}
static uint64_t {p}_case_arena_bytes(const int64_t *dims) {{ (void)dims; return {p}_arena_bytes({dims}); }}
static int {p}_case_bind(void *n, void *arena, const int64_t *dims) {{ (void)dims; return {p}_bind(({p} *)n, arena{more}); }}
static int {p}_case_run(void *n) {{ return {p}_run(({p} *)n); }}
static int {p}_case_set_input(void *n, uint32_t k, const void *m) {{ return {p}_set_input(({p} *)n, k, m); }}
static int {p}_case_set_output(void *n, uint32_t k, void *m) {{ return {p}_set_output(({p} *)n, k, m); }}
static void *{p}_case_input(void *n, uint32_t k) {{ return {p}_input(({p} *)n, k); }}
static void *{p}_case_output(void *n, uint32_t k) {{ return {p}_output(({p} *)n, k); }}
static int {p}_case_input_dims(const void *n, uint32_t k, int64_t *d) {{ return {p}_input_dims((const {p} *)n, k, d); }}
static int {p}_case_output_dims(const void *n, uint32_t k, int64_t *d) {{ return {p}_output_dims((const {p} *)n, k, d); }}
static void {p}_case_set_parallel(void *n, onnx_xla_parallel *f, void *u) {{ {p}_set_parallel(({p} *)n, f, u); }}
"""
FUNCTIONS = "run set_input set_output input output input_dims output_dims set_parallel".split()


def adapters(o):
    dims = ", ".join(f"dims[{k}]" for k in range(len(o.dims)))
    return ADAPTERS.format(p=o.prefix, dims=dims, more=", " + dims if dims else "")


def row(o):
    p, u = o.prefix, o.prefix.upper()
    functions = [f"{p}_case_init", f"{p}_case_arena_bytes", f"{p}_case_bind", f"{p}_case_run", f"{p}_error_text"]
    functions += [f"{p}_case_{name}" for name in FUNCTIONS[1:]]
    return f"  {{sizeof({p}), {len(o.dims)}, {u}_INPUTS, {u}_OUTPUTS, {p}_inputs, {p}_outputs, {', '.join(functions)}}},\n"


def glue(objects):
    """Returns the C program of the objects; object k of the list is number k for its main function."""
    text = "".join(f'#include "{o.prefix}.h"\n' for o in objects)
    text += f'#include "{HERE}/mains/run_case.h"\n' + "".join(adapters(o) for o in objects)
    text += "\nstatic const object_case cases[] = {\n" + "".join(row(o) for o in objects) + "};\n"
    return text + "\nint main(int argc, char **argv) { return run_cases(cases, argc, argv); }\n"


def link(objects, path):
    """Links the objects, which are for one machine, to a program; returns an error message, or None."""
    with open(f"{path}.c", "w", encoding="utf-8") as f:
        f.write(glue(objects))
    for k, o in enumerate(objects):
        o.number = k
    return objects[0].machine.link(f"{path}.c", [o.path("o") for o in objects], path)


def check_symbols(objects):
    """Returns for each prefix of an object with wrong symbols what is wrong."""
    machine, wrong = objects[0].machine, {}
    allowed = machine.allowed()
    for file, kind, name in machine.symbols([o.path("o") for o in objects]):
        prefix = os.path.basename(file)[:-2]
        if kind == "U" and name not in allowed:
            wrong[prefix] = f"the object calls {name}"
        elif kind != "U" and name != prefix and not name.startswith(prefix + "_"):
            wrong[prefix] = f"the object defines {name}, which has not its prefix"
    return wrong


def run(program, o, inputs, path, timeout=120):
    """Runs an object of a program on tensors; returns pairs of dimensions and bytes."""
    dims = o.sizes(inputs)
    with open(f"{path}.in", "wb") as f:
        f.write(struct.pack(f"={len(dims) + 2}q", len(dims), *dims, len(inputs)))
        for tensor in inputs:
            f.write(struct.pack(f"={len(tensor.dims) + 2}q", len(tensor.dims), *tensor.dims, len(tensor.data)) + tensor.data)
    o.machine.run(program, o.number, (f"{path}.in", f"{path}.out"), timeout)
    return read_outputs(f"{path}.out")


def read_outputs(path):
    out, at = [], 0
    with open(path, "rb") as f:
        data = f.read()
    while at < len(data):
        rank, = struct.unpack_from("=q", data, at)
        dims = list(struct.unpack_from(f"={rank}q", data, at + 8))
        n, = struct.unpack_from("=q", data, at + 8 + 8 * rank)
        at += 16 + 8 * rank
        out.append((dims, data[at:at + n]))
        at += n
    return out


def run_model(model, names, inputs, path):
    """Returns the outputs of onnx-xla run, tensors, or its message if it fails."""
    folder = f"{path}.run"
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    command = [os.environ["ONNX_XLA"], "run", model, "-q", "-t", "1", "--no-cache", "--seed", "0", "-O", folder]
    for k, (name, x) in enumerate(zip(names, inputs)):
        onnx_writer.write(f"{folder}/in_{k}.pb", onnx_writer.tensor(x.kind, x.dims, x.packed()))
        command += ["--input", f"{name}={folder}/in_{k}.pb"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stderr.strip() if done.returncode else onnx_files.read_tensors(folder, "output")
