"""Attention with caches, masks and packed weights; rotary embeddings."""
import itertools

import numpy as np
from onnx import TensorProto, helper

from runtime_cases import BF16, F16, F32, MICROSOFT, bfloat16, floats, ints, rng

HEADS, KV_HEADS = 4, 2


def grouped(steps, past, lengths, total, *, size=16, packed=False, rotary=None, positions=None, bias=None, sink=None, dtype=np.float32):
    """Returns the inputs of GroupQueryAttention; lengths: the number of tokens of each element of the batch.  Rows of the past behind
    these are 0, as ONNX Runtime returns them."""
    batch = len(lengths)
    new = [floats(batch, steps, n * size, dtype=dtype) for n in (HEADS, KV_HEADS, KV_HEADS)]
    new = [np.concatenate(new, 2), None, None] if packed else new
    cache = [None, None]
    if past is not None:
        cache = [floats(batch, KV_HEADS, past, size, dtype=dtype) for _ in range(2)]
        for x, (b, n) in itertools.product(cache, enumerate(lengths)):
            x[b, :, max(n - steps, 0):] = 0
    tables = [floats(20, rotary // 2, dtype=dtype) for _ in range(2)] if rotary else [None, None]
    inputs = new + cache + [np.array(lengths, np.int32) - 1, np.array([total], np.int32)] + tables + [positions, bias, sink]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def write_group_query_attention(w):
    base = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}

    def add(sets, attributes=None, kinds=(F32, F32, F32), **other):
        # the length in an input decides the sizes: its contents are known only with the inputs
        w.add("GroupQueryAttention", sets, kinds, base | (attributes or {}), one_program=False, **other)

    add([grouped(3, None, [3, 3], 3), grouped(5, None, [5], 5)])  # the first tokens
    add([grouped(3, None, [2, 3], 3)])
    add([grouped(3, 0, [3, 3], 3)])
    add([grouped(1, 4, [5], 5), grouped(1, 9, [10], 10)])  # a cache that grows
    add([grouped(1, 4, [5, 5], 5), grouped(1, 9, [10, 10], 10)])
    add([grouped(1, 4, [3, 5], 5), grouped(1, 7, [8, 2], 8)])
    add([grouped(2, 4, [6], 6), grouped(5, 3, [8], 8)])
    add([grouped(1, 8, [3, 5], 5), grouped(1, 8, [8, 6], 8)])  # a cache with room
    add([grouped(3, 8, [2, 3], 3)])
    add([grouped(2, 8, [6], 6), grouped(3, 8, [8], 8)])
    for dtype, kind in ((np.float16, F16),):
        add([grouped(3, None, [3], 3, dtype=dtype)], {}, (kind, kind, kind))
        add([grouped(1, 6, [4], 4, dtype=dtype, rotary=16)], {"do_rotary": 1}, (kind, kind, kind))
    for interleaved, width in ((0, 16), (1, 16), (0, 16)):
        attributes = {"do_rotary": 1, "rotary_interleaved": interleaved}
        add([grouped(3, None, [2, 3], 3, rotary=width)], attributes)
        add([grouped(1, 4, [3, 5], 5, rotary=width), grouped(1, 6, [7, 2], 7, rotary=width)], attributes)
        add([grouped(2, 4, [6], 6, rotary=width)], attributes)
        add([grouped(1, 8, [5], 5, rotary=width, packed=True)], attributes)
    add([grouped(1, 4, [5], 5, rotary=16, size=32)], {"do_rotary": 1})
    add([grouped(3, None, [3, 3], 3, rotary=16, positions=np.array([[2, 9, 1], [4, 5, 6]]))], {"do_rotary": 1})
    add([grouped(1, 4, [5, 5], 5, rotary=16, positions=np.array([[2], [7]])),
         grouped(1, 6, [7, 7], 7, rotary=16, positions=np.array([[1], [3]]))], {"do_rotary": 1})
    add([grouped(2, 4, [6], 6, packed=True), grouped(4, 5, [9], 9, packed=True)])
    for window in (1, 2, 5):
        add([grouped(1, 6, [5, 7], 7), grouped(1, 9, [10, 1], 10)], {"local_window_size": window})
        add([grouped(5, None, [5], 5)], {"local_window_size": window})
    columns = [grouped(1, 4, [3, 5], 5), grouped(1, 8, [3, 5], 5)]  # lengths as a column
    for x in columns:
        x[5] = x[5].reshape(2, 1)
        x[6] = x[6].reshape(())
        add([x])
    add([grouped(5, None, [1, 4], 5)], {"local_window_size": 2})  # padding that sees nothing
    add([grouped(3, None, [3, 3], 3)], {"softcap": 1.5, "scale": 0.3})
    add([grouped(3, None, [2, 3], 3)], {"causal": 0})
    for dims in ((2, HEADS), (1, 1), (2, 1), (1, HEADS)):
        add([grouped(3, None, [3, 3], 3, bias=floats(*dims, 3, 3))], {"softcap": 1.5})
    add([grouped(1, 4, [5, 4], 5, bias=floats(1, HEADS, 1, 5))])
    add([grouped(1, 8, [5, 4], 5, bias=floats(1, HEADS, 1, 5))])
    for past in (4, 8):
        add([grouped(1, past, [5, 4], 5)], {"smooth_softmax": 1})
        add([grouped(1, past, [5, 4], 5, sink=floats(HEADS))], {"local_window_size": 3})
    add([grouped(1, 4, [5], 5)], {"k_quant_type": "NONE", "v_quant_type": "NONE", "smooth_softmax": 0, "softcap": 0.0})
    add([grouped(3, None, [3, 3], 3)], {}, (F32,))


def write_normalised_heads(w):
    """Queries and keys that the operator normalises.  ONNX Runtime can do that on GPUs only, so what is expected is its
    attention of queries and keys that were normalised before."""
    attributes = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "do_rotary": 1}
    weights = [floats(16), floats(16)]

    def norm(x, weight):
        y = x.reshape(*x.shape[:2], -1, 16).astype(np.float64)
        y = y / np.sqrt((y ** 2).mean(-1, keepdims=True) + 1e-3) * weight
        return y.astype(np.float32).reshape(x.shape)

    def expected(q, k, *rest):
        rest, (of_q, of_k) = list(rest[:-2]), rest[-2:]
        while rest[-1] is None:
            rest.pop()
        return w.run("GroupQueryAttention", [norm(q, of_q), norm(k, of_k), *rest], (F32, F32, F32), attributes)

    for steps, past, total in ((3, None, 3), (1, 4, 5), (1, 8, 6)):
        inputs = grouped(steps, past, [total, total], total, rotary=16)
        inputs += [None] * (14 - len(inputs)) + weights
        w.add("GroupQueryAttention", [inputs], (F32, F32, F32), attributes | {"qk_norm_epsilon": 1e-3}, expected=expected,
              one_program=False)


