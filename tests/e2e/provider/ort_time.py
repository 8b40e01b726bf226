"""ort_time.py PLUGIN DATA [NAME]: the time of a run in our own session divided by the time of a run in ONNX Runtime with our
provider must be at least 0.95 for models whose run takes more than a millisecond.

Both run in turns on one thread, the caller's, and what counts is that thread's shortest time of many runs, so that other work of
the machine has no effect.  Inputs and outputs of ONNX Runtime are bound, since converting them to Python's arrays is no work of the
provider's.  Nothing is timed while compiling, so that both sessions choose the same algorithms."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ort_models import all_models  # noqa: E402
from ort_sessions import register, session  # noqa: E402
from own_session import OwnSession  # noqa: E402

LEAST = 0.95
OVER = 1e-3  # seconds
ROUNDS, LONGEST = (20, 400), 20  # at least and at most; seconds in which no further round begins


def bind(s, feeds):
    io = s.io_binding()
    for name, x in feeds.items():
        io.bind_cpu_input(name, x)
    for y in s.get_outputs():
        io.bind_output(y.name)
    return lambda: s.run_with_iobinding(io)


def seconds(f):
    start = time.thread_time()
    f()
    return time.thread_time() - start


def shortest(ours, through):
    """Returns both times.  Rounds go on as long as the ratio is too small, since noise can only make times longer."""
    a = b = float("inf")
    end = time.monotonic() + LONGEST
    for k in range(ROUNDS[1]):
        a, b = min(a, seconds(ours)), min(b, seconds(through))
        if time.monotonic() > end or (k >= ROUNDS[0] and a / b >= LEAST):
            break
    return a, b


def measure(plugin, model):
    feeds = model.feeds[0]
    s = session(model.path, options={"threads": "1"})
    own = OwnSession(plugin, model.path, feeds, 1)
    through = bind(s, feeds)
    through()
    a, b = shortest(own.run, through)
    own.close()
    print(f"{model.name:12} {1e3 * a:8.3f} ms in our session, {1e3 * b:8.3f} ms through ONNX Runtime: {a / b:.3f}",
          flush=True)
    return f"{model.name}: {a / b:.3f} is less than {LEAST}" if a > OVER and a / b < LEAST else None


def main():
    plugin, data = sys.argv[1:3]
    register(plugin)
    with tempfile.TemporaryDirectory() as folder:
        failures = [measure(plugin, m) for m in all_models(data, folder) if not sys.argv[3:] or m.name in sys.argv[3:]]
    for f in filter(None, failures):
        print("FAIL", f)
    print(f"{sum(f is not None for f in failures)} failures")
    sys.exit(any(failures))


main()
