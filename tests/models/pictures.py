"""pictures.py: models of the package transformers that read pictures: classifiers, detectors, segmenters, depth estimation,
and models that read text too.

Not here: MobileViTV2, whose fold (aten::col2im) this version of torch exports only to opset 18 and later."""

from architecture import BATCHES, Input, add, by_keyword, image

from tiny import bare, tiny

PIXELS = [Input("pixel_values", ("batch", 3, 64, 64))]
VIT = {"image_size": 64, "patch_size": 16}


def sees(name, model, inputs=PIXELS, sizes=BATCHES, call=by_keyword, make=tiny, opset=0, **options):
    add(f"pictures/{name}", lambda: make(model, **options), inputs, sizes, call=call, opset=opset)


sees("vit", "ViTForImageClassification", **VIT)
sees("deit", "DeiTForImageClassificationWithTeacher", **VIT)
sees("beit", "BeitForImageClassification", **VIT)
sees("data2vec-vision", "Data2VecVisionForImageClassification", **VIT)
sees("dinov2", "Dinov2ForImageClassification", **VIT)
sees("vit-msn", "ViTMSNForImageClassification", **VIT)
sees("swin", "SwinForImageClassification", make=bare, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
sees("swinv2", "Swinv2ForImageClassification", make=bare, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
sees("swin2sr", "Swin2SRForImageSuperResolution", [Input("pixel_values", ("batch", 3, 16, 16))], make=bare, image_size=16, embed_dim=16,
     depths=[2, 2], num_heads=[2, 2], window_size=4)  # fmt: skip
sees("donut-swin", "DonutSwinModel", make=bare, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
sees("focalnet", "FocalNetForImageClassification", make=bare, image_size=64, embed_dim=16, depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3],
     hidden_sizes=[16, 32])  # fmt: skip
sees("convnext", "ConvNextForImageClassification", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1])
sees("convnextv2", "ConvNextV2ForImageClassification", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1])
sees("resnet", "ResNetForImageClassification", make=bare, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1])
sees("resnet-basic", "ResNetForImageClassification", make=bare, embedding_size=16, hidden_sizes=[16, 32], depths=[2, 2], layer_type="basic")
sees("regnet", "RegNetForImageClassification", make=bare, embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], groups_width=8)
sees("bit", "BitForImageClassification", make=bare, embedding_size=32, hidden_sizes=[32, 64], depths=[1, 1], num_groups=8)
sees("van", "VanForImageClassification", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1])
sees("poolformer", "PoolFormerForImageClassification", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1])
sees("cvt", "CvtForImageClassification", make=bare, embed_dim=[16, 32, 48], num_heads=[1, 2, 3], depth=[1, 2, 3])
sees("pvt", "PvtForImageClassification", make=bare, image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
     sequence_reduction_ratios=[8, 4, 2, 1])  # fmt: skip
sees("pvt-v2", "PvtV2ForImageClassification", make=bare, image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
     num_attention_heads=[1, 2, 3, 4])  # fmt: skip
sees("levit", "LevitForImageClassification", make=bare, image_size=64, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[1, 1, 1],
     key_dim=[8, 8, 8])  # fmt: skip
sees("mobilenet-v1", "MobileNetV1ForImageClassification", make=bare, image_size=64, depth_multiplier=0.25)
sees("mobilenet-v2", "MobileNetV2ForImageClassification", make=bare, image_size=64, depth_multiplier=0.35)
sees("mobilenet-v2-segmentation", "MobileNetV2ForSemanticSegmentation", make=bare, image_size=64, depth_multiplier=0.35)
sees("mobilevit", "MobileViTForImageClassification", make=bare, image_size=64, hidden_sizes=[24, 32, 40], neck_hidden_sizes=[8, 16, 24, 32, 40, 40, 80])
sees("mobilevit-segmentation", "MobileViTForSemanticSegmentation", make=bare, image_size=64, hidden_sizes=[24, 32, 40],
     neck_hidden_sizes=[8, 16, 24, 32, 40, 40, 80])  # fmt: skip
sees("efficientnet", "EfficientNetForImageClassification", make=bare, image_size=64, width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320)
sees("efficientformer", "EfficientFormerForImageClassification", [Input("pixel_values", ("batch", 3, 224, 224))], [{"batch": 2}], make=bare,
     depths=[1, 1, 1, 2], hidden_sizes=[16, 32, 48, 64], dim=64)  # fmt: skip
sees("swiftformer", "SwiftFormerForImageClassification", make=bare, depths=[1, 1, 1, 1], embed_dims=[16, 32, 48, 64])
sees("hiera", "HieraForImageClassification", make=bare, image_size=[64, 64], embed_dim=16, depths=[1, 1, 1], num_heads=[1, 2, 4], num_query_pool=2,
     masked_unit_size=[4, 4])  # fmt: skip
