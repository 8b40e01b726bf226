"""Rows of make bench that measure onnx-xla itself: what a start, a new shape, another spelling of the same model and an idle process
cost.  Each is a function that yields (what was measured, value, limit, unit); a row fails if its value is above the limit."""
import math
import os
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench_models import HERE, Failed, call, find_model, read_models
from clients import Client
from statistic import geometric_mean

THREADS = 2


class Files:
    """Inputs in files, as clients want them, and models that are made here; all files are deleted at the end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="onnx-xla-rows-")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def feed(self, name, value):
        np.save(self.path(name + ".npy"), value)
        return name, self.path(name + ".npy")

    def environment(self, **more):
        return {"ONNX_XLA_CACHE": self.path("cache"), **more}


def best_ms(client, seconds=0.5):
    return 1e3 * client.measure(seconds, 3, 1)[0]


# --- starts ---

def starts():
    """The time from the start of a process to its first result, if the program is compiled untuned, compiled tuned, or in the cache."""
    for name in ("resnet50", "bert-base", "mobilenet-v2"):
        model = read_models()[name]
        model.prepare()
        with Files() as files:
            for what, limit_ms, environment in (("cold, untuned", 700, {"ONNX_XLA_CACHE": "", "ONNX_XLA_TUNE": "off"}),
                                                ("cold, tuned", 5000, files.environment()),
                                                ("warm", 30, files.environment())):
                client = Client("ours", model.path, THREADS, model.inputs, environment)
                steady = best_ms(client)
                client.close()
                yield f"{name}, {what}", 1e3 * client.first_s, limit_ms + 1.5 * steady, "ms"


# --- new shapes ---

def bert_feeds(length):
    rng = np.random.default_rng(length)
    return {"input_ids": rng.integers(0, 30522, (1, length)), "attention_mask": np.ones((1, length), np.int64),
            "token_type_ids": np.zeros((1, length), np.int64)}


def new_lengths(client, lengths, when):
    for length in lengths:
        for name, value in bert_feeds(length).items():
            client.set_input(name, value)
        first = 1e3 * client.measure(0, 1, 0)[0]
        yield f"BERT-base, first result at length {length}{when}", first, 100 + 1.5 * best_ms(client), "ms"


def new_shapes():
    """The time to the first result at a length that BERT has not met, after other lengths: the program is compiled in this process, or
    found in the cache."""
    path = find_model("make:bert-base-any")
    with Files() as files:
        feeds = [files.feed(name, value) for name, value in bert_feeds(128).items()]
        for lengths, when in ((100, 64, 37), ""), ((90,), ", after a warm start"):
            client = Client("ours", path, THREADS, feeds, files.environment())
            yield from new_lengths(client, lengths, when)
            client.close()


def many_shapes(shapes=1000, runs=10000):
    """Memory after all shapes were met twice, and after all runs."""
    rng = np.random.default_rng(1)
    with Files() as files:
        weights = [numpy_helper.from_array(rng.standard_normal((64, 64), np.float32) / 8, f"w{k}") for k in range(2)]
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
                 helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Softmax", ["c"], ["y"])]
        save(files.path("m.onnx"), nodes, {"x": ["n", 64]}, weights, 13)
        client = Client("ours", files.path("m.onnx"), THREADS, [files.feed("x", np.ones((1, 64), np.float32))],
                        files.environment(ONNX_XLA_TUNE="off"))
        settled = 0
        for k in range(runs):
            client.set_input("x", np.ones((k % shapes + 1, 64), np.float32))
            client.measure(0, 1, 0)
            if k + 1 == 2 * shapes:
                settled = client.megabytes()[0]
        yield f"memory after {runs} runs over {shapes} shapes; after {2 * shapes}: {settled:.1f}", client.megabytes()[0], \
            1.02 * settled + 1, "MB"
        client.close()


def memory():
    """The most memory that a warm start and a run take, compared with ONNX Runtime's, for models of more than 20 MB."""
    for model in read_models().values():
        model.prepare()
        if os.path.getsize(model.path) <= 20e6:
            continue
        with Files() as files:
            peaks = []
            for engine in ("ours", "ours", "ort"):  # the first is the cold start
                client = Client(engine, model.path, THREADS, model.inputs, files.environment())
                peaks.append(client.megabytes()[1])
                client.close()
        yield f"{model.name}, warm start beside ONNX Runtime's", peaks[1], peaks[2], "MB"


