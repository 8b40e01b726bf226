"""run_bench.py: measures onnx-xla beside ONNX Runtime, OpenVINO and XLA on the models of tests/bench/models.

Each engine has a process of its own and the same number of threads.  The outputs are compared first, before a Softmax: a row
whose numbers do not agree fails.  Then all are measured in turns, so that whatever else the machine does meets them all.
A round's ratio is the median time of a peer, the faster one of ONNX Runtime and OpenVINO, divided by that of onnx-xla; above 1,
onnx-xla is faster.  A row shows the median of its rounds' ratios and the 95 % confidence interval of their geometric mean."""
import argparse
import json
import os
import statistics
import sys
import tempfile

import floor
import page
import rows as other_rows
from bench_models import CLASSES, HERE, Failed, read_models
from clients import ENGINES, OUR_BUILDS, TITLES, Client, differs
from statistic import geometric_mean, paired

sys.path.insert(0, os.path.join(HERE, "linked"))
import objects  # noqa: E402

ROWS = {**other_rows.ROWS, **objects.ROWS}


def outputs(engine, model, client, threads, environment):
    if model.compared == model.path:
        return client.outputs()
    other = Client(engine, model.compared, threads, model.inputs, environment)
    try:
        return other.outputs()
    finally:
        other.close()


class Row:
    """One model at one number of threads: clients of all engines that can run it, and what was measured."""

    def __init__(self, model, threads, engines, environment):
        self.model, self.threads, self.environment = model, threads, environment
        self.clients, self.values, self.result = {}, {}, {}
        model.prepare()
        for engine in engines:
            try:
                self.start(engine)
            except Failed as e:
                if engine == "ours":
                    raise
                self.result[engine] = {"cannot": str(e)}
        for engine in self.clients:
            self.check(engine)

    def start(self, engine):
        environment = self.environment.get(engine)

        def start():
            return Client(engine, self.model.path, self.threads, self.model.inputs, environment)

        client = start()
        self.result[engine] = {"first_ms": 1e3 * client.first_s}
        if engine in OUR_BUILDS:  # the second start finds what the first one left in the cache
            self.result[engine]["cold_mb"] = client.megabytes()[1]
            client.close()
            client = start()
            self.result[engine]["warm_ms"] = 1e3 * client.first_s
        self.result[engine]["peak_mb"] = client.megabytes()[1]
        self.clients[engine] = client
        self.values[engine] = outputs(engine, self.model, client, self.threads, environment)

    def check(self, engine):
        """Our results must agree with ONNX Runtime's; of a peer whose results do not, this is only noted."""
        if "ort" not in self.values:
            return
        worst = differs(self.values[engine], self.values["ort"])
        self.result[engine]["differs"] = worst
        if worst > self.model.tolerance and engine == "ours":
            raise Failed(f"numbers differ by {worst:.2g} of the largest; {self.model.tolerance:.2g} is allowed")

    def measure(self, rounds, seconds, runs, peaks):
        engines = list(self.clients)
        times, floors = {engine: [] for engine in engines}, []
        for k in range(rounds):
            for engine in engines[k % len(engines):] + engines[:k % len(engines)]:
                times[engine].append(self.clients[engine].measure(seconds, runs, 1))
                if engine == "ours":
                    floors.append(floor.floor_ms(self.model, floor.now(self.threads, peaks)))
        self.shares(times.get("ours", []), floors, peaks)
        for engine, measured in times.items():
            r = self.result[engine]
            r["min_ms"] = 1e3 * min(least for least, _ in measured)
            r["median_ms"] = 1e3 * statistics.median(median for _, median in measured)
            r["rounds_ms"] = [1e3 * median for _, median in measured]
            if engine != "ours":
                r.update(paired([m for _, m in measured], [m for _, m in times["ours"]]))

    def shares(self, times, floors, peaks):
        """Sets which part of our time the floor is: of_floor divides each round's floor by its median time, and is the median
        of these; of_floor_least divides the least floor by the least time."""
        least = floor.floor_ms(self.model, peaks)
        if times and least:
            self.result["ours"]["of_floor"] = statistics.median(1e-3 * at / median for at, (_, median) in zip(floors, times))
            self.result["ours"]["of_floor_least"] = 1e-3 * min([least, *floors]) / min(time for time, _ in times)

    def close(self):
        for client in self.clients.values():
            client.close()


