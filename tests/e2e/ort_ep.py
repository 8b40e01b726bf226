"""ort_ep.py PLUGIN DATA: ONNX Runtime with our execution provider beside ONNX Runtime alone.

Trained models from wheels and ONNX's light graphs with random weights: the same numbers, nearly all nodes taken in few groups;
compiled models saved and loaded (EPContext)."""
import os
import sys
import tempfile
import time

import numpy as np
import onnx

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ort_sessions import NAME, VERBOSE, claimed, register, session  # noqa: E402
from randomize_light import randomize  # noqa: E402

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
    ours, (taken, nodes, groups) = claimed(lambda: session(path, log=VERBOSE))
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


def main():
    register(sys.argv[1])
    failures = run_models(sys.argv[2])
    for f in failures:
        print("FAIL", f)
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