# --- programs for all sizes ---

def open_model(model):
    """Returns the path of the model with open dimensions, or None if there is none."""
    if model.source.startswith("make:"):
        made = model.source + "-any"
        return find_model(made) if made[5:] in call([os.path.join(HERE, "make-model"), "--list"]).split() else None
    graph = onnx.load(model.path, load_external_data=False).graph
    is_open = any(not d.HasField("dim_value") for i in graph.input for d in i.type.tensor_type.shape.dim)
    return model.path if is_open else None


def general():
    """The program for all sizes compared with the tuned one for these sizes: the ratio of their least times, measured in turns."""
    ratios = []
    for model in read_models().values():
        model.prepare()
        path = open_model(model)
        if not path:
            continue
        try:
            with Files() as files:
                clients = [Client("ours", path, THREADS, model.inputs, {"ONNX_XLA_CACHE": files.path(how), "BENCH_SPECIALISE": how})
                           for how in ("off", "full")]
                times = [[client.measure(0.2, 5, 1)[0] for client in clients] for _ in range(5)]
                for client in clients:
                    client.close()
            ratios.append(min(t[0] for t in times) / min(t[1] for t in times))
            yield f"{model.name}, program for all sizes / tuned program", ratios[-1], 1 / 0.75, ""
        except Failed as e:
            yield f"{model.name}: {e}", math.inf, 1 / 0.75, ""
    if ratios:
        yield f"geometric mean of {len(ratios)} models", geometric_mean(ratios), 1 / 0.9, ""


def specialising(runs=200):
    """Single runs of one size, in processes that make a program for it in the background and in processes that never do, in turns.
    What counts is the median of the processes' 99th percentiles, since the clock of a virtual machine has bursts of its own."""
    for name in ("resnet50", "mobilenet-v2", "ocr-rec", "lstm"):
        model = read_models()[name]
        model.prepare()
        late = {"off": [], "auto": []}
        for how in 6 * list(late):
            with Files() as files:
                client = Client("ours", open_model(model), THREADS, model.inputs,
                                {"ONNX_XLA_CACHE": files.path("cache"), "BENCH_SPECIALISE": how})
                late[how].append(np.percentile(client.run_list([{}] * runs), 99))
                client.close()
        ratio = float(np.median(late["auto"]) / np.median(late["off"]))
        yield f"{name}, 99th percentile of {runs} runs, specialising / not", ratio, 1.3, ""


# --- idle ---

def idle():
    """The CPU time that a process uses after a run, and while it waits for the next one."""
    model = read_models()["mobilenet-v2"]
    model.prepare()
    client = Client("ours", model.path, THREADS, model.inputs)
    client.measure(0.5, 3, 0)
    before, start = client.cpu_seconds(), time.perf_counter()
    time.sleep(5)
    after = client.cpu_seconds()
    yield "processor used in 5 s after a run", 100 * (after - before) / (time.perf_counter() - start), 0.1, "%"
    client.close()


# --- spelled out and fused ---

def save(path, nodes, inputs, weights, opset):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "row", values, [out], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)


def scalar(name, value):
    return numpy_helper.from_array(np.array(value, np.float32), name)


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def layer_norm():
    rng = np.random.default_rng(2)
    scale, bias = (numpy_helper.from_array(rng.random(768, np.float32), name) for name in ("g", "b"))
    spelled = [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Pow", "d two", "s"),
               node("ReduceMean", "s", "v", axes=[-1]), node("Add", "v eps", "w"), node("Sqrt", "w", "r"),
               node("Div", "d r", "n"), node("Mul", "n g", "t"), node("Add", "t b", "y")]
    fused = [node("LayerNormalization", "x g b", "y", axis=-1, epsilon=1e-5)]
    return {"x": [1, 128, 768]}, spelled, [scale, bias, scalar("two", 2), scalar("eps", 1e-5)], fused, [scale, bias], 17


def gelu():
    spelled = [node("Div", "x root", "a"), node("Erf", "a", "e"), node("Add", "e one", "p"), node("Mul", "x p", "q"),
               node("Mul", "q half", "y")]
    constants = [scalar("root", 2 ** 0.5), scalar("one", 1), scalar("half", 0.5)]
    return {"x": [1, 128, 3072]}, spelled, constants, [node("Gelu", "x", "y")], [], 20


