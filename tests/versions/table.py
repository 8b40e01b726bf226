"""table.py: the rows of frontend/import/onnx_ops.def, as the tests of operator versions see them."""
import os
import re
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
DEF = os.path.join(HERE, "..", "..", "frontend", "import", "onnx_ops.def")
DOMAINS = {"AI_ONNX": "", "PREVIEW": "ai.onnx.preview", "AI_ONNX_ML": "ai.onnx.ml", "TRAINING": "ai.onnx.preview.training"}


def read():
    """{(domain, operator): {version: importer}}"""
    rows = defaultdict(dict)
    with open(DEF, encoding="utf-8") as f:
        for m in re.finditer(r'^ONNX\((\w+), *"(\w+)", *(\d+),.*?(\w+)\)$', f.read(), re.M):
            rows[DOMAINS[m[1]], m[2]][int(m[3])] = m[4]
    return rows


ROWS = read()


def has(row):
    op, _, version = row.rpartition("-")
    return int(version) in ROWS["", op]


def is_hole(op):
    """Whether a version of it is not imported yet."""
    return "unsupported" in ROWS["", op].values()


def versions(domain, op):
    """The versions that are imported."""
    return sorted(v for v, importer in ROWS[domain, op].items() if importer != "unsupported")
