"""ort_dynamic.py PLUGIN DATA [PATTERN]: models whose sizes depend on what they compute (tests/dynamic), through ONNX Runtime with
our execution provider.  A model that ONNX Runtime runs alone must give the same results with the provider.  One session runs all
sets of inputs, twice, so that sizes grow and shrink between runs."""
import fnmatch
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from ort_sessions import VERBOSE, claimed, is_early, register, session  # noqa: E402

LEAST_CLAIMED = 350  # nodes; what stands beside sequences is left to ONNX Runtime
TOLERANCE = 1e-5


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for a in node.attribute:
            for body in [a.g] if a.HasField("g") else a.graphs:
                yield from operators(body)


def is_lost_early(path):
    """Returns whether the model cannot run with a provider: ONNX Runtime 1.23 cannot write out a SequenceMap around nodes
    that are taken."""
    return is_early() and "SequenceMap" in operators(onnx.load(path).graph)


def read(path):
    with open(path, "rb") as f:
        return numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))


def inputs_of(s, folder):
    return {x.name: read(os.path.join(folder, f"input_{k}.pb")) for k, x in enumerate(s.get_inputs())}


def same(want, got):
    return all(a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, TOLERANCE, TOLERANCE, equal_nan=True)
               for a, b in zip(want, got))


def check_case(case):
    """Returns how many nodes were taken, and what went wrong: None if nothing, "skipped" if ONNX Runtime alone does not run
    the model."""
    path = os.path.join(case, "model.onnx")
    try:
        alone = session(path, provider=False)
    except Exception:
        return 0, "skipped"
    if is_lost_early(path):
        return 0, "skipped"
    try:
        ours, (taken, _, _) = claimed(lambda: session(path, log=VERBOSE))
    except Exception as e:
        return 0, str(e)
    for folder in sorted(glob.glob(os.path.join(case, "test_data_set_*"))) * 2:
        feeds = inputs_of(alone, folder)
        try:
            if not same(alone.run(None, feeds), ours.run(None, feeds)):
                return taken, f"{os.path.basename(folder)}: other results"
        except Exception as e:
            return taken, f"{os.path.basename(folder)}: {e}"
    return taken, None


def main():
    register(sys.argv[1])
    pattern = sys.argv[3] if len(sys.argv) > 3 else "*"
    print("ONNX Runtime", onnxruntime.__version__)
    taken = skipped = failures = cases = 0
    with tempfile.TemporaryDirectory() as folder:
        newest = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # without it the newest packages are imported
        subprocess.run([sys.executable, "-B", os.path.join(here, "../../dynamic/make_cases.py"), folder], check=True,
                       stdout=subprocess.DEVNULL, env=newest)
        for name in sorted(fnmatch.filter(os.listdir(folder), pattern)):
            n, wrong = check_case(os.path.join(folder, name))
            cases += 1
            taken += n
            skipped += wrong == "skipped"
            if wrong and wrong != "skipped":
                failures += 1
                print(f"FAIL {name}: {wrong}", flush=True)
    print(f"{cases} cases, {skipped} of which ONNX Runtime does not run; {taken} nodes taken; {failures} failures")
    sys.exit(failures > 0 or (pattern == "*" and taken < LEAST_CLAIMED))


main()
