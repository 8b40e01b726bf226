"""Lists of inputs of many sizes, for run-sizes: what a server meets after a model's first run.  Rows for the models of the bench, and
any_model for any other file.

A row is a model, the inputs of a first run at a size of its own, and the inputs of the runs that follow, in an order that is
fixed by a seed.  Outputs may be carried into the next run, as keys and values are.  To add a row: a function with @row."""
import os

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from bench_models import Failed, make_array
from rows import bert_feeds

ROWS = {}


class SizeList:
    """first: {name: array} of the first run; steps: for each further run {name: array} of the inputs that change; carries: (output's
    number, input, the dimension along which it grows, or -1)."""

    def __init__(self, model, first, steps, carries=(), tolerance=1e-3):
        self.model, self.first, self.steps, self.carries, self.tolerance = model, first, steps, carries, tolerance


def row(name):
    def add(function):
        ROWS[name] = function
        return function
    return add


def draw(low, high, step, n, seed=1):
    """Returns n of the sizes low, low + step, ... high in random order; each of them occurs before one occurs again."""
    rng, sizes = np.random.default_rng(seed), []
    while len(sizes) < n:
        sizes += list(rng.permutation(np.arange(low, high + 1, step)))
    return [int(s) for s in sizes[:n]]


def images(model, name, first, sizes, channels=3, batch=1, **options):
    def picture(seed, height, width, n=batch):
        return {name: make_array("uniform", [n, channels, height, width], seed)}
    return SizeList(model, picture(0, *first), [picture(k + 1, *s) for k, s in enumerate(sizes)], **options)


# --- pictures ---

