"""transformer_models.py: builds a small BERT, and a small GPT-2 with keys and values as inputs, with seeded random weights and
symbolic dimensions, as PyTorch's exporter writes them: shapes are computed by Shape, Gather and Concat nodes, and norms and GELUs
consist of elementary operators."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Builder:
    def __init__(self, width, heads, seed):
        self.nodes, self.constants = [], []
        self.width, self.heads = width, heads
        self.rng = np.random.default_rng(seed)

    def op(self, kind, *inputs, **attributes):
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, value):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *dims):
        deviation = 0.02 if len(dims) == 1 else 1 / np.sqrt(dims[0])
        return self.constant((self.rng.standard_normal(dims) * deviation).astype(np.float32))

    def number(self, value):
        return self.constant(np.float32(value))

    def size(self, x, axis):
        return self.op("Gather", self.op("Shape", x), self.constant(np.int64(axis)), axis=0)

    def sizes(self, *parts):
        """Adds nodes that make a shape of numbers and of computed scalars; returns its name."""
        axes = self.constant(np.array([0], np.int64))
        return self.op("Concat", *(self.constant(np.array([p], np.int64)) if isinstance(p, int)
                                   else self.op("Unsqueeze", p, axes) for p in parts), axis=0)

    def linear(self, x, n_in, n_out):
        return self.op("Add", self.op("MatMul", x, self.weight(n_in, n_out)), self.weight(n_out))

    def norm(self, x):
        far = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        spread = self.op("ReduceMean", self.op("Pow", far, self.number(2)), axes=[-1])
        one = self.op("Div", far, self.op("Sqrt", self.op("Add", spread, self.number(1e-5))))
        return self.op("Add", self.op("Mul", one, self.weight(self.width)), self.weight(self.width))

    def gelu(self, x):
        bent = self.op("Add", self.op("Erf", self.op("Div", x, self.number(np.sqrt(2)))), self.number(1))
        return self.op("Mul", self.op("Mul", x, bent), self.number(0.5))

    def split(self, x):
        shape = self.sizes(self.size(x, 0), self.size(x, 1), self.heads, self.width // self.heads)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def merge(self, x):
        x = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.op("Reshape", x, self.sizes(self.size(x, 0), self.size(x, 1), self.width))

    def scores(self, q, k):
        product = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        return self.op("Div", product, self.number(np.sqrt(self.width // self.heads)))

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "transformer", [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def bert(width=128, heads=4, layers=3, words=1000, longest=512):
    b = Builder(width, heads, 1)
    mask = b.op("Unsqueeze", "attention_mask", b.constant(np.array([1, 2], np.int64)))
    mask = b.op("Mul", b.op("Sub", b.number(1), b.op("Cast", mask, to=FLOAT)), b.number(-10000))
    zero, one = (b.constant(np.array([n], np.int64)) for n in (0, 1))
    places = b.op("Slice", b.constant(np.arange(longest)[None]), zero, b.sizes(b.size("input_ids", 1)), one)
    x = b.op("Gather", b.weight(words, width), "input_ids")
    x = b.op("Add", x, b.op("Gather", b.weight(2, width), "token_type_ids"))
    x = b.norm(b.op("Add", x, b.op("Gather", b.weight(longest, width), places)))
    for _ in range(layers):
        q, k, v = (b.split(b.linear(x, width, width)) for _ in range(3))
        seen = b.op("Softmax", b.op("Add", b.scores(q, k), mask), axis=-1)
        x = b.norm(b.op("Add", b.linear(b.merge(b.op("MatMul", seen, v)), width, width), x))
        x = b.norm(b.op("Add", b.linear(b.gelu(b.linear(x, width, 4 * width)), 4 * width, width), x))
    first = b.op("Gather", x, b.constant(np.int64(0)), axis=1)
    pooled = b.op("Tanh", b.op("Gemm", first, b.weight(width, width), b.weight(width)))
    ids = [(name, INT64, ["batch", "length"]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return b.model(ids, [(x, FLOAT, ["batch", "length", width]), (pooled, FLOAT, ["batch", width])])


def bert_feeds(rng, batch, length):
    mask = np.ones((batch, length), np.int64)
    mask[:, length - length // 4:] = 0
    return {"input_ids": rng.integers(0, 1000, (batch, length)), "attention_mask": mask,
            "token_type_ids": rng.integers(0, 2, (batch, length))}


def gpt2(width=128, heads=4, layers=3, words=1000, longest=512):
    """Returns a small GPT-2 whose past may be empty, so that one model reads a text and continues it."""
    b = Builder(width, heads, 2)
    zero, one, two, three = (b.constant(np.array([n], np.int64)) for n in range(4))
    past, new = b.size("past_key_0", 2), b.size("input_ids", 1)
    both = b.op("Add", past, new)
    places = b.op("Unsqueeze", b.op("Range", past, both, b.constant(np.int64(1))), zero)
    x = b.op("Gather", b.weight(words, width), "input_ids")
    x = b.op("Add", x, b.op("Gather", b.weight(longest, width), places))
    below = b.constant(np.tril(np.ones((longest, longest), bool))[None, None])
    rows = b.op("Slice", below, b.sizes(past), b.sizes(both), two, one)
    allowed = b.op("Slice", rows, zero, b.sizes(both), three, one)
    inputs, outputs = [("input_ids", INT64, ["batch", "length"])], []
    for layer in range(layers):
        normed = b.norm(x)
        q, k, v = (b.split(b.linear(normed, width, width)) for _ in range(3))
        for what, value in (("key", k), ("value", v)):
            name = f"past_{what}_{layer}"
            inputs.append((name, FLOAT, ["batch", heads, "past", width // heads]))
            outputs.append((b.op("Concat", name, value, axis=2), FLOAT, ["batch", heads, "both", width // heads]))
        k, v = outputs[-2][0], outputs[-1][0]
        seen = b.op("Softmax", b.op("Where", allowed, b.scores(q, k), b.number(-10000)), axis=-1)
        x = b.op("Add", x, b.linear(b.merge(b.op("MatMul", seen, v)), width, width))
        x = b.op("Add", x, b.linear(b.gelu(b.linear(b.norm(x), width, 4 * width)), 4 * width, width))
    logits = b.op("MatMul", b.norm(x), b.weight(width, words))
    return b.model(inputs, [(logits, FLOAT, ["batch", "length", words]), *outputs])


def gpt2_feeds(rng, batch, past, length, width=128, heads=4, layers=3):
    feeds = {"input_ids": rng.integers(0, 1000, (batch, length))}
    for layer in range(layers):
        for what in ("key", "value"):
            feeds[f"past_{what}_{layer}"] = rng.standard_normal((batch, heads, past, width // heads), np.float32)
    return feeds
