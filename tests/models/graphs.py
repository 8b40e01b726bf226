"""graphs.py: networks on graphs and point clouds.  Edges are a list of pairs, as PyTorch Geometric has them, or a matrix."""

import torch
from architecture import Input, add
from torch import nn
from torch.nn import functional as F

NODES, WIDTH = 12, 16
SPARSE = [Input("x", (NODES, WIDTH)), Input("edges", (2, "edges"), NODES)]
COUNTS = [{"edges": 30}, {"edges": 17}]
DENSE = [Input("x", ("batch", NODES, WIDTH)), Input("adjacency", ("batch", NODES, NODES), "uniform")]



def scatter_sum(values, where, count):
    width = int(values.shape[1])  # an int, not a traced size, since the exporter compares both widths
    return values.new_zeros(count, width).scatter_add(0, where[:, None].expand(-1, width), values)


def edge_softmax(scores, where, count):
    """Returns the softmax of each edge's score among all edges that end at the same node."""
    powers = torch.exp(scores - scores.max())
    return powers / scatter_sum(powers, where, count)[where]


class Layers(nn.Module):
    """Layers that take x and edges, with activations between them."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, edges):
        for k, layer in enumerate(self.layers):
            x = layer(x if k == 0 else F.relu(x), edges)
        return x


class GCN(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.linear = nn.Linear(a, b)

    def forward(self, x, edges):
        loops = torch.arange(NODES)
        start, end = torch.cat((edges[0], loops)), torch.cat((edges[1], loops))
        degree = scatter_sum(torch.ones_like(end)[:, None].float(), end, NODES).rsqrt()
        return scatter_sum(self.linear(x)[start] * degree[start] * degree[end], end, NODES)


class GAT(nn.Module):
    def __init__(self, a, b, heads=2):
        super().__init__()
        self.heads, self.linear = heads, nn.Linear(a, heads * b)
        self.source, self.target = nn.Parameter(torch.randn(heads, b)), nn.Parameter(torch.randn(heads, b))

    def forward(self, x, edges):
        h = self.linear(x).view(NODES, self.heads, -1)
        scores = (h * self.source).sum(-1)[edges[0]] + (h * self.target).sum(-1)[edges[1]]
        share = edge_softmax(F.leaky_relu(scores, 0.2), edges[1], NODES)
        return scatter_sum((h[edges[0]] * share[..., None]).flatten(1), edges[1], NODES)


class Sage(nn.Module):
    """GraphSAGE: the sum of two linear maps, of the node itself and of its neighbours' mean."""

    def __init__(self, a, b):
        super().__init__()
        self.own, self.others = nn.Linear(a, b), nn.Linear(a, b)

    def forward(self, x, edges):
        count = scatter_sum(torch.ones(edges.shape[1], 1), edges[1], NODES).clamp(min=1)
        return F.normalize(self.own(x) + self.others(scatter_sum(x[edges[0]], edges[1], NODES) / count), dim=-1)


class GIN(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.bias, self.net = nn.Parameter(torch.zeros(a)), nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Linear(b, b))

    def forward(self, x, edges):
        return self.net((1 + self.bias) * x + scatter_sum(x[edges[0]], edges[1], NODES))


class EdgeConv(nn.Module):
    """A network maps both ends of each edge to a message; a node takes the maximum of its edges' messages.  A mask of nodes by
    edges selects them."""

    def __init__(self, a, b):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * a, b), nn.ReLU(), nn.Linear(b, b))

    def forward(self, x, edges):
        messages = self.net(torch.cat((x[edges[1]], x[edges[0]] - x[edges[1]]), -1))
        mine = edges[1][None] == torch.arange(NODES)[:, None]
        far = torch.where(mine[..., None], messages[None], torch.tensor(-1e9)).max(1)[0]
        return torch.where(far < -1e8, torch.tensor(0.0), far)


