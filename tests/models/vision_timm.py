"""vision_timm.py: image networks of timm.  Where a size is not 64, 64 is too small for the network.

Not here: pvt_v2_b2_li (adaptive pooling of an open size), sam2_hiera_tiny and hiera_small_abswin_256 (Tensor.tile), which this torch
cannot export, and vit_small_patch16_rope_mixed_224, for which it writes an Expand that ONNX Runtime refuses."""

from architecture import add, image


def timm_model(name, **options):
    import timm

    return timm.create_model(name, **options)


# fmt: off
PLAIN = """
caformer_s18 convformer_s18 convmixer_1024_20_ks9_p14 convmixer_768_32 convnext_atto convnext_atto_ols
convnext_atto_rms convnext_tiny_hnf convnext_zepto_rms convnextv2_atto cpubone_b1_dwnorm cpubone_nano cpubone_t0
crossvit_9_240 crossvit_9_dagger_240 cs3darknet_focus_s cs3darknet_s cs3edgenet_x cs3sedarknet_xdw cspdarknet53
cspnext_tiny cspresnet50 cspresnext50 darknet17 darknetaa53 davit_tiny densenet121 densenetblur121d dla34 dla46x_c
dla60_res2net dm_nfnet_f0 dpn48b dpn68b eca_nfnet_l0 eca_vovnet39b ecaresnet26t ecaresnetlight edgenext_small_rw
edgenext_xx_small efficientnet_b0 efficientnet_b0_g16_evos efficientnet_b0_gn efficientnet_blur_b0
efficientnet_es efficientnet_lite0 efficientnetv2_rw_t efficientnetv2_s efficientvim_m1
efficientvit_b0 efficientvit_l1 ese_vovnet19b_dw ese_vovnet19b_slim_dw ese_vovnet39b_evos fasternet_t0 fastvit_mci0
fastvit_sa12 fastvit_t8 fbnetc_100 fbnetv3_b focalnet_tiny_lrf focalnet_tiny_srf gc_efficientnetv2_rw_t ghostnet_050
ghostnetv2_100 ghostnetv3_050 hardcorenas_a hgnet_tiny hgnetv2_b0 hrnet_w18_small hrnet_w18_small_v2 iformer_s
iformer_t inception_next_atto inception_next_tiny lcnet_035 lcnet_100 lcnetv2_base lcnetv2_small legacy_senet154
legacy_seresnet18 legacy_seresnext26_32x4d legacy_xception lowformer_b0 lowformer_e1 mambaout_base_short_rw
mambaout_femto mixnet_s mnasnet_small mobilenet_edgetpu_100 mobilenet_edgetpu_v2_xs mobilenetv1_100 mobilenetv2_035
mobilenetv3_large_100 mobilenetv3_rw mobilenetv3_small_050 mobilenetv4_conv_aa_medium mobilenetv4_conv_blur_medium
mobilenetv4_conv_small mobilenetv4_hybrid_medium nextvit_small nf_ecaresnet26 nf_regnet_b0 nf_resnet26 nf_seresnet26
nfnet_l0 poolformer_s12 poolformerv2_s12 pvt_v2_b0 rdnet_tiny regnetv_040 regnetx_002 regnetx_004_tv
regnety_002 regnety_040_sgn regnetz_005 repghostnet_050 res2net50_14w_8s res2net50d res2next50 resnest14d
resnest50d_4s2x40d resnet10t resnet14t resnet18 resnet18d resnet26t resnet50_gn resnet50c resnetaa34d resnetblur18
resnetrs50 resnetv2_18 resnetv2_50d_evos resnetv2_50d_frn resnetv2_50d_gn resnetv2_50t resnetv2_50x1_bit
resnext50_32x4d sedarknet21 selecsls42b semnasnet_075 senet154 seresnet18
seresnext26d_32x4d shvit_s1 shvit_s3 skresnet18 skresnext50_32x4d spnasnet_100 starnet_s050 starnet_s1 test_convnext
test_convnext2 test_mambaout test_nfnet test_resnet tf_efficientnet_b0 tf_efficientnetv2_b0 tf_mixnet_s
tf_mobilenetv3_small_minimal_100 tiny_vit_5m_224 tinynet_e tresnet_m tresnet_v2_l vovnet39a wide_resnet50_2 xception41
xception41p
""".split()  # convolution networks and others that take any size

