"""machines.py: the machines for which the tests compile objects, and how a program with objects is linked and run for each."""
import os
import re
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CC = os.environ.get("CC", "cc").split()
STRICT = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
# What an object may call: memory functions of C, and the functions of runtime/kernel_externals.def.
LIBC = {"memcpy", "memmove", "memset"}


class Failed(Exception):
    """A program that failed, or inputs that it cannot take."""


def libm_functions():
    with open(f"{HERE}/../../runtime/kernel_externals.def", encoding="utf-8") as f:
        return set(re.findall(r"^EXTERNAL\([^,]+, (\w+),", f.read(), re.M)) - {"onnx_xla_expired"}


def compiler_functions():
    """Returns the functions of the compiler's runtime library that objects for some machines of 32 bits may call."""
    with open(f"{HERE}/../../emit/llvm/compiler_calls.def", encoding="utf-8") as f:
        return set(re.findall(r"^COMPILER_CALL\((\w+),", f.read(), re.M))


def outcome(command, timeout=None):
    """Runs a command and returns what became of it."""
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout)


class Machine:
    """A machine: the options of `onnx-xla compile` for it, its C compiler, and the emulator with its options."""

    small, bits = False, 64  # whether it has little memory; the bits of an address

    def __init__(self, compile_options=(), cc=None, emulator=()):
        self.compile_options, self.cc, self.emulator = list(compile_options), cc or CC, list(emulator)

    def lacks(self):
        """Returns which tool is missing, or None."""
        for tool in (self.cc[0], *self.emulator[:1], "nm"):
            if not shutil.which(tool):
                return f"there is no {tool}"
        return None if self.has_c_library() else f"{self.cc[0]} has no C library"

    def has_c_library(self):
        return self.try_link([])

    def try_link(self, more):
        """Returns whether the compiler makes a program of a main function and more."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/main.c", "w", encoding="utf-8") as f:
                f.write("#include <stdlib.h>\nint main(void) { return abs(0); }\n")
            return outcome([*self.cc, "-o", f"{folder}/main", f"{folder}/main.c", *more, "-lm"]).returncode == 0

    def link(self, source, objects, program):
        """Links the file of C with the object files; returns an error message, or None."""
        done = outcome([*self.cc, *STRICT, "-o", program, source, *objects, "-lm"])
        return done.stderr or "the C compiler failed" if done.returncode else None

    def slowness(self):
        """Returns by how much longer a run may take than on this machine."""
        return 6 if self.emulator else 1

    def run(self, program, number, files, timeout):
        """Runs object `number` of a program with a file of inputs and one for the outputs."""
        try:
            done = outcome([*self.emulator, program, str(number), *files], self.slowness() * timeout)
        except subprocess.TimeoutExpired as e:
            raise Failed("the program does not end") from e
        if done.returncode:
            raise Failed(done.stderr.strip() if done.returncode == 1 else f"the program crashed: status {done.returncode}")

    def symbols(self, objects):
        """Yields for each global symbol of the object files the file, the letter of its kind, and its name."""
        return self.list_symbols(["nm", "-g", "-A", *objects])

    @staticmethod
    def list_symbols(command):
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in listed.stdout.splitlines():
            file, rest = line.split(":", 1)
            *_, kind, name = rest.split()
            yield file, kind, name

    def allowed(self):
        """Returns the names of the functions that objects may call."""
        return LIBC | libm_functions() | (compiler_functions() if self.bits == 32 else set())


def cross(triple, cpu, emulator):
    return Machine(["--target", triple, "--cpu", cpu], [f"{triple}-gcc", "-static"], emulator.split())


def armv7(cpu, emulator):
    m = Machine(["--target", "armv7-linux-gnueabihf", "--cpu", cpu], ["arm-linux-gnueabihf-gcc", "-static"], emulator.split())
    m.bits = 32
    return m


def wasm(cpu):
    import wasm_machine
    return wasm_machine.Wasm(cpu)


def cortex_m(cpu, board, more=()):
    import cortex_machine
    return cortex_machine.CortexM(cpu, board, more)


# Each machine has a name; those with "small" get small code (--small).  Debian's packages are qemu-user, gcc-NAME-linux-gnu and
# libc6-dev-NAME-cross; for armv7 gcc-arm-linux-gnueabihf.
MACHINES = {
    "native": Machine,
    "small": lambda: Machine(["--small"]),
    "aarch64": lambda: cross("aarch64-linux-gnu", "generic", "qemu-aarch64 -cpu cortex-a53"),
    "cortex-a76": lambda: cross("aarch64-linux-gnu", "cortex-a76", "qemu-aarch64 -cpu max"),
    "riscv64": lambda: cross("riscv64-linux-gnu", "generic-rv64", "qemu-riscv64"),
    "armv7": lambda: armv7("generic", "qemu-arm -cpu cortex-a9"),
    "wasm": lambda: wasm("generic"),
    "wasm-simd": lambda: wasm("simd128"),
    "cortex-m0": lambda: cortex_m("cortex-m0", "mps2-an386"),
    "cortex-m4": lambda: cortex_m("cortex-m4", "mps2-an386"),
    "cortex-m7": lambda: cortex_m("cortex-m7", "mps2-an500"),
    "cortex-m4-small": lambda: cortex_m("cortex-m4", "mps2-an386", ["--small"]),
}


def machine(name):
    return MACHINES[name]()
