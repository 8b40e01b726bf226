"""write_cases.py FOLDER: writes the cases of old (and new) operator versions below FOLDER, as `onnx-xla test` wants them.

Each row of frontend/operators/onnx_ops.def that is not the newest of its operator, or whose operator ONNX removed, needs a case
or a reason in the file `exceptions`; else the run fails.  It fails too if a description has no version or cannot be written."""
import importlib
import glob
import os
import sys

import onnx

import case
import table

HERE = os.path.dirname(os.path.abspath(__file__))


def read_exceptions():
    """Returns {row: reason} from the file `exceptions`, whose lines are a row (Operator-version) and a reason."""
    with open(os.path.join(HERE, "exceptions"), encoding="utf-8") as f:
        lines = [line.split(None, 1) for line in f if line.strip() and not line.startswith("#")]
    return {row: reason for row, reason in lines}


def old_rows():
    """Yields the rows that are not the newest of their operator, and all rows of operators that ONNX removed; rows that are not
    imported are left out."""
    for (domain, op), versions in table.ROWS.items():
        if domain in ("", "ai.onnx.preview"):
            known = onnx.defs.has(op, domain) or max(versions) > onnx.defs.onnx_opset_version()
            for v in sorted(versions)[: -1 if known else None]:
                if versions[v] != "unsupported":
                    yield f"{op}-{v}"


def check_coverage(covered):
    exceptions = read_exceptions()
    rows = list(old_rows())
    bad = [f"{row}: has no case" for row in rows if row not in covered and row not in exceptions]
    bad += [f"{row}: has a case and an exception" for row in exceptions if row in covered]
    bad += [f"{row}: has an exception, but is no row" for row in exceptions if not table.has(row)]
    print(f"{len(rows)} old rows, {sum(row in covered for row in rows)} with cases")
    return bad


def write_all(folder):
    bad, covered, n = [], set(), 0
    for c in case.CASES:
        if not c.versions() and not table.is_hole(c.op):
            bad.append(f"{c.op} {c.name}: holds for no version")
        for v in c.versions():
            try:
                case.write(c, v, folder)
                covered.add(f"{c.op}-{v}")
                n += 1
            except Exception as e:  # whatever the checker, ONNX Runtime or numpy say is a failure of this case
                bad.append(f"{c.op}-{v} {c.name}: {type(e).__name__}: {str(e).strip()[:300]}")
    print(f"{n} cases written")
    return bad + check_coverage(covered)


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "cases_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    bad = write_all(sys.argv[1])
    for line in bad:
        print(f"FAIL {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
