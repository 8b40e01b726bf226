"""Cases of Attention and FlexAttention, whose expected values come from the specification's text written out in numpy, and of
attention as exporters write it for decoders and window transformers, whose expected values come from ONNX Runtime."""
import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import oracles

rng = np.random.default_rng(1)


def floats(*dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


def split(x, heads):
    return x if x.ndim == 4 else x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def softmax(x):
    """Softmax along the last axis; rows in which everything is masked become zeros."""
    most = x.max(-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(most), 0, most))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attention(q, k, v, mask=None, past_key=None, past_value=None, nonpad=None, *, scale=None, is_causal=0, softcap=0.0,
              q_num_heads=None, kv_num_heads=None, qk_matmul_output_mode=0, left_window_size=-1, right_window_size=-1,
              softmax_precision=None):
    """Computes the operator Attention in f64.  The last result is what qk_matmul_output_mode asks for."""
    packed = q.ndim == 3
    q, k, v = split(q, q_num_heads), split(k, kv_num_heads), split(v, kv_num_heads)
    if past_key is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    present = k, v
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, np.repeat(k, group, 1), np.repeat(v, group, 1)))
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else scale
    stages = [scale * q @ k.swapaxes(2, 3)]
    stages.append(softcap * np.tanh(stages[0] / softcap) if softcap else stages[0])
    batch, _, steps, total = stages[0].shape
    bias = np.zeros((batch, 1, steps, total))
    if mask is not None:
        extra = total - mask.shape[-1] if mask.shape[-1] != 1 else 0
        mask = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        bias = bias + np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, extra)], constant_values=-np.inf)
    offset = np.zeros(batch, int) + (0 if past_key is None else past_key.shape[2])
    offset = offset if nonpad is None else nonpad - steps
    place = np.arange(steps)[None, :, None] + offset[:, None, None]
    key = np.arange(total)[None, None, :]
    seen = np.ones((batch, steps, total), bool)
    if is_causal:
        seen &= key <= place
    if left_window_size >= 0:
        seen &= key >= place - left_window_size
    if right_window_size >= 0:
        seen &= key <= place + right_window_size
    if nonpad is not None:
        seen &= key < nonpad[:, None, None]
    stages.append(stages[1] + bias + np.where(seen, 0, -np.inf)[:, None])
    stages.append(softmax(stages[2]))
    y = stages[3] @ v
    if packed:
        y = y.transpose(0, 2, 1, 3).reshape(batch, steps, -1)
    return y, *present, stages[qk_matmul_output_mode]


def case(w, inputs, name, outputs=4, since=25, **attributes):
    y = attention(*inputs, **attributes)
    kinds = [inputs[0].dtype, inputs[1].dtype, inputs[2].dtype, inputs[0].dtype]
    expected = [y[k].astype(kinds[k]) if outputs >> k & 1 else None for k in range(4)]
    while expected[-1] is None:
        expected.pop()
    w.add("Attention", inputs, expected, attributes, name=name, opset=since)


def write_attention(w):
    q, k, v = floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)
    for left, right, causal in itertools.product((-1, 0, 1, 7), (-1, 0, 2), (0, 1)):
        case(w, [q, k, v], "window", 1, left_window_size=left, right_window_size=right, is_causal=causal)
    past = [floats(2, 2, 3, 8), floats(2, 2, 3, 6)]
    for left, right in ((-1, -1), (2, 1)):
        case(w, [q, k, v, None, *past], "past", 7, is_causal=1, left_window_size=left, right_window_size=right)
        for lengths in ([2, 5], [3, 4], [0, 1]):
            case(w, [q, k, v, None, None, None, np.array(lengths)], "nonpad", 1, is_causal=1,
                 left_window_size=left, right_window_size=right)
    case(w, [q, k, v, None, None, None, np.array([5, 0])], "nonpad", 1, since=24)
    long_q = floats(2, 4, 7, 8)
    case(w, [long_q, k, v], "more_queries_than_keys", 1, is_causal=1, since=23)
    case(w, [long_q, k, v], "more_queries_than_keys", 1, left_window_size=0)
    seen = rng.random((2, 4, 3, 5)) < 0.6
    seen[0, 1, 2] = False  # a query that sees nothing
    for mask in (seen, seen[0, 0], seen[:1, :1], seen[0], seen[0, 0, 0], seen[..., :4], np.where(seen, 0, -np.inf).astype("f")):
        for mode in (2, 3):
            case(w, [q, k, v, mask], "mask", 9, qk_matmul_output_mode=mode, is_causal=mode - 2)
    case(w, [q, k, v, floats(3, 5)], "mask", 1, softcap=2.0)
    for whole in (np.int32, np.uint8, np.int64):
        case(w, [q, k, v, rng.integers(0, 3, (3, 5)).astype(whole)], "mask_of_integers", 1)
    for mode in range(4):
        case(w, [q, k, v, seen[..., :3]], "mode", 15, qk_matmul_output_mode=mode, softcap=1.5, scale=0.3)
    packed = [floats(2, 3, 32), floats(2, 5, 16), floats(2, 5, 12)]
    case(w, packed, "packed", 15, q_num_heads=4, kv_num_heads=2, is_causal=1)
    case(w, [packed[0], packed[1], packed[2], seen[..., :4], *past], "packed", 15, q_num_heads=4, kv_num_heads=2, scale=0.1)
    case(w, [q, k, v.astype(np.float64)], "double_values", 1)
    for dtype, precision in ((np.float16, 1), (np.float64, 11), (np.float64, 1), (np.float32, 10), (np.float32, 16)):
        case(w, [x.astype(dtype) for x in (q, k, v)], "precision", 1, softmax_precision=precision)
    case(w, [q[:, :, :0], k, v], "empty", 1)


