"""light_models.py DATA [--full]: checks that the convolution networks of ONNX's light_* models, with seeded random weights
(randomize_light.py) and without their softmax, give the same numbers as in ONNX Runtime.

Two small models run on the reference and the CPU backend; with --full, all models run on the CPU backend.  Differences are relative
to the largest output.  Sums in another order differ by a few times 2^-24 in each layer, which grows through up to 120 layers."""
import os
import sys
import tempfile

import numpy as np
import onnx

from compare_ort import Report, run_ort
from randomize_light import randomize

SMALL = ("squeezenet", "shufflenet")
ALL = SMALL + ("bvlc_alexnet", "zfnet512", "inception_v1", "inception_v2", "resnet50", "densenet121", "vgg19")
TOLERANCE = 2e-5


def compare(report, data, name, backends, folder):
    light = os.path.join(data, "onnx", "backend", "test", "data", "light", f"light_{name}.onnx")
    path = os.path.join(folder, "model.onnx")
    model = randomize(onnx.load(light))
    onnx.save(model, path)
    rng = np.random.default_rng(7)
    inputs = {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
        for i in model.graph.input
    }
    want = run_ort(path, inputs)
    spread = float(np.std(want[0]))
    for backend in backends:
        report.check(f"{name}, outputs of deviation {spread:.2g}", path, inputs, backend, want, TOLERANCE)
    os.remove(path)
    if not 1e-3 < spread < 1e4:
        print(f"FAIL {name}: the random weights let activations die out or explode")
        report.bad += 1


def main():
    report = Report()
    full = "--full" in sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        for name in ALL if full else SMALL:
            compare(report, sys.argv[1], name, ("ref", "cpu") if name in SMALL else ("cpu",), folder)
    report.finish()


if __name__ == "__main__":
    main()
