"""Writes what was measured as a page with charts: doc/benchmarks.md, doc/benchmarks-Nt.svg."""
import datetime
import os
import platform

import chart
import convolutions
from clients import ENGINES, TITLES


def processor():
    with open("/proc/cpuinfo") as f:
        lines = f.read().splitlines()
    name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), platform.machine())
    flags = next((x.split(":")[1].split() for x in lines if x.startswith("flags")), [])
    known = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile") if f in flags]
    return f"{name}, {os.cpu_count()} cores" + (f" ({', '.join(known)})" if known else "")


def versions():
    import importlib.metadata as metadata
    found = []
    for package, title in (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO"), ("jaxlib", "jaxlib (XLA)")):
        try:
            found.append(f"{title} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            pass
    return ", ".join(found)


def table(header, rows):
    return "\n".join(["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *["| " + " | ".join(r) + " |" for r in rows], ""])


def ms(row, engine, key="median_ms"):
    x = row.get(engine, {}).get(key)
    return "-" if x is None else f"{x:.4f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def times(rows):
    """The first table: steady runs."""
    out = []
    for row in rows:
        if "failed" in row:
            out.append([row["model"], row["class"], "failed: " + row["failed"]] + [""] * 7)
            continue
        rival = row.get(row.get("rival"), {})
        out.append([row["model"], row["class"], *[ms(row, e) for e in ENGINES],
                    f"{rival['ratio']:.2f}" if rival else "-", f"{rival['low']:.2f} to {rival['high']:.2f}" if rival else "-",
                    *[f"{100 * row['ours'][key]:.0f} %" if key in row["ours"] else "-" for key in ("of_floor", "of_floor_least")]])
    return table(["model", "class", *[TITLES[e] for e in ENGINES], "ratio", "95 %", "of floor", "at best"], out)


def starts(rows):
    """The second table: process start to first result, and memory."""
    out = []
    for row in rows:
        if "failed" not in row:
            out.append([row["model"], ms(row, "ours", "first_ms"), ms(row, "ours", "warm_ms"),
                        *[ms(row, e, "first_ms") for e in ENGINES[1:]], *[ms(row, e, "peak_mb") for e in ENGINES]])
    return table(["model", "ours, cold", "ours, warm", *[TITLES[e] for e in ENGINES[1:]], *[f"{TITLES[e]}, MB" for e in ENGINES]], out)


def bars(rows):
    return [(r["model"], r["class"], *[r[r["rival"]][key] for key in ("ratio", "low", "high")]) for r in rows if "rival" in r]


def section(threads, rows, peaks, means, folder):
    name = f"benchmarks-{threads}t.svg"
    title = f"Times as fast as the faster of ONNX Runtime and OpenVINO, {threads} thread{'s' * (threads > 1)}"
    with open(os.path.join(folder, name), "w") as f:
        f.write(chart.ratios(title, bars(rows)))
    rounds = max((len(r["ours"]["rounds_ms"]) for r in rows if "rival" in r), default=0)
    said = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
    return "\n".join([
        f"## {threads} thread{'s' * (threads > 1)}", "", f"![{title}]({name})", "",
        f"{rounds} rounds.  Geometric means: {said}.  Floor: {peaks['gflops']:.0f} GFLOP/s in registers, {peaks['gbytes']:.1f} GB/s from memory.", "",
        "Milliseconds, medians:", "", times(rows), "First result, milliseconds from the start of the process, and peak memory:", "",
        starts(rows)])


HEAD = """# How fast

This page is written by `make bench` (see the README of `tests/bench/`): {date}, {processor}; {versions}.

Each engine runs in a process of its own, with the same file, inputs and number of threads, in fp32 and with batch 1 unless the model
has another batch.  The engines take turns in each round.  The ratio is the time of the faster of ONNX Runtime and OpenVINO divided by
the time of onnx-xla ("ours"), so it is above 1 where onnx-xla is faster; the table has the median of the rounds and the 95 % confidence
interval of their mean.  In the means by class a ratio counts at most 5; "XLA" is the mean ratio to XLA, for the models that it can run.
The floor is the least time that the contractions of a model could take: their multiplications (for 3x3 convolutions those of
Winograd's algorithm) at the peak speed of this machine in registers, or their bytes at the speed of memory, whichever is more; all other
operations count as free.  "Of floor" is the floor divided by our time, with the peak measured in each round, since the speed of a shared
host varies; "at best" is the floor at the best peak divided by our least time.  A dash means that the engine cannot run the model.
"""


def other_section(others):
    out = [[what, f"{value:.3g} {unit}", f"{limit:.3g} {unit}", "yes" if kept else "no"] for what, value, limit, unit, kept in others]
    return "\n".join(["## Starts, shapes, spellings", "", table(["what", "measured", "at most", "kept"], out)])


def write(folder, parts, others):
    """parts: (threads, rows, peaks, means by class); others: what rows.measure returned."""
    text = HEAD.format(date=datetime.date.today().isoformat(), processor=processor(), versions=versions())
    sections = [section(*part, folder) for part in parts] + ([other_section(others)] if others else [])
    sections.append(convolutions.write(folder, parts[0][0] if parts else os.cpu_count()))
    with open(os.path.join(folder, "benchmarks.md"), "w") as f:
        f.write("\n".join([text, *sections]))