def flex(q, k, v, scale, score, prob):
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, np.repeat(k, group, 1), np.repeat(v, group, 1)))
    x = scale * q @ k.swapaxes(2, 3)
    return prob(softmax(score(x))) @ v


def subgraph(name, op, constant, dims, kind):
    """Returns a graph that computes `x op constant` for arrays of these dims."""
    info = [helper.make_tensor_value_info(n, kind, dims) for n in ("in_" + name, "out_" + name)]
    number = helper.make_tensor("c_" + name, kind, [], [constant])
    return helper.make_graph([helper.make_node(op, ["in_" + name, "c_" + name], ["out_" + name])], name, info[:1],
                             info[1:], [number])


def write_flex_attention(w):
    for dtype, precision in ((np.float32, None), (np.float32, 11), (np.float64, 11), (np.float16, 1), (np.float16, None)):
        q, k, v = floats(2, 4, 3, 8, dtype=dtype), floats(2, 2, 5, 8, dtype=dtype), floats(2, 2, 5, 6, dtype=dtype)
        kind = precision or (TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT)
        for scale in (None, 0.25):
            attributes = {"score_mod": subgraph("score", "Mul", 1.5, [2, 4, 3, 5], kind),
                          "prob_mod": subgraph("prob", "Sub", 0.25, [2, 4, 3, 5], kind)}
            attributes |= {"scale": scale} if scale else {}
            attributes |= {"softmax_precision": precision} if precision else {}
            y = flex(q, k, v, scale or 1 / np.sqrt(8), lambda x: x * 1.5, lambda p: p - 0.25)
            w.add("FlexAttention", [q, k, v], [y.astype(dtype)], attributes, domain="ai.onnx.preview")


class Spelled:
    """A graph of nodes as PyTorch's exporter writes them."""

    def __init__(self):
        self.nodes, self.constants, self.inputs = [], [], []

    def input(self, name, *dims):
        self.inputs.append((name, floats(*dims)))
        return name

    def op(self, kind, *inputs, **attributes):
        given = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        name = "%s_%d" % (kind, len(self.nodes))
        self.nodes.append(helper.make_node(kind, given, [name], **attributes))
        return name

    def constant(self, value):
        name = "constant_%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def repeated(self, x, batch, heads, times, rows, width):
        """Repeats each head `times` times, one after the other."""
        x = self.op("Unsqueeze", x, np.array([2]))
        x = self.op("Expand", x, np.array([batch, heads, times, rows, width]))
        return self.op("Reshape", x, np.array([batch, heads * times, rows, width]))

    def attend(self, q, k, v, width, mask=None):
        x = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        x = self.op("Mul", x, np.float32(1 / np.sqrt(width)))
        x = self.op("Add", x, mask) if mask else x
        return self.op("MatMul", self.op("Softmax", x, axis=-1), v)

    def finish(self, w, name, y):
        nodes = self.nodes + [helper.make_node("Identity", [y], ["y"])]
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in self.inputs]
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "case", info, [out], self.constants)
        w.add_graph(name, graph, self.inputs, [("y", oracles.run_graph(graph, dict(self.inputs), 17))],
                    [helper.make_opsetid("", 17)])


def decoder(w, name, batch, rows, keys, heads, times, which):
    """Attention with grouped heads; which: the letters of those of q, k and v that the graph repeats."""
    g, width = Spelled(), 8
    values = {}
    for x, n in (("q", rows), ("k", keys), ("v", keys)):
        values[x] = (g.repeated(g.input(x, batch, heads, n, width), batch, heads, times, n, width) if x in which else
                     g.input(x, batch, heads * times, n, width))
    mask = g.op("Expand", g.input("mask", 1, 1, rows, keys), np.array([batch, 1, rows, keys]))
    y = g.op("Transpose", g.attend(values["q"], values["k"], values["v"], width, mask), perm=[0, 2, 1, 3])
    g.finish(w, name, g.op("Reshape", y, np.array([batch, rows, -1])))


def windows(w, name, batch, count, rows, heads):
    """Attention as in GCViT, where the queries of an image are used for each of its windows."""
    g, width = Spelled(), 8
    q = g.op("Unsqueeze", g.input("q", batch, rows, heads * width), np.array([1]))
    q = g.op("Expand", q, np.array([batch, count, rows, heads * width]))
    q = g.op("Reshape", q, np.array([batch * count, rows, heads, width]))
    q = g.op("Transpose", q, perm=[0, 2, 1, 3])
    kv = g.op("Reshape", g.input("kv", batch * count, rows, 2 * heads * width), np.array([batch * count, rows, 2, heads, width]))
    kv = g.op("Transpose", kv, perm=[2, 0, 3, 1, 4])
    k, v = (g.op("Gather", kv, np.array(n), axis=0) for n in (0, 1))
    y = g.op("Transpose", g.attend(q, k, v, width), perm=[0, 2, 1, 3])
    g.finish(w, name, g.op("Reshape", y, np.array([batch * count, rows, heads * width])))


def write_repeated_heads(w):
    for batch, rows, which in itertools.product((1, 2, 3), (1, 7, 8, 9, 33), ("kv", "k", "v", "q", "qkv")):
        if which == "kv" or (batch, rows) == (2, 8):
            decoder(w, "decoder_" + which, batch, rows, 12, 2, 3, which)
            decoder(w, "one_head_" + which, batch, rows, 12, 1, 4, which)
    for batch, rows in itertools.product((1, 2), (4, 9, 49)):
        windows(w, "windows", batch, 3, rows, 2)
