"""page.py: writes the results as lines and as the page doc/models.md."""

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

This page compares the results of onnx-xla with those of ONNX Runtime without its optimiser, for small networks with random weights that
PyTorch has exported (tests/models/README says how). {total} models: {counts}.

In the tables, "nodes" and "operators" count those of the ONNX model, "sizes" is the number of sets of input sizes that were run, and "off
by" is the largest difference relative to the output's largest value.

If a relative change of the inputs by 2^-20 changes ONNX Runtime's own results by more than 1e-2, a comparison shows nothing, and the
network is changed until it does. The worst case was DAC, a codec whose residuals have no norms: for the whole network with random
weights, such a change moves ONNX Runtime's output by 2e-3 to 1e-2 and onnx-xla's by 9e-3 to 1.5e-2; the outputs differ by 8e-3, and
`onnx-xla verify` finds none of 62 instructions wrong. This page therefore has its encoder and its decoder separately, with small inputs.
Networks for which this cannot be done are listed in tests/models/chaotic, with the reason.
"""
