"""ort_ep.py PLUGIN models DATA | cases DATA: ONNX Runtime with our execution provider beside ONNX Runtime alone.

models: trained models from wheels and ONNX's light graphs with random weights: the same numbers, nearly all nodes taken in few
groups; compiled models saved and loaded (EPContext).
cases: ONNX's conformance cases with everything claimed: what ONNX Runtime passes alone must pass with the provider too."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from randomize_light import randomize  # noqa: E402

NAME = "OnnxXlaExecutionProvider"
TAKEN = re.compile(r"onnx-xla takes (\d+) of (\d+) nodes in (\d+) groups")


def devices():
    return [d for d in ort.get_ep_devices() if d.ep_name == NAME]


def session(model, provider=True, options=None, config=None, log=3):
    so = ort.SessionOptions()
    so.log_severity_level = log
    for key, value in (config or {}).items():
        so.add_session_config_entry(key, value)
    if provider:
        so.add_provider_for_devices(devices(), options or {})
        return ort.InferenceSession(model, sess_options=so)
    return ort.InferenceSession(model, sess_options=so, providers=["CPUExecutionProvider"])


def claimed(make):
    """What make() gives, and (nodes taken, nodes, groups) as the provider logs it, on standard error only."""
    with tempfile.TemporaryFile() as caught:
        saved = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            made = make()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        caught.seek(0)
        found = TAKEN.findall(caught.read().decode(errors="replace"))
    return made, tuple(int(x) for x in found[0]) if found else (0, 0, 0)


# --- models ---

def feeds_of(s, rng, shapes):
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feeds = {}
    for i in s.get_inputs():
        if i.name in shapes:
            value = shapes[i.name]
            shape = value if isinstance(value, list) else None
            feeds[i.name] = value if shape is None else None
        else:
            shape = [d if isinstance(d, int) else 1 for d in i.shape]
        if shape is not None:
            kind = kinds[i.type]
            feeds[i.name] = (rng.standard_normal(shape).astype(kind) if kind == np.float32
                             else rng.integers(0, 200, shape).astype(kind))
    return feeds


def models_of(data, folder):
    """(name, model's path, shapes of inputs, several of them for dynamic models)"""
    ocr = os.path.join(data, "rapidocr_onnxruntime/models")
    for light in ("squeezenet", "shufflenet"):
        path = os.path.join(folder, light + ".onnx")
        onnx.save(randomize(onnx.load(os.path.join(data, f"onnx/backend/test/data/light/light_{light}.onnx"))), path)
        yield light, path, [{}]
    yield "ocr-cls", f"{ocr}/ch_ppocr_mobile_v2.0_cls_infer.onnx", [{"x": [n, 3, 48, 192]} for n in (1, 2)]
    yield "ocr-rec", f"{ocr}/ch_PP-OCRv4_rec_infer.onnx", [{"x": [1, 3, 48, w]} for w in (320, 200)]
    yield "magika", os.path.join(data, "magika/models/standard_v3_3/model.onnx"), [{"bytes": [n, 2048]} for n in (1, 3)]
    yield "silero-vad", os.path.join(data, "silero_vad/data/silero_vad.onnx"), [
        {"input": [1, 576], "state": [2, 1, 128], "sr": np.array(16000, np.int64)}]


def worst_difference(want, got):
    worst = 0
    for a, b in zip(want, got):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{b.dtype}{b.shape} instead of {a.dtype}{a.shape}"
        if a.size and a.dtype.kind == "f":
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max() / max(1e-30, np.abs(a).max())))
        elif not np.array_equal(a, b):
            return "other integers"
    return worst


def check_model(name, path, sets, rng):
    alone = session(path, provider=False)
    ours, (taken, nodes, groups) = claimed(lambda: session(path, log=1))
    worst = 0
    for shapes in sets:
        feeds = feeds_of(alone, rng, shapes)
        far = worst_difference(alone.run(None, feeds), ours.run(None, feeds))
        if isinstance(far, str):
            return f"{name}: {far}"
        worst = max(worst, far)
    print(f"{name:12} {taken} of {nodes} nodes in {groups} groups, off by {worst:.1e} of the largest number", flush=True)
    if taken < 0.95 * nodes or groups > 3:
        return f"{name}: too few nodes, or too many groups"
    return f"{name}: numbers differ" if not worst <= 1e-3 else None  # f32 summed in another order, through whole networks


