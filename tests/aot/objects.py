"""objects.py DATA LIST LEAST WORK: ONNX's cases below the folder DATA as objects that are linked into C programs.

LIST has the cases that do not pass, with the causes; a listed case that passes is a failure, and so is a case in the list that
does not exist.  With UPDATE=1 set the list is written; a case with wrong numbers is written to it only if it was listed before.
SAMPLE=N takes every Nth case only.  LEAST is the number of cases that must pass if all are run.

With OPEN=1 set the models are changed: their inputs have open dimensions, and the objects are run for other sizes as well.
MACHINE=NAME compiles for a machine of machines.py and runs in an emulator; the status is 77 if its tools are missing.
"""
import concurrent.futures
import json
import os
import shutil
import sys

import elements
import machines
import onnx_files
import onnx_writer
import programs

RTOL, ATOL = 1e-3, 1e-7
IN_A_PROGRAM = 60
WORKERS = os.cpu_count() or 1
OPEN = "OPEN" in os.environ
MACHINE = machines.machine(os.environ.get("MACHINE", "native"))
OTHER_SIZES = (lambda d: 0, lambda d: 1, lambda d: 2 * d, lambda d: d + (d > 1))


class Case:
    """A case: its model, its tolerances, and what became of it: failure, whether only its numbers were
    wrong, and the number of runs for other sizes."""

    def __init__(self, number, name, folder):
        self.number, self.name, self.folder, self.model = number, name, folder, f"{folder}/model.onnx"
        self.rtol, self.atol, self.light, self.failure, self.differs, self.others = RTOL, ATOL, None, None, False, 0
        if os.path.exists(f"{folder}/data.json"):
            self.read_json()

    def read_json(self):
        with open(f"{self.folder}/data.json", encoding="utf-8") as f:
            said = json.load(f)
        self.rtol, self.atol = float(said.get("rtol", RTOL)), float(said.get("atol", ATOL))
        if not os.path.exists(self.model):
            self.model = f"{self.folder}/../../light/{os.path.basename(said['url'])}"
            self.light = f"{self.model[:-len('.onnx')]}_output"

    def sets(self):
        """Yields the inputs and the expected outputs of each data set."""
        if self.light:
            inputs, _ = onnx_files.read_model(self.model)
            folder, word = os.path.split(self.light)
            yield [onnx_files.light_input(v.dims) for v in inputs], onnx_files.read_tensors(folder, word)
            return
        k = 0
        while os.path.exists(folder := f"{self.folder}/test_data_set_{k}"):
            yield onnx_files.read_tensors(folder, "input"), onnx_files.read_tensors(folder, "output")
            k += 1

    def told(self):
        """Returns the names of the inputs and the files of their contents, of the first data set."""
        if self.light:
            return []
        inputs, _ = onnx_files.read_model(self.model)
        files = [f"{self.folder}/test_data_set_0/input_{k}.pb" for k in range(len(inputs))]
        return [(v.name, f) for v, f in zip(inputs, files) if v.is_tensor and os.path.exists(f)]

    def compile(self, folder):
        o = programs.Object(folder, f"c{self.number}", MACHINE)
        self.compiled = self.model
        if OPEN and not self.light:
            self.compiled = f"{folder}/{o.prefix}.onnx"
            onnx_writer.write(self.compiled, onnx_writer.opened(self.model))
        o.compile(self.compiled, self.told())
        if o.failure:
            self.failure = o.failure.replace(f"{self.compiled}: ", "").replace("onnx-xla: ", "").replace("error: ", "")
        return o

    def compare(self, outputs, expected):
        for k, (tensor, (dims, data)) in enumerate(zip(expected, outputs)):
            if tensor is None or dims != tensor.dims:
                raise programs.Failed(f"output {k}: the dimensions are {dims}, expected are {tensor and tensor.dims}")
            wrong = elements.difference(tensor.kind, data, tensor.data, self.rtol, self.atol)
            if wrong:
                self.differs = True
                raise programs.Failed(f"output {k}: {wrong}")

    def compare_sizes(self, program, o, inputs, path):
        """Runs an object for other sizes, and compares with onnx-xla run, unless one of both refuses these sizes."""
        try:
            outputs = programs.run(program, o, inputs, path)
        except programs.Failed as e:
            if "crash" in str(e):
                raise
            return
        sizes = [x.dims for x in inputs]
        expected = programs.run_model(self.compiled, [name for name, _ in self.told()], inputs, path)
        if isinstance(expected, str):
            raise programs.Failed(f"{sizes} are refused by onnx-xla run only: {expected}")
        try:
            self.compare(outputs, expected)
        except programs.Failed as e:
            raise programs.Failed(f"for {sizes}: {e}") from e
        self.others += 1

    def run(self, program, o, path):
        try:
            for inputs, expected in self.sets():
                self.compare(programs.run(program, o, inputs, path), expected)
                for size in OTHER_SIZES if any(kind == "dimension" for _, kind, _, _ in o.dims) else ():
                    self.compare_sizes(program, o, [resized(x, size) for x in inputs], path)
        except programs.Failed as e:
            self.failure = str(e).replace("\n", " ")