def bench(model, threads, args, peaks):
    """Returns the row as an object for JSON; if it could not be measured, its `failed` says why."""
    out = {"model": model.name, "class": model.kind, "threads": threads}
    row = None
    with tempfile.TemporaryDirectory(prefix="onnx-xla-cache-") as cache:
        try:
            row = Row(model, threads, args.engines, {e: {"ONNX_XLA_CACHE": os.path.join(cache, e)} for e in OUR_BUILDS})
            row.measure(args.rounds, args.seconds, args.runs, peaks)
            out.update(row.result)
        except Failed as e:
            out["failed"] = str(e)
        finally:
            if row:
                row.close()
    rivals = [e for e in ("ort", "openvino") if "ratio" in out.get(e, {})]
    if rivals and "failed" not in out:
        out["rival"] = min(rivals, key=lambda e: out[e]["median_ms"])
    return out


# --- the table ---

def ms(x):
    return f"{x:.4f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def percent(x):
    return f"{100 * x:.0f} %"


def cell(row, engine, key, form=ms):
    return form(row[engine][key]) if key in row.get(engine, {}) else "-"


COLUMNS = "{:18} {:>8} {:>8} {:>8} {:>8} {:>8}  {:>5} {:>11}  {:>5} {:>5} {:>5}  {:>7} {:>7} {:>7} {:>7}  {:>5} {:>5} {:>5}  {:>6} {:>6} {:>7}"


def head(threads):
    return "\n".join([
        f"{threads} thread{'s' * (threads > 1)}, milliseconds of the medians; ratio > 1: ours is faster than the faster of ORT and "
        "OpenVINO",
        COLUMNS.format("", "ours", "", "ORT", "OpenVINO", "XLA", "ratio", "95 %", "over", "", "", "first", "result", "", "",
                       "peak", "MB", "", "of the", "floor", "differs"),
        COLUMNS.format("model", "min", "median", "median", "median", "median", "", "interval", "ORT", "OV", "XLA", "cold", "warm",
                       "ORT", "OV", "ours", "ORT", "OV", "median", "least", "by")])


def line(row):
    if "failed" in row:
        return f"{row['model']:18} FAILED: {row['failed']}"

    def two(x):
        return f"{x:.2f}"

    def whole(x):
        return f"{x:.0f}"

    rival = row.get(row.get("rival"), {})
    cells = [cell(row, "ours", "min_ms"), *[cell(row, e, "median_ms") for e in ENGINES]]
    cells += [two(rival["ratio"]), f"{rival['low']:.2f}-{rival['high']:.2f}"] if rival else ["-", "-"]
    cells += [cell(row, e, "ratio", two) for e in ("ort", "openvino", "jax")]
    cells += [cell(row, "ours", "first_ms", whole), cell(row, "ours", "warm_ms", whole)]
    cells += [cell(row, e, "first_ms", whole) for e in ("ort", "openvino")]
    cells += [cell(row, e, "peak_mb", whole) for e in ("ours", "ort", "openvino")]
    cells += [cell(row, "ours", key, percent) for key in ("of_floor", "of_floor_least")]
    cells.append(cell(row, "ours", "differs", lambda x: f"{x:.1e}"))
    return COLUMNS.format(row["model"], *cells)


