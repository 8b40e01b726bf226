"""Decoders for make_model.py: one step with keys and values of the tokens before, written as the usual libraries write them."""
import math

import torch
from torch import nn

from nets_sequence import merge_heads, split_heads


def attend(q, k, v, bias=None):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    return torch.matmul((scores if bias is None else scores + bias).softmax(-1), v)


class Decoder(nn.Module):
    """Blocks, each with one key and one value of the past, and the words' scores."""

    def __init__(self, blocks, width, words):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.ModuleList(blocks)
        self.words.weight.data.mul_(0.05)
        self.output_names = ["logits"] + [f"present_{what}_{k}" for k in range(len(blocks)) for what in ("key", "value")]

    def run(self, x, pasts, *more):
        present = []
        for k, block in enumerate(self.blocks):
            x, key, value = block(x, *pasts[2 * k:2 * k + 2], *more)
            present += [key, value]
        return x, present

    def scores(self, x):
        return nn.functional.linear(x, self.words.weight)


# --- Llama: grouped heads, rotary positions, RMS normalisation, gated SiLU ---

class RmsNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def repeat_heads(x, n):
    return x[:, :, None].expand(x.size(0), x.size(1), n, x.size(2), x.size(3)).reshape(
        x.size(0), x.size(1) * n, x.size(2), x.size(3))


class LlamaBlock(nn.Module):
    def __init__(self, c=512, heads=8, groups=2, inner=1376):
        super().__init__()
        self.heads, self.groups, width = heads, groups, c // heads * groups
        self.norm1, self.norm2 = RmsNorm(c), RmsNorm(c)
        self.q, self.k, self.v, self.out = (nn.Linear(a, b, bias=False) for a, b in ((c, c), (c, width), (c, width), (c, c)))
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((c, inner), (c, inner), (inner, c)))

    def forward(self, x, past_key, past_value, cos, sin):
        y = self.norm1(x)
        q, k, v = (split_heads(f(y), n) for f, n in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups)))
        q, k = (t * cos + rotate_half(t) * sin for t in (q, k))
        k, v = torch.cat((past_key, k), 2), torch.cat((past_value, v), 2)
        n = self.heads // self.groups
        x = x + self.out(merge_heads(attend(q, repeat_heads(k, n), repeat_heads(v, n))))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), k, v


class Llama(Decoder):
    def __init__(self, layers=6, c=512, width=64, words=32000):
        super().__init__([LlamaBlock(c) for _ in range(layers)], c, words)
        self.norm = RmsNorm(c)
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width))

    def forward(self, input_ids, *pasts):
        start = pasts[0].size(2)
        positions = torch.arange(start, start + input_ids.size(1))[None].float()
        angles = (self.frequencies[None, :, None] @ positions[:, None]).transpose(1, 2)
        angles = torch.cat((angles, angles), -1)[:, None]
        x, present = self.run(self.words(input_ids), pasts, angles.cos(), angles.sin())
        return (self.scores(self.norm(x)), *present)


# --- T5 and Whisper: attention to an encoder's keys and values, which are inputs ---

class CrossBlock(nn.Module):
    def __init__(self, c, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.q, self.k, self.v, self.out, self.across, self.out2 = (nn.Linear(c, c) for _ in range(6))
        self.up, self.down = nn.Linear(c, inner), nn.Linear(inner, c)

    def forward(self, x, past_key, past_value, bias, cross):
        y = self.norm1(x)
        q, k, v = (split_heads(f(y), self.heads) for f in (self.q, self.k, self.v))
        k, v = torch.cat((past_key, k), 2), torch.cat((past_value, v), 2)
        x = x + self.out(merge_heads(attend(q, k, v, bias)))
        cross_key, cross_value = next(cross), next(cross)
        x = x + self.out2(merge_heads(attend(split_heads(self.across(self.norm2(x)), self.heads), cross_key, cross_value)))
        return x + self.down(nn.functional.gelu(self.up(self.norm3(x)))), k, v


class Whisper(Decoder):
    """Whisper's decoder, with learned positions."""

    def __init__(self, layers=4, c=384, heads=6, words=51865):
        super().__init__([CrossBlock(c, heads, 4 * c) for _ in range(layers)], c, words)
        self.layers, self.positions, self.norm = layers, nn.Embedding(448, c), nn.LayerNorm(c)
        self.positions.weight.data.mul_(0.05)

    def forward(self, input_ids, *others):
        pasts, cross = others[:2 * self.layers], iter(others[2 * self.layers:])
        start = pasts[0].size(2)
        positions = torch.arange(start, start + input_ids.size(1))[None]
        x, present = self.run(self.words(input_ids) + self.positions(positions), pasts, None, cross)
        return (self.scores(self.norm(x)), *present)


class T5(Decoder):
    """T5's decoder, whose attention has a bias by buckets of the distance between tokens."""

    def __init__(self, layers=6, c=512, heads=8, words=32128, buckets=32):
        super().__init__([CrossBlock(c, heads, 2048) for _ in range(layers)], c, words)
        self.layers, self.buckets, self.bias, self.norm = layers, buckets, nn.Embedding(buckets, heads), nn.LayerNorm(c)

    def bucket(self, distance, exact=16, most=128):
        far = exact + (torch.log(distance.float() / exact) / math.log(most / exact) * (self.buckets - exact)).long()
        return torch.where(distance < exact, distance, torch.min(far, torch.full_like(far, self.buckets - 1)))

    def forward(self, input_ids, *others):
        pasts, cross = others[:2 * self.layers], iter(others[2 * self.layers:])
        start = pasts[0].size(2)
        queries = torch.arange(start, start + input_ids.size(1))[:, None]
        keys = torch.arange(0, start + input_ids.size(1))[None]
        distance = torch.clamp(queries - keys, min=0)
        bias = self.bias(self.bucket(distance)).permute(2, 0, 1)[None]
        x, present = self.run(self.words(input_ids), pasts, bias, cross)
        return (self.scores(self.norm(x)), *present)
