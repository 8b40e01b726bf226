"""run_sizes.py: measures lists of inputs of many sizes beside ONNX Runtime and OpenVINO.

Each engine starts as users start it, with an empty cache, runs once at a size of its own, and then the list, which has sizes
that it has not met.  Times are of the whole list, first runs included; a ratio above 1 says that onnx-xla is faster than the
faster peer.  The outputs of the last run are compared.  A list may also be any model's file: its sizes are drawn (--dim)."""
import argparse
import json
import os
import sys

import numpy as np

from bench_models import Failed, find_model
from clients import OUR_BUILDS, TITLES, Client, differs
from rows import Files
from size_lists import ROWS, any_model, read_ranges
from statistic import geometric_mean

PEERS = ("ort", "openvino")


def run(engine, path, sizes, threads):
    """Returns what one engine needs for the list, as an object for JSON; raises Failed if it cannot run it."""
    with Files() as files:
        feeds = [files.feed(name, value) for name, value in sizes.first.items()]
        carried = " ".join(f"{output}={name}:{axis}" for output, name, axis in sizes.carries)
        client = Client(engine, path, threads, feeds, {**files.environment(), **({"BENCH_CARRIED": carried} if carried else {})})
        try:
            before = client.cpu_seconds()
            ms = [1e3 * s for s in client.run_list(sizes.steps, sizes.carries)]
            out = {"first_ms": 1e3 * client.first_s, "total_ms": sum(ms), "p50_ms": float(np.percentile(ms, 50)),
                   "p99_ms": float(np.percentile(ms, 99)), "steps_ms": ms, "cpu_s": client.cpu_seconds() - before,
                   "peak_mb": client.megabytes()[1]}
            return out, client.outputs()
        finally:
            client.close()


def measure(name, threads, args):
    """Returns the row as an object for JSON; if it could not be measured, its `failed` says why."""
    out, values = {"list": os.path.basename(name).removesuffix(".onnx"), "threads": threads}, {}
    try:
        sizes = ROWS[name]() if name in ROWS else any_model(name, read_ranges(args.dim), args.steps)
        path = find_model(sizes.model)
        for engine in args.engines:
            try:
                tries = [run(engine, path, sizes, threads) for _ in range(args.rounds)]
            except Failed as e:
                if engine in OUR_BUILDS:
                    raise
                out[engine] = {"cannot": str(e)}
                continue
            out[engine], values[engine] = min(tries, key=lambda t: t[0]["total_ms"])
    except Failed as e:
        out["failed"] = str(e)
        return out
    if "ours" in values and "ort" in values and sizes.tolerance:
        try:
            out["differs"] = differs(values["ours"], values["ort"])
        except Failed as e:
            out["failed"] = str(e)
        if out.get("differs", 0) > sizes.tolerance:
            out["failed"] = f"numbers differ by {out['differs']:.2g} of the largest; {sizes.tolerance:.2g} is allowed"
    rivals = [e for e in PEERS if "total_ms" in out.get(e, {})]
    if rivals and "ours" in out and any(axis >= 0 for _, _, axis in sizes.carries):
        out["by_past"] = by_past(out, rivals)
    if rivals and "ours" in out:
        for what in ("total_ms", "p99_ms", "first_ms"):
            out["ratio_" + what] = min(out[e][what] for e in rivals) / out["ours"][what]
    return out


def by_past(row, rivals, parts=4):
    """Divides the steps, each of which is a token, into equal parts; returns for each (the past of its first step, our median
    milliseconds, those of the fastest peer)."""
    found = []
    for steps in np.array_split(np.arange(len(row["ours"]["steps_ms"])), parts):
        ours, *theirs = [float(np.median(np.array(row[e]["steps_ms"])[steps])) for e in ("ours", *rivals)]
        found.append((int(steps[0]), ours, min(theirs)))
    return found


COLUMNS = "{:12} {:>5}" + " {:>9}" * 3 + " {:>6}" + " {:>8}" * 6 + " {:>7}" * 3 + " {:>6}" * 3


def head(threads):
    return "\n".join([
        f"{threads} thread{'s' * (threads > 1)}, milliseconds; ratio > 1: ours is faster than the faster of ORT and OpenVINO",
        COLUMNS.format("", "", "list", "", "", "", "p50", "", "", "p99", "", "", "first", "result", "", "peak", "MB", ""),
        COLUMNS.format("list", "runs", *["ours", "ORT", "OV"], "ratio", *["ours", "ORT", "OV"] * 4)])


def line(row):
    if "failed" in row:
        return f"{row['list']:12} FAILED: {row['failed']}"

    def cells(key):
        return [f"{row[e][key]:.3g}" if row.get(e, {}).get(key, 0) < 1000 and key in row.get(e, {})
                else f"{row[e][key]:.0f}" if key in row.get(e, {}) else "-" for e in ("ours", *PEERS)]
    ratio = f"{row['ratio_total_ms']:.2f}" if "ratio_total_ms" in row else "-"
    text = COLUMNS.format(row["list"], len(row["ours"]["steps_ms"]), *cells("total_ms"), ratio, *cells("p50_ms"),
                          *cells("p99_ms"), *cells("first_ms"), *cells("peak_mb"))
    if "by_past" in row:
        text += "\n  tokens a second from a past of " + ", ".join(
            f"{past}: {1e3 / ours:.0f} (ratio {theirs / ours:.2f})" for past, ours, theirs in row["by_past"])
    return text


def parse_arguments():
    parser = argparse.ArgumentParser(prog="run-sizes", description=__doc__)
    parser.add_argument("lists", nargs="*", help="lists to measure (all): " + ", ".join(ROWS) + ", or FILE.onnx")
    parser.add_argument("--engines", default="ours,ort,openvino", help="of ours, ort, openvino")
    parser.add_argument("--threads", default="2,1", help="numbers of threads, comma-separated (2,1)")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each engine, the best of which counts (1)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=A..B[/STEP]",
                        help="the sizes of a dimension that FILE.onnx leaves open, or NAME=N")
    parser.add_argument("--steps", type=int, default=20, help="runs in the list of FILE.onnx (20)")
    parser.add_argument("--json", help="file that gets an object a row, a line each")
    args = parser.parse_args()
    args.engines = args.engines.split(",")
    unknown = [name for name in args.lists if name not in ROWS and not name.endswith(".onnx")] + [e for e in args.engines if e not in TITLES]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    args.lists = args.lists or list(ROWS)
    args.threads = [int(t) for t in args.threads.split(",")]
    return args


def main():
    args, failed = parse_arguments(), 0
    for threads in args.threads:
        print(head(threads), flush=True)
        rows = []
        for name in args.lists:
            rows.append(measure(name, threads, args))
            print(line(rows[-1]), flush=True)
            if args.json:
                with open(args.json, "a") as f:
                    f.write(json.dumps(rows[-1]) + "\n")
        failed += sum("failed" in r for r in rows)
        ratios = [r["ratio_total_ms"] for r in rows if "ratio_total_ms" in r]
        if ratios:
            print(f"geometric mean of {len(ratios)} lists: {geometric_mean(ratios):.3f}; lists slower than the faster peer: "
                  f"{sum(r < 1 for r in ratios)}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
