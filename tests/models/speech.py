"""speech.py: recognition, synthesis, enhancement and codecs: models of the package transformers, and small networks that
are written here."""

import torch
from architecture import Input, add, by_keyword
from torch import nn
from torch.nn import functional as F

from tiny import bare, tiny

WAVE = [Input("input_values", ("batch", "samples"))]
WAVES = [{"batch": 2, "samples": 800}, {"batch": 1, "samples": 1000}]
HEARS = dict(vocab_size=40, conv_dim=(16, 16), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
             num_conv_pos_embedding_groups=4, mask_time_prob=0.0)  # fmt: skip


def hears(name, model, inputs=WAVE, sizes=WAVES, call=by_keyword, make=tiny, **options):
    add(f"speech/{name}", lambda: make(model, **options), inputs, sizes, call=call)


for name, model in {
    "wav2vec2": "Wav2Vec2ForCTC", "hubert": "HubertForCTC", "wavlm": "WavLMForCTC", "unispeech": "UniSpeechForCTC",
    "unispeech-sat": "UniSpeechSatForCTC", "data2vec-audio": "Data2VecAudioForCTC", "sew": "SEWForCTC", "sew-d": "SEWDForCTC",
    "wav2vec2-conformer": "Wav2Vec2ConformerForCTC",
}.items():  # fmt: skip
    hears(name, model, **{**HEARS, **({"conv_pos_kernel_size": 5} if "data2vec" in name else {})})
hears("wav2vec2-conformer-rotary", "Wav2Vec2ConformerForCTC", **HEARS, position_embeddings_type="rotary")
hears("wav2vec2-stable-norm", "Wav2Vec2ForSequenceClassification", **HEARS, do_stable_layer_norm=True, feat_extract_norm="layer", use_weighted_layer_sum=True)
hears("wav2vec2-xvector", "Wav2Vec2ForXVector", **HEARS, tdnn_dim=[16, 16], tdnn_kernel=[3, 1], tdnn_dilation=[1, 2], xvector_output_dim=16)
FEATURES = Input("input_features", ("batch", "frames", 32))
hears("wav2vec2-bert", "Wav2Vec2BertForCTC", [FEATURES], [{"batch": 2, "frames": 12}, {"batch": 1, "frames": 17}], feature_projection_input_dim=32)
hears("spectrogram-transformer", "ASTForAudioClassification", [Input("input_values", ("batch", 32, 32))], [{"batch": 2}, {"batch": 1}], max_length=32,
      num_mel_bins=32, patch_size=8, frequency_stride=8, time_stride=8)  # fmt: skip
LISTENS = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
               decoder_start_token_id=2)  # fmt: skip
WORDS = Input("decoder_input_ids", ("batch", "length"), 90)
hears("whisper", "WhisperForConditionalGeneration", [Input("input_features", ("batch", 16, 40)), WORDS], [{"batch": 2, "length": 4}, {"batch": 1, "length": 6}],
      call=lambda m, i: m(**i, use_cache=False).logits, num_mel_bins=16, max_source_positions=20, max_target_positions=32, **LISTENS)  # fmt: skip
hears("speech-to-text", "Speech2TextForConditionalGeneration", [Input("input_features", ("batch", "frames", 16)), WORDS],
      [{"batch": 2, "frames": 40, "length": 4}, {"batch": 1, "frames": 52, "length": 3}], call=lambda m, i: m(**i, use_cache=False).logits,
      input_feat_per_channel=16, conv_channels=32, max_source_positions=64, max_target_positions=32, **LISTENS)  # fmt: skip
hears("speecht5-vocoder", "SpeechT5HifiGan", [Input("spectrogram", ("batch", "frames", 16))], [{"batch": 2, "frames": 12}, {"batch": 1, "frames": 9}], make=bare,
      model_in_dim=16, upsample_initial_channel=32, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]])  # fmt: skip
hears("encodec-encoder", "EncodecModel", [Input("input_values", ("batch", 1, 640))], [{"batch": 2}, {"batch": 1}], call=lambda m, i: m.decoder(m.encoder(i["input_values"])),
      make=bare, num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, upsampling_ratios=[4, 2], num_lstm_layers=1, compress=2)  # fmt: skip
