"""faults: what a planted fault is.

An edit is (file, old, new): a text that occurs exactly once in the file, and what replaces it when the fault is
switched on.  The text is a whole statement or an expression.  If text around the expression is needed to find it, the
expression is in «...»."""

import collections
import os
import zlib

Edit = collections.namedtuple("Edit", "file old new")
# runs: the ways of running a graph that can show the fault: arguments of check.run_one, "saved" for check.run_saved, "algorithms"
# for check.run_algorithms, "sizes" and "saved-sizes" for general.run_one
Fault = collections.namedtuple("Fault", "name breaks edits runs")

CPU = ({"backend": "cpu"},)
SAVED, ALGORITHMS = ("saved",), ({"backend": "cpu"}, "algorithms")
THREADS = ({"threads": 3}, {"threads": 8})
GPU = ({"backend": "gpu:host"},)
SIZES, SAVED_SIZES = ("sizes",), ("saved-sizes",)  # graphs at several sizes (general.py)
# The switches are bytes in the memory of the process that hunts, whose address is in the environment variable PLANTED.  Bit 2 says
# whether the fault is on, bit 1 whether its place in the code was reached.
SWITCHES = 1 << 16
ON_TOP = """#include <stdlib.h>
static inline int planted(unsigned number) {
  const char *address = getenv("PLANTED");
  volatile unsigned char *all = address ? (unsigned char *)strtoull(address, NULL, 10) : NULL;
  return all && (all[number] |= 1) & 2;
}
"""


def number(name):
    """Returns the number of the fault's switch."""
    return zlib.crc32(name.encode()) % SWITCHES


def fault(name, breaks, *edits, runs=CPU):
    return Fault(name, breaks, [Edit(*e) for e in edits], runs)


def plain(text):
    return text.replace("«", "").replace("»", "")


def switched(name, edit):
    """Returns the text that replaces plain(edit.old)."""
    before, old, after = "", edit.old, ""
    if "«" in old:
        before, rest = old.split("«")
        old, after = rest.split("»")
    if old.rstrip().endswith(";"):
        return f"{before}if (planted({number(name)})) {{ {edit.new} }} else {{ {old} }}{after}"
    return f"{before}(planted({number(name)}) ? ({edit.new}) : ({old})){after}"


def read(path):
    with open(path) as f:
        return f.read()


def check_table(sources, table):
    """Returns what is wrong with the table: the faults whose text is not found in the sources, or found twice."""
    wrong = []
    for f in table:
        for edit in f.edits:
            n = read(os.path.join(sources, edit.file)).count(plain(edit.old))
            if n != 1:
                wrong.append(f"{f.name}: its text stands {n} times in {edit.file}")
    if len({number(f.name) for f in table}) != len(table):
        wrong.append("two faults have one name, or one switch")
    return wrong


def plant(sources, table):
    """Puts all faults into the sources, each behind a switch."""
    for file in sorted({edit.file for f in table for edit in f.edits}):
        path = os.path.join(sources, file)
        text = read(path)
        for f in table:
            for edit in f.edits:
                if edit.file == file:
                    text = text.replace(plain(edit.old), switched(f.name, edit))
        with open(path, "w") as out:
            out.write(ON_TOP + text)