class GatedGraph(nn.Module):
    def __init__(self, width, steps=3):
        super().__init__()
        self.linear, self.cell, self.steps = nn.Linear(width, width), nn.GRUCell(width, width), steps

    def forward(self, x, edges):
        for _ in range(self.steps):
            x = self.cell(scatter_sum(self.linear(x)[edges[0]], edges[1], NODES), x)
        return x


class SchNet(nn.Module):
    """SchNet: the filters are functions of the distances between points."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.filters = nn.Sequential(nn.Linear(10, width), nn.Softplus(), nn.Linear(width, width))
        self.before, self.after, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width), nn.Linear(width, 1)
        self.register_buffer("centres", torch.linspace(0, 4, 10))

    def forward(self, x, places, edges):
        away = (places[edges[0]] - places[edges[1]]).pow(2).sum(-1).add(1e-6).sqrt()
        filters = self.filters(torch.exp(-2 * (away[:, None] - self.centres) ** 2))
        x = x + self.after(F.softplus(scatter_sum(self.before(x)[edges[0]] * filters, edges[1], NODES)))
        return self.out(x).sum(0)


class EGNN(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.edge, self.node, self.move = nn.Linear(2 * width + 1, width), nn.Linear(2 * width, width), nn.Linear(width, 1)

    def forward(self, x, places, edges):
        apart = places[edges[0]] - places[edges[1]]
        messages = F.silu(self.edge(torch.cat((x[edges[0]], x[edges[1]], apart.pow(2).sum(-1, keepdim=True)), -1)))
        places = places + scatter_sum(apart * torch.tanh(self.move(messages)), edges[1], NODES) / NODES
        return x + self.node(torch.cat((x, scatter_sum(messages, edges[1], NODES)), -1)), places


class RGCN(nn.Module):
    """Each kind of edge has a matrix of its own, which is gathered by the kind's number."""

    def __init__(self, width=WIDTH, kinds=3):
        super().__init__()
        self.weights, self.own = nn.Parameter(torch.randn(kinds, width, width)), nn.Linear(width, width)

    def forward(self, x, edges, kinds):
        messages = (x[edges[0]][:, None] @ self.weights[kinds])[:, 0]
        return self.own(x) + scatter_sum(messages, edges[1], NODES)


class DensePool(nn.Module):
    """DiffPool: nodes are assigned to groups, and the adjacency between groups is computed."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.embed, self.assign, self.out = nn.Linear(width, 24), nn.Linear(width, 4), nn.Linear(24, 5)

    def forward(self, x, adjacency):
        h = adjacency @ x
        share, z = self.assign(h).softmax(-1), F.relu(self.embed(h))
        pooled, smaller = share.transpose(1, 2) @ z, share.transpose(1, 2) @ adjacency @ share
        return self.out((smaller @ pooled).mean(1)), smaller


class ChebNet(nn.Module):
    """ChebNet: Chebyshev polynomials of a graph's Laplacian are applied to x."""

    def __init__(self, width=WIDTH, order=4):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(width, 12, bias=False) for _ in range(order)])

    def forward(self, x, adjacency):
        scale = adjacency.sum(-1).add(1e-3).rsqrt()
        near = -adjacency * scale[:, :, None] * scale[:, None]
        terms = [x, near @ x]
        for _ in self.linears[2:]:
            terms.append(2 * near @ terms[-1] - terms[-2])
        return sum(linear(t) for linear, t in zip(self.linears, terms))