# DAC's residuals have no norms, and a sine of a large value turns a small difference into a large one.  So its encoder
# and its decoder are tested separately, each with small inputs.
CODES = dict(encoder_hidden_size=8, decoder_hidden_size=32, downsampling_ratios=[2, 4], upsampling_ratios=[4, 2], codebook_size=32, codebook_dim=8,
             n_codebooks=2)  # fmt: skip
hears("dac-encoder", "DacModel", [Input("input_values", ("batch", 1, 320), "small")], [{"batch": 2}, {"batch": 1}], make=bare,
      call=lambda m, i: m.encoder(i["input_values"]), **CODES)  # fmt: skip
hears("dac-decoder", "DacModel", [Input("codes", ("batch", 32, 40), "small")], [{"batch": 2}, {"batch": 1}], make=bare,
      call=lambda m, i: m.decoder(i["codes"]), **CODES)  # fmt: skip
hears("clap-audio", "ClapAudioModelWithProjection", [Input("input_features", ("batch", 1, 64, 16))], [{"batch": 2}, {"batch": 1}], call=lambda m, i: m(**i).audio_embeds,
      make=bare, spec_size=64, num_mel_bins=16, patch_size=4, patch_stride=[4, 4], patch_embeds_hidden_size=16, hidden_size=32, depths=[1, 1], num_attention_heads=[2, 2],
      window_size=4, projection_dim=16)  # fmt: skip

MELS = [Input("mels", ("batch", "frames", 24))]
FRAMES = [{"batch": 2, "frames": 20}, {"batch": 1, "frames": 33}]


def net(name, make, inputs=MELS, sizes=FRAMES, **options):
    add(f"speech/{name}", make, inputs, sizes, **options)