def write_decoder(w):
    """Attention in a decoder as exporters write it: lengths come from a mask of all tokens."""
    sets = []
    for batch, steps, past in ((2, 1, 5), (2, 1, 9), (1, 4, 0), (3, 5, 0)):
        x = grouped(steps, past, [past + steps] * batch, past + steps, packed=True, rotary=16)
        sets.append({"x": x[0], "past_key": x[3], "past_value": x[4], "mask": np.ones((batch, past + steps), np.int64),
                     "cos": x[7], "sin": x[8], "one": np.array([1]), "axis": np.array([1])})
    nodes = [helper.make_node("ReduceSum", ["mask", "axis"], ["sum"], keepdims=0), helper.make_node("Sub", ["sum", "one"], ["last"]),
             helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32), helper.make_node("Shape", ["mask"], ["dims"]),
             helper.make_node("Gather", ["dims", "one"], ["wide"]), helper.make_node("Cast", ["wide"], ["total"], to=TensorProto.INT32),
             helper.make_node("GroupQueryAttention", ["x", "", "", "past_key", "past_value", "lengths", "total", "cos", "sin"],
                              ["y", "present_key", "present_value"], domain=MICROSOFT, num_heads=HEADS, kv_num_heads=KV_HEADS,
                              do_rotary=1)]
    constants = {"cos", "sin", "one", "axis"}
    outputs = {"y": F32, "present_key": F32, "present_value": F32}
    for x in sets[1:]:
        x.update({n: sets[0][n] for n in constants})
    for part in (sets[:2], sets, sets[2:]):
        w.add_graph("decoder", nodes, part, outputs, constants, one_program=False)  # an equation ties the sizes of a set


