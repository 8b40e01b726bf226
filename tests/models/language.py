"""language.py: decoders, with and without the keys and values of past tokens as inputs.  First the decoders of the package
transformers, then class Decoder, whose switches make the families that this version of transformers does not have."""

import math

import torch
import transformers
from architecture import TORCH_EXPORT, Input, add
from torch import nn
from torch.nn import functional as F

from tiny import bare, tiny

TOKENS = Input("input_ids", ("batch", "length"), 90)
MASK = Input("attention_mask", ("batch", "length"), "padded")
READING = [{"batch": 2, "length": 9}, {"batch": 1, "length": 5}, {"batch": 3, "length": 16}]
# One token, one token without a past, one token with a longer past, and several tokens at once.
CONTINUING = [
    {"batch": 2, "length": 1, "past": 5},
    {"batch": 2, "length": 6, "past": 0},
    {"batch": 1, "length": 1, "past": 6},
    {"batch": 1, "length": 9, "past": 7},
]


def without_cache(module, inputs):
    return module(**inputs, use_cache=False)


def past_of(inputs):
    layers = sum(name.startswith("past_key_") for name in inputs)
    if TORCH_EXPORT:  # versions of transformers that work with such a torch have no tuples any more
        cache = transformers.DynamicCache()
        for i in range(layers):
            cache.update(inputs[f"past_key_{i}"], inputs[f"past_value_{i}"], i)
        return cache
    return tuple((inputs[f"past_key_{i}"], inputs[f"past_value_{i}"]) for i in range(layers))


def with_cache(module, inputs):
    given = {name: value for name, value in inputs.items() if not name.startswith("past_")}
    return module(**given, past_key_values=past_of(inputs), use_cache=True)


def reader(name, make, mask=True, call=without_cache, sizes=READING, **options):
    add(f"language/{name}", make, [TOKENS, MASK] if mask else [TOKENS], sizes, call=call, **options)


def writer(name, make, heads=4, width=8, layers=2, call=with_cache, mask=True, **options):
    inputs = [TOKENS]
    if mask:
        inputs.append(Input("attention_mask", ("batch", "past+length"), "mask"))
    for i in range(layers):
        inputs += [Input(f"past_{kind}_{i}", ("batch", heads, "past", width)) for kind in ("key", "value")]
    add(f"language/{name}-past", make, inputs, CONTINUING, call=call, **options)


GROUPED = {"num_key_value_heads": 2}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4, "num_experts": 4}

