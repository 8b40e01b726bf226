"""algorithms.py: makes the compiler compute a graph's contractions by a given algorithm, by way of the log of measurements.

The log (autotune/log.h) has a line for each contraction: the configs that were measured, and the one that won.  If a line
is changed to say that another config won, and its checksum is made right, the compiler takes that config."""

import ctypes
import os

LOG = "tuning.log"
SEED = 0x6C6F67  # of a line's checksum


def sum_of(body):
    """Returns the checksum of a line: base/hash.h's hash_bytes, which is XXH3."""
    xxhash = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    xxhash.restype, xxhash.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    return xxhash(body, len(body), SEED) & 0xFFFFFFFF


def read(folder):
    """Returns the fields of each line of the log in the folder."""
    try:
        with open(os.path.join(folder, LOG)) as f:
            return [line.rstrip("\n").split("\t") for line in f]
    except FileNotFoundError:  # there was no contraction
        return []


def measured(line):
    """Returns the names of the configs that were timed, such as "library:p2" and "kernel"."""
    return [word.split("=")[0] for word in line[4].split(",") if "=" in word]


def candidates(lines):
    """Returns the names of all configs that were measured and did not win for every contraction."""
    return sorted({name for line in lines for name in measured(line) if name != line[3]})


def force(lines, name, folder):
    """Writes a log in which the config `name` won wherever it was measured."""
    with open(os.path.join(folder, LOG), "w") as f:
        os.fchmod(f.fileno(), 0o600)
        for line in lines:
            winner = name if name in measured(line) else line[3]
            body = "\t".join(line[:3] + [winner] + line[4:6])
            f.write(f"{body}\t{sum_of(body.encode()):08x}\n")