def check_context(name, path, shapes, rng, folder, embed):
    """Compiled once, saved into a model, loaded without compiling."""
    saved = os.path.join(folder, f"{name}-{embed}.onnx")
    config = {"ep.context_enable": "1", "ep.context_embed_mode": str(embed), "ep.context_file_path": saved}
    start = time.perf_counter()
    first = session(path, config=config)
    compiled = time.perf_counter() - start
    start = time.perf_counter()
    second = session(saved)
    loaded = time.perf_counter() - start
    feeds = feeds_of(first, rng, shapes)
    nodes = [n.op_type for n in onnx.load(saved, load_external_data=False).graph.node]
    print(f"{name:12} EPContext, embedded {embed}: {compiled:.3f} s, then {loaded:.3f} s: {compiled / loaded:.0f} times", flush=True)
    if "EPContext" not in nodes:
        return f"{name}: no EPContext node: {nodes}"
    same = all(np.array_equal(a, b) for a, b in zip(first.run(None, feeds), second.run(None, feeds)))
    return None if same else f"{name}: the loaded model gives other numbers"


def check_verify(path, rng):
    s = session(path, options={"verify": "1", "threads": "1"})
    s.run(None, feeds_of(s, rng, {}))
    fallen_back, _ = claimed(lambda: session(path, options={"threads": "many"}))  # as ONNX Runtime's Python does
    return "a wrong option is taken" if NAME in fallen_back.get_providers() else None


def run_models(data):
    rng = np.random.default_rng(1)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path, sets in models_of(data, folder):
            failures.append(check_model(name, path, sets, rng))
            if name in ("squeezenet", "ocr-cls"):
                failures += [check_context(name, path, sets[0], rng, folder, embed) for embed in (0, 1)]
            if name == "squeezenet":
                failures.append(check_verify(path, rng))
    return [f for f in failures if f]


# --- cases ---

def read_values(folder, kind):
    values = []
    for k in range(len(glob.glob(os.path.join(folder, kind + "_*.pb")))):
        with open(os.path.join(folder, f"{kind}_{k}.pb"), "rb") as f:
            t = onnx.TensorProto()
            t.ParseFromString(f.read())
        values.append(numpy_helper.to_array(t))
    return values


def passes(s, data_sets):
    for folder in data_sets:
        inputs, want = read_values(folder, "input"), read_values(folder, "output")
        got = s.run(None, dict(zip([i.name for i in s.get_inputs()], inputs)))
        for a, b in zip(want, got):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            if a.dtype.kind == "f" and not np.allclose(b.astype(np.float64), a.astype(np.float64), 1e-3, 1e-5, equal_nan=True):
                return False
            if a.dtype.kind != "f" and not np.array_equal(a, b):
                return False
    return True


def outcome(make, data_sets):
    try:
        return passes(make(), data_sets)
    except Exception:
        return False


def run_case(case):
    """A line for each of some cases: its folder, whether it passes with us and alone, whether all nodes were taken."""
    model, sets = os.path.join(case, "model.onnx"), sorted(glob.glob(os.path.join(case, "test_data_set_*")))
    with_us, (taken, nodes, _) = claimed(lambda: outcome(lambda: session(model, options={"claim": "all"}, log=1), sets))
    alone = outcome(lambda: session(model, provider=False), sets)
    print(json.dumps([case, with_us, alone, nodes > 0 and taken == nodes]), flush=True)


def run_batch(batch):
    """The results of cases that one process ran; it may have crashed before their end."""
    done = subprocess.run([sys.executable, "-B", __file__, sys.argv[1], "batch", *batch], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def run_cases(data):
    failures, wholly, both = [], 0, 0
    left = [c for c in sorted(glob.glob(os.path.join(data, "onnx/backend/test/data/*/*")))
            if os.path.exists(os.path.join(c, "model.onnx")) and os.path.isdir(os.path.join(c, "test_data_set_0"))]
    while left:
        batch, left = left[:100], left[100:]
        results = run_batch(batch)
        for case, with_us, alone, whole in results:
            both += with_us and alone
            wholly += with_us and whole
            if alone and not with_us:
                failures.append(os.path.basename(case))
        if len(results) < len(batch):
            failures.append(os.path.basename(batch[len(results)]) + ": crash")
            left = batch[len(results) + 1:] + left
    print(f"{wholly} cases pass wholly in our provider, {both} with it and without")
    if wholly < 1300:
        failures.append(f"only {wholly} cases run wholly in our provider")
    return failures


def main():
    ort.register_execution_provider_library(NAME, sys.argv[1])
    if sys.argv[2] == "batch":
        for case in sys.argv[3:]:
            run_case(case)
        return
    failures = {"models": run_models, "cases": run_cases}[sys.argv[2]](sys.argv[3])
    for f in failures:
        print("FAIL", f)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
