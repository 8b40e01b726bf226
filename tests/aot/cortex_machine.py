"""cortex_machine.py: a Cortex-M as a machine of machines.py: arm-none-eabi-gcc with newlib makes programs without an operating
system, and qemu emulates a board.  By semihosting they read their arguments and the host's files.
"""
import subprocess

import machines

START = f"{machines.HERE}/cortex_m"


BOARDS = {"mps2-an386": 0x21000000, "mps2-an500": 0x60000000}  # the addresses of 16 MiB of memory
# The triple and the compiler's options for a CPU.
CPUS = {
    "cortex-m0": ("thumbv6m-none-eabi", ["-mcpu=cortex-m0", "-mfloat-abi=soft"]),
    "cortex-m4": ("thumbv7em-none-eabihf", ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]),
    "cortex-m7": ("thumbv7em-none-eabihf", ["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"]),
}


class CortexM(machines.Machine):
    """A Cortex-M on a board that can run its code, with 16 MiB of memory."""

    small, bits = True, 32

    def __init__(self, cpu, board, more=()):
        triple, options = CPUS[cpu]
        cc = ["arm-none-eabi-gcc", "-mthumb", *options, "--specs=rdimon.specs", f"-Wl,--defsym=RAM={BOARDS[board]}",
              f"-T{START}/mps2.ld"]
        super().__init__(["--target", triple, "--cpu", cpu, *more], cc, ["qemu-system-arm", "-M", board, "-display", "none"])

    def has_c_library(self):
        return self.try_link(["-include", f"{START}/start.h"])

    def link(self, source, objects, program):
        strict = [x for x in machines.STRICT if x != "-std=c99"] + ["-std=gnu99", "-include", f"{START}/start.h"]
        done = machines.outcome([*self.cc, *strict, "-o", program, source, *objects, "-lm"])
        return done.stderr or "the C compiler failed" if done.returncode else None

    def run(self, program, number, files, timeout):
        arguments = ",".join(f"arg={x}" for x in (program, number, *files))
        command = [*self.emulator, "-kernel", program, "-semihosting-config", f"enable=on,target=native,{arguments}"]
        try:
            done = machines.outcome(command, self.slowness() * timeout)
        except subprocess.TimeoutExpired as e:
            raise machines.Failed("the program does not end") from e
        if done.returncode:
            raise machines.Failed((done.stdout + done.stderr).strip() or f"the program crashed: status {done.returncode}")
