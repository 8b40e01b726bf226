"""recommenders.py: models of clicks, ratings and sequences of items, and forecasts of time series."""

import torch
from architecture import Input, add
from torch import nn
from torch.nn import functional as F

FIELDS, WORDS, WIDTH = 6, 40, 8
ITEMS = Input("items", ("batch", FIELDS), WORDS)
NUMBERS = Input("numbers", ("batch", 5))
HISTORY = Input("history", ("batch", "length"), WORDS)
LENGTHS = [{"batch": 3, "length": 7}, {"batch": 1, "length": 4}]
ROWS = [{"batch": 4}, {"batch": 1}]


def mlp(*widths):
    parts = []
    for a, b in zip(widths, widths[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


class Fields(nn.Module):
    """An embedding for each field."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(WORDS, width) for _ in range(FIELDS)])

    def forward(self, items):
        return torch.stack([table(items[:, k]) for k, table in enumerate(self.tables)], 1)


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields, self.bottom, self.top = Fields(), mlp(5, 16, WIDTH), mlp(WIDTH + 21, 16, 1)
        rows = torch.tril_indices(FIELDS + 1, FIELDS + 1, -1)
        self.register_buffer("pairs", rows[0] * (FIELDS + 1) + rows[1])

    def forward(self, items, numbers):
        dense = self.bottom(numbers)
        x = torch.cat((dense[:, None], self.fields(items)), 1)
        products = (x @ x.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.top(torch.cat((dense, products), 1)))


class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields, self.wide, self.deep = Fields(), nn.Embedding(WORDS, 1), mlp(FIELDS * WIDTH + 5, 32, 16, 1)

    def forward(self, items, numbers):
        deep = self.deep(torch.cat((self.fields(items).flatten(1), numbers), 1))
        return torch.sigmoid(deep + self.wide(items).sum(1))


class FactorisationMachine(nn.Module):
    """DeepFM: the square of the sum minus the sum of squares, added to a deep network's result."""

    def __init__(self, deep=True):
        super().__init__()
        self.fields, self.first = Fields(), nn.Embedding(WORDS, 1)
        self.deep = mlp(FIELDS * WIDTH, 32, 1) if deep else None

    def forward(self, items):
        x = self.fields(items)
        y = self.first(items).sum(1) + 0.5 * (x.sum(1).pow(2) - x.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(y + self.deep(x.flatten(1)) if self.deep is not None else y)


class CrossNetwork(nn.Module):
    def __init__(self, width=FIELDS * WIDTH, second=False):
        super().__init__()
        self.fields, self.second = Fields(), second
        self.weights = nn.ModuleList([nn.Linear(width, width if second else 1) for _ in range(3)])
        self.out = nn.Linear(width, 1)

    def forward(self, items):
        x = start = self.fields(items).flatten(1)
        for weight in self.weights:
            x = start * weight(x) + x
        return torch.sigmoid(self.out(x))


class CompressedInteraction(nn.Module):
    """xDeepFM."""

    def __init__(self):
        super().__init__()
        self.fields, self.convs = Fields(), nn.ModuleList([nn.Conv1d(FIELDS * FIELDS, FIELDS, 1) for _ in range(2)])
        self.out = nn.Linear(2 * FIELDS, 1)

    def forward(self, items):
        start = x = self.fields(items)
        found = []
        for conv in self.convs:
            x = F.relu(conv((start[:, :, None] * x[:, None]).flatten(1, 2)))
            found.append(x.sum(-1))
        return torch.sigmoid(self.out(torch.cat(found, 1)))


class AutoInt(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields, self.attention, self.skip = Fields(), nn.MultiheadAttention(WIDTH, 2, batch_first=True), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(FIELDS * WIDTH, 1)

    def forward(self, items):
        x = self.fields(items)
        return torch.sigmoid(self.out(F.relu(self.attention(x, x, x)[0] + self.skip(x)).flatten(1)))


class AttentionalMachine(nn.Module):
    """Pairs of fields, weighed by attention."""

    def __init__(self):
        super().__init__()
        self.fields, self.score, self.out = Fields(), nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 1)), nn.Linear(WIDTH, 1)
        self.register_buffer("rows", torch.triu_indices(FIELDS, FIELDS, 1))

    def forward(self, items):
        x = self.fields(items)
        pairs = x[:, self.rows[0]] * x[:, self.rows[1]]
        return torch.sigmoid(self.out((pairs * self.score(pairs).softmax(1)).sum(1)))


class FieldProducts(nn.Module):
    """PNN: inner and outer products."""

    def __init__(self):
        super().__init__()
        self.fields, self.out = Fields(), mlp(FIELDS * WIDTH + FIELDS * FIELDS + WIDTH * WIDTH, 24, 1)

    def forward(self, items):
        x = self.fields(items)
        total = x.sum(1)
        parts = [x, x @ x.transpose(1, 2), total[:, :, None] * total[:, None]]
        return torch.sigmoid(self.out(torch.cat([p.flatten(1) for p in parts], 1)))


class NeuralCollaborative(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.things = nn.Embedding(WORDS, 2 * WIDTH), nn.Embedding(WORDS, 2 * WIDTH)
        self.deep, self.out = mlp(2 * WIDTH, 16, WIDTH), nn.Linear(2 * WIDTH, 1)

    def forward(self, user, thing):
        (a, c), (b, d) = self.users(user).chunk(2, -1), self.things(thing).chunk(2, -1)
        return torch.sigmoid(self.out(torch.cat((a * b, self.deep(torch.cat((c, d), -1))), -1)))


class TwoTowers(nn.Module):
    """Two towers: the five items that match a user best."""

    def __init__(self):
        super().__init__()
        self.users, self.things, self.a, self.b = nn.Embedding(WORDS, 16), nn.Embedding(WORDS, 16), mlp(16, 24, 8), mlp(16, 24, 8)

    def forward(self, user):
        user, things = F.normalize(self.a(self.users(user)), dim=-1), F.normalize(self.b(self.things.weight), dim=-1)
        return (user @ things.t()).topk(5)


class Interest(nn.Module):
    """DIN: the items of a user's history are weighted by their relation to one item."""

    def __init__(self):
        super().__init__()
        self.things, self.score, self.out = nn.Embedding(WORDS, WIDTH), mlp(4 * WIDTH, 16, 1), nn.Sequential(nn.Linear(2 * WIDTH, 16), nn.PReLU(16), nn.Linear(16, 1))

    def forward(self, history, thing):
        past, one = self.things(history), self.things(thing)
        wide = one[:, None].expand_as(past)
        score = self.score(torch.cat((past, wide, past - wide, past * wide), -1))
        score = torch.where((history > 0)[..., None], score, torch.tensor(-1e9)).softmax(1)
        return torch.sigmoid(self.out(torch.cat(((score * past).sum(1), one), -1)))


class Sessions(nn.Module):
    """SASRec and BERT4Rec: attention over what was clicked, causal or not."""

    def __init__(self, causal):
        super().__init__()
        self.things, self.places, self.causal = nn.Embedding(WORDS, 16), nn.Embedding(32, 16), causal
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)

    def forward(self, history):
        length = history.shape[1]
        x = self.things(history) + self.places(torch.arange(length))
        mask = torch.ones(length, length).triu(1) > 0 if self.causal else None
        return self.layer(x, mask)[:, -1] @ self.things.weight.t()


class RecurrentSessions(nn.Module):
    def __init__(self):
        super().__init__()
        self.things, self.cell = nn.Embedding(WORDS, 16), nn.GRU(16, 16, batch_first=True)

    def forward(self, history):
        return self.cell(self.things(history))[1][-1] @ self.things.weight.t()


class Caser(nn.Module):
    """Caser: convolutions along and across a window of items."""

    def __init__(self):
        super().__init__()
        self.things, self.across, self.along = nn.Embedding(WORDS, 16), nn.ModuleList([nn.Conv2d(1, 4, (k, 16)) for k in (2, 3)]), nn.Conv2d(1, 2, (7, 1))
        self.out = nn.Linear(2 * 16 + 8, WORDS)

    def forward(self, history):
        x = self.things(history)[:, None]
        parts = [self.along(x).flatten(1)] + [F.relu(conv(x))[..., 0].max(2)[0] for conv in self.across]
        return self.out(torch.cat(parts, 1))


class Mixture(nn.Module):
    """MMoE: experts shared by tasks, a gate and a tower for each; PLE has experts of a task's own as well."""

    def __init__(self, own=0):
        super().__init__()
        self.fields, width = Fields(), FIELDS * WIDTH
        self.shared = nn.ModuleList([mlp(width, 16) for _ in range(4)])
        self.own = nn.ModuleList([nn.ModuleList([mlp(width, 16) for _ in range(own)]) for _ in range(2)])
        self.gates = nn.ModuleList([nn.Linear(width, 4 + own) for _ in range(2)])
        self.towers = nn.ModuleList([mlp(16, 8, 1) for _ in range(2)])

    def forward(self, items):
        x = self.fields(items).flatten(1)
        shared, found = [F.relu(e(x)) for e in self.shared], []
        for own, gate, tower in zip(self.own, self.gates, self.towers):
            experts = torch.stack(shared + [F.relu(e(x)) for e in own], 1)
            found.append(torch.sigmoid(tower((experts * gate(x).softmax(-1)[..., None]).sum(1))))
        return found


class Bags(nn.Module):
    """Means of embeddings (an EmbeddingBag in single operators); a mask excludes items of number 0."""

    def __init__(self):
        super().__init__()
        self.things, self.out = nn.Embedding(WORDS, 16, padding_idx=0), mlp(16, 16, 1)

    def forward(self, history):
        there = (history != 0).float()[..., None]
        return self.out((self.things(history) * there).sum(1) / there.sum(1).clamp(min=1))


class TabTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fields, self.layer, self.norm = Fields(16), nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"), nn.LayerNorm(5)
        self.out = mlp(FIELDS * 16 + 5, 24, 2)

    def forward(self, items, numbers):
        return self.out(torch.cat((self.layer(self.fields(items)).flatten(1), self.norm(numbers)), 1))


class TabNet(nn.Module):
    """TabNet: steps that weight features by a sparse mask (made by ReLU here), with GLU between them."""

    def __init__(self):
        super().__init__()
        self.norm, self.masks = nn.BatchNorm1d(5), nn.ModuleList([nn.Sequential(nn.Linear(8, 5), nn.BatchNorm1d(5)) for _ in range(2)])
        self.feeds, self.out = nn.ModuleList([nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.GLU()) for _ in range(3)]), nn.Linear(8, 3)

    def forward(self, numbers):
        x = self.norm(numbers)
        state, prior, total = self.feeds[0](x)[:, 8:], torch.ones_like(x), 0
        for mask, feed in zip(self.masks, self.feeds[1:]):
            share = F.relu(mask(state) * prior + 0.2)
            share = share / share.sum(1, keepdim=True).clamp(min=1e-3)
            prior = prior * (1.5 - share)
            decision, state = feed(share * x).chunk(2, -1)
            total = total + F.relu(decision)
        return self.out(total)


for name, make in {
    "dlrm": DLRM, "wide-and-deep": WideDeep, "tab-transformer": TabTransformer,
}.items():  # fmt: skip
    add(f"recommenders/{name}", make, [ITEMS, NUMBERS], ROWS)
for name, make in {
    "deep-fm": FactorisationMachine, "fm": lambda: FactorisationMachine(False), "deep-and-cross": CrossNetwork,
    "deep-and-cross-2": lambda: CrossNetwork(second=True), "xdeep-fm": CompressedInteraction, "autoint": AutoInt, "afm": AttentionalMachine,
    "pnn": FieldProducts, "mmoe": Mixture, "ple": lambda: Mixture(2),
}.items():  # fmt: skip
    add(f"recommenders/{name}", make, [ITEMS], ROWS)
for name, make in {"sasrec": lambda: Sessions(True), "bert4rec": lambda: Sessions(False), "gru4rec": RecurrentSessions, "bags": Bags}.items():
    add(f"recommenders/{name}", make, [HISTORY], LENGTHS)
add("recommenders/caser", Caser, [Input("history", ("batch", 7), WORDS)], ROWS)
add("recommenders/ncf", NeuralCollaborative, [Input("user", ("batch",), WORDS), Input("thing", ("batch",), WORDS)], ROWS)
add("recommenders/two-towers", TwoTowers, [Input("user", ("batch",), WORDS)], ROWS)
add("recommenders/din", Interest, [HISTORY, Input("thing", ("batch",), WORDS)], LENGTHS)
add("recommenders/tabnet", TabNet, [NUMBERS], ROWS)

SERIES = [Input("series", ("batch", 32, 5))]


class NBeats(nn.Module):
    """N-BEATS: each block's reconstruction is subtracted from its input, and the next block reads the difference."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([mlp(32, 24, 24, 40) for _ in range(3)])

    def forward(self, series):
        x, total = series[..., 0], 0
        for block in self.blocks:
            back, ahead = block(x).split([32, 8], -1)
            x, total = x - back, total + ahead
        return total


class DLinear(nn.Module):
    """DLinear: the series is split into a moving mean and the rest, and each has a linear map."""

    def __init__(self):
        super().__init__()
        self.trend, self.rest = nn.Linear(32, 8), nn.Linear(32, 8)

    def forward(self, series):
        x = series.transpose(1, 2)
        mean = F.avg_pool1d(F.pad(x, (2, 2), mode="replicate"), 5, 1)
        return (self.trend(mean) + self.rest(x - mean)).transpose(1, 2)


class PatchTST(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.layer, self.out = nn.Linear(8, 16), nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), nn.Linear(7 * 16, 6)

    def forward(self, series):
        mean, deviation = series.mean(1, keepdim=True), series.std(1, keepdim=True, unbiased=False) + 1e-5
        x = ((series - mean) / deviation).transpose(1, 2).unfold(2, 8, 4)
        y = self.layer(self.start(x.flatten(0, 1))).flatten(1)
        return self.out(y).view(series.shape[0], 5, 6).transpose(1, 2) * deviation + mean


class InvertedTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.layer, self.out = nn.Linear(32, 16), nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"), nn.Linear(16, 6)

    def forward(self, series):
        return self.out(self.layer(self.start(series.transpose(1, 2)))).transpose(1, 2)


class TimesNet(nn.Module):
    """TimesNet: a series is folded by a period into a matrix, which is convolved as a picture."""

    def __init__(self, period=8):
        super().__init__()
        self.period, self.convs = period, nn.ModuleList([nn.Conv2d(5, 5, k, padding=k // 2) for k in (1, 3, 5)])

    def forward(self, series):
        x = series.view(series.shape[0], -1, self.period, 5).permute(0, 3, 1, 2)
        y = torch.stack([conv(x) for conv in self.convs], -1).mean(-1)
        return series + F.gelu(y).permute(0, 2, 3, 1).reshape(series.shape)


class TemporalConvolution(nn.Module):
    def __init__(self, widths=(5, 16, 16, 16)):
        super().__init__()
        self.convs = nn.ModuleList([nn.ModuleList([nn.Conv1d(a, b, 3, padding=2 * 2**k, dilation=2**k), nn.Conv1d(b, b, 3, padding=2 * 2**k, dilation=2**k),
                                                   nn.Conv1d(a, b, 1)]) for k, (a, b) in enumerate(zip(widths, widths[1:]))])  # fmt: skip

    def forward(self, series):
        x = series.transpose(1, 2)
        for one, two, skip in self.convs:
            y = F.relu(one(x)[..., : x.shape[2]])
            x = F.relu(F.relu(two(y)[..., : x.shape[2]]) + skip(x))
        return x[..., -1]


class DeepAR(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.mean, self.deviation = nn.LSTM(5, 24, 2, batch_first=True), nn.Linear(24, 1), nn.Linear(24, 1)

    def forward(self, series):
        y = self.cell(series)[0]
        return self.mean(y), F.softplus(self.deviation(y))


class FusionTransformer(nn.Module):
    """Gated residual networks, a choice of variables, an LSTM, attention."""

    def __init__(self, width=16):
        super().__init__()
        self.each, self.choose = nn.ModuleList([nn.Linear(1, width) for _ in range(5)]), nn.Linear(5, 5)
        self.cell, self.attention = nn.LSTM(width, width, batch_first=True), nn.MultiheadAttention(width, 4, batch_first=True)
        self.gate, self.norm, self.out = nn.Linear(width, 2 * width), nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, series):
        x = torch.stack([linear(series[..., k : k + 1]) for k, linear in enumerate(self.each)], -1)
        x = (x * self.choose(series).softmax(-1)[:, :, None]).sum(-1)
        y = self.cell(x)[0]
        y = self.norm(x + F.glu(self.gate(y)))
        return self.out(self.norm(y + self.attention(y, y, y)[0]))


class InceptionTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow, self.pool = nn.Conv1d(5, 8, 1), nn.Conv1d(5, 8, 1)
        self.convs, self.norm, self.out = nn.ModuleList([nn.Conv1d(8, 8, k, padding=k // 2) for k in (5, 9, 17)]), nn.BatchNorm1d(32), nn.Linear(32, 4)

    def forward(self, series):
        x = series.transpose(1, 2)
        y = self.narrow(x)
        y = torch.cat([conv(y) for conv in self.convs] + [self.pool(F.max_pool1d(x, 3, 1, 1))], 1)
        return self.out(F.relu(self.norm(y)).mean(2))


for name, make in {
    "n-beats": NBeats, "dlinear": DLinear, "patch-tst": PatchTST, "inverted-transformer": InvertedTransformer, "timesnet": TimesNet,
    "tcn": TemporalConvolution, "deepar": DeepAR, "fusion-transformer": FusionTransformer, "inception-time": InceptionTime,
}.items():  # fmt: skip
    add(f"series/{name}", make, SERIES)