# (name, class, options, number of key heads, width of a head)
CACHED = [
    ("llama", "LlamaForCausalLM", {**GROUPED}, 2, 8),
    ("llama-multi-query", "LlamaForCausalLM", {"num_key_value_heads": 1}, 1, 8),
    ("llama-tied-linear-rope", "LlamaForCausalLM", {"tie_word_embeddings": True, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 4, 8),
    ("mistral", "MistralForCausalLM", {**GROUPED, "sliding_window": 4}, 2, 8),
    ("qwen2", "Qwen2ForCausalLM", {**GROUPED}, 2, 8),
    ("gemma", "GemmaForCausalLM", {"num_key_value_heads": 1, "head_dim": 16}, 1, 16),
    ("phi", "PhiForCausalLM", {"partial_rotary_factor": 0.5}, 4, 8),
    ("phi3", "Phi3ForCausalLM", {**GROUPED}, 2, 8),
    ("olmo", "OlmoForCausalLM", {**GROUPED, "clip_qkv": 2.0}, 2, 8),
    ("granite", "GraniteForCausalLM", {**GROUPED, "residual_multiplier": 0.5, "attention_multiplier": 0.3, "embedding_multiplier": 2.0}, 2, 8),
    ("starcoder2", "Starcoder2ForCausalLM", {**GROUPED}, 2, 8),
    ("persimmon", "PersimmonForCausalLM", {}, 4, 8),
    ("gptj", "GPTJForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}, 4, 8),
    ("gpt-neox", "GPTNeoXForCausalLM", {"rotary_pct": 0.5}, 4, 8),
    ("gpt-neox-japanese", "GPTNeoXJapaneseForCausalLM", {"intermediate_multiple_size": 2}, 4, 8),
    ("gpt2", "GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, 4, 8),
    ("gpt-neo", "GPTNeoForCausalLM", {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4}, 4, 8),
    ("opt", "OPTForCausalLM", {"ffn_dim": 64, "word_embed_proj_dim": 32}, 4, 8),
    ("opt-projected", "OPTForCausalLM", {"ffn_dim": 64, "word_embed_proj_dim": 16, "do_layer_norm_before": False}, 4, 8),
    ("xglm", "XGLMForCausalLM", {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64}, 4, 8),
    ("biogpt", "BioGptForCausalLM", {}, 4, 8),
    ("codegen", "CodeGenForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64, "n_ctx": 64}, 4, 8),
    ("mixtral", "MixtralForCausalLM", {**GROUPED, **EXPERTS}, 2, 8),
    ("falcon", "FalconForCausalLM", {"multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "alibi": False}, 1, 8),
    ("falcon-grouped", "FalconForCausalLM", {"num_kv_heads": 2, "new_decoder_architecture": True, "alibi": False}, 4, 8),
    ("open-llama", "OpenLlamaForCausalLM", {}, 4, 8),
    ("jetmoe", "JetMoeForCausalLM", {"kv_channels": 8, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}, 2, 8),
    ("ctrl", "CTRLLMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 64, "n_positions": 64}, 4, 8),
    ("bert-decoder", "BertLMHeadModel", {"is_decoder": True}, 4, 8),
    ("roberta-decoder", "RobertaForCausalLM", {"is_decoder": True}, 4, 8),
    ("electra-decoder", "ElectraForCausalLM", {"is_decoder": True, "embedding_size": 16}, 4, 8),
    ("mpt", "MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2}, 4, 8),
]
for name, cls, options, heads, width in CACHED:
    # For a norm without weights the exporter's LayerNormalization (opset 17) lacks an input; opset 16 has several nodes
    # instead.
    opset = 16 if name == "olmo" else 0
    writer(name, lambda cls=cls, options=options: tiny(cls, **options), heads, width, opset=opset)

# The same classes reading a whole text at once, and classes whose cache has another form.
READ = [
    ("llama", "LlamaForCausalLM", {**GROUPED}),
    ("llama-dynamic-rope", "LlamaForCausalLM", {**GROUPED, "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32}}),
    ("llama3-rope", "LlamaForCausalLM", {**GROUPED, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}),
    ("mistral-window", "MistralForCausalLM", {**GROUPED, "sliding_window": 4}),
    ("qwen2", "Qwen2ForCausalLM", {**GROUPED, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    ("qwen2-moe", "Qwen2MoeForCausalLM", {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32, "decoder_sparse_step": 1}),
    ("mixtral", "MixtralForCausalLM", {**GROUPED, **EXPERTS}),
    ("olmoe", "OlmoeForCausalLM", {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2}),
    ("granitemoe", "GraniteMoeForCausalLM", {**GROUPED, **EXPERTS}),
    ("gpt2", "GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    ("gpt-bigcode", "GPTBigCodeForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    ("bloom", "BloomForCausalLM", {"n_layer": 2, "n_head": 4}),
    ("gptj", "GPTJForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}),
    ("phi3-longrope", "Phi3ForCausalLM", {**GROUPED, "original_max_position_embeddings": 32, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 2.1, 2.2, 2.3]}}),
    ("mamba", "MambaForCausalLM", {"state_size": 4}),
    ("rwkv", "RwkvForCausalLM", {"attention_hidden_size": 32, "context_length": 64}),
    ("openai-gpt", "OpenAIGPTLMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    ("xlnet", "XLNetLMHeadModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    ("xlm", "XLMWithLMHeadModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "causal": True}),
    ("mpt", "MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64, "expansion_ratio": 2}),
    ("codegen", "CodeGenForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64, "n_ctx": 64}),
    ("megatron-bert", "MegatronBertForCausalLM", {"is_decoder": True}),
    ("roformer", "RoFormerForCausalLM", {"is_decoder": True, "embedding_size": 32}),
    ("prophetnet", "ProphetNetForCausalLM", {"num_encoder_layers": 1, "num_decoder_layers": 2, "num_decoder_attention_heads": 4, "decoder_ffn_dim": 64}),
]
NO_MASK = {"mamba", "rwkv"}
for name, cls, options in READ:
    reader(name, lambda cls=cls, options=options: tiny(cls, **options), mask=name not in NO_MASK,
           call=(lambda module, inputs: module(**inputs)) if name in ("openai-gpt", "xlm") else without_cache)


class RMSNorm(nn.Module):
    def __init__(self, width, offset=0.0):
        super().__init__()
        self.weight, self.offset = nn.Parameter(torch.ones(width)), offset

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (self.weight + self.offset)


def rotate_halves(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def rotate_pairs(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return x * cos + torch.stack((-b, a), dim=-1).flatten(-2) * sin


def rotary(x, positions, pairs, share):
    width = int(x.shape[-1] * share)
    speeds = 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width)
    angles = positions[:, None, :, None].float() * speeds
    angles = torch.stack((angles, angles), dim=-1).flatten(-2) if pairs else torch.cat((angles, angles), dim=-1)
    turned = (rotate_pairs if pairs else rotate_halves)(x[..., :width], angles.cos(), angles.sin())
    return turned if share == 1 else torch.cat((turned, x[..., width:]), dim=-1)


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o, width = o, o["width"]
        self.heads, self.kv, self.head = o["heads"], o["kv"], o["head"]
        self.q = nn.Linear(width, self.heads * self.head, bias=o["bias"])
        self.k = nn.Linear(width, self.kv * self.head, bias=o["bias"])
        self.v = nn.Linear(width, self.kv * self.head, bias=o["bias"])
        self.out = nn.Linear(self.heads * self.head, width, bias=False)
        if o["qk_norm"]:
            self.q_norm, self.k_norm = RMSNorm(self.head), RMSNorm(self.head)
        if o["sinks"]:
            self.sinks = nn.Parameter(torch.randn(self.heads))
        if o["gate"]:
            self.gate = nn.Linear(width, self.heads * self.head)

    def split(self, x, heads):
        return x.view(x.shape[0], x.shape[1], heads, self.head).transpose(1, 2)

    def forward(self, x, positions, mask, past):
        o = self.o
        q, k, v = self.split(self.q(x), self.heads), self.split(self.k(x), self.kv), self.split(self.v(x), self.kv)
        if o["qk_norm"]:
            q, k = self.q_norm(q), self.k_norm(k)
        if o["rotary"]:
            q, k = (rotary(t, positions, o["rotary"] == "pairs", o["share"]) for t in (q, k))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        kept, repeat = (k, v), self.heads // self.kv
        if repeat > 1 and o["repeat"] == "expand":
            k, v = (t[:, :, None].expand(-1, -1, repeat, -1, -1).reshape(t.shape[0], self.heads, -1, self.head) for t in (k, v))
        elif repeat > 1 and o["repeat"] == "stack":
            k, v = (torch.stack([t] * repeat, dim=2).flatten(1, 2) for t in (k, v))
        elif repeat > 1:  # the queries are reshaped to groups, so that the keys need not be repeated
            q = q.reshape(q.shape[0], self.kv, -1, self.head)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head)
        if o["repeat"] == "group" and repeat > 1:
            scores = scores.reshape(x.shape[0], self.heads, x.shape[1], -1)
        if o["softcap"]:
            scores = torch.tanh(scores / o["softcap"]) * o["softcap"]
        scores = scores + mask
        if o["sinks"]:
            sinks = self.sinks.view(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
            weights = torch.cat((scores, sinks), dim=-1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        if o["repeat"] == "group" and repeat > 1:
            weights = weights.reshape(x.shape[0], self.kv, -1, weights.shape[-1])
        y = (weights @ v).reshape(x.shape[0], self.heads, x.shape[1], self.head)
        y = y.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1)
        return self.out(y * torch.sigmoid(self.gate(x)) if o["gate"] else y), kept


class Gated(nn.Module):
    def __init__(self, width, inner, kind):
        super().__init__()
        self.kind = kind
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False) if kind in ("swiglu", "geglu") else None

    def forward(self, x):
        if self.kind == "swiglu":
            return self.down(F.silu(self.gate(x)) * self.up(x))
        if self.kind == "geglu":
            return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))
        if self.kind == "relu2":
            return self.down(F.relu(self.up(x)).square())
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    """A mixture of experts where every expert computes every token and the router's weights are 0 for most experts.  Exporters
    that do not write loops make such graphs."""

    def __init__(self, width, inner, count, top, score, shared):
        super().__init__()
        self.top, self.score = top, score
        self.router = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 2 * inner) / width**0.5)
        self.down = nn.Parameter(torch.randn(count, inner, width) / inner**0.5)
        self.shared = Gated(width, inner, "swiglu") if shared else None

    def forward(self, x):
        scores = self.router(x)
        scores = scores.sigmoid() if self.score == "sigmoid" else scores.softmax(-1)
        best, which = scores.topk(self.top, dim=-1)
        best = best / best.sum(-1, keepdim=True)
        share = torch.zeros_like(scores).scatter(-1, which, best)
        gate, up = torch.einsum("bld,edh->ebl" "h", x, self.up).chunk(2, dim=-1)
        each = torch.einsum("eblh,ehd->ebld", F.silu(gate) * up, self.down)
        y = (each * share.permute(2, 0, 1)[..., None]).sum(0)
        return y + self.shared(x) if self.shared is not None else y


class Block(nn.Module):
    def __init__(self, o, layer):
        super().__init__()
        self.o, width = o, o["width"]
        norm = (lambda: nn.LayerNorm(width)) if o["norm"] == "layer" else lambda: RMSNorm(width, 1.0 if o["norm"] == "rms+1" else 0.0)
        self.window = o["window"] if o["window"] and layer % o["every"] == 0 else 0
        self.attention = Attention({**o, "rotary": None if o["nope"] and layer % 2 else o["rotary"]})
        self.mlp = Experts(width, o["inner"], *o["experts"]) if o["experts"] else Gated(width, o["inner"], o["mlp"])
        self.norms = nn.ModuleList([norm() for _ in range(4)])

    def forward(self, x, positions, masks, past):
        order, n, mask = self.o["order"], self.norms, masks[1 if self.window else 0]
        if order == "parallel":
            h = n[0](x)
            y, kept = self.attention(h, positions, mask, past)
            return x + y + self.mlp(h), kept
        before, after = order != "post", order in ("post", "both")
        y, kept = self.attention(n[0](x) if before else x, positions, mask, past)
        x = x + (n[1](y) if after else y)
        y = self.mlp(n[2](x) if before else x)
        return x + (n[3](y) if after else y), kept


class Decoder(nn.Module):
    """A decoder whose parts are chosen by switches; DEFAULTS has their default values."""

    DEFAULTS = dict(
        width=32, heads=4, kv=2, head=8, inner=64, layers=2, bias=False, qk_norm=False, sinks=False, gate=False,
        rotary="halves", share=1, repeat="expand", softcap=0, norm="rms", window=0, every=1, nope=False, mlp="swiglu",
        experts=None, order="pre", alibi=False, learned=False, cap_logits=0, fill=-1e9, mask="where",
    )  # fmt: skip

    def __init__(self, **switches):
        super().__init__()
        if unknown := set(switches) - set(self.DEFAULTS):
            raise ValueError(unknown)
        self.o = o = {**self.DEFAULTS, **switches}
        self.words = nn.Embedding(96, o["width"])
        self.places = nn.Embedding(64, o["width"]) if o["learned"] else None
        self.blocks = nn.ModuleList([Block(o, k) for k in range(o["layers"])])
        self.norm = RMSNorm(o["width"])

    def mask(self, rows, columns, window):
        away = rows[:, None] - columns[None, :]
        seen = away >= 0
        if window:
            seen = seen & (away < window)
        if self.o["mask"] == "where":
            return torch.where(seen, torch.tensor(0.0), torch.tensor(self.o["fill"]))
        return (1.0 - seen.float()) * self.o["fill"]

    def forward(self, input_ids, **past):
        pairs = past_of(past) or [None] * len(self.blocks)
        before = pairs[0][0].shape[2] if past else 0
        rows = torch.arange(input_ids.shape[1]) + before
        columns = torch.arange(input_ids.shape[1] + before)
        x = self.words(input_ids)
        if self.places is not None:
            x = x + self.places(rows)
        masks = [self.mask(rows, columns, 0), self.mask(rows, columns, self.o["window"])]
        if self.o["alibi"]:
            slopes = 2.0 ** -torch.arange(1, self.o["heads"] + 1).float()
            masks[0] = masks[0] + slopes[:, None, None] * (columns[None, :] - rows[:, None])
        kept = []
        for block, pair in zip(self.blocks, pairs):
            x, new = block(x, rows[None].expand(x.shape[0], -1), masks, pair)
            kept += new
        logits = self.norm(x) @ self.words.weight.t()
        if self.o["cap_logits"]:
            logits = torch.tanh(logits / self.o["cap_logits"]) * self.o["cap_logits"]
        return logits, kept if past else []


DECODERS = {
    "qwen3": dict(qk_norm=True, head=16),
    "qwen3-moe": dict(qk_norm=True, experts=(8, 2, "softmax", False)),
    "qwen3-next-gated": dict(qk_norm=True, gate=True, share=0.5),
    "gemma3": dict(qk_norm=True, norm="rms+1", window=4, every=2, order="both", mlp="geglu", kv=1),
    "gemma2-by-hand": dict(norm="rms+1", window=4, every=2, order="both", mlp="geglu", softcap=50.0, cap_logits=30.0),
    "olmo2": dict(qk_norm=True, order="post"),
    "smollm3": dict(nope=True),
    "glm4": dict(rotary="pairs", share=0.5, order="both", bias=True),
    "cohere2": dict(rotary="pairs", norm="layer", order="parallel", window=4, every=2, nope=True),
    "gpt-oss": dict(sinks=True, window=4, every=2, bias=True, experts=(4, 2, "softmax", False)),
    "llama4": dict(rotary="pairs", nope=True, experts=(4, 1, "sigmoid", True)),
    "deepseek-v3-experts": dict(experts=(8, 2, "sigmoid", True), rotary="pairs", kv=4),
    "nemotron-h-mlp": dict(mlp="relu2", share=0.5, norm="layer"),
    "baichuan-alibi": dict(rotary=None, alibi=True, kv=4),
    "gpt3": dict(rotary=None, learned=True, norm="layer", mlp="gelu", kv=4, bias=True),
    "palm": dict(order="parallel", kv=1, norm="layer"),
    "grouped-without-repeat": dict(repeat="group", heads=8, kv=2),
    "grouped-stacked": dict(repeat="stack", heads=8, kv=4),
    "multi-query-expanded": dict(kv=1, heads=8, head=4),
    "mask-by-product": dict(mask="product", fill=-10000.0),
    "wide-heads": dict(heads=2, kv=1, head=64, width=64),
}
for name, switches in DECODERS.items():
    make = lambda switches=switches: Decoder(**switches)  # noqa: E731
    reader(name, make, mask=False, call=lambda module, inputs: module(**inputs))
    writer(name, make, switches.get("kv", 2), switches.get("head", 8), mask=False, call=lambda module, inputs: module(**inputs))


class Latent(nn.Module):
    """DeepSeek's attention: for each past token only a narrow vector is kept; a part of it is rotated."""

    def __init__(self, width=32, heads=4, head=8, rank=12, turned=4):
        super().__init__()
        self.heads, self.head, self.turned, self.rank = heads, head, turned, rank
        self.words = nn.Embedding(96, width)
        self.q = nn.Linear(width, heads * (head + turned), bias=False)
        self.down = nn.Linear(width, rank + turned, bias=False)
        self.norm = RMSNorm(rank)
        self.up = nn.Linear(rank, heads * 2 * head, bias=False)
        self.out = nn.Linear(heads * head, width)

    def forward(self, input_ids, past_latent):
        x = self.words(input_ids)
        batch, length = input_ids.shape
        positions = (torch.arange(length) + past_latent.shape[1])[None].expand(batch, -1)
        q = self.q(x).view(batch, length, self.heads, -1).transpose(1, 2)
        q, q_turned = q.split([self.head, self.turned], dim=-1)
        kept = torch.cat((past_latent, self.down(x)), dim=1)
        latent, k_turned = kept.split([self.rank, self.turned], dim=-1)
        everywhere = torch.arange(kept.shape[1])[None].expand(batch, -1)
        k_turned = rotary(k_turned[:, None], everywhere, True, 1)
        k, v = self.up(self.norm(latent)).view(batch, -1, self.heads, 2 * self.head).transpose(1, 2).chunk(2, dim=-1)
        scores = q @ k.transpose(-1, -2) + rotary(q_turned, positions, True, 1) @ k_turned.transpose(-1, -2)
        seen = everywhere[:, None, None] <= positions[:, None, :, None]
        weights = scores.mul((self.head + self.turned) ** -0.5).masked_fill(~seen, -1e9).softmax(-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, -1)), kept


add("language/deepseek-latent-past", Latent, [TOKENS, Input("past_latent", ("batch", "past", 16))], CONTINUING,
    call=lambda module, inputs: module(**inputs))


class Retention(nn.Module):
    """A retentive network: a decay instead of the softmax, a group norm over heads, and a gate."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.words = heads, nn.Embedding(96, width)
        self.qkv, self.gate, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 96)
        self.norm = nn.GroupNorm(heads, width)

    def forward(self, input_ids):
        x = self.words(input_ids)
        q, k, v = (t.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        places = torch.arange(x.shape[1])
        away = (places[:, None] - places[None, :]).float()
        decay = torch.log(1 - 2.0 ** (-5.0 - torch.arange(self.heads).float()))
        weights = torch.where(away >= 0, torch.exp(away * decay[:, None, None]), torch.tensor(0.0))
        y = ((q @ k.transpose(-1, -2)) * 0.3 * weights) @ v
        y = y.transpose(1, 2).flatten(2)
        return self.out(F.silu(self.gate(x)) * self.norm(y.transpose(1, 2)).transpose(1, 2))


class LinearAttention(nn.Module):
    """Linear attention: features of a kernel and a running sum of outer products, without a mask."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.words = heads, nn.Embedding(96, width)
        self.qkv, self.norm, self.out = nn.Linear(width, 3 * width), nn.LayerNorm(width), nn.Linear(width, 96)

    def forward(self, input_ids):
        x = self.words(input_ids)
        q, k, v = (t.view(x.shape[0], x.shape[1], self.heads, -1) for t in self.qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        states = (k[..., :, None] * v[..., None, :]).cumsum(1)
        y = (q[..., None, :] @ states)[..., 0, :] / (q * k.cumsum(1)).sum(-1, keepdim=True)
        return self.out(self.norm(y.flatten(2)))


class LSTMLanguage(nn.Module):
    def __init__(self, cell=nn.LSTM, **options):
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(96, 32), cell(32, 24, 2, batch_first=True, **options), nn.Linear(24, 96)

    def forward(self, input_ids):
        return self.out(self.cell(self.words(input_ids))[0])


for name, make in {"retention": Retention, "linear-attention": LinearAttention, "lstm": LSTMLanguage,
                   "gru": lambda: LSTMLanguage(nn.GRU), "elman": lambda: LSTMLanguage(nn.RNN)}.items():
    reader(name, make, mask=False, call=lambda module, inputs: module(**inputs))
