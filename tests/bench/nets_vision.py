"""Networks on pictures and signals that torchvision lacks, for make_model.py."""
import torch
from torch import nn
from torchvision.models import detection


class Conv(nn.Sequential):
    """Convolution, batch norm, SiLU: what YOLO is made of."""

    def __init__(self, c1, c2, k=1, s=1):
        super().__init__(nn.Conv2d(c1, c2, k, s, k // 2, bias=False), nn.BatchNorm2d(c2, eps=1e-3), nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, c, add):
        super().__init__()
        self.body, self.add = nn.Sequential(Conv(c, c, 3), Conv(c, c, 3)), add

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


class C2f(nn.Module):
    def __init__(self, c1, c2, n, add=False):
        super().__init__()
        half = c2 // 2
        self.first, self.last = Conv(c1, c2), Conv((2 + n) * half, c2)
        self.steps = nn.ModuleList(Bottleneck(half, add) for _ in range(n))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for step in self.steps:
            parts.append(step(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Sppf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last, self.pool = Conv(c, c // 2), Conv(2 * c, c), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detect(nn.Module):
    """Boxes as distributions over 16 distances to each side, and 80 class scores, decoded to [1, 84, anchors]."""

    def __init__(self, channels, strides=(8.0, 16.0, 32.0), classes=80):
        super().__init__()
        self.classes, self.strides = classes, strides
        c2, c3 = max(16, channels[0] // 4, 64), max(channels[0], min(classes, 100))
        self.boxes = nn.ModuleList(
            nn.Sequential(Conv(c, c2, 3), Conv(c2, c2, 3), nn.Conv2d(c2, 64, 1)) for c in channels)
        self.scores = nn.ModuleList(
            nn.Sequential(Conv(c, c3, 3), Conv(c3, c3, 3), nn.Conv2d(c3, classes, 1)) for c in channels)
        self.dfl = nn.Conv2d(16, 1, 1, bias=False)
        self.dfl.weight.data = torch.arange(16.0).view(1, 16, 1, 1)

    @staticmethod
    def anchors(x):
        """The middles of the cells of a map: exported as a computation of its size, which may be open."""
        ys, xs = torch.meshgrid(torch.arange(x.shape[2]) + 0.5, torch.arange(x.shape[3]) + 0.5, indexing="ij")
        return torch.stack((xs, ys)).view(1, 2, -1)

    def forward(self, maps):
        found = [torch.cat((b(x), s(x)), 1) for b, s, x in zip(self.boxes, self.scores, maps)]
        box, score = torch.cat([x.view(x.shape[0], 64 + self.classes, -1) for x in found], 2).split((64, self.classes), 1)
        sides = self.dfl(box.view(box.shape[0], 4, 16, -1).transpose(2, 1).softmax(1)).view(box.shape[0], 4, -1)
        low, high = sides.chunk(2, 1)
        cells = [self.anchors(x) for x in maps]
        anchors = torch.cat(cells, 2)
        strides = torch.cat([torch.ones_like(c[:, :1]) * s for c, s in zip(cells, self.strides)], 2)
        x1, x2 = anchors - low, anchors + high
        return torch.cat((torch.cat(((x1 + x2) / 2, x2 - x1), 1) * strides, score.sigmoid()), 1)


class YoloV8n(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), C2f(32, 32, 1, True), Conv(32, 64, 3, 2),
                                  C2f(64, 64, 2, True))
        self.middle = nn.Sequential(Conv(64, 128, 3, 2), C2f(128, 128, 2, True))
        self.deep = nn.Sequential(Conv(128, 256, 3, 2), C2f(256, 256, 1, True), Sppf(256))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.join1, self.join2 = C2f(384, 128, 1), C2f(192, 64, 1)
        self.down1, self.join3 = Conv(64, 64, 3, 2), C2f(192, 128, 1)
        self.down2, self.join4 = Conv(128, 128, 3, 2), C2f(384, 256, 1)
        self.detect = Detect((64, 128, 256))

    def forward(self, x):
        a = self.stem(x)
        b = self.middle(a)
        c = self.deep(b)
        d = self.join1(torch.cat((self.up(c), b), 1))
        e = self.join2(torch.cat((self.up(d), a), 1))
        f = self.join3(torch.cat((self.down1(e), d), 1))
        g = self.join4(torch.cat((self.down2(f), c), 1))
        return self.detect([e, f, g])


def twice(c1, c2):
    return nn.Sequential(nn.Conv2d(c1, c2, 3, padding=1, bias=False), nn.BatchNorm2d(c2), nn.ReLU(),
                         nn.Conv2d(c2, c2, 3, padding=1, bias=False), nn.BatchNorm2d(c2), nn.ReLU())


class UNet(nn.Module):
    """A U-Net with 32 to 512 channels for 256x256 pictures, as it is common for medical segmentation."""

    def __init__(self, width=32):
        super().__init__()
        c = [width << k for k in range(5)]
        self.down = nn.ModuleList(twice(a, b) for a, b in zip([3] + c[:3], c[:4]))
        self.bottom, self.pool = twice(c[3], c[4]), nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in c[3::-1])
        self.join = nn.ModuleList(twice(2 * a, a) for a in c[3::-1])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for step in self.down:
            kept.append(step(x))
            x = self.pool(kept[-1])
        x = self.bottom(x)
        for up, join, k in zip(self.up, self.join, reversed(kept)):
            x = join(torch.cat((up(x), k), 1))
        return torch.sigmoid(self.last(x))


class Block1d(nn.Module):
    def __init__(self, c1, c2, s):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(c1, c2, 7, s, 3, bias=False), nn.BatchNorm1d(c2), nn.ReLU(),
                                  nn.Conv1d(c2, c2, 7, 1, 3, bias=False), nn.BatchNorm1d(c2))
        self.skip = nn.Sequential(nn.Conv1d(c1, c2, 1, s, bias=False), nn.BatchNorm1d(c2)) if s > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class ResNet1d(nn.Module):
    """Residual network on 12 channels of a signal (an electrocardiogram) of 4096 samples."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv1d(12, 64, 15, 2, 7, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(3, 2, 1)]
        c = 64
        for width in (64, 128, 196, 256):
            layers += [Block1d(c, width, 1 if width == c else 2), Block1d(width, width, 1)]
            c = width
        self.body, self.last = nn.Sequential(*layers), nn.Linear(c, 9)

    def forward(self, x):
        return self.last(self.body(x).mean(-1))


class DsCnn(nn.Module):
    """Keyword spotting: 49 frames of 10 coefficients, 12 words."""

    def __init__(self, c=64):
        super().__init__()
        layers = [nn.ZeroPad2d((1, 1, 4, 5)), nn.Conv2d(1, c, (10, 4), 2, bias=False), nn.BatchNorm2d(c), nn.ReLU()]
        for _ in range(4):
            layers += [nn.Conv2d(c, c, 3, padding=1, groups=c, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
                       nn.Conv2d(c, c, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU()]
        self.body, self.last = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(c, 12)

    def forward(self, x):
        return self.last(self.body(x))


class FasterRcnn(nn.Module):
    """torchvision's detector on one picture: how many boxes it finds depends on the picture."""

    output_names = ["boxes", "labels", "scores"]

    def __init__(self):
        super().__init__()
        self.net = detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5, min_size=320, max_size=320)

    def forward(self, x):
        found = self.net([x[0]])[0]
        return tuple(found[name] for name in self.output_names)
