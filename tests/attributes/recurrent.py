"""LSTM, GRU and RNN by ONNX Runtime; LinearAttention, CausalConvWithState and RotaryEmbedding by ONNX's reference."""
import itertools

import numpy as np
from onnx import TensorProto

import oracles

rng = np.random.default_rng(3)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
# name: how many of activation_alpha and activation_beta it consumes
ACTIVATIONS = {"Relu": (0, 0), "Tanh": (0, 0), "Sigmoid": (0, 0), "Affine": (1, 1), "LeakyRelu": (1, 0),
               "ThresholdedRelu": (1, 0), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1), "Elu": (1, 0), "Softsign": (0, 0),
               "Softplus": (0, 0)}


def floats(*dims):
    return (rng.standard_normal(dims) * 0.7).astype(np.float32)


def layer(op, directions, steps=4, batch=3, inputs=5, hidden=6, optional=()):
    """Returns the inputs of a layer; optional: which of B, lens, h, c and P it has."""
    n = GATES[op] * hidden
    have = {"B": floats(directions, 2 * n), "lens": np.array([steps, 1, steps - 1], np.int32)[:batch],
            "h": floats(directions, batch, hidden), "c": floats(directions, batch, hidden), "P": floats(directions, 3 * hidden)}
    names = ("B", "lens", "h", "c", "P") if op == "LSTM" else ("B", "lens", "h")
    rest = [have[k] if k in optional else None for k in names]
    while rest and rest[-1] is None:
        rest.pop()
    return [floats(steps, batch, inputs), floats(directions, n, inputs), floats(directions, n, hidden), *rest]


def turn(x, axes):
    return None if x is None else np.ascontiguousarray(x.transpose(axes))


def case(w, op, x, attributes, name, layout=False):
    attributes = attributes | {"hidden_size": x[2].shape[2]}
    kinds = [TensorProto.FLOAT] * (3 if op == "LSTM" else 2)
    y = oracles.run("ort", op, x, kinds, attributes, 14)
    w.add(op, x, y, attributes, name=name, opset=14)
    if not layout:
        return
    # the other layout, which ONNX Runtime lacks, is the same with batch and steps exchanged
    swapped = [turn(v, (1, 0, 2)) if k in (0, 5, 6) else v for k, v in enumerate(x)]
    y = [turn(y[0], (2, 0, 1, 3))] + [turn(v, (1, 0, 2)) for v in y[1:]]
    w.add(op, swapped, y, attributes | {"layout": 1}, name=name + "_layout", opset=22)


def write_recurrent(w):
    every = ("B", "lens", "h", "c", "P")
    for op in GATES:
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            case(w, op, layer(op, n, optional=every), {"direction": direction}, direction, layout=True)
            case(w, op, layer(op, n, optional=every), {"direction": direction, "clip": 0.4}, "clip")
        for optional in ((), ("lens",), ("B", "h"), ("h", "P"), ("P",)):
            case(w, op, layer(op, 1, optional=optional), {}, "optional")
        for name, (alphas, betas) in ACTIVATIONS.items():
            names = [name] + DEFAULTS[op][1:] + DEFAULTS[op][:-1] + [name]
            attributes = {"activations": names, "direction": "bidirectional"}
            attributes |= {"activation_alpha": [0.3, 0.6][:2 * alphas]} if alphas else {}
            attributes |= {"activation_beta": [0.4, 0.1][:2 * betas]} if betas else {}
            # without peepholes: unbounded activations grow beyond what ONNX Runtime's Softplus can take
            case(w, op, layer(op, 2, optional=("B", "lens", "h", "c")), attributes, name.lower())
        if op == "GRU":
            for optional in ((), ("B",), every):
                case(w, op, layer(op, 2, optional=optional),
                     {"direction": "bidirectional", "linear_before_reset": 1}, "linear_before_reset")
    case(w, "LSTM", layer("LSTM", 1, optional=every), {"input_forget": 1}, "input_forget")
    case(w, "RNN", layer("RNN", 1, steps=1, batch=1), {}, "one_step")
    case(w, "RNN", layer("RNN", 1), {"activations": ["Tanh", "Tanh"]}, "default_of_two")  # as the standard has it
    for op, lens in itertools.product(GATES, ([0, 4, 0], [0, 0, 0])):  # sequences without steps
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            x = layer(op, n, optional=every)
            x[4] = np.array(lens, np.int32)
            case(w, op, x, {"direction": direction}, "no_steps", layout=True)


def write_linear_attention(w):
    kind = TensorProto.FLOAT
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for q_heads, kv_heads, past, scale in ((2, 2, False, 0.0), (4, 2, True, 0.0), (4, 1, True, 0.5)):
            dims = (2, 3, q_heads * 4), (2, 3, kv_heads * 4), (2, 3, kv_heads * 5)
            for wide in (False, True):
                decay = -np.abs(floats(2, 3, kv_heads * (4 if wide else 1))) if "gated" in rule else None
                beta = rng.random((2, 3, kv_heads if wide else 1)).astype("f") if "delta" in rule else None
                x = [*(floats(*d) for d in dims), floats(2, kv_heads, 4, 5) if past else None, decay, beta]
                while x[-1] is None:
                    x.pop()
                attributes = {"update_rule": rule, "q_num_heads": q_heads, "kv_num_heads": kv_heads, "scale": scale,
                              "chunk_size": 2}
                w.add("LinearAttention", x, oracles.run("reference", "LinearAttention", x, [kind] * 2, attributes, 27),
                      attributes, name=rule)


def write_causal_convolutions(w):
    for activation in ("none", "silu", "swish"):
        for length, k, bias, past in ((5, 3, True, True), (1, 4, False, True), (2, 4, True, False), (4, 1, True, False)):
            x = [floats(2, 3, length), floats(3, 1, k), floats(3) if bias else None, floats(2, 3, k - 1) if past else None]
            while x[-1] is None:
                x.pop()
            y = oracles.run("reference", "CausalConvWithState", x, [TensorProto.FLOAT] * 2, {"activation": activation}, 27)
            w.add("CausalConvWithState", x, y, {"activation": activation})


def write_rotary_embeddings(w):
    for packed in (False, True):
        for interleaved in (0, 1):
            for rotated in (0, 4):
                for ids, batch in ((False, 2), (False, 1), (True, 2)):
                    half = (rotated or 8) // 2
                    attributes = {"interleaved": interleaved, "rotary_embedding_dim": rotated}
                    attributes |= {"num_heads": 3} if packed else {}
                    cache = (10, half) if ids else (batch, 5, half)
                    x = [floats(2, 5, 24) if packed else floats(2, 3, 5, 8), floats(*cache), floats(*cache)]
                    x += [rng.integers(0, 10, (2, 5))] if ids else []
                    y = oracles.run("reference", "RotaryEmbedding", x, [TensorProto.FLOAT], attributes, 23)
                    w.add("RotaryEmbedding", x, y, attributes)
