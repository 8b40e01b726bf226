"""table.py: the rows of frontend/operators/onnx_ops.def, as the tests of operator versions see them."""
import os
import re
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
FRONTEND = os.path.join(HERE, "..", "..", "frontend")


def text_of(*path):
    with open(os.path.join(FRONTEND, *path), encoding="utf-8") as f:
        return f.read()


def read():
    """{(domain, operator): {version: importer}}"""
    domains = dict(re.findall(r'^DOMAIN\((\w+), *"(.*)"\)$', text_of("model", "onnx_domains.def"), re.M))
    rows = defaultdict(dict)
    for m in re.finditer(r'^ONNX\((\w+), *"(\w+)", *(\d+),.*?(\w+)\)$', text_of("operators", "onnx_ops.def"), re.M):
        rows[domains[m[1]], m[2]][int(m[3])] = m[4]
    return rows


ROWS = read()


def has(row):
    op, _, version = row.rpartition("-")
    return int(version) in ROWS["", op]


def is_hole(op):
    """Returns whether the operator has a version that is not imported."""
    return "unsupported" in ROWS["", op].values()


def versions(domain, op):
    """Returns the versions of an operator that are imported, in order."""
    return sorted(v for v, importer in ROWS[domain, op].items() if importer != "unsupported")
