"""run_bench.py: measures onnx-xla beside ONNX Runtime on the models of tests/bench/models.

Each model is first run once by both and the outputs compared, before a Softmax; a row whose numbers do not agree fails.  Then
both are measured in processes of their own, in turns, so that whatever else the machine does meets both; the least and the
median of the rounds are read.  A ratio above 1 says that onnx-xla is the faster one."""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile

import numpy as np

from bench_models import HERE, Failed, call, read_models

ONNX_XLA = os.path.abspath(os.environ["ONNX_XLA"])


def ours(*arguments):
    return call([ONNX_XLA, *arguments])


def theirs(*arguments):
    return call([sys.executable, os.path.join(HERE, "bench_ort.py"), *arguments])


def compare(model, threads, folder):
    """The largest difference as a part of the largest output."""
    folders = [os.path.join(folder, side) for side in ("ours", "theirs")]
    common = [model.compared, *model.arguments(), "--threads", str(threads), "--output-dir"]
    ours("run", "--quiet", "--format", "npy", *common, folders[0])
    theirs(*common, folders[1])
    worst = 0
    names = sorted(os.listdir(folders[1]))
    if sorted(os.listdir(folders[0])) != names:
        raise Failed("another number of outputs")
    for name in names:
        a, b = (np.load(os.path.join(folder, name)).astype(np.float64) for folder in folders)
        if a.shape != b.shape:
            raise Failed(f"{name} is {list(a.shape)}; ONNX Runtime's is {list(b.shape)}")
        if np.isnan(a).any() or (b.size > 1 and not np.ptp(b) > 0):
            raise Failed(f"{name} proves nothing: NaN, or all elements are the same")
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    if worst > model.tolerance:
        raise Failed(f"numbers differ by {worst:.2g} of the largest; {model.tolerance:.2g} is allowed")
    return worst


def measure(model, args):
    """One round: both sides, the other one first every other time."""
    common = [model.path, *model.arguments(), "--threads", str(args.threads), "--warm-up", str(args.warm_up),
              "--runs", str(args.runs), "--seconds", str(args.seconds)]
    sides = {"ours": lambda: ours("bench", "--json", *common), "theirs": lambda: theirs(*common)}
    rounds = {side: [] for side in sides}
    for k in range(args.rounds):
        for side in sorted(sides, reverse=k % 2 == 1):
            text = sides[side]()
            try:
                rounds[side].append(json.loads(text))
            except ValueError:
                raise Failed(f"{side}: no JSON came out: {text[:80]!r}") from None
    return {side: summary(reports) for side, reports in rounds.items()}


def summary(reports):
    """Least and median of the rounds."""
    out = {"min_ms": min(r["min_ms"] for r in reports)}
    for key in ("median_ms", "first_ms", "compile_s", "peak_rss_mb"):
        out[key] = statistics.median(r[key] for r in reports)
    return out


COLUMNS = "{:18} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>9} {:>9} {:>7} {:>7} {:>6} {:>6} {:>8}"


def print_head():
    print(COLUMNS.format("", "ours", "", "ORT", "", "ratio", "", "first ms", "", "compile", "s", "MB", "", "differs"))
    print(COLUMNS.format("model", "min ms", "median", "min ms", "median", "min", "median", "ours", "ORT", "ours", "ORT",
                         "ours", "ORT", "by"))


def print_row(row):
    a, b = row["ours"], row["theirs"]

    def ms(x):
        return f"{x:.3f}" if x < 10 else f"{x:.2f}"

    print(COLUMNS.format(row["model"], ms(a["min_ms"]), ms(a["median_ms"]), ms(b["min_ms"]), ms(b["median_ms"]),
                         f"{row['ratio_min']:.2f}", f"{row['ratio_median']:.2f}", ms(a["first_ms"]), ms(b["first_ms"]),
                         f"{a['compile_s']:.2f}", f"{b['compile_s']:.2f}", f"{a['peak_rss_mb']:.0f}",
                         f"{b['peak_rss_mb']:.0f}", f"{row['difference']:.1e}"), flush=True)


def bench(model, args):
    try:
        model.prepare()
        with tempfile.TemporaryDirectory(prefix="onnx-xla-bench-") as folder:
            difference = compare(model, args.threads, folder)
        row = {"model": model.name, "difference": difference, **measure(model, args)}
        for key in ("min", "median"):
            row["ratio_" + key] = row["theirs"][key + "_ms"] / row["ours"][key + "_ms"]
        return row
    except Failed as e:
        return {"model": model.name, "failed": str(e)}


def geometric_mean(rows, key):
    return math.exp(statistics.fmean(math.log(r[key]) for r in rows))


def main():
    parser = argparse.ArgumentParser(prog="run-bench", description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="names of the table, comma-separated (all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=10, help="measured runs at least, in each round")
    parser.add_argument("--seconds", type=float, default=1, help="measured at least, in each round")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="an object a model, in place of the table")
    args = parser.parse_args()
    models = read_models()
    wanted = args.models.split(",") if args.models else list(models)
    for name in wanted:
        if name not in models:
            parser.error(f"there is no model {name}; there are {', '.join(models)}")
    rows = []
    if not args.json:
        print(f"{args.threads} threads, {args.rounds} rounds in turns; ratio = ONNX Runtime's time / ours")
        print_head()
    for name in wanted:
        row = bench(models[name], args)
        rows.append(row)
        if args.json:
            print(json.dumps(row), flush=True)
        elif "failed" in row:
            print(f"{name:18} FAILED: {row['failed']}", flush=True)
        else:
            print_row(row)
    good = [r for r in rows if "failed" not in r]
    if good:
        means = {key: geometric_mean(good, "ratio_" + key) for key in ("min", "median")}
        if args.json:
            print(json.dumps({"geometric_mean": means, "failed": len(rows) - len(good)}))
        else:
            print(f"geometric mean of {len(good)} ratios: min {means['min']:.2f}, median {means['median']:.2f}")
    sys.exit(len(good) < len(rows))


main()