def softmax():
    axes = numpy_helper.from_array(np.array([-1], np.int64), "axes")
    spelled = [node("ReduceMax", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Exp", "d", "e"),
               node("ReduceSum", "e axes", "s"), node("Div", "e s", "y")]
    return {"x": [1, 12, 128, 128]}, spelled, [axes], [node("Softmax", "x", "y", axis=-1)], [], 13


def attention():
    spelled = [node("Transpose", "k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "s"), node("Div", "s eight", "z"),
               node("Softmax", "z", "p", axis=-1), node("MatMul", "p v", "y")]
    dims = [1, 12, 128, 64]
    return {"q": dims, "k": dims, "v": dims}, spelled, [scalar("eight", 8)], [node("Attention", "q k v", "y")], [], 23


def spellings():
    """Several small operators compared with the one operator that means the same: the ratio of least times, measured in turns."""
    for make in (softmax, layer_norm, gelu, attention):
        inputs, spelled, constants, fused, weights, opset = make()
        rng = np.random.default_rng(3)
        with Files() as files:
            save(files.path("spelled.onnx"), spelled, inputs, constants, 13)
            save(files.path("fused.onnx"), fused, inputs, weights, opset)
            feeds = [files.feed(name, rng.standard_normal(dims, np.float32)) for name, dims in inputs.items()]
            clients = [Client("ours", files.path(f), THREADS, feeds, files.environment()) for f in ("spelled.onnx", "fused.onnx")]
            a, b = (client.outputs()[0] for client in clients)
            if not np.allclose(a, b, rtol=1e-4, atol=1e-5):
                yield f"{make.__name__}: spelled out and fused differ", float(np.abs(a - b).max()), 1e-5, ""
            times = [[client.measure(0.1, 5, 1)[0] for client in clients] for _ in range(9)]
            for client in clients:
                client.close()
            yield f"{make.__name__}, spelled out / fused", min(t[0] for t in times) / min(t[1] for t in times), 1.05, ""


# --- the same bits ---

def answers(path, threads, feeds, environment):
    client = Client("ours", path, threads, feeds, environment)
    got = [np.asarray(v).tobytes() for v in client.outputs()]
    client.close()
    return got


def bits():
    """The number of runs that give other bits than the first one, of three runs on 1, 2 and again 2 threads: if each run compiles a
    deterministic program, and if all three run the same tuned program."""
    for name in ("mobilenet-v2", "resnet50", "convnext-t", "lstm", "dlrm"):
        model = read_models()[name]
        model.prepare()
        fixed = {"ONNX_XLA_CACHE": "", "BENCH_DETERMINISTIC": "1"}
        with Files() as files:
            call([os.path.join(os.environ["top_builddir"], "onnx-xla"), "compile", "--quiet", "--no-cache", "--tune=fast",
                  f"--threads={THREADS}", "-o", files.path("m.oxla"), model.path])
            for what, path, environment in (("compiled anew, deterministic", model.path, fixed),
                                            ("one program", files.path("m.oxla"), files.environment())):
                got = [answers(path, threads, model.inputs, environment) for threads in (1, THREADS, THREADS)]
                yield f"{name}, {what}: runs that differ", sum(g != got[0] for g in got), 0, ""


ROWS = {"starts": starts, "new-shapes": new_shapes, "many-shapes": many_shapes, "memory": memory,
        "general": general, "specialising": specialising, "idle": idle, "spellings": spellings, "bits": bits}


def measure(rows):
    """Runs and prints the rows, {name: function}; returns (what, value, limit, unit, whether the limit was kept) of each."""
    done = []
    for name, row in rows.items():
        try:
            for what, value, limit, unit in row():
                kept = value <= limit
                done.append((what, value, limit, unit, kept))
                print(f"{name:16} {what:74} {value:9.3g} {unit:3} at most {limit:.3g} {unit}{'' if kept else '  FAILED'}", flush=True)
        except Failed as e:
            done.append((f"{name}: {e}", math.nan, math.nan, "", False))
            print(f"{name:16} FAILED: {e}", flush=True)
    return done
