"""Transformers, recurrent and small networks for make_model.py, written as the usual libraries write them."""
import math

import torch
from torch import nn


def split_heads(x, heads=12):
    return x.view(x.size(0), x.size(1), heads, -1).permute(0, 2, 1, 3)


def merge_heads(x):
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(x.size(0), x.size(1), x.size(2) * x.size(3))


class BertLayer(nn.Module):
    def __init__(self, c=768, inner=3072):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(c, c) for _ in range(4))
        self.up, self.down = nn.Linear(c, inner), nn.Linear(inner, c)
        self.norm1, self.norm2 = nn.LayerNorm(c, eps=1e-12), nn.LayerNorm(c, eps=1e-12)

    def forward(self, x, mask):
        q, k, v = split_heads(self.query(x)), split_heads(self.key(x)), split_heads(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + mask
        x = self.norm1(self.out(merge_heads(torch.matmul(scores.softmax(-1), v))) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    output_names = ["last_hidden_state", "pooler_output"]

    def __init__(self, c=768, layers=12):
        super().__init__()
        self.words, self.positions, self.types = nn.Embedding(30522, c), nn.Embedding(512, c), nn.Embedding(2, c)
        self.norm, self.pooler = nn.LayerNorm(c, eps=1e-12), nn.Linear(c, c)
        self.layers = nn.ModuleList(BertLayer() for _ in range(layers))
        self.register_buffer("position_ids", torch.arange(512)[None])

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -10000.0
        position_ids = self.position_ids[:, :input_ids.size(1)]
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.positions(position_ids))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class DebertaLayer(nn.Module):
    """Attention by content and by relative positions, whose table the same weights project."""

    def __init__(self, c=768, inner=3072):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(c, c) for _ in range(4))
        self.up, self.down = nn.Linear(c, inner), nn.Linear(inner, c)
        self.norm1, self.norm2 = nn.LayerNorm(c, eps=1e-7), nn.LayerNorm(c, eps=1e-7)

    def forward(self, x, mask, table, distance):
        q, k, v = split_heads(self.query(x)), split_heads(self.key(x)), split_heads(self.value(x))
        table_q, table_k = split_heads(self.query(table)), split_heads(self.key(table))
        span = table.size(1) // 2
        index = lambda d: torch.clamp(d + span, 0, 2 * span - 1).expand(q.size(0), q.size(1), -1, -1)  # noqa: E731
        by_key = torch.gather(torch.matmul(q, table_k.transpose(-1, -2)), 3, index(distance))
        by_query = torch.gather(torch.matmul(k, table_q.transpose(-1, -2)), 3, index(distance)).transpose(-1, -2)
        scores = (torch.matmul(q, k.transpose(-1, -2)) + by_key + by_query) / math.sqrt(3 * q.size(-1)) + mask
        x = self.norm1(self.out(merge_heads(torch.matmul(scores.softmax(-1), v))) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)


class Deberta(nn.Module):
    """As DeBERTa-v3-base, but with linear distances."""
    output_names = ["last_hidden_state"]

    def __init__(self, c=768, layers=12, span=256):
        super().__init__()
        self.words, self.norm = nn.Embedding(30522, c), nn.LayerNorm(c, eps=1e-7)
        self.table, self.norm_of_table = nn.Parameter(torch.randn(1, 2 * span, c)), nn.LayerNorm(c, eps=1e-7)
        self.layers = nn.ModuleList(DebertaLayer(c) for _ in range(layers))

    def forward(self, input_ids, attention_mask):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -10000.0
        position = torch.arange(input_ids.size(1))
        distance, table = position[:, None] - position[None, :], self.norm_of_table(self.table)
        x = self.norm(self.words(input_ids))
        for layer in self.layers:
            x = layer(x, mask, table, distance)
        return x


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose weight is not transposed."""

    def __init__(self, c2, c1):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(c1, c2) / math.sqrt(c1)), nn.Parameter(torch.zeros(c2))

    def forward(self, x):
        shape = x.size()[:-1] + (self.bias.size(0),)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Gpt2Block(nn.Module):
    def __init__(self, c=768, heads=12):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.attention, self.out, self.up, self.down = Conv1D(3 * c, c), Conv1D(c, c), Conv1D(4 * c, c), Conv1D(c, 4 * c)
        self.register_buffer("causal", torch.tril(torch.ones(1024, 1024, dtype=torch.bool)).view(1, 1, 1024, 1024))

    def forward(self, x, past):
        q, k, v = (split_heads(t, self.heads) for t in self.attention(self.norm1(x)).split(x.size(-1), 2))
        if past is not None:
            k, v = torch.cat((past[0], k), -2), torch.cat((past[1], v), -2)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
        seen = self.causal[:, :, k.size(-2) - q.size(-2):k.size(-2), :k.size(-2)]
        scores = torch.where(seen, scores, torch.tensor(torch.finfo(torch.float32).min))
        x = x + self.out(merge_heads(torch.matmul(scores.softmax(-1), v)))
        return x + self.down(gelu_new(self.up(self.norm2(x)))), k, v


class Gpt2(nn.Module):
    """GPT-2 with the scores of words as its output; if it is given a cache of keys and values, it also returns the cache."""

    def __init__(self, c=768, layers=12, heads=12, words=50257):
        super().__init__()
        self.output_names = ["logits"] + [f"present_{what}_{k}" for k in range(layers) for what in ("key", "value")]
        self.words, self.positions, self.norm = nn.Embedding(words, c), nn.Embedding(1024, c), nn.LayerNorm(c)
        self.blocks = nn.ModuleList(Gpt2Block(c, heads) for _ in range(layers))
        self.words.weight.data.mul_(0.05)
        self.positions.weight.data.mul_(0.05)

    def forward(self, input_ids, *pasts):
        start = pasts[0].size(-2) if pasts else 0
        positions = torch.arange(start, start + input_ids.size(1))[None]
        x, present = self.words(input_ids) + self.positions(positions), []
        for k, block in enumerate(self.blocks):
            x, key, value = block(x, pasts[2 * k:2 * k + 2] if pasts else None)
            present += [key, value]
        return (nn.functional.linear(self.norm(x), self.words.weight), *present)


class Lstm(nn.Module):
    """An LSTM of two layers of 512 on one sequence."""

    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(512, 512, 2, batch_first=True), nn.Linear(512, 64)

    def forward(self, x):
        return self.last(self.lstm(x)[0])


def dense(*widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return layers


class Dlrm(nn.Module):
    """A recommender: 13 numbers and 26 categories of each of 64 candidates, pairwise products of their vectors, a score."""

    def __init__(self, width=64, rows=10000):
        super().__init__()
        self.bottom = nn.Sequential(*dense(13, 512, 256, width))
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(26))
        for t in self.tables:
            t.weight.data.mul_(0.2)
        self.top = nn.Sequential(*dense(width + 27 * 26 // 2, 512, 256), nn.Linear(256, 1))
        self.register_buffer("pairs", torch.tensor([27 * i + j for i in range(27) for j in range(i)]))

    def forward(self, numbers, categories):
        x = self.bottom(numbers)
        vectors = torch.stack([x] + [t(categories[:, k]) for k, t in enumerate(self.tables)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.top(torch.cat((x, products.index_select(1, self.pairs)), 1)))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*dense(32, 64, 64), nn.Linear(64, 8))

    def forward(self, x):
        return self.body(x)