def many(batch, steps, keys, *, size=8, v_size=8, past=None, bias=False, mask=None, scores=None):
    x = [floats(batch, steps, HEADS * size), floats(batch, keys, HEADS * size), floats(batch, keys, HEADS * v_size)]
    x += [floats(HEADS * (2 * size + v_size)) if bias else None, mask, scores, None, None]
    if past is not None:
        x[6:] = floats(batch, HEADS, past, size), floats(batch, HEADS, past, v_size)
    while x[-1] is None:
        x.pop()
    return x


def flags(*dims):
    x = ints(0, 2, *dims)
    x[..., 0] = 1
    return x


def write_multi_head_attention(w):
    def add(sets, kinds=(F32,), **attributes):
        w.add("MultiHeadAttention", sets, kinds, {"num_heads": HEADS} | attributes)

    for bias in (False, True):
        add([many(2, 3, 5, v_size=6, bias=bias), many(1, 4, 7, v_size=6, bias=bias)])
        add([many(2, 3, 3, past=4, bias=bias), many(2, 1, 1, past=6, bias=bias)], (F32, F32, F32))
        add([many(2, 3, 5, past=4, bias=bias)], (F32, F32, F32))
        add([many(2, 3, 3, past=4, bias=bias), many(2, 2, 2, past=0, bias=bias)], (F32, F32, F32), unidirectional=1)
    add([many(2, 3, 3), many(1, 5, 5)], unidirectional=1)
    add([many(2, 3, 5)], (F32, F32, F32), scale=0.3)
    hidden = flags(2, 5)
    hidden[0] = 0
    for mask in (flags(2, 5), hidden, 2 * flags(2, 5), np.array([3, 5], np.int32), flags(2, 3, 5)):
        add([many(2, 3, 5, mask=mask)])
        add([many(2, 3, 5, mask=mask, scores=floats(2, 1, 3, 5))], mask_filter_value=-2.0)
    add([many(2, 3, 5, mask=flags(2, 5)), many(3, 4, 6, mask=flags(3, 6))])
    add([many(2, 3, 3, mask=hidden[:, :3].copy())], unidirectional=1)
    add([many(2, 3, 3, past=4, mask=flags(2, 7))], (F32, F32, F32))
    for dims in ((2, HEADS), (1, HEADS), (1, 1), (2, 1)):
        add([many(2, 3, 5, scores=floats(*dims, 3, 5))])
    add([many(2, 3, 5, scores=floats(1, 1, 3, 5)), many(2, 4, 6, scores=floats(1, 1, 4, 6))])
    for bias in (None, floats(HEADS * 3 * 8)):
        add([[floats(2, 3, HEADS * 8), floats(2, HEADS, 5, 8), floats(2, HEADS, 5, 8), bias][:4 if bias is not None else 3]])


