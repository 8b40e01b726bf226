"""make_model.py NAME OUT.onnx: exports one model of tests/bench/models as PyTorch's exporter spells it (operator set 13,
evaluation mode, constants folded), with weights that are drawn from a seed.

Weights are made such that all layers matter: none are splats, batch norms have the statistics of their inputs, and the outputs
are finite and differ from each other.  The same PyTorch gives the same file."""
import fnmatch
import math
import os
import sys
import zlib

import torch
import torchvision.models as tv
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nets_decoders as decoders  # noqa: E402
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


def keys_and_values(name, layers, heads, length):
    return {f"{name}_{what}_{k}": torch.randn(1, heads, length, 64) for k in range(layers) for what in ("key", "value")}


def decoder_inputs(words, layers, heads, length, cached, encoded=0):
    """The tokens, keys and values of `cached` tokens before, and those of `encoded` tokens of an encoder."""
    feeds = {"input_ids": tokens(words, 1, length)}
    if cached:
        feeds.update(keys_and_values("past", layers, heads, cached))
    if encoded:
        feeds.update(keys_and_values("cross", layers, heads, encoded))
    return feeds


def gpt2_inputs(length, cached):
    return decoder_inputs(50257, 12, 12, length, cached)


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
    "deberta": (sequence.Deberta, lambda: {name: value for name, value in bert_inputs().items() if name != "token_type_ids"}),
    "gpt2-prefill": (sequence.Gpt2, lambda: gpt2_inputs(128, 0)),
    "gpt2-decode": (sequence.Gpt2, lambda: gpt2_inputs(1, 512)),
    "lstm": (sequence.Lstm, lambda: {"input": torch.randn(1, 50, 512)}),
    "dlrm": (sequence.Dlrm, lambda: {"dense": torch.rand(64, 13), "sparse": tokens(10000, 64, 26)}),
    "mlp": (sequence.Mlp, lambda: {"input": torch.randn(1, 32)}),
}
IMAGE_AXES = {"input": {2: "height", 3: "width"}}
STEP_AXES = {"input_ids": {1: "length"}, "past*": {2: "past"}, "cross*": {2: "encoded"}}
# Models with open dimensions, for lists of sizes: the name of a model above, or what makes one and its inputs; and the open
# dimensions of inputs, by patterns of their names.
OPEN = {
    "bert-base-any": ("bert-base", {"*": {1: "length"}}),
    "deberta-any": ("deberta", {"*": {1: "length"}}),
    "vit-b16-any": ("vit-b16", {"input": {0: "batch"}}),
    "yolov8n-any": ("yolov8n", IMAGE_AXES),
    "unet-any": ("unet", IMAGE_AXES),
    **{f"{name}-any": (name, {"input": {0: "batch", **IMAGE_AXES["input"]}})
       for name in ("resnet50", "mobilenet-v2", "mobilenet-v3", "efficientnet-b0", "densenet121", "inception-v1", "squeezenet",
                    "shufflenet-v2", "regnety-400mf", "convnext-t")},
    "conv1d-any": ("conv1d", {"input": {0: "batch", 2: "length"}}),
    **{f"{name}-any": (name, {"*": {0: "batch"}}) for name in ("vgg19", "swin-t", "ds-cnn", "mlp", "dlrm")},
    "lstm-any": ("lstm", {"input": {1: "length"}}),
    "gpt2-prefill-any": ("gpt2-prefill", {"*": {1: "length"}}),
    "gpt2-decode-any": ("gpt2-decode", STEP_AXES),
    "gpt2-any": ((sequence.Gpt2, lambda: gpt2_inputs(2, 3)), STEP_AXES),
    "gpt-small-any": ((lambda: sequence.Gpt2(256, 4, 4, 8000), lambda: decoder_inputs(8000, 4, 4, 2, 3)), STEP_AXES),
    "llama-any": ((decoders.Llama, lambda: decoder_inputs(32000, 6, 2, 1, 3)), STEP_AXES),
    "whisper-any": ((decoders.Whisper, lambda: decoder_inputs(51865, 4, 6, 1, 3, 1500)), STEP_AXES),
    "t5-any": ((decoders.T5, lambda: decoder_inputs(32128, 6, 8, 1, 3, 40)), STEP_AXES),
    "faster-rcnn-any": ((vision.FasterRcnn, image(320)), {}),
}


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
    module.eval()
    for m in norms:   # the whole model cannot be in training: a detector would want targets
        m.momentum = None
        m.train()
    feeds = [make_inputs() for _ in range(4)]
    batch = {k: torch.cat([f[k] for f in feeds]) for k in feeds[0]}
    with torch.no_grad():
        module(*batch.values())
    module.eval()


def leave_out_dropout():
    """Makes dropout return its operand.  torchvision 0.14's Swin calls it in evaluation as well, with a ratio of 0, and
    OpenVINO does not know the operator."""
    nn.functional.dropout = lambda x, *_, **__: x


def check(name, outputs):
    for value in flatten(outputs):
        value = value.float()
        if not torch.isfinite(value).all() or float(value.std()) < 1e-4 or float(value.abs().max()) > 1e4:
            sys.exit(f"make_model.py: {name}: outputs are not sane: {float(value.std())}, {float(value.abs().max())}")


def flatten(value):
    return [value] if isinstance(value, torch.Tensor) else [x for v in value for x in flatten(v)]


def dynamic_axes(feeds, axes):
    return {k: dims for k in feeds for pattern, dims in axes.items() if fnmatch.fnmatch(k, pattern)}


def export(name, path):
    base, axes = OPEN.get(name, (name, {}))
    make, make_inputs = MODELS[base] if isinstance(base, str) else base
    torch.manual_seed(zlib.crc32((base if isinstance(base, str) else name).encode()))
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
                      opset_version=OPSET, do_constant_folding=True, dynamic_axes=dynamic_axes(feeds, axes))
    os.rename(path + ".part", path)


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([*MODELS, *OPEN]))
    elif len(sys.argv) == 3 and (sys.argv[1] in MODELS or sys.argv[1] in OPEN):
        export(*sys.argv[1:])
    else:
        sys.exit("usage: make-model NAME OUT.onnx | make-model --list")


main()
