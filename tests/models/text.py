"""text.py: models of the package transformers: encoders, encoders with decoders, and models of pictures and words."""

from architecture import Input, add, by_keyword

from tiny import bare, tiny

TOKENS = Input("input_ids", ("batch", "length"), 90)
MASK = Input("attention_mask", ("batch", "length"), "padded")
BOXES = Input("bbox", ("batch", "length", 4), "boxes")
KINDS = Input("token_type_ids", ("batch", "length"), 2)
OPEN = [{"batch": 2, "length": 12}, {"batch": 1, "length": 7}]


def encoder(name, model, inputs=(TOKENS, MASK), sizes=OPEN, call=by_keyword, make=tiny, opset=0, **options):
    add(f"text/{name}", lambda: make(model, **options), list(inputs), sizes, call=call, opset=opset)


encoder("bert", "BertModel", (TOKENS, MASK, KINDS))
encoder("bert-masked", "BertForMaskedLM")
encoder("bert-relative-key", "BertModel", position_embedding_type="relative_key")
encoder("bert-relative-key-query", "BertModel", position_embedding_type="relative_key_query")
encoder("bert-answers", "BertForQuestionAnswering", (TOKENS, MASK, KINDS))
encoder("bert-tokens", "BertForTokenClassification")
encoder("albert", "AlbertModel", embedding_size=16)
encoder("roberta", "RobertaForSequenceClassification")
encoder("roberta-prelayernorm", "RobertaPreLayerNormModel")
encoder("xlm-roberta-xl", "XLMRobertaXLModel")
encoder("camembert", "CamembertModel")
encoder("distilbert", "DistilBertModel", dim=32, hidden_dim=64, n_layers=2, n_heads=4)
encoder("electra", "ElectraForPreTraining", embedding_size=16)
encoder("mobilebert", "MobileBertModel", embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16)
encoder("mpnet", "MPNetModel")
encoder("squeezebert", "SqueezeBertModel", embedding_size=32, q_groups=2, k_groups=2, v_groups=2, intermediate_groups=2)
encoder("deberta", "DebertaModel", relative_attention=True, pos_att_type=["c2p", "p2c"])
encoder("deberta-v2", "DebertaV2Model", relative_attention=True, pos_att_type=["c2p", "p2c"], share_att_key=True,
        position_buckets=8, norm_rel_ebd="layer_norm")  # fmt: skip
encoder("convbert", "ConvBertModel", embedding_size=16, head_ratio=2, conv_kernel_size=3)
encoder("nystromformer", "NystromformerModel", sizes=[{"batch": 2, "length": 16}], num_landmarks=4, segment_means_seq_len=16)
encoder("yoso", "YosoModel", use_expectation=True)
encoder("big-bird-full", "BigBirdModel", attention_type="original_full")
encoder("longformer", "LongformerModel", sizes=[{"batch": 2, "length": 16}], attention_window=[4, 4])
encoder("roformer", "RoFormerModel", embedding_size=32)
encoder("rembert", "RemBertModel", input_embedding_size=16, output_embedding_size=16)
encoder("ernie", "ErnieModel")
encoder("nezha", "NezhaModel")
encoder("megatron-bert", "MegatronBertModel")
encoder("data2vec-text", "Data2VecTextModel")
encoder("esm", "EsmModel", position_embedding_type="rotary", token_dropout=False, mask_token_id=4)
encoder("xmod", "XmodModel", languages=["en_XX"], default_language="en_XX")
encoder("splinter", "SplinterModel")
encoder("lilt", "LiltModel", (TOKENS, BOXES, MASK), hidden_size=48, channel_shrink_ratio=2, max_2d_position_embeddings=128)
encoder("layoutlm", "LayoutLMModel", (TOKENS, BOXES, MASK), max_2d_position_embeddings=128)
encoder("markuplm", "MarkupLMModel", (TOKENS, MASK))
encoder("ibert", "IBertModel", (TOKENS, MASK))
encoder("flaubert", "FlaubertModel", emb_dim=32, n_layers=2, n_heads=4)
encoder("luke", "LukeModel", (TOKENS, MASK), entity_vocab_size=20, entity_emb_size=16)
encoder("gpt2-classifier", "GPT2Model", (TOKENS, MASK), n_embd=32, n_layer=2, n_head=4, n_positions=64)
encoder("t5-encoder", "T5EncoderModel", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
encoder("dpr", "DPRQuestionEncoder")
encoder("visual-bert", "VisualBertModel", (TOKENS, MASK, Input("visual_embeds", ("batch", 4, 24))), visual_embedding_dim=24)
encoder("lxmert", "LxmertModel", (TOKENS, Input("visual_feats", ("batch", 5, 24)), Input("visual_pos", ("batch", 5, 4), "uniform"), MASK),
        visual_feat_dim=24, l_layers=2, x_layers=1, r_layers=1)  # fmt: skip
encoder("perceiver", "PerceiverForMaskedLM", sizes=[{"batch": 2, "length": 16}], make=bare, num_latents=8, d_latents=32, d_model=24, num_blocks=1,
        num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4, vocab_size=96,
        max_position_embeddings=16, qk_channels=32, v_channels=32)  # fmt: skip

# Encoders with decoders: a whole pass, and one step of the decoder with an encoder's result and past keys and values.
TARGET = Input("decoder_input_ids", ("batch", "target"), 90)
BOTH = [{"batch": 2, "length": 9, "target": 4}, {"batch": 1, "length": 6, "target": 7}]
BART = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=64, decoder_ffn_dim=64, decoder_start_token_id=2)  # fmt: skip
T5 = dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0)


