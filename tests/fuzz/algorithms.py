"""algorithms.py: a graph with each way of computing its contractions, which the log of measurements says.

The log (backend_cpu/compile_tune_log.h) has a line a contraction: what was measured, and who won.  A line
that says that another one won, with a right sum at its end, makes the compiler take that."""

import os

MASK = (1 << 64) - 1
K0, K1, K2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F
LOG = "tuning.log"


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def hash_bytes(data, seed):
    """base/hash.h's."""
    h, at = seed ^ fold(seed ^ K0, len(data) ^ K1), 0
    while len(data) - at >= 16:
        low, high = (int.from_bytes(data[k : k + 8], "little") for k in (at, at + 8))
        h, at = fold(low ^ K1, high ^ h), at + 16
    low, high = (int.from_bytes(data[k : min(k + 8, len(data))], "little") for k in (at, at + 8))
    return fold(fold(low ^ K2, high ^ h), K0 ^ len(data))


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
            f.write(f"{body}\t{hash_bytes(body.encode(), 0x6C6F67) & 0xFFFFFFFF:08x}\n")
