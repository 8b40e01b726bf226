"""architecture.py: architectures.  An architecture is a module of torch, its inputs, and the sizes that it is run at.  The
modules that CATALOGUE names have tables of architectures and call add() for each row."""

import importlib
import importlib.util
import zlib
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

CATALOGUE = [
    "vision_timm",
    "vision_torchvision",
    "pictures",
    "language",
    "text",
    "speech",
    "diffusion",
    "graphs",
    "recommenders",
    "nets",
    "trained",
]


# Whether torch exports by torch.export instead of by tracing.
TORCH_EXPORT = tuple(int(x) for x in torch.__version__.split(".")[:2]) >= (2, 9)

# The exporter by tracing writes LayerNormalization as one node from opset 17 on and GridSample from 16 on; GroupNorm and GELU
# become several nodes in all three.  The other one writes RMSNormalization and Attention as one node from 23 on.
OPSETS = (18, 20, 23) if TORCH_EXPORT else (14, 16, 17)


@dataclass
class Input:
    """dims are numbers and names of open sizes; "past+length" is the sum of two open sizes.  kind says which values are drawn: "normal",
    "small", "uniform" (in 0..1), "mask" (ones), "padded" (ones, and zeros at the end of the last row), "bool", "boxes", "range" (0, 1, 2, ...
    along the last axis), a number N for integers below N, or [value] for a scalar."""

    name: str
    dims: tuple
    kind: object = "normal"


@dataclass
class Architecture:
    name: str
    family: str
    make: Callable  # () -> a module
    inputs: list
    sizes: list  # of {name of an open size: number}; the export uses the first of the list
    call: Callable = lambda module, inputs: module(*inputs.values())
    opset: int = 0  # 0: one of OPSETS, always the same
    shorten: bool = True
    write: Callable = None  # writes the ONNX model to a path, in place of make
    draw: Callable = None  # (path of the ONNX model, sizes) -> the inputs by name, in place of those that `inputs` describes
    file: str = ""  # the path, below the data folder, of an ONNX model that need not be exported; make is not called then


ARCHITECTURES = {}
BATCHES = [{"batch": 2}, {"batch": 1}]


def by_keyword(module, inputs):
    return module(**inputs)


def opset_of(a):
    return max(a.opset, OPSETS[0]) if a.opset else OPSETS[zlib.crc32(a.name.encode()) % len(OPSETS)]


def add(name, make, inputs, sizes=BATCHES, **options):
    """Adds an architecture to the catalogue.  Its family is the part of its name before the slash."""
    if name in ARCHITECTURES:
        raise ValueError(f"two architectures are called {name}")
    ARCHITECTURES[name] = Architecture(name, name.split("/")[0], make, inputs, sizes, **options)


def image(size, channels=3):
    return [Input("image", ("batch", channels, size, size))]


def catalogue():
    for module in CATALOGUE:
        importlib.import_module(module)
    if importlib.util.find_spec("optimum"):
        importlib.import_module("by_optimum")
    if importlib.util.find_spec("onnxmltools"):
        importlib.import_module("by_trees")
    return ARCHITECTURES


def number_of(dim, sizes):
    return dim if isinstance(dim, int) else sum(sizes[part] for part in dim.split("+"))


