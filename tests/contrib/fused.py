"""Products, convolutions and activations with what the optimiser merged into them; normalisations with sums before them."""
import itertools

import numpy as np

from runtime_cases import BF16, F16, F32, S32, bfloat16, floats, ints


def write_activations(w):
    for op, biased in (("Gelu", 0), ("QuickGelu", 0), ("FastGelu", 0), ("FastGelu", 1), ("BiasGelu", 1)):
        bias = [floats(8)] if biased else []
        w.add(op, [[3 * floats(2, 5, 8)] + bias, [3 * floats(3, 1, 8)] + bias], [F32], constants=[1] if biased else [])
    w.add("QuickGelu", [[3 * floats(7)]], [F32], {"alpha": 0.5})
    w.add("FastGelu", [[floats(3, 8, dtype=np.float16), floats(8, dtype=np.float16)]], [F16])
    for kind, dtype in ((F32, np.float32), (F16, np.float16), (BF16, bfloat16)):
        x = [3 * floats(n, 9) for n in (4, 7)]
        x[0][0, :4] = np.inf, -np.inf, np.nan, -90
        w.add("ScaledSiLU", [[v.astype(dtype)] for v in x], [kind], {"alpha": 0.7})
        for scale in (np.float32, np.float16, bfloat16):
            w.add("ScaledSiLU", [[v.astype(dtype), np.array(1.3).astype(scale)] for v in x], [kind], {"alpha": 9.0})


def write_products(w):
    for ta, tb, ba, bb in itertools.product((0, 1), repeat=4):
        dims = (((4, 3) if ta else (3, 4)), ((5, 4) if tb else (4, 5)))
        attributes = {"transA": ta, "transB": tb, "transBatchA": ba, "transBatchB": bb, "alpha": 0.25}
        sets = []
        for batch in ((2, 2), (3, 2)):
            a, b = (d[:1] + batch + d[1:] if moved else batch + d for d, moved in zip(dims, (ba, bb)))
            sets.append([floats(*a), floats(*b)])
        w.add("FusedMatMul", sets, [F32], attributes)
    for a, b, attributes in (((4,), (3, 4), {"transB": 1}), ((4,), (4,), {"transA": 1, "alpha": -2.0}),
                             ((3, 4), (4, 2), {}), ((1, 6, 4), (2, 5, 4), {"transB": 1}), ((2, 3, 4), (4, 5), {})):
        w.add("FusedMatMul", [[floats(*a), floats(*b)]], [F32], attributes)
    for activation, alpha, beta in (("Relu", None, None), ("Tanh", None, None), ("Sigmoid", None, None), ("LeakyRelu", 0.3, None),
                                    ("HardSigmoid", 0.4, 0.6), ("Softplus", None, None), ("Elu", 0.7, None)):
        attributes = {"activation": activation, "alpha": 0.5, "beta": 1.5, "transB": 1}
        attributes |= {} if alpha is None else {"activation_alpha": alpha}
        attributes |= {} if beta is None else {"activation_beta": beta}
        weights = [floats(5, 4), floats(5)]
        w.add("FusedGemm", [[floats(m, 4)] + weights for m in (3, 7)], [F32], attributes, constants=[1, 2])
    for activation, more in (("Softsign", {}), ("Selu", {"activation_alpha": 1.2, "activation_gamma": 0.7}),
                             ("ThresholdedRelu", {"activation_alpha": 0.3}), ("Celu", {"activation_alpha": 0.3}),
                             ("ScaledTanh", {"activation_alpha": 0.3, "activation_beta": 0.6}),
                             ("ParametricSoftplus", {"activation_alpha": 0.3, "activation_beta": 0.6})):
        w.add("FusedGemm", [[floats(3, 4), floats(4, 5), floats(5)]], [F32], more | {"activation": activation})
    w.add("FusedGemm", [[floats(4, 3), floats(4, 5)]], [F32], {"activation": "Relu", "transA": 1})
    for activation, values in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.0]),
                               ("HardSigmoid", [0.2, 0.4]), ("HardSwish", None), (None, None)):
        attributes = {"pads": [1, 1, 1, 1], "group": 2}
        attributes |= {"activation": activation} if activation else {}
        attributes |= {"activation_params": values} if values else {}
        weights = [floats(4, 3, 3, 3), floats(4)]
        sets = [[floats(n, 6, h, 5)] + weights for n, h in ((2, 4), (1, 7))]
        w.add("FusedConv", sets, [F32], attributes, constants=[1, 2])
        if activation == "Relu":
            w.add("FusedConv", [s + [floats(*s[0].shape[:1], 4, *s[0].shape[2:])] for s in sets], [F32], attributes, constants=[1, 2])
            w.add("FusedConv", [[s[0], s[1], None, floats(*s[0].shape[:1], 4, *s[0].shape[2:])] for s in sets], [F32], attributes,
                  constants=[1])
    w.add("FusedConv", [[floats(1, 2, 9), floats(3, 2, 2)]], [F32], {"activation": "Relu", "strides": [2],
                                                                     "auto_pad": "SAME_UPPER"})