def resized(tensor, size):
    """Returns an array whose dimensions are those that size gives, with the same elements again and again."""
    if len(tensor.dims) < 2 or 0 in tensor.dims:
        return tensor
    out = onnx_files.Tensor(tensor.kind, [size(d) for d in tensor.dims], b"")
    bytes_wanted = out.elements() * (len(tensor.data) // tensor.elements())
    out.data = (tensor.data * (bytes_wanted // len(tensor.data) + 1))[:bytes_wanted]
    return out


def find_cases(data):
    cases = []
    for kind in sorted(os.listdir(data)):
        if MACHINE.small and kind in ("light", "real"):
            continue
        for name in sorted(os.listdir(f"{data}/{kind}")):
            folder = f"{data}/{kind}/{name}"
            if os.path.exists(f"{folder}/data.json") or os.path.exists(f"{folder}/model.onnx"):
                cases.append(Case(len(cases), f"{kind}/{name}", folder))
    return cases


def do_batch(work, number, cases):
    """Compiles the cases, links them and runs them."""
    folder = f"{work}/{number}"
    os.mkdir(folder)
    compiled = [(c, c.compile(folder)) for c in cases]
    compiled = [(c, o) for c, o in compiled if not o.failure]
    objects = [o for _, o in compiled]
    wrong = programs.check_symbols(objects) if objects else {}
    error = programs.link(objects, f"{folder}/program") if objects else None
    for c, o in compiled:
        c.failure = wrong.get(o.prefix) or (f"the program cannot be linked: {error[-2000:]}" if error else None)
        if not c.failure:
            c.run(f"{folder}/program", o, f"{folder}/data")
    if "KEEP" not in os.environ:
        shutil.rmtree(folder)


def read_list(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f]
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def write_list(path, cases, expected):
    with open(path, encoding="utf-8") as f:
        head = [line for line in f if line.startswith("#")]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(head)
        for c in cases:
            reason = expected.get(c.name) if c.differs else c.failure
            if c.failure and reason and "crash" not in reason:
                f.write(f"{c.name} {reason}\n")


def report(cases, expected, whole):
    """Prints what is not as expected and returns how many passed and how many failed."""
    passed = failed = listed = 0
    for c in cases:
        if c.failure and c.name in expected and "crash" not in c.failure:
            listed += 1
        elif c.failure:
            print(f"FAIL {c.name}: {c.failure}")
            failed += 1
        elif c.name in expected:
            print(f"FAIL {c.name}: passes, but is listed as a failure: {expected[c.name]}")
            failed += 1
        else:
            passed += 1
    for name in sorted(set(expected) - {c.name for c in cases}) if whole else ():
        print(f"FAIL {name}: listed, but there is no such case")
        failed += 1
    print(f"{len(cases)} cases, {listed} expected failures, {sum(c.others for c in cases)} runs for other sizes")
    return passed, failed


def main():
    data, path, least, work = sys.argv[1:]
    if missing := MACHINE.lacks():
        print(missing)
        return 77
    every = int(os.environ.get("SAMPLE", "1"))
    expected = read_list(path)
    cases = find_cases(data)[::every]
    batches = [cases[k:k + IN_A_PROGRAM] for k in range(0, len(cases), IN_A_PROGRAM)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(do_batch, work, k, batch) for k, batch in enumerate(batches)]:
            done.result()
    if "UPDATE" in os.environ:
        write_list(path, cases, expected)
        expected = read_list(path)
    passed, failed = report(cases, expected, every == 1)
    if every == 1 and passed < int(least):
        print(f"FAIL only {passed} cases passed; {least} are promised")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