def decoding(batch, steps, room, past, *, size=8, bias=False, mask=False, scores=None, beams=None):
    """The inputs of MultiHeadAttention whose past has room for `room` rows; beams: the number of beams of a sequence."""
    hidden = HEADS * size
    x = [floats(batch, steps, hidden) for _ in range(3)] + [floats(3 * hidden) if bias else None, None, scores]
    if mask:
        x[4] = flags(batch, past + steps)
    x += [floats(batch, HEADS, room, size) for _ in range(2)] + [np.array([past], np.int32)]
    return x + ([] if beams is None else [ints(0, beams, batch // beams, beams, room)])


def attended(q, k, v, bias, mask, scores, past_key, past_value, past, beams=None):
    """Attention of several queries to a past with room, which ONNX Runtime computes for one query only."""
    past, batch, steps, size = past[0], *q.shape[:2], past_key.shape[3]
    hidden = q.shape[2]
    bias = np.zeros(3 * hidden) if bias is None else bias
    q, k, v = ((x.astype(float) + bias[j * hidden:][:hidden]).reshape(batch, steps, HEADS, size).transpose(0, 2, 1, 3)
               for j, x in enumerate((q, k, v)))
    rows = [np.concatenate([x[:, :, :past], new], 2) for x, new in ((past_key, k), (past_value, v))]
    present = [np.concatenate([r, x[:, :, past + steps:]], 2) for r, x in zip(rows, (past_key, past_value))]
    if beams is not None:
        n = beams.shape[1]
        for r, x in zip(rows, (past_key, past_value)):
            for b, j in itertools.product(range(batch), range(past)):
                r[b, :, j] = x[b - b % n + beams[b // n, b % n, j], :, j]
    x = q @ rows[0].transpose(0, 1, 3, 2) / np.sqrt(size)
    x += 0 if scores is None else scores
    x += 0 if mask is None else np.where(mask[:, None, None] > 0, 0, -10000)
    e = np.exp(x - x.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True)) @ rows[1]
    return [y.transpose(0, 2, 1, 3).reshape(q.shape[0], steps, hidden), *present, x]


def in_f32(*arrays):
    return [x.astype(np.float32) for x in arrays]


def write_decoding(w):
    """Caches with room, of which the beams of a search may share rows; the operators of decoders that ONNX Runtime's tools write."""
    kinds, shared = (F32,) * 4, {"num_heads": HEADS, "past_present_share_buffer": 1, "output_qk": 1}

    def masked(x):  # the inputs of DecoderMaskedMultiHeadAttention, which are the same in another order
        x = x + [None] * (10 - len(x))
        beams = None if x[9] is None else np.array([x[9].shape[1]], np.int32)
        x = [*x[:3], *x[4:9], beams, x[9], x[3]]
        while x[-1] is None:
            x.pop()
        return x

    for bias, mask, dims in ((0, 0, None), (1, 0, None), (0, 1, (1, HEADS)), (1, 1, (1, 1))):
        for beams in (None, 1, 3):
            sets = [decoding(b, 1, room, past, bias=bias, mask=mask, beams=beams, scores=dims and floats(*dims, 1, past + 1))
                    for b, room, past in ((3, 8, 4), (6, 11, 9), (3, 5, 1))]
            # the length in an input decides the sizes: its contents are known only with the inputs
            w.add("MultiHeadAttention", sets, kinds, {"num_heads": HEADS}, one_program=False)
            w.add("DecoderMaskedMultiHeadAttention", [masked(x) for x in sets], kinds, shared, one_program=False)
    for beams in (None, 2):
        sets = [decoding(b, steps, 9, past, bias=True, mask=True, beams=beams) for b, steps, past in ((4, 3, 4), (2, 2, 7), (4, 5, 0))]
        w.add("MultiHeadAttention", sets, kinds, {"num_heads": HEADS}, one_program=False, expected=lambda *x: in_f32(*attended(*x)))
    x = decoding(4, 1, 6, 3, scores=floats(4, HEADS, 1, 4), beams=2)  # ONNX Runtime adds the scores of other beams
    w.add("DecoderMaskedMultiHeadAttention", [masked(x)], kinds, shared, one_program=False, expected=lambda *_: in_f32(*attended(*x)))
    packed = [np.concatenate(x[:3], 2), None, None, *masked(x)[3:]]
    w.add("DecoderMaskedMultiHeadAttention", [packed], kinds, shared, one_program=False, expected=lambda *_: in_f32(*attended(*x)))
    w.add("DecoderMaskedMultiHeadAttention", [masked(decoding(2, 1, 6, 3))], (F32, F32, F32),
          {"num_heads": HEADS, "past_present_share_buffer": 1, "scale": 0.3, "mask_filter_value": -2.0}, one_program=False)
    half = [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in masked(decoding(2, 1, 6, 3, mask=True))]
    w.add("DecoderMaskedMultiHeadAttention", [half], (F16, F16, F16, F16), shared, one_program=False,
          expected=lambda q, k, v, mask, scores, key, value, past: [
              y.astype(np.float16) for y in attended(q, k, v, None, mask, scores, key, value, past)])
    for mask, bias, beams in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1)):  # cross attention
        sets = []
        for b, keys in ((2, 5), (4, 7)):
            x = [floats(b, 1, HEADS * 8), *[floats(b, HEADS, keys, 8) for _ in range(2)], flags(b, keys) if mask else None]
            x += [None] * 4 + ([np.array([2], np.int32), ints(0, 2, b // 2, 2, 9)] if beams else [None, None])
            sets.append(x + [floats(3 * HEADS * 8)] if bias else x)
            while sets[-1][-1] is None:
                sets[-1].pop()
        w.add("DecoderMaskedMultiHeadAttention", sets, (F32, None, None, F32), {"num_heads": HEADS, "output_qk": 1})


def write_half(w):
    """Attention in f16.  Numbers have few bits, so that the sums before softmax are exact in f16; ONNX Runtime computes them in f32."""
    def few(*dims):
        return (ints(-2, 3, *dims) / 4).astype(np.float16)

    for op, x in (("MultiHeadAttention", [few(2, 3, 32), few(2, 5, 32), few(2, 5, 32), few(96)]),
                  ("Attention", [few(2, 3, 10), few(10, 96), few(96)])):
        w.add(op, [x], [F16], {"num_heads": HEADS}, expected=lambda *v, op=op: [
            y.astype(np.float16) for y in w.run(op, [x.astype(np.float32) for x in v], [F32], {"num_heads": HEADS})])


def write_attention(w):
    width, size = 10, 8
    hidden = HEADS * size
    weights = [floats(width, 3 * hidden), floats(3 * hidden)]

    def inputs(batch, steps, mask=None, past=None, scores=None, parts=weights):
        x = [floats(batch, steps, width), *parts, mask, None if past is None else floats(2, batch, HEADS, past, size), scores]
        while x[-1] is None:
            x.pop()
        return x

    def add(sets, kinds=(F32,), **attributes):
        w.add("Attention", sets, kinds, {"num_heads": HEADS} | attributes, constants=[1, 2])

    for causal in (0, 1):
        add([inputs(2, 3), inputs(1, 5)], unidirectional=causal)
        add([inputs(2, 3), inputs(1, 5)], (F32, F32), unidirectional=causal)
        add([inputs(2, 3, past=4), inputs(2, 1, past=6)], (F32, F32), unidirectional=causal)
        add([inputs(2, 3, flags(2, 3)), inputs(4, 5, flags(4, 5))], unidirectional=causal)
        add([inputs(2, 3, flags(2, 7), past=4)], (F32, F32), unidirectional=causal)
        add([inputs(2, 3, np.array([2, 3], np.int32))], unidirectional=causal)
    dark = np.array([[0, 0, 0], [1, 1, 0]], np.int32)
    for mask in (dark, flags(2, 3, 3), np.array([2, 3, 1, 0], np.int32), 3 * flags(2, 3)):
        add([inputs(2, 3, mask)], mask_filter_value=-3.0)
        add([inputs(2, 3, mask, scores=floats(1, HEADS, 3, 3))], scale=0.2)
    add([inputs(2, 3, dark)], unidirectional=1)
    add([inputs(2, 3, np.array([6, 7], np.int32), past=4)], (F32, F32))
    for q, v in ((hidden, 20), (16, 20)):
        parts = [floats(width, 2 * q + v), floats(2 * q + v)]
        add([inputs(2, 3, parts=parts)], qkv_hidden_sizes=[q, q, v])
    w.add("Attention", [inputs(2, 3)[:2]], [F32], {"num_heads": HEADS},
          expected=lambda x, m: run_without_bias(w, x, m))


def run_without_bias(w, x, m):
    """Runs Attention with a bias of 0, since ONNX Runtime crashes if the bias is missing, which means the same."""
    return w.run("Attention", [x, m, np.zeros(m.shape[1], np.float32)], [F32], {"num_heads": HEADS})


def write_rotary(w):
    tables = [floats(12, 8) for _ in range(2)]
    for interleaved in (0, 1):
        attributes = {"interleaved": interleaved}
        for steps, positions in ((3, np.array([4])), (3, ints(0, 12, 2, 3, dtype=np.int64))):
            w.add("RotaryEmbedding", [[floats(2, steps, 64), positions, *tables]], [F32], attributes)
            w.add("RotaryEmbedding", [[floats(2, 4, steps, 16), positions, *tables]], [F32], attributes)
            w.add("RotaryEmbedding", [[floats(2, steps, 96), positions, *tables]], [F32],
                  attributes | {"num_heads": 3, "rotary_embedding_dim": 16})
        w.add("RotaryEmbedding", [[floats(b, s, 64), ints(0, 12, b, s, dtype=np.int64), *tables] for b, s in ((2, 3), (1, 5))],
              [F32], attributes, constants=[2, 3])
        w.add("RotaryEmbedding", [[floats(2, s, 64), np.array([4]), *tables] for s in (3, 5)], [F32], attributes, constants=[2, 3])
    half = [x.astype(np.float16) for x in (floats(2, 3, 64), *tables)]
    w.add("RotaryEmbedding", [[half[0], np.array([1]), *half[1:]]], [F16])


def write_rotary_of_three_positions(w):
    def tables(rows, half, dtype=np.float32):
        return [floats(rows, half, dtype=dtype) for _ in range(2)]

    def inputs(batch, steps, hidden, given, heads=None):
        dims = (batch, steps, hidden) if heads is None else (batch, heads, steps, hidden)
        return [floats(*dims, dtype=given[0].dtype), ints(0, len(given[0]), 3, batch, steps, dtype=np.int64), *given]

    for interleaved, layout in itertools.product((0, 1), repeat=2):
        attributes = {"interleaved": interleaved, "mrope_layout": layout}
        for sections in ((4, 2, 2), (2, 3, 3), (8, 0, 0), (0, 0, 8), (0, 8, 0), (1, 0, 7)):
            given = tables(12, 8)
            many = attributes | {"mrope_section": sections}
            w.add("MRotaryEmbedding", [inputs(2, 3, 64, given), inputs(1, 5, 64, given)], [F32], many | {"num_heads": 4},
                  constants=[2, 3])
            w.add("MRotaryEmbedding", [inputs(2, 3, 16, tables(n, 8), heads=3) for n in (9, 4)], [F32], many)
            w.add("MRotaryEmbedding", [inputs(2, 3, 72, given)], [F32], many | {"num_heads": 3, "rotary_embedding_dim": 16, "scale": 0.7})
    for interleaved in (0, 1):
        attributes = {"mrope_section": (2, 1, 1), "num_heads": 2, "interleaved": interleaved}
        for kind, dtype in ((F16, np.float16), (F32, np.float32)):  # more steps than rows
            w.add("MRotaryEmbedding", [inputs(2, 9, 16, tables(4, 4, dtype))], [kind], attributes | {"is_packed_batching": 1, "scale": 1.3})
        w.add("MRotaryEmbedding", [inputs(2, 3, 16, tables(4, 4, bfloat16))], [BF16], attributes,
              expected=w.in_f32("MRotaryEmbedding", attributes))
    w.add("RotaryEmbedding", [[floats(1, 5, 16), ints(0, 3, 1, 5, dtype=np.int64), *tables(3, 8)]], [F32], {"is_packed_batching": 1})