SIZED = """
botnet26t_256 cait_xxs24_224 coat_lite_tiny coat_mini coat_tiny coatnet_bn_0_rw_224 coatnet_nano_cc_224
coatnet_pico_rw_224 coatnet_rmlp_nano_rw_224 coatnext_nano_rw_224 convit_tiny deit3_small_patch16_224
deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 eca_botnext26ts_256 eca_resnet33ts efficientformerv2_s0
efficientvit_m0 efficientvit_m4 eva02_tiny_patch14_224 flexivit_small gcresnext26ts gcvit_tiny gcvit_xxtiny gernet_s
gmixer_12_224 gmlp_ti16_224 hiera_tiny_224 lambda_resnet26rpt_256 lambda_resnet26t levit_128s
levit_conv_128s maxvit_pico_rw_256 maxvit_rmlp_pico_rw_256 maxvit_tiny_pm_256 maxvit_tiny_tf_224
maxxvit_rmlp_nano_rw_256 maxxvitv2_nano_rw_256 mixer_s32_224 mobileone_s0 mobileone_s1 mobilevit_xxs mobilevitv2_050
mvitv2_tiny nest_tiny nest_tiny_jx pit_ti_224 pit_ti_distilled_224 regnetz_b16
regnetz_b16_evos regnetz_d8 repvgg_a0 repvgg_b1g4 repvgg_d2se repvit_m0_9 repvit_m1 resmlp_12_224 resnet33ts
resnet50_clip resnet50_mlp resnet51q sebotnet33ts_256 sequencer2d_s seresnext26ts swiftformer_xs swin_s3_tiny_224
swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 swinv2_cr_tiny_ns_224 swinv2_tiny_window8_256 test_byobnet
test_coatnet test_maxvit test_vit test_vit2 test_vit3 test_vit4 test_vit_relpos tnt_s_legacy_patch16_224
tnt_s_patch16_224 twins_pcpvt_small twins_svt_small visformer_tiny vit_base_patch16_rpn_224
vit_base_patch16_siglip_gap_224 vit_base_patch16_xp_224 vit_base_patch32_clip_quickgelu_224
vit_dpwee_patch16_reg1_gap_256 vit_dwee_patch16_reg1_gap_256 vit_little_patch16_reg4_gap_256
vit_pe_core_tiny_patch16_384 vit_pe_spatial_tiny_patch16_512 vit_relpos_small_patch16_224 vit_small_patch14_dinov2
vit_small_patch14_reg4_dinov2 vit_small_patch16_dinov3 vit_small_patch16_rope_224 vit_small_patch16_rope_ape_224
vit_small_r26_s32_224 vit_small_resnet26d_224 vit_srelpos_small_patch16_224
vit_tiny_patch16_224 vit_tiny_patch16_dinov3_qkvb vit_tiny_r_s16_p8_224 vit_xsmall_patch16_clip_224 vitamin_small_224
xcit_nano_12_p16_224 xcit_nano_12_p8_224
""".split()  # networks that are made for one size

LARGER = {
    "efficientformer_l1": (224, {}),
    "inception_resnet_v2": (96, {}),
    "inception_v3": (96, {}),
    "inception_v4": (96, {}),
}
# fmt: on

for name in PLAIN:
    add(f"timm/{name}", lambda name=name: timm_model(name), image(64))
for name in SIZED:
    add(f"timm/{name}", lambda name=name: timm_model(name, img_size=64), image(64))
for name, (size, options) in LARGER.items():
    add(f"timm/{name}", lambda name=name, options=options: timm_model(name, **options), image(size), [{"batch": 2}])
# These have batch norms over one value for each picture; over two pictures its variance could be nearly 0, so there are
# 8.
for name in ("rexnet_100", "rexnetr_100"):
    add(f"timm/{name}", lambda name=name: timm_model(name), image(64), [{"batch": 8}, {"batch": 1}])
