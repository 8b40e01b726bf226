"""page.py: the results as lines and as doc/models.md."""

import collections


def line(row):
    numbers = ""
    if "nodes" in row:
        numbers = f"{row['nodes']} nodes, {row['sizes']} sizes, off by {row['error']:.0e} of {row['scale']:.2g}, {row['seconds']:.1f} s"
    return f"{row['name']}: {row['status']}" + "".join(f"; {part}" for part in (numbers, row.get("detail")) if part)


def write(path, rows):
    counts = collections.Counter(row["status"] for row in rows)
    with open(path, "w") as out:
        out.write(HEAD.format(total=len(rows), counts=", ".join(f"{n} {status}" for status, n in counts.most_common())))
        for family in sorted({row["name"].split("/")[0] for row in rows}):
            out.write(f"\n## {family}\n\n| model | status | nodes | operators | sizes | off by |\n|---|---|---|---|---|---|\n")
            for row in sorted(rows, key=lambda r: r["name"]):
                if row["name"].split("/")[0] == family:
                    status = row["status"] + (f": {row['detail']}" if row.get("detail") else "")
                    out.write(
                        f"| {row['name'].split('/', 1)[1]} | {status} | {row.get('nodes', '')} | {row.get('operators', '')}"
                        f" | {row.get('sizes', '')} | {row.get('error', 0):.0e} |\n"
                    )


HEAD = """# Architectures

Networks as PyTorch exports them, small and with random weights, in onnx-xla and in ONNX Runtime without its optimiser
(tests/models/README says how). {total} models: {counts}.

"nodes" and "operators" are those of the ONNX model, "sizes" how many sets of input sizes were run, "off by" the largest
difference in parts of the output's largest value.
"""