@row("recogniser")
def recogniser():
    return images("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "x", (48, 320), [(48, w) for w in draw(96, 640, 8, 30)])


@row("detector")
def detector():
    sizes = zip(draw(320, 960, 32, 10), draw(320, 960, 32, 10, seed=2))
    # Its sigmoids are about 1e-5 here; ONNX Runtime's are off by 1e-7, as if they were near 1.
    return images("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "x", (640, 640), list(sizes), tolerance=1e-2)


@row("yolov8n")
def yolov8n():
    return images("make:yolov8n-any", "input", (640, 640), list(zip(draw(256, 640, 64, 6), draw(256, 640, 64, 6, seed=2))))


@row("unet")
def unet():
    return images("make:unet-any", "input", (256, 256), [(192, 320), (128, 128), (320, 256), (224, 224)])


@row("vit-b16")
def vit():
    return images("make:vit-b16-any", "input", (224, 224, 2), [(224, 224, n) for n in draw(1, 8, 1, 8)])


@row("faster-rcnn")
def faster_rcnn():
    """Pictures of one size in which different numbers of boxes are found.  Rounding changes which boxes are found, so results are not
    compared."""
    return images("make:faster-rcnn-any", "input", (320, 320), [(320, 320)] * 20, tolerance=None)


# --- sequences ---

@row("bert-base")
def bert():
    return SizeList("make:bert-base-any", bert_feeds(128), [bert_feeds(n) for n in draw(5, 384, 1, 40) if n != 128])


@row("deberta")
def deberta():
    def text(length):
        return {name: value for name, value in bert_feeds(length).items() if name != "token_type_ids"}
    return SizeList("make:deberta-any", text(128), [text(n) for n in draw(5, 384, 1, 40) if n != 128])


@row("lstm")
def lstm():
    def signal(length):
        return {"input": make_array("normal", [1, length, 512], length)}
    return SizeList("make:lstm-any", signal(50), [signal(n) for n in draw(10, 200, 3, 30)])


@row("silero-vad")
def silero():
    """A stream of 200 windows at 16 kHz, each with the state that the one before left, after a first run with a window at 8 kHz."""
    def window(seed, samples, rate):
        return {"input": make_array("normal", [1, samples], seed), "sr": np.array(rate, np.int64)}
    state = {"state": np.zeros((2, 1, 128), np.float32)}
    steps = [window(k, 576, 16000) for k in range(200)]
    return SizeList("silero_vad/data/silero_vad.onnx", {**window(0, 288, 8000), **state}, [{**steps[0], **state}, *steps[1:]],
                    [(1, "state", -1)])


# --- decoders: token by token, keys and values carried ---

def decoder(model, tokens, words, layers, heads, encoded=0):
    rng = np.random.default_rng(1)

    def token():
        return {"input_ids": rng.integers(0, words, (1, 1))}

    def cache(name, length):
        return {f"{name}_{what}_{k}": make_array("normal", [1, heads, length, 64], 2 * k + (what == "value"))
                for k in range(layers) for what in ("key", "value")}
    cross = cache("cross", encoded) if encoded else {}
    carries = [(1 + 2 * k + j, f"past_{what}_{k}", 2) for k in range(layers) for j, what in enumerate(("key", "value"))]
    steps = [{**token(), **cache("past", 0)}, *[token() for _ in range(tokens - 1)]]
    return SizeList("make:" + model, {**token(), **cache("past", 7), **cross}, steps, carries)


@row("gpt2")
def gpt2():
    return decoder("gpt2-any", 128, 50257, 12, 12)


@row("gpt-small")
def gpt_small():
    return decoder("gpt-small-any", 256, 8000, 4, 4)


@row("gpt-small-1000")
def gpt_small_1000():
    """Pasts from 0 to 1,000, where copying keys and values would take more time than everything else."""
    return decoder("gpt-small-any", 1000, 8000, 4, 4)


@row("llama")
def llama():
    return decoder("llama-any", 128, 32000, 6, 2)


@row("gpt2-1000")
def gpt2_1000():
    return decoder("gpt2-any", 1000, 50257, 12, 12)


@row("llama-1000")
def llama_1000():
    return decoder("llama-any", 1000, 32000, 6, 2)


@row("whisper")
def whisper():
    return decoder("whisper-any", 64, 51865, 4, 6, encoded=1500)


@row("t5")
def t5():
    return decoder("t5-any", 64, 32128, 6, 8, encoded=40)


# --- any model ---

def read_ranges(texts):
    """Returns {name: the sizes that the dimension may have} of texts NAME=N, NAME=A..B and NAME=A..B/STEP."""
    ranges = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        try:
            span, _, step = sizes.partition("/")
            low, _, high = span.partition("..")
            ranges[name] = range(int(low), int(high or low) + 1, int(step or 1))
        except ValueError as e:
            raise Failed(f"--dim {text}: NAME=N, NAME=A..B or NAME=A..B/STEP is wanted") from e
        if not name or not ranges[name]:
            raise Failed(f"--dim {text}: there is no such size")
    return ranges


def size_of(dim, sizes):
    """Returns the size of a dimension of an input; a name such as "past + new" is a sum of other dimensions."""
    name = dim.dim_param
    if not name:
        return dim.dim_value
    parts = [name] if name in sizes else [part.strip() for part in name.split("+")]
    missing = [part for part in parts if part not in sizes and not part.isdigit()]
    if missing:
        raise Failed(f"the model leaves sizes open: --dim {missing[0]}=A..B")
    return sum(sizes[part] if part in sizes else int(part) for part in parts)


def value_of(name, kind, dims, rng):
    """Returns numbers that nearly all models take: masks of ones, integers that are 0 or 1, normally distributed floats."""
    if "mask" in name:
        return np.ones(dims, kind)
    if np.issubdtype(kind, np.floating):
        return rng.standard_normal(dims).astype(kind)
    return rng.integers(0, 2, dims).astype(kind)


def any_model(path, ranges, steps):
    """Returns a list of `steps` runs of the model; each open dimension has random sizes of its range in `ranges`."""
    if not os.path.exists(path):
        raise Failed(f"{path} is not there")
    model = onnx.load(path, load_external_data=False)
    weights = {w.name for w in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    odd = [i.name for i in inputs if not i.type.HasField("tensor_type") or not i.type.tensor_type.HasField("shape")]
    if odd:
        raise Failed(f"input {odd[0]} is no array of a known rank")

    def draw(seed):
        rng = np.random.default_rng(seed)
        sizes = {name: int(rng.choice(span)) for name, span in ranges.items()}
        return {i.name: value_of(i.name, tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
                                 [size_of(d, sizes) for d in i.type.tensor_type.shape.dim], rng) for i in inputs}
    return SizeList(os.path.abspath(path), draw(0), [draw(k + 1) for k in range(steps)])
