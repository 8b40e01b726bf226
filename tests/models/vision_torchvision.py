"""vision_torchvision.py: torchvision's networks for images, segmentation, detection, video and optical flow."""

from architecture import BATCHES, Input, add, image
from torch import nn


def vision(name, **options):
    import torchvision

    return torchvision.models.get_model(name, weights=None, **options)


IMAGES = """convnext_tiny densenet121 efficientnet_b0 efficientnet_b1 efficientnet_v2_s googlenet mnasnet0_5
mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d
shufflenet_v2_x0_5 shufflenet_v2_x1_0 squeezenet1_0 squeezenet1_1 wide_resnet50_2""".split()
for name in IMAGES:
    options = {"init_weights": False} if name == "googlenet" else {}
    add(f"torchvision/{name}", lambda name=name, options=options: vision(name, **options), image(64))
add("torchvision/inception_v3", lambda: vision("inception_v3", init_weights=False), image(96))
for name in ("alexnet", "vgg11_bn", "vgg16"):
    add(f"torchvision/{name}-features", lambda name=name: vision(name).features, image(64))
add("torchvision/vit_b_32", lambda: vision("vit_b_32", image_size=64), image(64))
add("torchvision/maxvit", lambda: max_vit(), image(64))


def max_vit():
    from torchvision.models.maxvit import MaxVit

    return MaxVit((64, 64), 16, partition_size=4, block_channels=[16, 32], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0)


# Height and width are open too for networks that take any size.
OPEN_IMAGE = [Input("image", ("batch", 3, "height", "width"))]
OPEN_SIZES = [{"batch": 2, "height": 64, "width": 64}, {"batch": 1, "height": 96, "width": 64}]
for name in "resnet18 mobilenet_v2 efficientnet_b0 shufflenet_v2_x0_5 densenet121 regnet_y_400mf".split():
    add(f"torchvision/{name}-open", lambda name=name: vision(name), OPEN_IMAGE, OPEN_SIZES)

SEGMENTATION = "deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large".split()
for name in SEGMENTATION:
    make = lambda name=name: vision(name, weights_backbone=None)  # noqa: E731
    add(f"segmentation/{name}", make, image(64))
    add(f"segmentation/{name}-open", make, OPEN_IMAGE, OPEN_SIZES)


def detector(name, size, **options):
    """Returns a detector of torchvision for pictures of one size and 5 classes."""
    return vision(name, weights_backbone=None, min_size=size, max_size=size, num_classes=5, **options)


def detect(module, inputs):
    found = module([picture for picture in inputs["image"]])
    return [part for one in found for part in one.values()]


FEW = {"rpn_pre_nms_top_n_test": 60, "rpn_post_nms_top_n_test": 20, "box_detections_per_img": 10}
ONE_STAGE = {"detections_per_img": 10, "topk_candidates": 50}
DETECTION = {
    "fasterrcnn_resnet50_fpn": FEW,
    "fasterrcnn_mobilenet_v3_large_fpn": FEW,
    "maskrcnn_resnet50_fpn": FEW,
    "keypointrcnn_resnet50_fpn": {**FEW, "num_keypoints": 5},
    "retinanet_resnet50_fpn": ONE_STAGE,
    "fcos_resnet50_fpn": ONE_STAGE,
}
for name, options in DETECTION.items():
    add(f"detection/{name}", lambda name=name, options=options: detector(name, 96, **options),
        [Input("image", (1, 3, 96, 96), "uniform")], [{}], call=detect)  # fmt: skip
add("detection/ssdlite320", lambda: vision("ssdlite320_mobilenet_v3_large", weights_backbone=None, num_classes=5, **ONE_STAGE),
    [Input("image", (2, 3, 320, 320), "uniform")], [{}], call=detect)  # fmt: skip

VIDEO = [Input("clip", ("batch", 3, 8, 64, 64))]
for name in "r3d_18 mc3_18 r2plus1d_18".split():
    add(f"video/{name}", lambda name=name: vision(name), VIDEO)


def separable():
    """Returns S3D with a global last pool: its own pool's window fits clips of 224 by 224 and is too large for the clips here."""
    network = vision("s3d")
    network.avgpool = nn.AdaptiveAvgPool3d(1)
    return network


add("video/s3d", separable, [Input("clip", ("batch", 3, 16, 64, 64))])


def multiscale(name):
    from torchvision.models.video import mvit

    rows = [mvit.MSBlockConfig(1, 16, 32, [3, 3, 3], [1, 2, 2], [1, 2, 2], [1, 2, 2]),
            mvit.MSBlockConfig(2, 32, 32, [3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1])]  # fmt: skip
    if name == "mvit_v1":
        rows = [mvit.MSBlockConfig(1, 16, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
                mvit.MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 1, 1])]  # fmt: skip
    new = name == "mvit_v2"
    return mvit.MViT((32, 32), 4, rows, residual_pool=new, residual_with_cls_embed=not new, rel_pos_embed=new,
                     proj_after_attn=new)  # fmt: skip


for name in ("mvit_v1", "mvit_v2"):
    add(f"video/{name}", lambda name=name: multiscale(name), [Input("clip", ("batch", 3, 4, 32, 32))])


def flow(module, inputs):
    return module(inputs["before"], inputs["after"], num_flow_updates=2)[-1]


PAIR = [Input(name, ("batch", 3, 128, 128), "uniform") for name in ("before", "after")]
for name in ("raft_small", "raft_large"):
    add(f"video/{name}", lambda name=name: vision(name), PAIR, BATCHES, call=flow, opset=16)
