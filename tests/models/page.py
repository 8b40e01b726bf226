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

Where a nudge of the inputs by 2^-20 of themselves moves ONNX Runtime's own results by more than 1e-2 nothing can be said, and the
network is changed until something can. DAC, a codec whose residuals have no norms, was the worst: whole, with random weights,
a nudge moves ONNX Runtime's output by 2e-3 to 1e-2 and onnx-xla's by 9e-3 to 1.5e-2; they are 8e-3 apart, and `onnx-xla verify`
finds none of 62 instructions wrong. So its encoder and its decoder stand here, each with small inputs. What is still chaotic is
listed in tests/models/chaotic, with the reason.
"""
