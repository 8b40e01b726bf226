"""decoder_model.py: a small Llama as exporters for ONNX Runtime write it: weights of 4 bits, grouped attention with rotary embeddings
and a cache of keys and values, whose lengths come from a mask of all tokens."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, KV_HEADS, HEAD, INNER, WORDS, BLOCK, LONGEST = 64, 4, 2, 16, 96, 50, 32, 64


class Builder:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, x):
        self.constants.append(numpy_helper.from_array(np.asarray(x), "c%d" % len(self.constants)))
        return self.constants[-1].name

    def op(self, kind, *inputs, n=1, domain="com.microsoft", **attributes):
        names = ["%s_%d_%d" % (kind, len(self.nodes), k) for k in range(n)]
        self.nodes.append(helper.make_node(kind, inputs, names, names[0], domain=domain, **attributes))
        return names[0] if n == 1 else names

    def linear(self, x, k, n):
        blocks = -(-k // BLOCK)
        weights = self.constant(self.rng.integers(0, 256, (n, blocks, BLOCK // 2)).astype(np.uint8))
        scales = self.constant((self.rng.random((n, blocks)) / (4 * np.sqrt(k))).astype(np.float32))
        points = self.constant(self.rng.integers(0, 256, (n, -(-blocks // 2))).astype(np.uint8))
        return self.op("MatMulNBits", x, weights, scales, points, K=k, N=n, bits=4, block_size=BLOCK)

    def scale(self):
        return self.constant((1 + self.rng.standard_normal(WIDTH) / 10).astype(np.float32))


def decoder(layers=2):
    b = Builder(11)
    one, axis = b.constant(np.array([1])), b.constant(np.array([1]))
    lengths = b.op("ReduceSum", "attention_mask", axis, domain="", keepdims=1)
    lengths = b.op("Cast", b.op("Sub", lengths, one, domain=""), domain="", to=TensorProto.INT32)
    total = b.op("Cast", b.op("Gather", b.op("Shape", "attention_mask", domain=""), b.constant(np.array(1)), domain=""), domain="", to=TensorProto.INT32)
    angle = np.outer(np.arange(LONGEST), 1e4 ** (-np.arange(HEAD // 2) / (HEAD // 2)))
    tables = [b.constant(f(angle).astype(np.float32)) for f in (np.cos, np.sin)]
    table = b.constant(b.rng.integers(0, 256, (WORDS, WIDTH // 2)).astype(np.uint8))
    x = b.op("GatherBlockQuantized", table, "input_ids", b.constant((b.rng.random((WORDS, WIDTH // BLOCK)) / 4).astype(np.float32)),
             block_size=BLOCK)
    normed = b.op("SimplifiedLayerNormalization", x, b.scale(), domain="", epsilon=1e-5)
    info, outputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"]),
                     helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])], []
    for layer in range(layers):
        pasts = ["past_%s_%d" % (what, layer) for what in ("key", "value")]
        info += [helper.make_tensor_value_info(p, TensorProto.FLOAT, ["batch", KV_HEADS, "past", HEAD]) for p in pasts]
        qkv = b.linear(normed, WIDTH, (HEADS + 2 * KV_HEADS) * HEAD)
        y, *present = b.op("GroupQueryAttention", qkv, "", "", *pasts, lengths, total, *tables, n=3, num_heads=HEADS,
                           kv_num_heads=KV_HEADS, do_rotary=1)
        outputs += present
        normed, _, _, x = b.op("SkipSimplifiedLayerNormalization", x, b.linear(y, HEADS * HEAD, WIDTH), b.scale(), n=4, epsilon=1e-5)
        b.nodes[-1].output[1:3] = ["", ""]
        gate, up = b.linear(normed, WIDTH, INNER), b.linear(normed, WIDTH, INNER)
        y = b.linear(b.op("Mul", b.op("QuickGelu", gate, alpha=1.0), up, domain=""), INNER, WIDTH)
        normed, _, _, x = b.op("SkipSimplifiedLayerNormalization", x, y, b.scale(), n=4, epsilon=1e-5)
        b.nodes[-1].output[1:3] = ["", ""]
    outputs = [b.linear(normed, WIDTH, WORDS)] + outputs
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(b.nodes, "decoder", info, out, b.constants), opset_imports=opsets)
    model.ir_version = 10
    return model


def decoder_feeds(rng, batch, past, length, layers=2):
    feeds = {"input_ids": rng.integers(0, WORDS, (batch, length)), "attention_mask": np.ones((batch, past + length), np.int64)}
    for layer in range(layers):
        for what in ("key", "value"):
            feeds["past_%s_%d" % (what, layer)] = rng.standard_normal((batch, KV_HEADS, past, HEAD), np.float32)
    return feeds