class GraphTransformer(nn.Module):
    """Graphormer: attention with a bias for each distance, and an embedding of degrees."""

    def __init__(self, width=WIDTH, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.degrees, self.bias = nn.Embedding(NODES, width), nn.Embedding(6, heads)

    def forward(self, x, distances):
        x = x + self.degrees((distances == 1).sum(-1))
        q, k, v = self.qkv(x).view(x.shape[0], NODES, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / 2 + self.bias(distances).permute(0, 3, 1, 2)
        scores = scores.masked_fill((distances == 5)[:, None], -1e9)
        return x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class PointNet(nn.Module):
    """PointNet: a network computes a 3x3 transform of the points, which is applied; then the maximum over all points is taken."""

    def __init__(self):
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 24, 1), nn.BatchNorm1d(24), nn.ReLU())
        self.matrix, self.net = nn.Linear(24, 9), nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 48, 1))
        self.out = nn.Linear(48, 10)

    def forward(self, points):
        turn = self.matrix(self.transform(points).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        return self.out(self.net(turn @ points).max(2)[0]).log_softmax(-1)


class DGCNN(nn.Module):
    """DGCNN: each layer finds each point's nearest neighbours in that layer's features."""

    def __init__(self, near=4):
        super().__init__()
        self.near = near
        self.convs = nn.ModuleList([nn.Sequential(nn.Conv2d(2 * a, b, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2)) for a, b in ((3, 16), (16, 24))])
        self.out = nn.Linear(40, 10)

    def around(self, x):
        squares = (x * x).sum(1)
        apart = squares[:, :, None] - 2 * x.transpose(1, 2) @ x + squares[:, None]
        which = apart.topk(self.near, dim=-1, largest=False)[1]
        batch, width, count = x.shape
        picked = torch.gather(x[:, :, None].expand(-1, -1, count, -1), 3, which[:, None].expand(-1, width, -1, -1))
        own = x[..., None].expand(-1, -1, -1, self.near)
        return torch.cat((picked - own, own), 1)

    def forward(self, x):
        found = []
        for conv in self.convs:
            x = conv(self.around(x)).max(-1)[0]
            found.append(x)
        return self.out(torch.cat(found, 1).max(2)[0])


class PointTransformer(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.start, self.qkv = nn.Linear(3, width), nn.Linear(width, 3 * width)
        self.place, self.score = nn.Linear(3, width), nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, points):
        q, k, v = self.qkv(self.start(points)).chunk(3, -1)
        place = self.place(points[:, :, None] - points[:, None])
        share = self.score(q[:, :, None] - k[:, None] + place).softmax(2)
        return (share * (v[:, None] + place)).sum(2)


class LinkPredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = GCN(WIDTH, 24), GCN(24, 16)

    def forward(self, x, edges):
        z = self.b(F.relu(self.a(x, edges)), edges)
        return torch.sigmoid((z[edges[0]] * z[edges[1]]).sum(-1)), torch.sigmoid(z @ z.t())


def sparse(name, make, extra=()):
    add(f"graphs/{name}", make, [SPARSE[0], *extra, SPARSE[1]], COUNTS)


sparse("gcn", lambda: Layers(GCN(WIDTH, 24), GCN(24, 5)))
sparse("gat", lambda: Layers(GAT(WIDTH, 8), GAT(16, 4)))
sparse("sage", lambda: Layers(Sage(WIDTH, 24), Sage(24, 8)))
sparse("gin", lambda: Layers(GIN(WIDTH, 24), GIN(24, 8)))
sparse("edge-conv", lambda: Layers(EdgeConv(WIDTH, 24), EdgeConv(24, 8)))
sparse("gated", lambda: GatedGraph(WIDTH))
sparse("schnet", SchNet, [Input("places", (NODES, 3))])
sparse("egnn", EGNN, [Input("places", (NODES, 3))])
sparse("link-predictor", LinkPredictor)
add("graphs/rgcn", RGCN, [*SPARSE, Input("kinds", ("edges",), 3)], COUNTS)
add("graphs/diffpool", DensePool, DENSE)
add("graphs/chebnet", ChebNet, DENSE)
add("graphs/graphormer", GraphTransformer, [DENSE[0], Input("distances", ("batch", NODES, NODES), 6)])
add("graphs/pointnet", PointNet, [Input("points", ("batch", 3, "points"))], [{"batch": 2, "points": 20}, {"batch": 1, "points": 33}])
add("graphs/dgcnn", DGCNN, [Input("points", ("batch", 3, 20))])
add("graphs/point-transformer", PointTransformer, [Input("points", ("batch", 14, 3))])