def remarks(row, tolerance):
    """Yields which peer cannot run the model or gives other numbers, and the ratio to the build of --before."""
    if "ratio" in row.get("before", {}):
        r, ours = row["before"], row["ours"]
        yield (f"{'':18} {TITLES['before']}: {ms(r['median_ms'])}, ratio {r['ratio']:.3f} ({r['low']:.3f}-{r['high']:.3f}), "
               f"cold {r['first_ms']:.0f} : {ours['first_ms']:.0f} ms, warm {r['warm_ms']:.0f} : {ours['warm_ms']:.0f} ms, "
               f"peak {r['peak_mb']:.0f} : {ours['peak_mb']:.0f} MB")
    for engine in (*ENGINES, "before"):
        r = row.get(engine, {})
        if "cannot" in r and "is not installed" not in r["cannot"]:
            yield f"{'':18} {TITLES[engine]} cannot: {r['cannot'][:110]}"
        elif r.get("differs", 0) > tolerance:
            yield f"{'':18} {TITLES[engine]} differs from ORT by {r['differs']:.2g}"


def means(rows):
    """Returns {class: geometric mean of the ratios to the faster rival}, and the mean ratios to XLA and to another build."""
    good = [r for r in rows if "rival" in r]
    out = {c: geometric_mean([r[r["rival"]]["ratio"] for r in good if r["class"] == c])
           for c in CLASSES if any(r["class"] == c for r in good)}
    for engine in ("jax", "before"):
        ratios = [r[engine]["ratio"] for r in rows if "ratio" in r.get(engine, {})]
        if ratios:
            out[TITLES[engine]] = geometric_mean(ratios)
    return out


def parse_arguments(models):
    parser = argparse.ArgumentParser(prog="run-bench", description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="names or classes of the table, comma-separated (all; none where --rows is given alone)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="of " + ", ".join(ENGINES))
    parser.add_argument("--before", metavar="BUILDDIR", help="another build of onnx-xla, measured in the same rounds")
    parser.add_argument("--threads", default="2,1", help="numbers of threads, comma-separated (2,1)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--runs", type=int, default=3, help="measured runs at least, in each round")
    parser.add_argument("--seconds", type=float, default=0.3, help="measured at least, in each round")
    parser.add_argument("--json", help="file that gets an object a row, a line each")
    parser.add_argument("--rows", help=f"of {', '.join(ROWS)}, objects: rows that are no race; all, unless --models is given")
    parser.add_argument("--page", help="folder that gets benchmarks.md with its charts")
    args = parser.parse_args()
    args.engines = args.engines.split(",")
    if args.before:
        os.environ["BEFORE_BUILDDIR"] = args.before
        args.engines.append("before")
    args.threads = [int(t) for t in args.threads.split(",")]
    given = args.rows
    rows = list(ROWS) if args.rows == "all" or not (args.rows or args.models) else (args.rows or "").split(",")
    args.rows = [r for name in rows for r in (objects.ROWS if name == "objects" else [name]) if r]
    if not set(args.rows) <= set(ROWS):
        parser.error(f"rows are of {', '.join(ROWS)}")
    wanted = args.models.split(",") if args.models is not None else [] if given else list(models)
    for name in wanted:
        if name and name not in models and name not in CLASSES:
            parser.error(f"there is no model {name}; there are {', '.join(models)}")
    args.models = [m for m in models.values() if m.name in wanted or m.kind in wanted]
    return args


def main():
    args = parse_arguments(read_models())
    failed, parts = 0, []
    for threads in args.threads if args.models else []:
        peaks = floor.machine(threads)
        print(floor.describe(threads, peaks))
        print(head(threads), flush=True)
        rows = []
        for model in args.models:
            row = bench(model, threads, args, peaks)
            rows.append(row)
            print("\n".join([line(row), *remarks(row, model.tolerance)]), flush=True)
            if args.json:
                with open(args.json, "a") as f:
                    f.write(json.dumps(row) + "\n")
        failed += sum("failed" in r for r in rows)
        print("geometric means: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means(rows).items()), flush=True)
        parts.append((threads, rows, peaks, means(rows)))
    others = other_rows.measure({name: ROWS[name] for name in args.rows})
    failed += sum(not kept for *_, kept in others)
    if args.page:
        page.write(args.page, parts, others)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
