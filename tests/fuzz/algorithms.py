"""algorithms.py: a graph with each way of computing its contractions, which the log of measurements says.

The log (autotune/log.h) has a line a contraction: what was measured, and who won.  A line
that says that another one won, with a right sum at its end, makes the compiler take that."""

import ctypes
import os

LOG = "tuning.log"
SEED = 0x6C6F67  # of a line's sum


def sum_of(body):
    """base/hash.h's hash_bytes, which is XXH3."""
    xxhash = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    xxhash.restype, xxhash.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    return xxhash(body, len(body), SEED) & 0xFFFFFFFF


def read(folder):
    """The fields of each line."""
    try:
        with open(os.path.join(folder, LOG)) as f:
            return [line.rstrip("\n").split("\t") for line in f]
    except FileNotFoundError:  # there was no contraction
        return []


def measured(line):
    """Names of what was timed: "library:p2", "kernel"."""
    return [word.split("=")[0] for word in line[4].split(",") if "=" in word]


def candidates(lines):
    """All names that were measured and did not win everywhere."""
    return sorted({name for line in lines for name in measured(line) if name != line[3]})


def force(lines, name, folder):
    """A log where that one won wherever it was measured."""
    with open(os.path.join(folder, LOG), "w") as f:
        os.fchmod(f.fileno(), 0o600)
        for line in lines:
            winner = name if name in measured(line) else line[3]
            body = "\t".join(line[:3] + [winner] + line[4:6])
            f.write(f"{body}\t{sum_of(body.encode()):08x}\n")
