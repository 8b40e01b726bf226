"""by_optimum.py: networks of the package transformers as the package optimum exports them: by tracing, with the keys and values of
past tokens as inputs and outputs, an encoder and a decoder in files of their own.  The inputs and their sizes come from the exported
file.  The catalogue has this table only in a Python that has optimum (README)."""

import os
import shutil
import tempfile
import zlib

import numpy as np
import torch
from architecture import add

# Batch, tokens, and past tokens.
SIZES = [{"batch": b, "tokens": t, "past": p} for b, t, p in [(2, 7, 5), (1, 1, 9), (3, 1, 2), (1, 12, 0), (2, 4, 3)]]
VOCABULARY = 99


def build(kind, options, task):
    from optimum.exporters.tasks import TasksManager
    from transformers import AutoConfig

    config = AutoConfig.for_model(kind, **options)
    torch.manual_seed(0)
    cls = TasksManager.get_model_class_for_task(task.replace("-with-past", ""), framework="pt", model_type=config.model_type.replace("_", "-"))
    return (cls.from_config if hasattr(cls, "from_config") else cls)(config).eval()


def write(kind, options, task, part, path):
    from optimum.exporters.onnx.convert import onnx_export_from_model

    with tempfile.TemporaryDirectory() as folder:
        onnx_export_from_model(build(kind, options, task), folder, task=task, do_validation=False, no_post_process=True)
        shutil.move(os.path.join(folder, part + ".onnx"), path)


def size_of(dim, sizes, name, axis, rank):
    """Returns the size for which the name of an open dimension stands, such as "past_sequence_length + 1"."""
    if "+" in dim:
        return sum(size_of(part.strip(), sizes, name, axis, rank) for part in dim.split("+"))
    if dim.isdigit():
        return int(dim)
    if name == "input_values" and rank == 2 and axis == 1:  # sound
        return 800 + 100 * sizes["tokens"]
    known = {"batch": sizes["batch"], "past": sizes["past"], "encoder_sequence": 6, "channels": 3, "height": 64, "width": 64}
    return next((n for word, n in known.items() if word in dim), sizes["tokens"])


def values_of(name, dims, kind, sizes, rng):
    if "position" in name:
        return np.broadcast_to(np.arange(dims[-1]) + sizes["past"], dims)
    if "mask" in name:
        mask = np.ones(dims)
        if dims[0] > 1 and dims[-1] > 3:
            mask[-1, 0] = 0
        return mask
    if kind.startswith("int"):
        return rng.integers(0, 2, dims) if "type" in name else np.sort(rng.integers(3, 60, dims))
    return rng.standard_normal(dims)


def draw(path, sizes):
    import onnx

    types = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.INT64: "int64", onnx.TensorProto.INT32: "int32", onnx.TensorProto.BOOL: "bool"}
    rng = np.random.default_rng(zlib.crc32(repr(sizes).encode()))
    out = {}
    for i in onnx.load(path, load_external_data=False).graph.input:
        tensor = i.type.tensor_type
        named = [d.dim_param or d.dim_value for d in tensor.shape.dim]
        dims = [d if isinstance(d, int) else size_of(d, sizes, i.name, k, len(named)) for k, d in enumerate(named)]
        kind = types[tensor.elem_type]
        out[i.name] = np.ascontiguousarray(values_of(i.name, dims, kind, sizes, rng)).astype(kind)
    return out


def table(kinds, options, task, parts=("model",), name="{}"):
    for kind in kinds.split():
        for part in parts:
            label = name.format(kind) + ("" if part == "model" else "/" + part)
            add(f"optimum/{label}", None, [], SIZES, draw=draw, write=lambda path, k=kind, p=part: write(k, options, task, p, path))


ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}
table(
    "bert roberta electra camembert xlm-roberta mpnet deberta deberta-v2 convbert mobilebert nystromformer roformer ibert "
    "data2vec-text splinter rembert big_bird megatron-bert albert layoutlm",
    ENCODER,
    "feature-extraction",
)
DISENTANGLED = {**ENCODER, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
table("deberta-v2", {**DISENTANGLED, "position_buckets": 8, "share_att_key": True}, "text-classification", name="{}-relative")
table("distilbert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": VOCABULARY}, "text-classification")
table("flaubert xlm", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "vocab_size": VOCABULARY}, "feature-extraction")

DECODER = {**ENCODER, "num_key_value_heads": 2, "head_dim": 8, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
WRITING = "text-generation-with-past"
table(
    "llama mistral qwen2 qwen3 phi3 gemma gemma2 gemma3_text olmo olmo2 stablelm granite cohere gpt_neox smollm3 helium arcee nemotron glm opt",
    DECODER,
    WRITING,
)
table("qwen3_moe", {**DECODER, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}, WRITING)
SHORT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 1}
table("gpt2 gpt_bigcode", SHORT, WRITING)
table("gptj codegen", {**SHORT, "rotary_dim": 4}, WRITING)
table("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY}, WRITING)
table("mpt", {"d_model": 32, "n_layers": 2, "n_heads": 4, "vocab_size": VOCABULARY, "max_seq_len": 64}, WRITING)

BOTH = ("encoder_model", "decoder_model", "decoder_with_past_model")
BART = {"d_model": 32, "vocab_size": VOCABULARY, "max_position_embeddings": 64, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
BART |= {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))}
BART["decoder_start_token_id"] = 0
TRANSLATING = "text2text-generation-with-past"
table("bart mbart marian pegasus blenderbot-small m2m_100", BART, TRANSLATING, BOTH)
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": VOCABULARY, "decoder_start_token_id": 0}
table("t5 mt5 longt5", {**T5, "pad_token_id": 0, "local_radius": 4}, TRANSLATING, BOTH)
table("whisper", {**BART, "num_mel_bins": 80, "max_target_positions": 64}, "automatic-speech-recognition-with-past", BOTH)

SOUND = {**ENCODER, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
SOUND |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "position_buckets": 32, "squeeze_factor": 2}
table("wav2vec2 hubert wavlm data2vec-audio unispeech unispeech-sat sew", SOUND, "automatic-speech-recognition")
table("vits", {"vocab_size": VOCABULARY, "noise_scale": 0.0, "noise_scale_duration": 0.0}, "text-to-audio")

PATCHES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 64, "patch_size": 16}
table("vit beit data2vec-vision vit_msn", PATCHES, "image-classification")
WINDOWS = {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
table("swin swinv2", WINDOWS, "image-classification")
table("convnextv2 poolformer regnet resnet segformer efficientnet", {"image_size": 64}, "image-classification")
table("yolos", {**PATCHES, "image_size": [64, 64], "num_detection_tokens": 10}, "object-detection")
table("dpt", {**PATCHES, "num_hidden_layers": 12}, "depth-estimation")
table("glpn", {}, "depth-estimation")