def write_norms(w):
    for dims, axis in (((2, 3, 8), -1), ((4, 8), -1), ((2, 3, 8), 1)):
        scale = floats(*dims[axis:])
        w.add("SimplifiedLayerNormalization", [[floats(*dims), scale], [floats(5, *dims[1:]), scale]], [F32, F32],
              {"axis": axis, "epsilon": 1e-3}, domain="", constants=[1])
        w.add("LayerNormalization", [[floats(*dims), scale, floats(*dims[axis:])], [floats(5, *dims[1:]), scale, floats(*dims[axis:])]],
              [F32, F32, F32], {"axis": axis, "epsilon": 1e-3}, domain="", constants=[1], opset=13)
    half, single = floats(2, 3, 8, dtype=np.float16), floats(8)
    w.add("SimplifiedLayerNormalization", [[half, single]], [F32], domain="")
    w.add("LayerNormalization", [[half, single]], [F32], domain="", opset=13)
    w.add("LayerNormalization", [[half, single.astype(np.float16), floats(8, dtype=np.float16)]], [F16], domain="", opset=13)
    w.add("SimplifiedLayerNormalization", [[half, single.astype(np.float16)]], [F16], domain="")
    hidden = 8
    gamma, beta, bias = floats(hidden), floats(hidden), floats(hidden)
    for biased in (0, 1):
        for skip in ((2, 3, hidden), (1, 3, hidden), (3, hidden)):
            x = floats(2, 3, hidden), floats(*skip)
            w.add("SkipLayerNormalization", [[*x, gamma, beta] + [bias] * biased], [F32, F32, F32, F32], {"epsilon": 0.1})
            w.add("SkipSimplifiedLayerNormalization", [[*x, gamma] + [bias] * biased], [F32, None, F32, F32])
        sets = [[floats(*d), floats(*d)] for d in ((2, 3, hidden), (1, 5, hidden))]
        w.add("SkipLayerNormalization", [s + [gamma, beta] + [bias] * biased for s in sets], [F32, None, None, F32],
              constants=[2, 3, 4])
        w.add("SkipSimplifiedLayerNormalization", [s + [gamma] + [bias] * biased for s in sets], [F32, None, None, F32],
              constants=[2, 3])
    w.add("SkipLayerNormalization", [[floats(6, hidden), floats(6, hidden), gamma, None, bias]], [F32])
    half = [x.astype(np.float16) for x in (floats(2, 3, hidden), floats(2, 3, hidden), gamma, beta)]
    w.add("SkipLayerNormalization", [half], [F16])
    w.add("SkipSimplifiedLayerNormalization", [half[:3]], [F16])


def write_embeddings(w):
    hidden = 8
    words, positions, segments, gamma, beta = floats(11, hidden), floats(6, hidden), floats(2, hidden), floats(hidden), floats(hidden)
    for with_segments, with_mask, placed in itertools.product((0, 1), (0, 1), (None, 1, 2)):
        sets = []
        for batch, steps in ((2, 4), (3, 5)):
            inputs = [ints(0, 11, batch, steps), ints(0, 2, batch, steps) if with_segments else None, words, positions,
                      segments if with_segments else None, gamma, beta, None, None]
            inputs[7] = ints(0, 2, batch, steps) if with_mask else None
            inputs[8] = None if placed is None else ints(0, 6, 1 if placed == 1 else batch, steps)
            while inputs[-1] is None:
                inputs.pop()
            sets.append(inputs)
        w.add("EmbedLayerNormalization", sets, [F32, S32, F32] if with_mask else [F32, None, F32], {"epsilon": 1e-3},
              constants=[k for k in (2, 3, 4, 5, 6) if sets[0][k] is not None])
    w.add("EmbedLayerNormalization", [[ints(0, 11, 2, 3), None, words, positions, None, gamma, beta]], [F32, S32])