class ConformerBlock(nn.Module):
    """Half a feed-forward, attention, a depthwise convolution with a gate, half a feed-forward, as Conformer has them."""

    def __init__(self, width=32, kernel=7):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(5)])
        self.feeds = nn.ModuleList([nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, width)) for _ in range(2)])
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depth, self.batch_norm = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width), nn.BatchNorm1d(width)

    def forward(self, x):
        x = x + 0.5 * self.feeds[0](self.norms[0](x))
        h = self.norms[1](x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        h = F.glu(self.wide(self.norms[2](x).transpose(1, 2)), dim=1)
        x = x + self.narrow(F.silu(self.batch_norm(self.depth(h)))).transpose(1, 2)
        return self.norms[4](x + 0.5 * self.feeds[1](self.norms[3](x)))


def conformer():
    return nn.Sequential(nn.Linear(24, 32), ConformerBlock(), ConformerBlock(), nn.Linear(32, 40), nn.LogSoftmax(-1))


class Branches(nn.Module):
    """A Branchformer block: the results of attention and of a gated convolution are merged."""

    def __init__(self, width=24):
        super().__init__()
        self.a, self.b, self.merge = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(2 * width, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.up, self.depth, self.down = nn.Linear(width, 64), nn.Conv1d(32, 32, 5, padding=2, groups=32), nn.Linear(32, width)

    def forward(self, x):
        h = self.a(x)
        one = self.attention(h, h, h, need_weights=False)[0]
        u, v = F.gelu(self.up(self.b(x))).chunk(2, -1)
        two = self.down(u * self.depth(v.transpose(1, 2)).transpose(1, 2))
        return x + self.merge(torch.cat((one, two), -1))


class DeepSpeech(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 8, (5, 5), (2, 2), (2, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20),
                                   nn.Conv2d(8, 8, (3, 5), (1, 2), (1, 2)), nn.BatchNorm2d(8), nn.Hardtanh(0, 20))  # fmt: skip
        self.cell = nn.GRU(48, 24, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(48, 30)

    def forward(self, x):
        x = self.front(x[:, None])
        x = x.permute(0, 2, 1, 3).flatten(2)
        return self.out(self.cell(x)[0]).log_softmax(-1)


def quartz():
    """QuartzNet: separable convolutions along time, the last of which is dilated."""
    parts = [nn.Conv1d(24, 32, 5, stride=2, padding=2), nn.BatchNorm1d(32), nn.ReLU()]
    for kernel, dilation in ((7, 1), (9, 2)):
        parts += [nn.Conv1d(32, 32, kernel, padding=dilation * (kernel // 2), dilation=dilation, groups=32), nn.Conv1d(32, 32, 1),
                  nn.BatchNorm1d(32), nn.ReLU()]  # fmt: skip
    return nn.Sequential(*parts, nn.Conv1d(32, 30, 1))


class TDNN(nn.Module):
    """ECAPA: dilated convolutions with squeeze-and-excitation, pooling by attention."""

    def __init__(self, width=32):
        super().__init__()
        self.start = nn.Conv1d(24, width, 5, padding=2)
        self.convs = nn.ModuleList([nn.Conv1d(width // 4, width // 4, 3, padding=2, dilation=2) for _ in range(3)])
        self.norm, self.last = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)
        self.squeeze, self.excite = nn.Conv1d(width, 8, 1), nn.Conv1d(8, width, 1)
        self.score = nn.Sequential(nn.Conv1d(3 * width, 16, 1), nn.Tanh(), nn.Conv1d(16, width, 1))
        self.out = nn.Linear(2 * width, 20)

    def forward(self, x):
        x = F.relu(self.start(x.transpose(1, 2)))
        first, *rest = x.chunk(4, 1)
        parts, y = [first], torch.zeros_like(first)
        for conv, part in zip(self.convs, rest):
            y = F.relu(conv(part + y))
            parts.append(y)
        y = self.last(F.relu(self.norm(torch.cat(parts, 1))))
        y = x + y * torch.sigmoid(self.excite(F.relu(self.squeeze(y.mean(2, keepdim=True)))))
        mean, deviation = y.mean(2, keepdim=True).expand_as(y), y.std(2, keepdim=True).expand_as(y)
        share = self.score(torch.cat((y, mean, deviation), 1)).softmax(2)
        mean = (share * y).sum(2)
        deviation = ((share * y * y).sum(2) - mean * mean).clamp(min=1e-4).sqrt()
        return F.normalize(self.out(torch.cat((mean, deviation), 1)), dim=1)


class WaveNet(nn.Module):
    def __init__(self, width=24, layers=5):
        super().__init__()
        self.start, self.end = nn.Conv1d(1, width, 1), nn.Conv1d(width, 16, 1)
        self.gates = nn.ModuleList([nn.Conv1d(width, 2 * width, 2, dilation=2**k) for k in range(layers)])
        self.skips = nn.ModuleList([nn.Conv1d(width, 2 * width, 1) for _ in range(layers)])

    def forward(self, x):
        x, total = self.start(x), 0
        for k, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(x, (2**k, 0))).chunk(2, 1)
            one, two = skip(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + one, total + two
        return self.end(F.relu(total))


class ConvTasNet(nn.Module):
    """Separation of sources: a learned filter bank, masks from a temporal convolution network, and the inverse filter bank."""

    def __init__(self, width=24):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, width, 16, 8, bias=False), nn.ConvTranspose1d(width, 1, 16, 8, bias=False)
        self.norm, self.narrow, self.masks = nn.GroupNorm(1, width), nn.Conv1d(width, 16, 1), nn.Conv1d(16, 2 * width, 1)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv1d(16, 32, 1), nn.PReLU(), nn.GroupNorm(1, 32), nn.Conv1d(32, 32, 3, padding=2**k, dilation=2**k, groups=32),
                                                   nn.PReLU(), nn.GroupNorm(1, 32), nn.Conv1d(32, 16, 1)) for k in range(3)])  # fmt: skip

    def forward(self, x):
        w = self.encode(x)
        y = self.narrow(self.norm(w))
        for block in self.blocks:
            y = y + block(y)
        masks = torch.sigmoid(self.masks(y)).view(x.shape[0], 2, w.shape[1], -1)
        return self.decode((masks * w[:, None]).flatten(0, 1)).view(x.shape[0], 2, -1)


class Crepe(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1, 32, 16, 16]
        self.convs = nn.ModuleList([nn.Sequential(nn.Conv2d(a, b, (9, 1), (2, 1), (4, 0)), nn.ReLU(), nn.BatchNorm2d(b), nn.MaxPool2d((2, 1)))
                                    for a, b in zip(widths, widths[1:])])  # fmt: skip
        self.out = nn.Linear(16 * 4, 36)

    def forward(self, x):
        x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True).clamp(min=1e-4)
        x = x[:, None, :, None]
        for conv in self.convs:
            x = conv(x)
        return torch.sigmoid(self.out(x.permute(0, 2, 1, 3).flatten(1)))


class Tacotron(nn.Module):
    """Tacotron: a decoder whose attention also reads where it attended in the previous step, unrolled for three frames."""

    def __init__(self, width=32):
        super().__init__()
        self.words, self.encoder = nn.Embedding(40, width), nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.prenet, self.cell, self.frame = nn.Linear(16, 16), nn.LSTMCell(16 + width, width), nn.Linear(2 * width, 16)
        self.query, self.key, self.energy = nn.Linear(width, 16), nn.Linear(width, 16), nn.Linear(16, 1)
        self.place = nn.Conv1d(1, 16, 5, padding=2)

    def forward(self, words):
        memory = self.encoder(self.words(words))[0]
        keys = self.key(memory)
        h = c = memory.new_zeros(words.shape[0], memory.shape[2])
        frame, share, context, frames = memory.new_zeros(words.shape[0], 16), memory[..., 0] * 0, memory.mean(1), []
        for _ in range(3):
            h, c = self.cell(torch.cat((F.relu(self.prenet(frame)), context), -1), (h, c))
            score = self.energy(torch.tanh(self.query(h)[:, None] + keys + self.place(share[:, None]).transpose(1, 2)))
            share = score[..., 0].softmax(-1)
            context = (share[:, None] @ memory)[:, 0]
            frame = self.frame(torch.cat((h, context), -1))
            frames.append(frame)
        return torch.stack(frames, 1)


class FastSpeech(nn.Module):
    """FastSpeech: pitch and energy are predicted and added; durations are predicted as an output, but the text is not stretched."""

    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(40, width)
        layer = lambda: nn.TransformerEncoderLayer(width, 4, 64, batch_first=True, norm_first=True)  # noqa: E731
        self.encoder, self.decoder = layer(), layer()
        self.predict = nn.ModuleList([nn.Sequential(nn.Conv1d(width, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 1, 1)) for _ in range(3)])
        self.pitch, self.out = nn.Embedding(16, width), nn.Linear(width, 20)
        self.register_buffer("bins", torch.linspace(-1, 1, 15))

    def forward(self, words):
        x = self.encoder(self.words(words))
        duration, pitch, energy = (p(x.transpose(1, 2))[:, 0] for p in self.predict)
        which = (pitch[..., None] > self.bins).sum(-1)
        x = x + self.pitch(which) + energy[..., None]
        return self.out(self.decoder(x)), torch.clamp(torch.round(torch.exp(duration) - 1), min=0)


class GlowStep(nn.Module):
    """An invertible 1x1 convolution and a coupling, as flows for voices have."""

    def __init__(self, width=24):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.net = nn.Sequential(nn.Conv1d(width // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, width, 3, padding=1))

    def forward(self, x):
        x = F.conv1d(x.transpose(1, 2), self.mix[..., None])
        a, b = x.chunk(2, 1)
        shift, scale = self.net(a).chunk(2, 1)
        return torch.cat((a, (b + shift) * torch.sigmoid(scale + 2)), 1)


class HiFiGAN(nn.Module):
    """Upsampling by transposed convolutions, and the mean of two residual branches."""

    def __init__(self):
        super().__init__()
        self.start, self.up, self.end = nn.Conv1d(24, 32, 7, padding=3), nn.ConvTranspose1d(32, 16, 8, 4, 2), nn.Conv1d(16, 1, 7, padding=3)
        self.a = nn.ModuleList([nn.Conv1d(16, 16, 3, padding=d, dilation=d) for d in (1, 3)])
        self.b = nn.ModuleList([nn.Conv1d(16, 16, 5, padding=2 * d, dilation=d) for d in (1, 3)])

    def forward(self, x):
        x = self.up(F.leaky_relu(self.start(x.transpose(1, 2)), 0.1))
        branches = []
        for convs in (self.a, self.b):
            y = x
            for conv in convs:
                y = y + conv(F.leaky_relu(y, 0.1))
            branches.append(y)
        return torch.tanh(self.end(F.leaky_relu((branches[0] + branches[1]) / 2)))


class Demucs(nn.Module):
    """Demucs: a U-Net on a waveform with gated convolutions and an LSTM at the bottom."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1)) for a, b in ((1, 16), (16, 24))])
        self.cell, self.linear = nn.LSTM(24, 24, bidirectional=True), nn.Linear(48, 24)
        self.up = nn.ModuleList([nn.Sequential(nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2)) for a, b in ((16, 24), (2, 16))])

    def forward(self, x):
        skips = []
        for part in self.down:
            x = part(x)
            skips.append(x)
        x = self.linear(self.cell(x.permute(2, 0, 1))[0]).permute(1, 2, 0)
        for k, part in enumerate(self.up):
            x = part(x + skips.pop())
            x = F.relu(x) if k == 0 else x
        return x


class Zipformer(nn.Module):
    """A Zipformer block: attention at half the frame rate is mixed with the full rate by a learned share; BiasNorm and SwooshR follow."""

    def __init__(self, width=24):
        super().__init__()
        self.bias, self.scale, self.share = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(width))
        self.attention, self.feed, self.out = nn.MultiheadAttention(width, 4, batch_first=True), nn.Linear(width, 48), nn.Linear(48, width)

    def forward(self, x):
        half = F.avg_pool1d(x.transpose(1, 2), 2, 2, ceil_mode=True).transpose(1, 2)
        y = half + self.attention(half, half, half, need_weights=False)[0]
        y = y.repeat_interleave(2, dim=1)[:, : x.shape[1]]
        x = x + torch.sigmoid(self.share) * (y - x)
        h = self.feed(x)
        h = torch.log(1 + torch.exp(h - 1)) - 0.08 * h - 0.313
        x = x + self.out(h)
        return x * self.scale[0].exp() / (x - self.bias).pow(2).mean(-1, keepdim=True).sqrt()


class Transducer(nn.Module):
    """A transducer: a joint network reads every pair of an encoder's frame and a predictor's token."""

    def __init__(self, width=24):
        super().__init__()
        self.encoder, self.words, self.predictor = nn.LSTM(24, width, batch_first=True), nn.Embedding(30, width), nn.GRU(width, width, batch_first=True)
        self.join, self.out = nn.Linear(width, width), nn.Linear(width, 30)

    def forward(self, mels, words):
        one, two = self.encoder(mels)[0], self.predictor(self.words(words))[0]
        return self.out(torch.tanh(self.join(one)[:, :, None] + two[:, None])).log_softmax(-1)


net("conformer", conformer)
net("branchformer", lambda: nn.Sequential(Branches(), Branches()))
net("deep-speech", DeepSpeech)
net("quartznet", quartz, [Input("mels", ("batch", 24, "frames"))])
net("ecapa-tdnn", TDNN)
net("zipformer", Zipformer)
net("glow-step", GlowStep)
net("hifi-gan", HiFiGAN)
net("transducer", Transducer, [*MELS, Input("words", ("batch", "length"), 30)], [{"batch": 2, "frames": 9, "length": 4}, {"batch": 1, "frames": 6, "length": 5}])
net("wavenet", WaveNet, [Input("wave", ("batch", 1, "samples"))], WAVES)
net("conv-tasnet", ConvTasNet, [Input("wave", ("batch", 1, "samples"))], WAVES)
net("demucs", Demucs, [Input("wave", ("batch", 1, 512))], [{"batch": 2}, {"batch": 1}])
net("crepe", Crepe, [Input("wave", ("batch", 256))], [{"batch": 2}, {"batch": 1}])
net("tacotron", Tacotron, [Input("words", ("batch", "length"), 40)], [{"batch": 2, "length": 7}, {"batch": 1, "length": 5}])
net("fastspeech", FastSpeech, [Input("words", ("batch", "length"), 40)], [{"batch": 2, "length": 7}, {"batch": 1, "length": 5}])