sees("vit-mae", "ViTMAEForPreTraining", [*PIXELS, Input("noise", ("batch", 16), "uniform")], **VIT, decoder_hidden_size=32, decoder_num_hidden_layers=1,
     decoder_num_attention_heads=4, decoder_intermediate_size=64)  # fmt: skip
sees("imagegpt", "ImageGPTForCausalImageModeling", [Input("input_ids", ("batch", 16), 90)], n_embd=32, n_layer=2, n_head=4, n_positions=16)
sees("segformer", "SegformerForSemanticSegmentation", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
     decoder_hidden_size=32)  # fmt: skip
sees("glpn", "GLPNForDepthEstimation", make=bare, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4],
     decoder_hidden_size=32)  # fmt: skip
sees("dpt", "DPTForDepthEstimation", **VIT, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 48, 64],
     fusion_hidden_size=32)  # fmt: skip
sees("upernet-convnext", "UperNetForSemanticSegmentation", make=lambda model: upernet(model))
sees("yolos", "YolosForObjectDetection", **VIT | {"image_size": [64, 64]}, num_detection_tokens=6)
sees("timesformer", "TimesformerForVideoClassification", [Input("pixel_values", ("batch", 4, 3, 32, 32))], image_size=32, patch_size=16, num_frames=4)
sees("videomae", "VideoMAEForVideoClassification", [Input("pixel_values", ("batch", 4, 3, 32, 32))], image_size=32, patch_size=16, num_frames=4)


def upernet(model):
    import transformers

    backbone = transformers.ConvNextConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"])
    config = transformers.UperNetConfig(backbone_config=backbone, hidden_size=32, auxiliary_in_channels=48, pool_scales=[1, 2], auxiliary_channels=16)
    return getattr(transformers, model)(config)


DETR = dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, d_model=32, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=6)  # fmt: skip


def detr(model, **options):
    import transformers

    backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                                        out_features=["stage1", "stage2", "stage3", "stage4"])  # fmt: skip
    return bare(model, **{**DETR, **options}, backbone_config=backbone)


for name, model in {"detr": "DetrForObjectDetection", "conditional-detr": "ConditionalDetrForObjectDetection",
                    "table-transformer": "TableTransformerForObjectDetection"}.items():
    sees(name, model, make=detr, call=lambda module, inputs: [module(**inputs).logits, module(**inputs).pred_boxes])
sees("detr-segmentation", "DetrForSegmentation", make=detr, call=lambda m, i: m(**i).pred_masks, d_model=64, encoder_attention_heads=8,
     decoder_attention_heads=8)  # fmt: skip

CLIP_TEXT = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=96, max_position_embeddings=16,
                 eos_token_id=2, bos_token_id=1, pad_token_id=0)  # fmt: skip
CLIP_VISION = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
WORDS_AND_PIXELS = [Input("input_ids", ("batch", 7), 90), Input("pixel_values", ("batch", 3, 32, 32)), Input("attention_mask", ("batch", 7), "padded")]


def both(module, inputs):
    found = module(**inputs)
    return [found.logits_per_image, found.text_embeds, found.image_embeds]


for name, model in {"clip": "CLIPModel", "chinese-clip": "ChineseCLIPModel", "siglip": "SiglipModel", "altclip": "AltCLIPModel"}.items():
    text = {**CLIP_TEXT, "projection_dim": 16} if name != "altclip" else {**CLIP_TEXT, "project_dim": 16}
    sees(name, model, WORDS_AND_PIXELS, call=both, make=bare, text_config=text, vision_config=CLIP_VISION, projection_dim=16)
sees("clip-text", "CLIPTextModelWithProjection", WORDS_AND_PIXELS[:1], call=lambda m, i: m(**i).text_embeds, make=bare, **CLIP_TEXT, projection_dim=16)
sees("clip-vision", "CLIPVisionModelWithProjection", WORDS_AND_PIXELS[1:2], call=lambda m, i: m(**i).image_embeds, make=bare, **CLIP_VISION, projection_dim=16)
sees("blip", "BlipForImageTextRetrieval", WORDS_AND_PIXELS, call=lambda m, i: m(**i).itm_score, make=bare, text_config={**CLIP_TEXT, "encoder_hidden_size": 32},
     vision_config=CLIP_VISION, projection_dim=16, image_text_hidden_size=16)  # fmt: skip
sees("groupvit-text", "GroupViTTextModel", WORDS_AND_PIXELS[:1], make=bare, **CLIP_TEXT)
sees("trocr", "TrOCRForCausalLM", [Input("input_ids", ("batch", 7), 90), Input("encoder_hidden_states", ("batch", 9, 32))],
     call=lambda m, i: m(**i, use_cache=False).logits, make=bare, vocab_size=96, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64,
     max_position_embeddings=64, cross_attention_hidden_size=32, is_decoder=True)  # fmt: skip
