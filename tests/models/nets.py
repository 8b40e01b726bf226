"""nets.py: networks for pictures that none of the installed packages has: detectors, segmenters, restoration, generators
and radiance fields."""

import math

import torch
from architecture import BATCHES, Input, add, image
from torch import nn
from torch.nn import functional as F


def conv(a, b, kernel=3, stride=1, groups=1, act=None):
    return nn.Sequential(nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(b), act or nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, width, residual=True):
        super().__init__()
        self.a, self.b, self.residual = conv(width, width), conv(width, width), residual

    def forward(self, x):
        y = self.b(self.a(x))
        return x + y if self.residual else y


class C3(nn.Module):
    """Two branches, one of them with bottlenecks, that are concatenated (YOLOv5)."""

    def __init__(self, a, b, residual=True):
        super().__init__()
        self.one, self.two, self.out = conv(a, b // 2, 1), conv(a, b // 2, 1), conv(b, b, 1)
        self.middle = nn.Sequential(Bottleneck(b // 2, residual), Bottleneck(b // 2, residual))

    def forward(self, x):
        return self.out(torch.cat((self.middle(self.one(x)), self.two(x)), 1))


class C2f(nn.Module):
    """The results of all bottlenecks are concatenated (YOLOv8)."""

    def __init__(self, a, b, residual=True):
        super().__init__()
        self.start, self.out = conv(a, b, 1), conv(2 * b, b, 1)
        self.blocks = nn.ModuleList([Bottleneck(b // 2, residual) for _ in range(2)])

    def forward(self, x):
        parts = list(self.start(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.out(torch.cat(parts, 1))


class ELAN(nn.Module):
    """The results of layers of several depths are concatenated (YOLOv7)."""

    def __init__(self, a, b, residual=True):
        super().__init__()
        self.one, self.two, self.out = conv(a, b // 2, 1), conv(a, b // 2, 1), conv(2 * b, b, 1)
        self.a, self.b = nn.Sequential(conv(b // 2, b // 2), conv(b // 2, b // 2)), nn.Sequential(conv(b // 2, b // 2), conv(b // 2, b // 2))

    def forward(self, x):
        x, y = self.one(x), self.two(x)
        z = self.a(y)
        return self.out(torch.cat((x, y, z, self.b(z)), 1))


class AreaAttention(nn.Module):
    """Attention within strips of a picture (YOLOv12), with a depthwise convolution as position encoding."""

    def __init__(self, a, b, residual=True, areas=4, heads=2):
        super().__init__()
        self.areas, self.heads, self.start = areas, heads, conv(a, b, 1)
        self.qkv, self.place, self.out = nn.Conv2d(b, 3 * b, 1), nn.Conv2d(b, b, 5, padding=2, groups=b), nn.Conv2d(b, b, 1)
        self.feed = nn.Sequential(conv(b, 2 * b, 1), nn.Conv2d(2 * b, b, 1))

    def forward(self, x):
        x = self.start(x)
        batch, width, height, breadth = x.shape
        qkv = self.qkv(x).flatten(2).transpose(1, 2).reshape(batch * self.areas, -1, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = (q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(batch, height, breadth, width).permute(0, 3, 1, 2)
        x = x + self.out(y + self.place(x))
        return x + self.feed(x)


class Pyramid(nn.Module):
    """Three equal pools, each of which reads the previous pool's result; all are concatenated (SPPF)."""

    def __init__(self, width):
        super().__init__()
        self.start, self.out = conv(width, width // 2, 1), conv(2 * width, width, 1)

    def forward(self, x):
        parts = [self.start(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.out(torch.cat(parts, 1))


class Focus(nn.Module):
    """Four slices of a picture side by side (YOLOv5, YOLOX)."""

    def __init__(self, b):
        super().__init__()
        self.conv = conv(12, b)

    def forward(self, x):
        return self.conv(torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1))


def cells(size, stride):
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    return (torch.stack((x, y), -1).view(1, -1, 2).float() + 0.5) * stride


class AnchorHead(nn.Module):
    """Boxes of three anchors in each cell (YOLOv3 to v7)."""

    def __init__(self, widths, classes=4):
        super().__init__()
        self.outputs = classes + 5
        self.convs = nn.ModuleList([nn.Conv2d(w, 3 * self.outputs, 1) for w in widths])
        self.register_buffer("anchors", torch.tensor([[10.0, 13], [16, 30], [33, 23]]))

    def forward(self, maps):
        found = []
        for k, (layer, x) in enumerate(zip(self.convs, maps)):
            stride, size = 8 * 2**k, x.shape[2]
            y = torch.sigmoid(layer(x)).view(x.shape[0], 3, self.outputs, size, size).permute(0, 1, 3, 4, 2)
            grid = (cells(size, 1) - 0.5).view(1, 1, size, size, 2)
            xy = (y[..., 0:2] * 2 - 0.5 + grid) * stride
            wh = (y[..., 2:4] * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2) * 2**k
            found.append(torch.cat((xy, wh, y[..., 4:]), -1).reshape(x.shape[0], -1, self.outputs))
        return torch.cat(found, 1)


class DistanceHead(nn.Module):
    """The distances to a box's four sides are means of predicted distributions (YOLOv8 and later)."""

    def __init__(self, widths, classes=4, bins=8, extra=0):
        super().__init__()
        self.boxes = nn.ModuleList([nn.Sequential(conv(w, 16), nn.Conv2d(16, 4 * bins, 1)) for w in widths])
        self.classes = nn.ModuleList([nn.Sequential(conv(w, w, groups=w), conv(w, 16, 1), nn.Conv2d(16, classes, 1)) for w in widths])
        self.extra = nn.ModuleList([nn.Sequential(conv(w, 16), nn.Conv2d(16, extra, 1)) for w in widths]) if extra else None
        self.register_buffer("places", torch.arange(bins).float())
        self.bins = bins

    def forward(self, maps):
        boxes, scores, extra = [], [], []
        for k, x in enumerate(maps):
            stride, size = 8 * 2**k, x.shape[2]
            side = self.boxes[k](x).view(x.shape[0], 4, self.bins, -1).softmax(2)
            side = (side * self.places.view(1, 1, -1, 1)).sum(2).transpose(1, 2) * stride
            centre = cells(size, stride)
            boxes.append(torch.cat((centre - side[..., :2], centre + side[..., 2:]), -1))
            scores.append(torch.sigmoid(self.classes[k](x)).flatten(2).transpose(1, 2))
            if self.extra is not None:
                extra.append(self.extra[k](x).flatten(2).transpose(1, 2))
        return [torch.cat(parts, 1) for parts in (boxes, scores, extra) if parts]


class Detector(nn.Module):
    """A backbone, a feature pyramid (from coarse to fine and back), and a head."""

    def __init__(self, block, head, stem=None, after=None):
        super().__init__()
        self.stem = stem or conv(3, 16, 3, 2)
        self.stages = nn.ModuleList([nn.Sequential(conv(a, b, 3, 2), block(b, b)) for a, b in ((16, 24), (24, 32), (32, 48))])
        self.pool = Pyramid(48)
        self.up, self.down = block(80, 32, False), nn.ModuleList([conv(32, 32, 3, 2), block(80, 48, False)])
        self.head, self.after = head([32, 48]), after

    def forward(self, x):
        x = self.stages[0](self.stem(x))
        middle = self.stages[1](x)
        deep = self.pool(self.stages[2](middle))
        near = self.up(torch.cat((F.interpolate(deep, scale_factor=2.0), middle), 1))
        far = self.down[1](torch.cat((self.down[0](near), deep), 1))
        found = self.head([near, far])
        return self.after(found) if self.after else found


def best(found):
    """Chooses boxes without suppression (YOLOv10): the 20 boxes of the best scores, then the 10 best (box, class) pairs of these."""
    boxes, scores = found[:2]
    top, where = scores.max(-1)[0].topk(20, dim=-1)
    boxes = boxes.gather(1, where[..., None].expand(-1, -1, 4))
    scores, flat = scores.gather(1, where[..., None].expand(-1, -1, scores.shape[-1])).flatten(1).topk(10, dim=-1)
    return boxes.gather(1, (flat // 4)[..., None].expand(-1, -1, 4)), scores, flat % 4


def suppressed(found):
    """Returns what non-maximum suppression, done for each class, leaves of the first picture's boxes."""
    import torchvision

    boxes, (scores, classes) = found[0][0], found[1][0].max(-1)
    kept = torchvision.ops.batched_nms(boxes, scores, classes, 0.5)
    return boxes[kept], scores[kept], classes[kept]


SIDE = image(64)
for name, make in {
    "yolov5": lambda: Detector(C3, AnchorHead, Focus(16)),
    "yolov7": lambda: Detector(ELAN, AnchorHead),
    "yolov8": lambda: Detector(C2f, DistanceHead),
    "yolov8-nms": lambda: Detector(C2f, DistanceHead, after=suppressed),
    "yolov8-pose": lambda: Detector(C2f, lambda widths: DistanceHead(widths, extra=15)),
    "yolov12": lambda: Detector(AreaAttention, DistanceHead),
    "yolox": lambda: Detector(C3, lambda widths: DistanceHead(widths, bins=1, extra=1), Focus(16)),
}.items():
    add(f"detection/{name}", make, SIDE)
# The batch norms take their statistics from 8 pictures: with fewer, all scores would be 1 and TopK's order arbitrary.
add("detection/yolov10", lambda: Detector(C2f, DistanceHead, after=best), SIDE, [{"batch": 8}, {"batch": 1}])


class CenterNet(nn.Module):
    """CenterNet: a pool finds the peaks of a heat map, TopK the best of them, and their sizes are gathered."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16, 3, 2), conv(16, 24, 3, 2), nn.ConvTranspose2d(24, 16, 4, 2, 1), nn.ReLU())
        self.heat, self.size = nn.Conv2d(16, 3, 1), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        x = self.net(x)
        heat = torch.sigmoid(self.heat(x))
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, where = heat.flatten(1).topk(8)
        cell = where % (heat.shape[2] * heat.shape[3])
        sizes = self.size(x).flatten(2).gather(2, cell[:, None].expand(-1, 2, -1))
        return scores, where, sizes


class RetinaFace(nn.Module):
    """RetinaFace: SSH modules; boxes and landmarks are decoded from priors."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16, 3, 2), conv(16, 24, 3, 2), conv(24, 32, 3, 2))
        self.a, self.b, self.c = conv(32, 16), conv(32, 8), nn.Sequential(conv(8, 8), conv(8, 8))
        self.side, self.heads = conv(8, 8), nn.ModuleList([nn.Conv2d(32, 2 * n, 1) for n in (2, 4, 10)])

    def forward(self, x):
        x = self.net(x)
        b = self.b(x)
        x = F.relu(torch.cat((self.a(x), self.side(b), self.c(b)), 1))
        scores, boxes, marks = (head(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, n) for head, n in zip(self.heads, (2, 4, 10)))
        priors = torch.cat((cells(8, 0.125).repeat(1, 2, 1), torch.full((1, 128, 2), 0.25)), -1)
        centre = priors[..., :2] + boxes[..., :2] * 0.1 * priors[..., 2:]
        size = priors[..., 2:] * torch.exp(boxes[..., 2:] * 0.2)
        marks = priors[..., None, :2] + marks.view(x.shape[0], -1, 5, 2) * 0.1 * priors[..., None, 2:]
        return torch.cat((centre - size / 2, centre + size / 2), -1), scores.softmax(-1), marks.flatten(2)


class DeformableAttention(nn.Module):
    """Deformable attention: GridSample reads values at positions that each query computes."""

    def __init__(self, width=32, heads=4, points=4):
        super().__init__()
        self.heads, self.points, self.start = heads, points, conv(3, width, 3, 4)
        self.queries, self.where, self.share = nn.Parameter(torch.randn(7, width)), nn.Linear(width, heads * points * 2), nn.Linear(width, heads * points)
        self.value, self.out, self.reference = nn.Conv2d(width, width, 1), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x):
        x = self.start(x)
        batch, width, height, breadth = x.shape
        q = self.queries[None].expand(batch, -1, -1)
        value = self.value(x).view(batch * self.heads, width // self.heads, height, breadth)
        place = torch.sigmoid(self.reference(q))[:, :, None, None] + torch.tanh(self.where(q).view(batch, 7, self.heads, self.points, 2)) * 0.2
        grid = (2 * place - 1).transpose(1, 2).flatten(0, 1)
        sampled = F.grid_sample(value, grid, align_corners=False)
        share = self.share(q).view(batch, 7, self.heads, self.points).softmax(-1).transpose(1, 2).flatten(0, 1)[:, None]
        y = (sampled * share).sum(-1).view(batch, width, 7).transpose(1, 2)
        return q + self.out(y)


add("detection/centernet", CenterNet, SIDE)
add("detection/retinaface", RetinaFace, SIDE)
add("detection/deformable-attention", DeformableAttention, SIDE, opset=16)


class UNet(nn.Module):
    """A U-Net.  resize: upsamples by Resize instead of ConvTranspose; gates: the skips are gated by attention; nested: the last
    skip has an inner block (U-Net++)."""

    def __init__(self, resize=False, gates=False, nested=False):
        super().__init__()
        act = nn.ReLU()
        block = lambda a, b: nn.Sequential(conv(a, b, act=act), conv(b, b, act=act))  # noqa: E731
        self.down, self.resize, self.nested = nn.ModuleList([block(3, 16), block(16, 24), block(24, 32)]), resize, nested
        self.ups = nn.ModuleList([nn.Conv2d(a, b, 1) if resize else nn.ConvTranspose2d(a, b, 2, 2) for a, b in ((32, 24), (24, 16))])
        self.blocks, self.out = nn.ModuleList([block(48, 24), block(48 if nested else 32, 16)]), nn.Conv2d(16, 2, 1)
        self.gates = nn.ModuleList([nn.Conv2d(b, 1, 1) for b in (24, 16)]) if gates else None
        if nested:
            self.side, self.inner = nn.Conv2d(24, 16, 1), block(32, 16)

    def forward(self, x):
        one = self.down[0](x)
        two = self.down[1](F.max_pool2d(one, 2))
        x = self.down[2](F.max_pool2d(two, 2))
        for k, (up, block, skip) in enumerate(zip(self.ups, self.blocks, (two, one))):
            x = up(F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True) if self.resize else x)
            if self.gates is not None:
                skip = skip * torch.sigmoid(self.gates[k](F.relu(x + skip)))
            if self.nested and k == 1:
                skip = torch.cat((skip, self.inner(torch.cat((one, F.interpolate(self.side(two), scale_factor=2.0)), 1))), 1)
            x = block(torch.cat((x, skip), 1))
        return self.out(x)


class UNet3D(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))  # noqa: E731
        self.a, self.b, self.up, self.c, self.out = block(1, 8), block(8, 16), nn.ConvTranspose3d(16, 8, 2, 2), block(16, 8), nn.Conv3d(8, 2, 1)

    def forward(self, x):
        x = self.a(x)
        return self.out(self.c(torch.cat((x, self.up(self.b(F.max_pool3d(x, 2)))), 1))).softmax(1)


class BiSeNet(nn.Module):
    """BiSeNet: a wide shallow branch and a deep narrow one, joined by attention over channels."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), conv(32, 32, 3, 2))
        self.deep = nn.Sequential(conv(3, 16, 3, 4), conv(16, 24, 3, 2), conv(24, 32, 3, 2))
        self.refine, self.fuse, self.share, self.out = nn.Conv2d(32, 32, 1), conv(64, 32, 1), nn.Conv2d(32, 32, 1), nn.Conv2d(32, 5, 1)

    def forward(self, x):
        wide, deep = self.wide(x), self.deep(x)
        deep = deep * torch.sigmoid(self.refine(deep.mean((2, 3), keepdim=True))) + F.adaptive_avg_pool2d(deep, 1)
        y = self.fuse(torch.cat((wide, F.interpolate(deep, size=(8, 8), mode="nearest")), 1))
        y = y + y * torch.sigmoid(self.share(F.adaptive_avg_pool2d(y, 1)))
        return F.interpolate(self.out(y), scale_factor=8.0, mode="bilinear", align_corners=False)


class PSPNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), nn.Conv2d(32, 32, 3, padding=2, dilation=2), nn.ReLU())
        self.parts, self.out = nn.ModuleList([conv(32, 8, 1) for _ in range(4)]), nn.Conv2d(64, 5, 3, padding=1)

    def forward(self, x):
        x = self.net(x)
        found = [x] + [F.interpolate(p(F.adaptive_avg_pool2d(x, n)), size=(16, 16), mode="bilinear") for p, n in zip(self.parts, (1, 2, 4, 8))]
        return F.interpolate(self.out(torch.cat(found, 1)), size=(64, 64), mode="bilinear").argmax(1), x


class YOLACT(nn.Module):
    """YOLACT: masks are weighted sums of prototypes."""

    def __init__(self):
        super().__init__()
        self.net, self.prototypes, self.weights = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2)), conv(32, 8), nn.Conv2d(32, 8, 3, 4, 1)

    def forward(self, x):
        x = self.net(x)
        weights = torch.tanh(self.weights(x)).flatten(2).transpose(1, 2)
        return torch.sigmoid(torch.einsum("bnk,bkhw->bnhw", weights, self.prototypes(x)))


class Stacked(nn.Module):
    """An hourglass network for poses: down, up, with residuals at every size; a keypoint is the mean position of a heat map."""

    def __init__(self):
        super().__init__()
        self.start, self.heat = conv(3, 24, 7, 4), nn.Conv2d(24, 6, 1)
        self.sides, self.downs, self.ups = (nn.ModuleList([Bottleneck(24) for _ in range(3)]) for _ in range(3))

    def hourglass(self, x, k=0):
        if k == 3:
            return x
        y = self.hourglass(self.downs[k](F.max_pool2d(x, 2)), k + 1)
        return self.sides[k](x) + F.interpolate(self.ups[k](y), scale_factor=2.0)

    def forward(self, x):
        heat = self.heat(self.hourglass(self.start(x)))
        share = heat.flatten(2).softmax(-1).view(heat.shape)
        line = torch.linspace(0, 1, 16)
        return heat, torch.stack(((share.sum(2) * line).sum(-1), (share.sum(3) * line).sum(-1)), -1)


for name, make in {
    "unet": UNet, "unet-resized": lambda: UNet(resize=True), "unet-gated": lambda: UNet(gates=True), "unet-nested": lambda: UNet(nested=True),
    "bisenet": BiSeNet, "pspnet": PSPNet, "yolact": YOLACT, "hourglass": Stacked,
}.items():  # fmt: skip
    add(f"segmentation/{name}", make, SIDE)
add("segmentation/unet-3d", UNet3D, [Input("volume", ("batch", 1, 16, 16, 16))])

SMALL = [Input("image", ("batch", 3, "height", 24), "uniform")]
HEIGHTS = [{"batch": 2, "height": 24}, {"batch": 1, "height": 40}]


class SubPixel(nn.Module):
    """ESPCN."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 24, 5, padding=2), nn.Tanh(), nn.Conv2d(24, 16, 3, padding=1), nn.Tanh(), nn.Conv2d(16, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        return self.net(x)


class EDSR(nn.Module):
    """EDSR, or ESRGAN (dense blocks), or RCAN (attention over channels): residual blocks, a skip over all of them, PixelShuffle."""

    def __init__(self, dense=False, attention=False):
        super().__init__()
        self.start, self.end, self.dense = nn.Conv2d(3, 24, 3, padding=1), nn.Sequential(nn.Conv2d(24, 96, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(24, 3, 3, padding=1)), dense
        widths = [24, 32, 40] if dense else [24, 24]
        self.blocks = nn.ModuleList([nn.ModuleList([nn.Conv2d(w, 8 if dense and k < 2 else 24, 3, padding=1) for k, w in enumerate(widths)]) for _ in range(3)])
        self.shares = nn.ModuleList([nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 6, 1), nn.ReLU(), nn.Conv2d(6, 24, 1), nn.Sigmoid()) for _ in range(3)]) if attention else None

    def forward(self, x):
        start = x = self.start(x)
        for k, block in enumerate(self.blocks):
            if self.dense:
                parts = [x]
                for layer in block[:-1]:
                    parts.append(F.leaky_relu(layer(torch.cat(parts, 1)), 0.2))
                y = block[-1](torch.cat(parts, 1))
            else:
                y = block[1](F.relu(block[0](x)))
            x = x + (y * self.shares[k](y) if self.shares is not None else 0.2 * y)
        return self.end(x + start)


class NAFBlock(nn.Module):
    """A block of NAFNet: instead of an activation, the two halves of the channels are multiplied; a learned scale of channels
    follows, and each branch has a learned weight."""

    def __init__(self, width=16):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(1, width) for _ in range(2)])
        self.a, self.depth, self.b = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width), nn.Conv2d(width, width, 1)
        self.share, self.c, self.d = nn.Conv2d(width, width, 1), nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)
        self.beta, self.gamma = nn.Parameter(torch.zeros(1, width, 1, 1)), nn.Parameter(torch.zeros(1, width, 1, 1))

    def forward(self, x):
        a, b = self.depth(self.a(self.norms[0](x))).chunk(2, 1)
        y = a * b
        x = x + self.b(y * self.share(y.mean((2, 3), keepdim=True))) * self.beta
        a, b = self.c(self.norms[1](x)).chunk(2, 1)
        return x + self.d(a * b) * self.gamma


def nafnet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), NAFBlock(), NAFBlock(), nn.Conv2d(16, 3, 3, padding=1))


class Restormer(nn.Module):
    """Restormer: attention between channels with normalised queries and keys and a learned temperature."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.start, self.end, self.heads, self.temperature = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1), heads, nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv, self.depth, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(3 * width, 3 * width, 3, padding=1, groups=3 * width), nn.Conv2d(width, width, 1)

    def forward(self, x):
        y = self.start(x)
        parts = self.depth(self.qkv(y)).chunk(3, 1)
        q, k, v = (p.view(x.shape[0], self.heads, 8, -1) for p in parts)
        share = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2) * self.temperature).softmax(-1)
        return x + self.end(y + self.out((share @ v).reshape(y.shape)))


class ZeroDCE(nn.Module):
    """Zero-DCE: predicted curves that brighten a picture are applied repeatedly."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(32, 12, 3, padding=1)

    def forward(self, x):
        one = F.relu(self.a(x))
        for curve in torch.tanh(self.c(torch.cat((one, F.relu(self.b(one))), 1))).split(3, 1):
            x = x + curve * (x * x - x)
        return x


class StyleTransfer(nn.Module):
    """Style transfer: a network with reflected borders, instance norms, residuals and resizes."""

    def __init__(self):
        super().__init__()
        layer = lambda a, b, k, s=1: nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(a, b, k, s), nn.InstanceNorm2d(b, affine=True))  # noqa: E731
        self.down, self.blocks = nn.Sequential(layer(3, 16, 9), nn.ReLU(), layer(16, 24, 3, 2), nn.ReLU()), nn.ModuleList([nn.Sequential(layer(24, 24, 3), nn.ReLU(), layer(24, 24, 3)) for _ in range(2)])
        self.up, self.out = layer(24, 16, 3), nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(F.relu(self.up(F.interpolate(x, scale_factor=2.0))))


class AdaIN(nn.Module):
    """AdaIN: the content's features get the mean and the deviation of the style's."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Sequential(conv(3, 16), conv(16, 24, 3, 2)), nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(24, 3, 3, padding=1))

    def forward(self, content, style):
        a, b = self.encode(content), self.encode(style)
        mean, deviation = lambda t: t.mean((2, 3), keepdim=True), lambda t: (t.var((2, 3), keepdim=True) + 1e-5).sqrt()
        return self.decode((a - mean(a)) / deviation(a) * deviation(b) + mean(b))


for name, make in {
    "espcn": SubPixel, "edsr": EDSR, "esrgan": lambda: EDSR(dense=True), "rcan": lambda: EDSR(attention=True), "nafnet": nafnet,
    "restormer": Restormer, "zero-dce": ZeroDCE, "style-transfer": StyleTransfer,
}.items():  # fmt: skip
    add(f"restoration/{name}", make, SMALL, HEIGHTS)
add("restoration/adain", AdaIN, [Input("content", ("batch", 3, 24, 24)), Input("style", ("batch", 3, 24, 24))])

NOISE = [Input("noise", ("batch", 24))]


class Generator(nn.Module):
    """DCGAN."""

    def __init__(self):
        super().__init__()
        up = lambda a, b, k, s, p: nn.Sequential(nn.ConvTranspose2d(a, b, k, s, p, bias=False), nn.BatchNorm2d(b), nn.ReLU())  # noqa: E731
        self.net = nn.Sequential(up(24, 32, 4, 1, 0), up(32, 24, 4, 2, 1), nn.ConvTranspose2d(24, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise):
        return self.net(noise[:, :, None, None])


class StyleGenerator(nn.Module):
    """StyleGAN 2: the convolution's weights are modulated and demodulated for each picture, by factors on its input and output."""

    def __init__(self, width=16):
        super().__init__()
        self.mapping, self.constant = nn.Sequential(nn.Linear(24, 24), nn.LeakyReLU(0.2), nn.Linear(24, 24), nn.LeakyReLU(0.2)), nn.Parameter(torch.randn(1, width, 8, 8))
        self.styles, self.weights = nn.ModuleList([nn.Linear(24, width) for _ in range(2)]), nn.ParameterList([nn.Parameter(torch.randn(width, width, 3, 3)) for _ in range(2)])
        self.rgb = nn.Conv2d(width, 3, 1)

    def forward(self, noise):
        z = self.mapping(noise * (noise.pow(2).mean(1, keepdim=True) + 1e-8).rsqrt())
        x = self.constant.expand(noise.shape[0], -1, -1, -1)
        for style, weight in zip(self.styles, self.weights):
            s = style(z) + 1
            scale = ((weight[None] * s[:, None, :, None, None]).pow(2).sum((2, 3, 4)) + 1e-8).rsqrt()
            x = F.conv2d(x * s[:, :, None, None], weight, padding=1) * scale[:, :, None, None]
            x = F.interpolate(F.leaky_relu(x, 0.2) * math.sqrt(2), scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.rgb(x)


class Discriminator(nn.Module):
    """Self-attention between convolutions (SAGAN); the mean deviation over a batch is added as a channel."""

    def __init__(self):
        super().__init__()
        self.a, self.q, self.k, self.v, self.scale = nn.Conv2d(3, 16, 4, 2, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 16, 1), nn.Parameter(torch.zeros(1))
        self.b, self.out = nn.Conv2d(17, 24, 4, 2, 1), nn.Conv2d(24, 1, 4)

    def forward(self, image):
        x = F.leaky_relu(self.a(image), 0.2)
        q, k, v = (layer(x).flatten(2) for layer in (self.q, self.k, self.v))
        x = x + self.scale * (v @ (q.transpose(1, 2) @ k).softmax(-1).transpose(1, 2)).view_as(x)
        far = (x - x.mean(0, keepdim=True)).pow(2).mean(0).add(1e-8).sqrt().mean().view(1, 1, 1, 1).expand(x.shape[0], 1, x.shape[2], x.shape[3])
        return self.out(F.leaky_relu(self.b(torch.cat((x, far), 1)), 0.2)).flatten(1)


class VariationalAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Sequential(nn.Linear(256, 32), nn.ELU()), nn.Sequential(nn.Linear(8, 32), nn.SELU(), nn.Linear(32, 256), nn.Sigmoid())
        self.mean, self.spread = nn.Linear(32, 8), nn.Linear(32, 8)

    def forward(self, picture, noise):
        h = self.encode(picture)
        mean, spread = self.mean(h), self.spread(h)
        return self.decode(mean + noise * torch.exp(0.5 * spread)), (mean.pow(2) + spread.exp() - spread - 1).sum(-1)


class RadianceField(nn.Module):
    """NeRF: sines of positions, a network, and light that is summed along a ray."""

    def __init__(self):
        super().__init__()
        self.net, self.density, self.colour = nn.Sequential(nn.Linear(39, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()), nn.Linear(32, 1), nn.Linear(32, 3)

    def forward(self, origins, directions):
        depth = torch.linspace(1, 3, 12)
        places = origins[:, None] + directions[:, None] * depth[:, None]
        waves = [places] + [f(places * 2.0**k) for k in range(6) for f in (torch.sin, torch.cos)]
        h = self.net(torch.cat(waves, -1))
        alpha = 1 - torch.exp(-F.softplus(self.density(h)[..., 0]) * 0.2)
        left = torch.exp(torch.cumsum(torch.cat((torch.zeros_like(alpha[:, :1]), torch.log(1 - alpha + 1e-6)), 1), 1))[:, :-1]
        return ((alpha * left)[..., None] * torch.sigmoid(self.colour(h))).sum(1), (alpha * left * depth).sum(1)


class Sines(nn.Module):
    """SIREN."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in ((2, 32), (32, 32), (32, 3))])

    def forward(self, places):
        for layer in self.layers[:-1]:
            places = torch.sin(3 * layer(places))
        return self.layers[-1](places)


class Couplings(nn.Module):
    """RealNVP."""

    def __init__(self, width=8):
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(width // 2, 24), nn.Tanh(), nn.Linear(24, width)) for _ in range(4)])

    def forward(self, x):
        total, (a, b) = 0, x.chunk(2, -1)
        for net in self.nets:
            scale, shift = net(a).chunk(2, -1)
            scale = torch.tanh(scale)
            a, b, total = b * scale.exp() + shift, a, total + scale.sum(-1)
        return torch.cat((a, b), -1), total


class HyperNetwork(nn.Module):
    """Dynamic convolution: the weights are a mixture of kernels, whose shares are computed from the input."""

    def __init__(self):
        super().__init__()
        self.kernels, self.share = nn.Parameter(torch.randn(4, 16, 3, 3, 3) / 5), nn.Linear(3, 4)

    def forward(self, image):
        share = self.share(image.mean((2, 3))).softmax(-1)
        weight = (share @ self.kernels.flatten(1)).view(-1, 3, 3, 3)
        y = F.unfold(image, 3, padding=1)
        return (weight.view(image.shape[0], 16, 27) @ y).view(image.shape[0], 16, image.shape[2], image.shape[3])


class Capsules(nn.Module):
    """Capsules: three rounds of routing by agreement."""

    def __init__(self):
        super().__init__()
        self.conv, self.weights = nn.Conv2d(3, 16, 9, 4), nn.Parameter(torch.randn(8, 5, 8, 4))

    def squash(self, x):
        size = x.pow(2).sum(-1, keepdim=True)
        return x * size / (1 + size) / (size + 1e-6).sqrt()

    def forward(self, image):
        x = self.conv(image).flatten(1)[:, :64].reshape(image.shape[0], 8, 8)
        votes = torch.einsum("bik,ijkd->bijd", self.squash(x), self.weights)
        routes = votes.new_zeros(votes.shape[:3])
        for step in range(3):
            y = self.squash((routes.softmax(-1)[..., None] * votes).sum(1))
            routes = routes + (votes * y[:, None]).sum(-1)
        return y.pow(2).sum(-1).sqrt()


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.where, self.net = nn.Sequential(conv(3, 8, 7, 4), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 6)), conv(3, 16)

    def forward(self, image):
        theta = self.where(image).view(-1, 2, 3) * 0.2 + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        y, x = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
        base = torch.stack((x, y, torch.ones_like(x)), -1).view(1, -1, 3)
        grid = (base @ theta.transpose(1, 2)).view(-1, 24, 24, 2)
        return self.net(F.grid_sample(image, grid, align_corners=True, padding_mode="border"))


class Siamese(nn.Module):
    """Correlation of two pictures' features (tracking)."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16, 3, 2), conv(16, 24, 3, 2))

    def forward(self, whole, part):
        a, b = self.net(whole), self.net(part)
        near = F.unfold(a, 6).view(a.shape[0], 24 * 36, -1)
        return (near * b.flatten(1)[..., None]).sum(1).view(-1, 1, 11, 11)


class ConvLSTM(nn.Module):
    """Four steps of a cell whose gates are convolutions."""

    def __init__(self, width=12):
        super().__init__()
        self.gates, self.out = nn.Conv2d(3 + width, 4 * width, 3, padding=1), nn.Conv2d(width, 1, 1)

    def forward(self, clip):
        h = c = clip.new_zeros(clip.shape[0], 12, 16, 16)
        for k in range(4):
            i, f, o, g = self.gates(torch.cat((clip[:, k], h), 1)).chunk(4, 1)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


class ShiftNet(nn.Module):
    """TSM: some channels move to the previous frame, some to the next."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = conv(3, 16), conv(16, 16), nn.Linear(16, 5)

    def forward(self, clip):
        x = self.a(clip.flatten(0, 1)).view(-1, 4, 16, 16, 16)
        back, ahead, stay = x[:, :, :4], x[:, :, 4:8], x[:, :, 8:]
        back = torch.cat((back[:, 1:], torch.zeros_like(back[:, :1])), 1)
        ahead = torch.cat((torch.zeros_like(ahead[:, :1]), ahead[:, :-1]), 1)
        y = self.b(torch.cat((back, ahead, stay), 2).flatten(0, 1))
        return self.out(y.mean((2, 3)).view(-1, 4, 16).mean(1))


class SlowFast(nn.Module):
    def __init__(self):
        super().__init__()
        layer = lambda a, b, k: nn.Sequential(nn.Conv3d(a, b, k, padding=[n // 2 for n in k]), nn.BatchNorm3d(b), nn.ReLU())  # noqa: E731
        self.slow, self.fast, self.side = layer(3, 16, (1, 3, 3)), layer(3, 4, (5, 3, 3)), nn.Conv3d(4, 8, (5, 1, 1), (4, 1, 1), (2, 0, 0))
        self.deep, self.out = layer(24, 24, (3, 3, 3)), nn.Linear(28, 5)

    def forward(self, clip):
        fast = self.fast(clip)
        slow = self.deep(torch.cat((self.slow(clip[:, :, ::4]), self.side(fast)), 1))
        return self.out(torch.cat((slow.mean((2, 3, 4)), fast.mean((2, 3, 4))), 1))


class TextReader(nn.Module):
    """CRNN: columns of a picture read in both directions."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16), nn.MaxPool2d(2), conv(16, 24), nn.MaxPool2d((2, 1)), conv(24, 32), nn.MaxPool2d((4, 1)))
        self.cell, self.out = nn.LSTM(64, 24, bidirectional=True, batch_first=True), nn.Linear(48, 20)

    def forward(self, image):
        x = self.net(image).flatten(1, 2).transpose(1, 2)
        return self.out(self.cell(x)[0]).softmax(-1)


for name, (make, inputs) in {
    "dcgan": (Generator, NOISE), "stylegan2": (StyleGenerator, NOISE), "sagan-discriminator": (Discriminator, [Input("image", (2, 3, 16, 16))]),
    "vae": (VariationalAutoencoder, [Input("picture", ("batch", 256), "uniform"), Input("noise", ("batch", 8))]),
    "realnvp": (Couplings, [Input("x", ("batch", 8))]),
}.items():  # fmt: skip
    add(f"generators/{name}", make, inputs, [{}] if inputs[0].dims[0] == 2 else BATCHES)
add("fields/nerf", RadianceField, [Input("origins", ("batch", 3)), Input("directions", ("batch", 3))], [{"batch": 5}, {"batch": 2}])
add("fields/siren", Sines, [Input("places", ("batch", 2))], [{"batch": 9}, {"batch": 1}])
for name, make in {"dynamic-convolution": HyperNetwork, "capsules": Capsules, "spatial-transformer": SpatialTransformer}.items():
    add(f"others/{name}", make, image(32), opset=16)
add("others/siamese-tracker", Siamese, [Input("whole", ("batch", 3, 64, 64)), Input("part", ("batch", 3, 24, 24))])
add("others/crnn", TextReader, [Input("image", ("batch", 3, 32, "width"))], [{"batch": 2, "width": 48}, {"batch": 1, "width": 80}])
add("video/conv-lstm", ConvLSTM, [Input("clip", ("batch", 4, 3, 16, 16))])
add("video/shift-net", ShiftNet, [Input("clip", ("batch", 4, 3, 16, 16))])
add("video/slowfast", SlowFast, [Input("clip", ("batch", 3, 8, 24, 24))])
