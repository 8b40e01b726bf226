"""Operators of models that have linear attention or experts: states, gates, normalisations and routing."""
import itertools
import os

import numpy as np

from runtime_cases import BF16, F16, F32, bfloat16, floats, ints, rng


def write_linear_attention(w):
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for query, key, value, past in ((2, 2, 2, False), (4, 2, 2, True), (2, 4, 4, True), (2, 2, 4, False), (1, 2, 4, True)):
            def inputs(batch, steps, wide=rule == "gated"):
                k, v = floats(batch, steps, key * 4), floats(batch, steps, value * 5)
                x = [floats(batch, steps, query * 4), k / np.linalg.norm(k) * 2, v, floats(batch, value, 4, 5) if past else None]
                x.append(-np.abs(floats(batch, steps, value * (4 if wide else 1))) if "gated" in rule else None)
                x.append(rng.random((batch, steps, value)).astype("f") if "delta" in rule else None)
                while x[-1] is None:
                    x.pop()
                return x
            attributes = {"update_rule": rule, "q_num_heads": query, "kv_num_heads": value, "scale": 0.5 if past else 0.0, "chunk_size": 2}
            w.add("LinearAttention", [inputs(2, 3), inputs(1, 5)], [F32, F32], attributes, name=rule)


def write_gates(w):
    for beta in (False, True):
        sets = [[4 * floats(b, t, 3)] + vectors + ([floats(b, t, 3)] if beta else []) for vectors in [[floats(3), -np.abs(floats(3))]]
                for b, t in ((2, 3), (1, 6))]
        w.add("LinearAttentionGate", sets, [F32, F32] if beta else [F32], constants=[1, 2])
    wide = np.array([[[-200, 0, 100]]], np.float32)
    w.add("LinearAttentionGate", [[wide, floats(3), floats(3)]], [F32])
    for dims in ([(2, 3), (1, 5)], [()]):
        w.add("GatedAdd", [[floats(*d, 6), floats(*d, 6), floats(*d, 1)] for d in dims], [F32])
    w.add("GatedAdd", [[x.astype(np.float16) for x in (floats(7, 33), floats(7, 33), floats(7, 1))]], [F16])
    for activation, groups in itertools.product(({}, {"activation": "swish"}, {"activation": "sigmoid", "epsilon": 0.01}), (1, 3)):
        scale = floats(8)
        sets = [[floats(b, 2, 8 * groups), scale, floats(b, 2, 8 * groups)] for b in (3, 1)]
        w.add("GatedRMSNorm", sets, [F32], activation, constants=[1])
    small = [1e-3 * floats(4, 8), floats(8), floats(4, 8)]
    w.add("GatedRMSNorm", [small], [F32])
    w.add("GatedRMSNorm", [[x.astype(np.float16) for x in (floats(4, 8), *small[1:])]], [F16])


def write_causal_convolutions(w):
    for activation, dilation, last in itertools.product(("none", "silu", "swish"), (1, 3), (0, 1)):
        attributes = {"activation": activation, "dilation": dilation, "channels_last": last}
        for k, bias, past in ((3, True, True), (4, False, True), (4, True, False), (1, True, False)):
            weights = [floats(3, 1, k), floats(3) if bias else None]

            def inputs(batch, length):
                x, state = floats(batch, 3, length), floats(batch, 3, (k - 1) * dilation)
                turned = [v.transpose(0, 2, 1).copy() if last else v for v in (x, state)]
                return [turned[0], *weights] + ([turned[1]] if past else [])
            sets = [inputs(2, 5), inputs(1, 2), inputs(3, 1)]
            w.add("CausalConvWithState", sets, [F32, F32], attributes, constants=[1, 2], name=activation)


HIDDEN, INNER, EXPERTS = 64, 32, 4
SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1}
GPT_OSS = SWIGLU | {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5}


def tokens(count, *, batch=False):
    return [floats(1, count, HIDDEN) if batch else floats(count, HIDDEN), floats(count, EXPERTS)]


def write_experts(w):
    for activation, normalize, k in itertools.product(("relu", "gelu", "silu", "identity", SWIGLU, GPT_OSS), (0, 1), (1, 2, 4)):
        attributes = activation if isinstance(activation, dict) else {"activation_type": activation}
        rows = INNER * (2 if "swiglu_fusion" in attributes else 1)
        first, second = 0.2 * floats(EXPERTS, rows, HIDDEN), 0.2 * floats(EXPERTS, HIDDEN, INNER)
        weights = [first, floats(EXPERTS, rows), second, floats(EXPERTS, HIDDEN)] if normalize else [first, None, second]
        attributes = attributes | {"k": k, "normalize_routing_weights": normalize}
        w.add("MoE", [tokens(t, batch=k == 2) + weights for t in (5, 1)], [F32], attributes, constants=[2, 3, 4, 5])
    equal = [floats(5, HIDDEN), np.zeros((5, EXPERTS), np.float32)]
    w.add("MoE", [equal + weights], [F32], attributes | {"k": 2}, constants=[2, 3, 4, 5])
    first, second = 0.2 * floats(EXPERTS, INNER, HIDDEN), 0.2 * floats(EXPERTS, HIDDEN, INNER)
    x, probs, first, second = (v.astype(np.float16) for v in (*equal, first, second))
    y = np.maximum(x.astype("d") @ first[-1].astype("d").T, 0) @ second[-1].astype("d").T / EXPERTS
    w.add("MoE", [[x, probs, first, None, second]], [F16], {"k": 1, "activation_type": "relu"}, constants=[2, 4],
          expected=lambda *inputs: [y.astype("e")])  # ONNX Runtime rounds each step to f16