def translate(module, inputs):
    return module(**inputs, use_cache=False).logits


PAIRS = {
    "bart": ("BartForConditionalGeneration", BART),
    "mbart": ("MBartForConditionalGeneration", BART),
    "marian": ("MarianMTModel", {**BART, "decoder_vocab_size": 96}),
    "pegasus": ("PegasusForConditionalGeneration", BART),
    "blenderbot": ("BlenderbotForConditionalGeneration", BART),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", BART),
    "m2m-100": ("M2M100ForConditionalGeneration", BART),
    "mvp": ("MvpForConditionalGeneration", BART),
    "plbart": ("PLBartForConditionalGeneration", BART),
    "fsmt": ("FSMTForConditionalGeneration", {**BART, "src_vocab_size": 96, "tgt_vocab_size": 96, "langs": ["a", "b"]}),
    "prophetnet": ("ProphetNetForConditionalGeneration", {"num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4,
                   "num_decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}),
    "t5": ("T5ForConditionalGeneration", T5),
    "t5-gated": ("T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("MT5ForConditionalGeneration", T5),
    "umt5": ("UMT5ForConditionalGeneration", T5),
    "longt5": ("LongT5ForConditionalGeneration", {**T5, "local_radius": 4}),
    "bigbird-pegasus": ("BigBirdPegasusForConditionalGeneration", {**BART, "attention_type": "original_full"}),
    "pegasus-x": ("PegasusXForConditionalGeneration", {**BART, "num_global_tokens": 4, "block_size": 8}),
    "nllb-moe": ("NllbMoeForConditionalGeneration", {**BART, "num_experts": 4, "expert_capacity": 8}),
}  # fmt: skip
for name, (model, options) in PAIRS.items():
    sizes = [{"batch": 2, "length": 16, "target": 4}] if name in ("pegasus-x", "longt5") else BOTH
    add(f"translation/{name}", lambda model=model, options=options: tiny(model, **options), [TOKENS, MASK, TARGET], sizes, call=translate)


def step(module, inputs):
    past = tuple(
        tuple(inputs[f"{kind}_{side}_{i}"] for side in ("own", "cross") for kind in ("key", "value")) for i in range(2)
    )
    found = module(encoder_outputs=(inputs["states"],), attention_mask=inputs["attention_mask"],
                   decoder_input_ids=inputs["decoder_input_ids"], past_key_values=past, use_cache=True)  # fmt: skip
    return [found.logits, [layer[:2] for layer in found.past_key_values]]


PAST = [
    Input(f"{kind}_{side}_{i}", ("batch", 4, "past" if side == "own" else "length", 8))
    for i in range(2)
    for side in ("own", "cross")
    for kind in ("key", "value")
]
STEP = [TARGET, Input("attention_mask", ("batch", "length"), "padded"), Input("states", ("batch", "length", 32)), *PAST]
STEPS = [
    {"batch": 2, "length": 8, "target": 1, "past": 5},
    {"batch": 1, "length": 6, "target": 1, "past": 6},
    {"batch": 2, "length": 8, "target": 1, "past": 1},
]
for name in ("bart", "mbart", "marian", "pegasus", "blenderbot", "m2m-100", "t5", "t5-gated", "mt5"):
    model, options = PAIRS[name]
    add(f"translation/{name}-past", lambda model=model, options=options: tiny(model, **options), STEP, STEPS, call=step)
