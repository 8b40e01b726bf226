"""ops.py: single operators beside ONNX Runtime, one by one; the rows stand in ops_table.py.

Each engine has a process of its own.  The outputs are compared first; then both are measured in turns, and what counts is the least
time of many short repeats, so that a busy machine does little harm.  A ratio above 1 says that onnx-xla is the faster one."""
import argparse
import json
import os
import re
import statistics
import sys
import tempfile

import numpy as np

from bench_models import Failed
from clients import Client
from ops_table import ROWS

# Largest difference as a part of the largest element: sums are taken in another order, and functions have errors of some ULPs.
TOLERANCES = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 3e-5, np.dtype(np.float64): 1e-11}


def check(ours, theirs):
    """Raises Failed unless the outputs agree.  Bytes may differ by one, since a number near the middle of two may be rounded
    to either."""
    if len(ours) != len(theirs):
        raise Failed(f"{len(ours)} outputs; ONNX Runtime has {len(theirs)}")
    for k, (x, y) in enumerate(zip(ours, theirs)):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise Failed(f"output {k} is {x.dtype}{list(x.shape)}; ONNX Runtime's is {y.dtype}{list(y.shape)}")
        if not x.size:
            continue
        worst = np.abs(x.astype(np.float64) - y.astype(np.float64)).max()
        allowed = TOLERANCES[x.dtype] * np.abs(y.astype(np.float64)).max() if x.dtype in TOLERANCES else x.dtype.itemsize == 1
        if not worst <= allowed:
            raise Failed(f"output {k} differs by {worst:.3g}; {allowed:.3g} is allowed")


def measure(clients, rounds, seconds):
    """Returns {engine: least seconds}, and the ratio of each round."""
    least, ratios = {e: float("inf") for e in clients}, []
    for k in range(rounds):
        now = {e: clients[e].measure(seconds, 3, 1)[0] for e in (list(clients) if k % 2 else reversed(list(clients)))}
        least = {e: min(least[e], now[e]) for e in clients}
        if "ort" in now:
            ratios.append(now["ort"] / now["ours"])
    return least, ratios


def bench(row, folder, args):
    out, clients = {"name": row.name}, {}
    path = os.path.join(folder, "model.onnx")
    row.save(path)
    feeds = []
    for name, value in row.feeds().items():
        feeds.append((name, os.path.join(folder, name + ".npy")))
        np.save(feeds[-1][1], value)
    try:
        for engine in ("ours", "ort"):
            try:
                clients[engine] = Client(engine, path, args.threads, feeds, {"ONNX_XLA_CACHE": os.path.join(folder, "cache")})
            except Failed as e:
                if engine == "ours":
                    raise
                out["cannot"] = f"ONNX Runtime cannot: {e}"
        if len(clients) == 2:
            check(clients["ours"].outputs(), clients["ort"].outputs())
        least, ratios = measure(clients, args.rounds, args.seconds)
        out.update({engine: 1e6 * t for engine, t in least.items()})
        if ratios:
            out.update(ratio=least["ort"] / least["ours"], median=statistics.median(ratios))
    except Failed as e:
        out["failed"] = str(e)
    finally:
        for client in clients.values():
            client.close()
    return out


def line(r):
    if "failed" in r:
        return f"{r['name']:24} FAILED: {r['failed']}"
    if "ratio" in r:
        return f"{r['name']:24} {r['ours']:9.1f} {r['ort']:9.1f} {r['ratio']:6.2f} {r['median']:6.2f}"
    return f"{r['name']:24} {r.get('ours', float('nan')):9.1f}  {r['cannot'][:90]}"


def main():
    parser = argparse.ArgumentParser(prog="ops", description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="*", help="rows whose names have one of these (regular expressions) in them (all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.03, help="measured at least, in each round")
    parser.add_argument("--json", help="file that gets an object a row, a line each")
    parser.add_argument("--list", action="store_true", help="only the names")
    args = parser.parse_args()
    rows = [r for r in ROWS.values() if not args.pattern or any(re.search(p, r.name) for p in args.pattern)]
    if args.list:
        print("\n".join(r.name for r in rows))
        return
    print(f"{args.threads} thread{'s' * (args.threads > 1)}; least microseconds, ratio of these, median ratio of the rounds")
    print(f"{'':24} {'ours':>9} {'ORT':>9} {'ratio':>6} {'median':>6}")
    results = []
    for row in rows:
        with tempfile.TemporaryDirectory(prefix="onnx-xla-ops-") as folder:
            results.append(bench(row, folder, args))
        print(line(results[-1]), flush=True)
        if args.json:
            with open(args.json, "a") as f:
                f.write(json.dumps(results[-1]) + "\n")
    slow = sorted((r for r in results if r.get("ratio", 1) < 1), key=lambda r: r["ratio"])
    print(f"{len(results)} rows, {len(slow)} below 1: " + ", ".join(f"{r['name']} {r['ratio']:.2f}" for r in slow))
    sys.exit(any("failed" in r for r in results))


if __name__ == "__main__":
    main()