def write_quantised_experts(w):
    os.environ["ORT_QMOE_CPU_QNBIT_GEMM"] = "fp32"  # else ONNX Runtime rounds inputs to 8 bits
    for bits, block, points, activation in itertools.product((2, 4, 8), (0, 32), (False, True), ({"activation_type": "silu"}, GPT_OSS)):
        each, rows = 8 // bits, INNER * (2 if "swiglu_fusion" in activation else 1)

        def layer(outputs, inputs):
            packed = ints(0, 256, EXPERTS, outputs, inputs // each, dtype=np.uint8)
            scale = rng.random((EXPERTS, outputs, inputs // block) if block else (EXPERTS, outputs)).astype("f") * 0.3 / 2 ** bits
            zero = (EXPERTS, outputs, -(-(inputs // block) // each)) if block else (EXPERTS, -(-outputs // each))
            return [packed, scale, floats(EXPERTS, outputs)], ints(0, 256, *zero, dtype=np.uint8)
        (first, zero), (second, other) = layer(rows, HIDDEN), layer(HIDDEN, INNER)
        weights = first + second + ([None] * 3 + [zero, other] if points else [])
        attributes = activation | {"k": 2, "expert_weight_bits": bits} | ({"block_size": block} if block else {})
        w.add("QMoE", [tokens(t) + weights for t in (5, 1)], [F32], attributes, constants=[*range(2, 8), 11, 12])
    for normalize in (0, 1):
        sets = [tokens(t) + weights + [None, rng.random((t, EXPERTS)).astype("f")] for t in (5, 1)]
        w.add("QMoE", sets, [F32], attributes | {"normalize_routing_weights": normalize}, constants=[*range(2, 8), 11, 12])


def write_hyper_connections(w):
    types = ((F32, np.float32), (F16, np.float16), (BF16, bfloat16))
    for (kind, dtype), other, flat in itertools.product(types, (np.float32, np.float16, bfloat16), (False, True)):
        def streams(*prefix, flat=flat, dtype=dtype):
            x = floats(*prefix, 3, 4).astype(dtype)
            return x.reshape(*prefix, 12) if flat else x
        attributes = {"num_branches": 3} if flat else {}
        for scale in ((4,), (12,), (3, 4)):
            sets = [[streams(n, 5), floats(*scale).astype(other)] for n in (2, 6)]
            w.add("BranchwiseRMSNorm", sets, [kind], attributes | {"epsilon": 0.1}, constants=[1])
        w.add("BranchwiseRMSNorm", [[streams()]], [kind], attributes)
        for gates in ((3,), (3, 1), (3, 4)) + (((12,),) if flat else ()):
            sets = [[streams(n, 5), floats(n, 5, *gates).astype(other)] for n in (2, 6)]
            w.add("HyperConnectionPreMix", sets, [kind], attributes | {"reduction_scale": 0.3})
            if gates != (12,):
                sets = [[s[0], floats(len(s[0]), 5, 4).astype(dtype), s[1]] for s in sets]
                w.add("HyperConnectionPostMix", sets, [kind], attributes)
                w.add("HyperConnectionPostMix", [s + [floats(len(s[0]), 5, 3, 3).astype(other)] for s in sets], [kind], attributes)
        w.add("HyperConnectionPreMix", [[streams(), floats(3).astype(other)]], [kind], attributes)
        w.add("HyperConnectionPostMix", [[streams(), *(floats(*d).astype(other if k else dtype) for k, d in enumerate(((4,), (3,), (3, 3))))]],
              [kind], attributes)


def write_engram_gates(w):
    for kind, dtype in ((F32, np.float32), (F16, np.float16)):
        scales = [floats(3, 4).astype(dtype) for _ in range(3)]
        for count, outputs in ((2, 1), (3, 1), (3, 2)):
            def inputs(batch, steps, scales=scales[:count], dtype=dtype):
                return [floats(*d).astype(dtype) for d in ((batch, steps, 3, 4), (batch, steps, 3, 4), (batch, steps, 4))] + scales
            sets = [inputs(2, 3), inputs(1, 5)]
            sets[0][0][0] = 0  # the sign of 0
            w.add("EngramGate", sets, [kind] * outputs, {"epsilon": 0.1} if count == 2 else {}, constants=[3, 4, 5])
    attributes = {"epsilon": 0.01}
    w.add("EngramGate", [[x.astype(bfloat16) for x in inputs(2, 3)]], [BF16], attributes, expected=w.in_f32("EngramGate", attributes))
