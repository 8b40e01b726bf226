"""diffusion.py: networks of diffusion models and their autoencoders, from the package diffusers, in small sizes."""

from architecture import Input, add, by_keyword


def made(model, **options):
    import diffusers
    from diffusers.models.attention_processor import AttnProcessor

    found = getattr(diffusers, model)(**options)
    if hasattr(found, "set_default_attn_processor"):
        found.set_default_attn_processor()
    elif hasattr(found, "set_attn_processor"):
        found.set_attn_processor(AttnProcessor())
    return found


LATENTS = Input("sample", ("batch", 4, 16, 16))
TIME = Input("timestep", ("batch",), 900)
TEXT = Input("encoder_hidden_states", ("batch", "length", 16))
TEXTS = [{"batch": 2, "length": 7}, {"batch": 1, "length": 5}]
TWO = [{"batch": 2}, {"batch": 1}]
UNET = dict(sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8)
CROSS = dict(**UNET, cross_attention_dim=16, attention_head_dim=8, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
             up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip


def net(name, model, inputs, sizes, call=by_keyword, opset=0, **options):
    add(f"diffusion/{name}", lambda: made(model, **options), inputs, sizes, call=call, opset=opset)


net("unet-plain", "UNet2DModel", [LATENTS, TIME], TWO, **UNET, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
net("unet-resnet-sampling", "UNet2DModel", [LATENTS, TIME], TWO, **UNET, down_block_types=("ResnetDownsampleBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "ResnetUpsampleBlock2D"))  # fmt: skip
net("stable-diffusion", "UNet2DConditionModel", [LATENTS, TIME, TEXT], TEXTS, **CROSS)
net("stable-diffusion-linear", "UNet2DConditionModel", [LATENTS, TIME, TEXT], TEXTS, **CROSS, use_linear_projection=True, resnet_time_scale_shift="scale_shift")
net("unet-classes", "UNet2DConditionModel", [LATENTS, TIME, TEXT, Input("class_labels", ("batch",), 10)], TEXTS, **CROSS, num_class_embeds=10)
net("unet-simple-cross", "UNet2DConditionModel", [LATENTS, TIME, TEXT], TEXTS, **{**CROSS, "down_block_types": ("DownBlock2D", "SimpleCrossAttnDownBlock2D"),
    "up_block_types": ("SimpleCrossAttnUpBlock2D", "UpBlock2D"), "mid_block_type": "UNetMidBlock2DSimpleCrossAttn"})  # fmt: skip
net("controlnet", "ControlNetModel", [LATENTS, TIME, TEXT, Input("controlnet_cond", ("batch", 3, 128, 128), "uniform")], TEXTS, in_channels=4, layers_per_block=1,
    block_out_channels=(16, 32), norm_num_groups=8, cross_attention_dim=16, attention_head_dim=8, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    conditioning_embedding_out_channels=(8, 16, 16, 16))  # fmt: skip
VAE = dict(in_channels=3, out_channels=3, block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4,
           down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip
PICTURE = Input("sample", ("batch", 3, "height", 32))
PICTURES = [{"batch": 2, "height": 32}, {"batch": 1, "height": 48}]
net("autoencoder", "AutoencoderKL", [PICTURE], PICTURES, **VAE)
net("autoencoder-decoder", "AutoencoderKL", [Input("latents", ("batch", 4, 8, 8))], TWO, call=lambda m, i: m.decode(i["latents"]).sample, **VAE)
net("autoencoder-tiny", "AutoencoderTiny", [PICTURE], PICTURES, encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 2),
    num_decoder_blocks=(2, 1))  # fmt: skip
net("autoencoder-quantised", "VQModel", [PICTURE], [{"batch": 2, "height": 32}, {"batch": 1, "height": 32}], **{**VAE, "latent_channels": 3}, num_vq_embeddings=32)
net("autoencoder-temporal", "AutoencoderKLTemporalDecoder", [Input("latents", ("frames", 4, 8, 8))], [{"frames": 3}],
    call=lambda m, i: m.decode(i["latents"], num_frames=3).sample, block_out_channels=(32, 32), layers_per_block=1, latent_channels=4,
    down_block_types=("DownEncoderBlock2D",) * 2)  # fmt: skip
net("autoencoder-oobleck", "AutoencoderOobleck", [Input("sample", ("batch", 2, 256))], TWO, call=lambda m, i: m.decoder(m.encoder(i["sample"])[:, :4]),
    encoder_hidden_size=8, downsampling_ratios=[2, 4], channel_multiples=[1, 2], decoder_channels=8, decoder_input_channels=4)  # fmt: skip
HEADS = dict(num_attention_heads=2, attention_head_dim=16, num_layers=2, sample_size=16, patch_size=2, in_channels=4)
HIDDEN = Input("hidden_states", ("batch", 4, 16, 16))
net("dit", "DiTTransformer2DModel", [HIDDEN, TIME, Input("class_labels", ("batch",), 10)], TWO, opset=16, **HEADS, out_channels=8, num_embeds_ada_norm=10)
net("latte", "LatteTransformer3DModel", [Input("hidden_states", ("batch", 4, 3, 16, 16)), TIME, TEXT], [{"batch": 1, "length": 7}], **HEADS, out_channels=8,
    cross_attention_dim=32, caption_channels=16, norm_type="ada_norm_single", video_length=3)  # fmt: skip
