"""bench_ort.py MODEL [--input NAME=FILE.npy]... [--threads N] [--warm-up N] [--runs N] [--seconds T] [--output-dir DIR]:
measures ONNX Runtime as `onnx-xla bench --json` measures us, and prints the same keys.  Its settings are those that are best
for it: all optimisations, as many threads within an operator as are asked for, spinning (the default).

With --output-dir it writes DIR/output_K.npy and measures nothing."""
import argparse
import json
import os
import time

import numpy as np
import onnxruntime as ort


def session(model, threads):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def measure(run, warm_up, runs, seconds):
    """Seconds of the first run, and of each measured one, sorted."""

    def once():
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    first = once()
    for _ in range(warm_up):
        once()
    times = []
    start = time.perf_counter()
    while len(times) < runs or time.perf_counter() - start < seconds:
        times.append(once())
    return first, sorted(times)


def peak_megabytes():
    # Not getrusage: its peak is that of the process that started this one, if that was larger.
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM:"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--output-dir")
    args = parser.parse_args()
    feeds = {}
    for given in args.input:
        name, path = given.rsplit("=", 1)
        feeds[name] = np.load(path)
    start = time.perf_counter()
    s = session(args.model, args.threads)
    created = time.perf_counter() - start
    if args.output_dir:
        os.makedirs(args.output_dir, exist_ok=True)
        for k, value in enumerate(s.run(None, feeds)):
            np.save(os.path.join(args.output_dir, f"output_{k}.npy"), value)
        return
    # Inputs bound once and outputs left where they are: what Python adds is a few microseconds.
    binding = s.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in s.get_outputs():
        binding.bind_output(output.name)
    first, times = measure(lambda: s.run_with_iobinding(binding), args.warm_up, args.runs, args.seconds)
    print(json.dumps({
        "min_ms": 1e3 * times[0], "median_ms": 1e3 * float(np.median(times)),
        "p95_ms": 1e3 * float(np.quantile(times, 0.95)), "runs": len(times), "compile_s": created, "load_s": 0,
        "first_ms": 1e3 * first, "peak_rss_mb": peak_megabytes(),
        "threads": args.threads, "backend": "onnxruntime " + ort.__version__,
    }))


main()
