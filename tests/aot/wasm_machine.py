"""wasm_machine.py: WebAssembly as a machine of machines.py: clang and wasm-ld make modules, which wasmtime runs in this process.

The modules have no C library but the headers in wasm/, and their files are in their memory.  The mathematical functions that
objects call are Python's.
"""
import fractions
import importlib.util
import math
import shutil
import struct
import threading

import machines

FILE_IN, FILE_OUT, FILE_MESSAGES = range(3)


def whole(function):
    """Returns a rounding function with C's results, floats, NaN and zeros of both signs, from one of Python's, which gives
    integers."""
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def away_from_zero(x):
    return math.floor(abs(x) + 0.5)


def fma(x, y, z):
    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    return float(fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z))


# Functions of C that Python lacks, or that give other results in Python.
OF_C = {"floor": whole(math.floor), "ceil": whole(math.ceil), "trunc": whole(math.trunc), "rint": whole(round),
        "nearbyint": whole(round), "roundeven": whole(round), "round": whole(away_from_zero), "fma": fma,
        "exp2": lambda x: math.pow(2, x)}


def c_function(name):
    """Returns a function of math.h."""
    base = name[:-1] if name.endswith("f") and name != "erf" else name
    function = OF_C.get(base) or getattr(math, base)

    def call(*args):
        try:
            return float(function(*args))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan
    return call


class Wasm(machines.Machine):
    """WebAssembly with a CPU, which says whether there are vectors."""

    def __init__(self, cpu):
        super().__init__(["--target", "wasm32-unknown-unknown", "--cpu", cpu], ["clang", "--target=wasm32-unknown-unknown"])
        self.lock, self.modules = threading.Lock(), {}

    def lacks(self):
        for tool in ("clang", "wasm-ld", "llvm-nm"):
            if not shutil.which(tool):
                return f"there is no {tool}"
        return None if importlib.util.find_spec("wasmtime") else "there is no wasmtime for Python: run tests/fetch-data --wasm"

    def link(self, source, objects, program):
        linker = ["--no-entry", "--allow-undefined", "--export=__main_argc_argv", "--export=malloc", "-z,stack-size=1048576"]
        options = ["-nostdlib", "-fno-builtin", "-O1", "-isystem", f"{machines.HERE}/wasm", *(f"-Wl,{x}" for x in linker)]
        done = machines.outcome([*self.cc, *machines.STRICT, *options, "-o", program, source, *objects])
        return done.stderr or "clang failed" if done.returncode else None

    def symbols(self, objects):
        """Yields what it yields for other machines, without the memory, the stack and the table, which every object has."""
        for file, kind, name in self.list_symbols(["llvm-nm", "-g", "-A", *objects]):
            if not name.startswith("__"):
                yield file, kind, name

    def run(self, program, number, files, timeout):
        engine, store, exports = self.start(program)
        with open(files[0], "rb") as f:
            data = f.read()
        at = exports["make_file"](store, FILE_IN, len(data))
        exports["memory"].write(store, data, at)
        timer = threading.Timer(6 * timeout, engine.increment_epoch)
        timer.start()
        try:
            self.call_main(store, exports, number)
        finally:
            timer.cancel()
        with open(files[1], "wb") as f:
            f.write(self.read(store, exports, FILE_OUT))

    @staticmethod
    def read(store, exports, file):
        at, size = exports["file_bytes"](store, file), exports["file_size"](store, file)
        return bytes(exports["memory"].read(store, at, at + size))

    def call_main(self, store, exports, number):
        """Calls the main function with the number of the object and two names of files, which it does not need."""
        import wasmtime
        argv = exports["malloc"](store, 64)
        exports["memory"].write(store, struct.pack("<4I", *(argv + 16,) * 4) + str(number).encode() + b"\0", argv)
        try:
            exports["__main_argc_argv"](store, 4, argv)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as e:
            store.set_epoch_deadline(1)
            message = self.read(store, exports, FILE_MESSAGES).decode(errors="replace").strip()
            raise machines.Failed(message or f"the program crashed: {e}") from e

    def start(self, program):
        """Returns a store and what a new instance of the module in the file exports, and their engine, which is the program's own:
        its epoch ends a run that takes too long."""
        import wasmtime
        with self.lock:
            if program not in self.modules:
                config = wasmtime.Config()
                config.epoch_interruption = True
                self.modules[program] = wasmtime.Module.from_file(engine := wasmtime.Engine(config), program), engine
            module, engine = self.modules[program]
        store = wasmtime.Store(engine)
        store.set_epoch_deadline(1)
        imports = [wasmtime.Func(store, i.type, c_function(i.name)) for i in module.imports]
        return engine, store, wasmtime.Instance(store, module, imports).exports(store)
