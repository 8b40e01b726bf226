"""client_jax.py jax - MODEL THREADS NAME:TYPE:DIMS:FILE...: XLA on the CPU, reached from ONNX through jaxonnxruntime and jitted; talks
as client.c does.  jaxonnxruntime takes Relu and some other operators only from operator set 14 on.  The models have set 13, which
differs from 15 in nothing that they use, so they are declared to be of set 15."""
import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=" + ("true" if int(sys.argv[4]) > 1 else "false")
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(sys.argv[4])]))
import jax  # noqa: E402
import jaxonnxruntime  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from jaxonnxruntime import call_onnx  # noqa: E402
from onnx import helper  # noqa: E402


def read_input(text):
    name, kind, dims, path = text.rsplit(":", 3)
    dtype = helper.tensor_dtype_to_np_dtype(int(kind))
    return name, np.fromfile(path, dtype).reshape([int(d) for d in dims.split("x") if d])


def status_megabytes(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(key))


class Session:
    def __init__(self, path, feeds):
        jaxonnxruntime.config.update("jaxort_only_allow_initializers_as_static_args", False)
        model = onnx.load(path)
        for opset in model.opset_import:
            if opset.domain == "" and opset.version == 13:
                opset.version = 15
        function, self.weights = call_onnx.call_onnx_model(model, feeds)
        self.function = jax.jit(function)
        self.feeds = jax.device_put(feeds)

    def run(self):
        return jax.block_until_ready(self.function(self.weights, self.feeds))


def measure(run, seconds, runs, warm_up):
    for _ in range(warm_up):
        run()
    times = []
    start = before = time.perf_counter()
    while len(times) < runs or before - start < seconds:
        run()
        now = time.perf_counter()
        times.append(now - before)
        before = now
    return f"{min(times):.9f} {np.median(times):.9f} {len(times)}"


def write_outputs(values, folder):
    lines = [str(len(values))]
    for k, value in enumerate(map(np.asarray, values)):
        value.tofile(os.path.join(folder, f"{k}.bin"))
        lines.append(f"{helper.np_dtype_to_tensor_dtype(value.dtype)} {'x'.join(map(str, value.shape))}")
    return "\n".join(lines)


def main():
    session = Session(sys.argv[3], dict(read_input(text) for text in sys.argv[5:]))
    session.run()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "measure":
            print(measure(session.run, float(rest[0]), int(rest[1]), int(rest[2])), flush=True)
        elif word == "outputs":
            print(write_outputs(session.run(), rest[0]), flush=True)
        elif word == "memory":
            print(f"{status_megabytes('VmRSS:'):.2f} {status_megabytes('VmHWM:'):.2f}", flush=True)
        elif word == "cpu":
            print(f"{time.process_time():.6f}", flush=True)
        else:
            sys.exit(f"what is {word}?")


main()
