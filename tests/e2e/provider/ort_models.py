"""The models that the tests of the execution provider run: trained ones from wheels, ONNX's light graphs with random
weights, transformers with open sizes."""
import os
import sys

import numpy as np
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import transformer_models as transformers  # noqa: E402
from randomize_light import randomize  # noqa: E402

KINDS = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Model:
    """feeds: inputs for runs one after the other, of several sizes where the model is open."""

    def __init__(self, name, path, feeds):
        self.name, self.path, self.feeds = name, path, feeds


def normal(rng, *dims):
    return rng.standard_normal(dims, np.float32)


def page(rng, height, width):
    """Returns a white picture with lines of black blocks, which a detector takes for text; in noise it would find nothing."""
    x = np.ones((height, width), np.float32)
    for top in range(16, height - 16, 32):
        x[top:top + 16, 16:width - 16] = np.kron(rng.integers(0, 2, (4, width // 4 - 8)), np.ones((4, 4)))
    return np.tile(2 * x - 1, (1, 3, 1, 1))


def light(data, folder, name):
    path = os.path.join(folder, name + ".onnx")
    model = randomize(onnx.load(os.path.join(data, f"onnx/backend/test/data/light/light_{name}.onnx")))
    onnx.save(model, path)
    value = model.graph.input[0]
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return Model(name, path, [{value.name: normal(np.random.default_rng(1), *dims)}])


def transformer(folder, name, model, feeds):
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    return Model(name, path, feeds)


def bert(folder, rng, **size):
    return transformer(folder, "bert", transformers.bert(**size), [
        transformers.bert_feeds(rng, batch, length) for batch, length in ((1, 128), (1, 17), (2, 40), (1, 128))])


def gpt2(folder, rng):
    """A small GPT-2 that reads a text, continues it with its own keys and values, and begins with another text."""
    return transformer(folder, "gpt2", transformers.gpt2(), [
        transformers.gpt2_feeds(rng, *sizes) for sizes in ((1, 0, 16), (1, 16, 1), (1, 17, 1), (1, 100, 1), (2, 5, 3))])


def all_models(data, folder):
    rng = np.random.default_rng(1)
    ocr = os.path.join(data, "rapidocr_onnxruntime/models")
    yield light(data, folder, "squeezenet")
    yield light(data, folder, "shufflenet")
    yield Model("ocr-cls", f"{ocr}/ch_ppocr_mobile_v2.0_cls_infer.onnx", [
        {"x": normal(rng, n, 3, 48, 192)} for n in (1, 2)])
    yield Model("ocr-det", f"{ocr}/ch_PP-OCRv4_det_infer.onnx", [{"x": page(rng, *s)} for s in ((96, 160), (64, 64))])
    yield Model("ocr-rec", f"{ocr}/ch_PP-OCRv4_rec_infer.onnx", [{"x": normal(rng, 1, 3, 48, w)} for w in (320, 200)])
    yield Model("magika", os.path.join(data, "magika/models/standard_v3_3/model.onnx"), [
        {"bytes": rng.integers(0, 256, (n, 2048), np.int32)} for n in (1, 3)])
    yield Model("silero-vad", os.path.join(data, "silero_vad/data/silero_vad.onnx"), [
        {"input": normal(rng, 1, n), "state": normal(rng, 2, 1, 128), "sr": np.array(rate, np.int64)}
        for n, rate in ((576, 16000), (288, 8000))])
    yield bert(folder, rng)
    yield gpt2(folder, rng)
