"""Lists of inputs of many sizes, for run-sizes: what a server meets after a model's first run.

A row is a model, the inputs of a first run at a size of its own, and the inputs of the runs that follow, in an order that is
fixed by a seed.  Outputs may be carried into the next run, as keys and values are.  To add a row: a function with @row."""
import numpy as np

from bench_models import make_array
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
