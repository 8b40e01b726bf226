"""make_model.py NAME OUT.onnx: exports one model of tests/bench/models as PyTorch's exporter spells it (operator set 13,
evaluation mode, constants folded), with weights that are drawn from a seed.

Weights are made such that all layers matter: none are splats, batch norms have the statistics of what they meet, and the outputs
are finite and differ from each other.  The same PyTorch gives the same file."""
import math
import os
import sys
import zlib

import torch
import torchvision.models as tv
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nets_sequence as sequence  # noqa: E402
import nets_vision as vision  # noqa: E402

OPSET = 13


def image(size, channels=3):
    return lambda: {"input": torch.randn(1, channels, size, size)}


def tokens(high, *dims):
    return torch.randint(0, high, dims)


def bert_inputs(length=128):
    return {"input_ids": tokens(30522, 1, length), "attention_mask": torch.ones(1, length, dtype=torch.int64),
            "token_type_ids": torch.zeros(1, length, dtype=torch.int64)}


def gpt2_inputs(length, cached):
    feeds = {"input_ids": tokens(50257, 1, length)}
    if cached:
        for k in range(12):
            feeds[f"past_key_{k}"] = torch.randn(1, 12, cached, 64)
            feeds[f"past_value_{k}"] = torch.randn(1, 12, cached, 64)
    return feeds


# Name: what makes the module, what makes its inputs.  A module with more than one output names them in output_names.
MODELS = {
    "resnet50": (tv.resnet50, image(224)),
    "vgg19": (tv.vgg19, image(224)),
    "mobilenet-v2": (tv.mobilenet_v2, image(224)),
    "mobilenet-v3": (tv.mobilenet_v3_large, image(224)),
    "efficientnet-b0": (tv.efficientnet_b0, image(224)),
    "densenet121": (tv.densenet121, image(224)),
    "inception-v1": (lambda: tv.googlenet(aux_logits=False, transform_input=False, init_weights=False), image(224)),
    "squeezenet": (tv.squeezenet1_1, image(224)),
    "shufflenet-v2": (tv.shufflenet_v2_x1_0, image(224)),
    "regnety-400mf": (tv.regnet_y_400mf, image(224)),
    "convnext-t": (tv.convnext_tiny, image(224)),
    "vit-b16": (tv.vit_b_16, image(224)),
    "swin-t": (tv.swin_t, image(224)),
    "yolov8n": (vision.YoloV8n, image(640)),
    "unet": (vision.UNet, image(256)),
    "conv1d": (vision.ResNet1d, lambda: {"input": torch.randn(1, 12, 4096)}),
    "ds-cnn": (vision.DsCnn, lambda: {"input": torch.randn(1, 1, 49, 10)}),
    "bert-base": (sequence.Bert, bert_inputs),
    "gpt2-prefill": (sequence.Gpt2, lambda: gpt2_inputs(128, 0)),
    "gpt2-decode": (sequence.Gpt2, lambda: gpt2_inputs(1, 512)),
    "lstm": (sequence.Lstm, lambda: {"input": torch.randn(1, 50, 512)}),
    "dlrm": (sequence.Dlrm, lambda: {"dense": torch.rand(64, 13), "sparse": tokens(10000, 64, 26)}),
    "mlp": (sequence.Mlp, lambda: {"input": torch.randn(1, 32)}),
}
# The same with any length.
DYNAMIC = {"bert-base-any": "bert-base"}


def remove_splats(module):
    """Parameters whose elements are all the same (biases of 0, scales of 1) become random around that value."""
    for name, p in module.named_parameters():
        if p.numel() > 1 and bool((p == p.flatten()[0]).all()):
            value = float(p.flatten()[0])
            if value == 1:
                p.data.uniform_(0.8, 1.2)
            elif "layer_scale" in name:
                p.data.uniform_(0.1, 0.3)
            elif p.dim() < 2:
                p.data.normal_(0, 0.05)
            else:
                p.data.normal_(0, 1 / math.sqrt(p[0].numel()))


def settle_batch_norms(module, make_inputs):
    """Gives each batch norm the mean and variance of what random inputs bring to it."""
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for m in norms:
        m.momentum = None
    module.train()
    feeds = [make_inputs() for _ in range(4)]
    batch = {k: torch.cat([f[k] for f in feeds]) for k in feeds[0]}
    with torch.no_grad():
        for m in module.modules():
            if isinstance(m, nn.Dropout):
                m.p = 0
        module(*batch.values())
    module.eval()


def leave_out_dropout():
    """torchvision 0.14's Swin asks for it in evaluation as well, with a ratio of 0; OpenVINO knows no such operator."""
    nn.functional.dropout = lambda x, *_, **__: x


def check(name, outputs):
    for value in flatten(outputs):
        if not torch.isfinite(value).all() or float(value.std()) < 1e-4 or float(value.abs().max()) > 1e4:
            sys.exit(f"make_model.py: {name}: outputs are not sane: {float(value.std())}, {float(value.abs().max())}")


def flatten(value):
    return [value] if isinstance(value, torch.Tensor) else [x for v in value for x in flatten(v)]


def dynamic_axes(base, feeds):
    return {k: {1: "length"} for k in feeds} if base else None


def export(name, path):
    base = DYNAMIC.get(name)
    make, make_inputs = MODELS[base or name]
    torch.manual_seed(zlib.crc32((base or name).encode()))
    leave_out_dropout()
    module = make()
    remove_splats(module)
    settle_batch_norms(module, make_inputs)
    module.eval()
    feeds = make_inputs()
    with torch.no_grad():
        outputs = module(*feeds.values())
    check(name, outputs)
    names = ["output"] if isinstance(outputs, torch.Tensor) else module.output_names
    torch.onnx.export(module, tuple(feeds.values()), path + ".part", input_names=list(feeds), output_names=names,
                      opset_version=OPSET, do_constant_folding=True, dynamic_axes=dynamic_axes(base, feeds))
    os.rename(path + ".part", path)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([*MODELS, *DYNAMIC]))
    elif len(sys.argv) == 3 and (sys.argv[1] in MODELS or sys.argv[1] in DYNAMIC):
        export(*sys.argv[1:])
    else:
        sys.exit("usage: make-model NAME OUT.onnx | make-model --list")


main()