def draw(spec, sizes, generator):
    dims = [number_of(d, sizes) for d in spec.dims]
    if isinstance(spec.kind, int):
        return torch.randint(0, spec.kind, dims, generator=generator)
    if isinstance(spec.kind, list):
        return torch.tensor(spec.kind[0])
    if spec.kind == "small":  # like samples of sound
        return 0.1 * torch.randn(dims, generator=generator)
    if spec.kind == "normal":
        return torch.randn(dims, generator=generator)
    if spec.kind == "uniform":
        return torch.rand(dims, generator=generator)
    if spec.kind == "bool":
        return torch.rand(dims, generator=generator) < 0.5
    if spec.kind == "boxes":  # left, top, right, bottom
        low = torch.randint(0, 50, dims[:-1] + [2], generator=generator)
        return torch.cat((low, low + torch.randint(1, 50, low.shape, generator=generator)), dim=-1)
    if spec.kind == "range":
        return torch.arange(dims[-1]).expand(dims).contiguous()
    mask = torch.ones(dims, dtype=torch.int64)
    if spec.kind == "padded":
        mask[-1, dims[-1] - dims[-1] // 4 :] = 0
    return mask


def draw_inputs(a, sizes):
    generator = torch.Generator().manual_seed(zlib.crc32(repr((a.name, sizes)).encode()))
    return {spec.name: draw(spec, sizes, generator) for spec in a.inputs}


def leaves(value):
    """Returns the tensors in a module's result, which may be nested, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "to_legacy_cache"):
        value = value.to_legacy_cache()
    elif hasattr(value, "__dataclass_fields__"):
        value = vars(value).values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [leaf for part in value for leaf in leaves(part)]


class Flat(nn.Module):
    """Wraps a module: the inputs are positional, the result is a tensor or a flat tuple of tensors."""

    def __init__(self, a, module):
        super().__init__()
        self.module, self.call, self.names = module, a.call, [i.name for i in a.inputs]

    def forward(self, *values):
        result = leaves(self.call(self.module, dict(zip(self.names, values))))
        return result[0] if len(result) == 1 else tuple(result)


def kind_of(block):
    return type(block), tuple((name, tuple(p.shape)) for name, p in block.named_parameters())


def shorten(module):
    """Removes blocks: where a Sequential has more than two equal blocks in a row, only two of them are kept, since the others
    would only test the same operators again."""
    for part in list(module.modules()):
        if type(part) is not nn.Sequential:
            continue
        names = list(part._modules)
        kinds = [kind_of(part[k]) for k in range(len(names))]
        for k in range(2, len(names)):
            if kinds[k] == kinds[k - 1] == kinds[k - 2] and kinds[k][1]:
                del part._modules[names[k]]


def sane_weights(module, seed):
    """Draws random weights that keep values near 1 in all layers, so that a wrong number shows.  Matrices get a standard
    deviation of 1.2/sqrt(inputs).  Parameters that libraries initialise to zeros, ones or 1e-6 are drawn too, since a factor
    near zero would hide errors in what it is multiplied with."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    transposed = {
        id(m.weight): m.groups
        for m in module.modules()
        if isinstance(m, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d))
    }
    for parameter in module.parameters():
        if not parameter.is_floating_point():
            continue
        p = parameter.data
        fresh = torch.randn(p.shape, generator=generator)
        if id(parameter) in embeddings:
            p.copy_(fresh)
        elif p.dim() > 1 and p.numel() > max(p.shape):
            fan_in = p.numel() // p.shape[1 if id(parameter) in transposed else 0]
            p.copy_(fresh * (1.2 / max(1, fan_in) ** 0.5))
        elif p.numel() > 1 and p.max() == p.min():
            p.copy_(1 + 0.2 * fresh if p.max() > 0 else 0.1 * fresh)


def number_padding(module):
    """Replaces padding="same" by numbers, since the exporter does not take words there."""
    for m in module.modules():
        if isinstance(getattr(m, "padding", None), str) and hasattr(m, "kernel_size"):
            ends = [(d * (k - 1)) // 2 if m.padding == "same" else 0 for d, k in zip(m.dilation, m.kernel_size)]
            m.padding = tuple(ends)


def settle_norms(flat, inputs):
    """Sets the running statistics of batch norms to those of the given inputs, since random statistics let activations explode."""
    norms = [m for m in flat.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    for _ in range(2):
        flat(*inputs.values())
    flat.eval()


def build(a):
    """Returns (the module of an architecture, ready to export, and inputs of its first sizes)."""
    seed = zlib.crc32(a.name.encode())
    torch.manual_seed(seed)
    module = a.make().eval()
    number_padding(module)
    if a.shorten:
        shorten(module)
    with torch.no_grad():
        sane_weights(module, seed)
        flat = Flat(a, module).eval()
        inputs = draw_inputs(a, a.sizes[0])
        settle_norms(flat, inputs)
        # Some modules make buffers when they first run; these must exist before the exporter traces the module.
        flat(*inputs.values())
    return flat, inputs
