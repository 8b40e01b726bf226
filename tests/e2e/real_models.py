"""real_models.py DATA: checks that trained models from PyPI packages give the same numbers as in ONNX Runtime, on the reference and
the CPU backend.

Tolerances are relative to the largest output (see compare_ort.difference).  Sums of some thousand products of f32 in another order
differ by a few times 2^-24 in each layer.  In the deep networks for pictures this grows to 5e-5 where a sigmoid or softmax is
steepest, in the small ones to 1e-6.  The tolerances are about six times the observed differences."""
import glob
import os
import sys
import tempfile

import numpy as np

from compare_ort import Report, compiled, run_ort

BACKENDS = ("ref", "cpu")


def page(rng, batch, height, width):
    """Returns random pictures that resemble text: dark strokes on white, with samples from -1 to 1."""
    picture = np.ones((batch, 3, height, width), np.float32)
    for image in picture:
        for _ in range(width // 6):
            x, y = rng.integers(0, width - 4), rng.integers(height // 4, height // 2)
            tall, wide = rng.integers(4, max(5, height // 3)), rng.integers(1, 8)
            image[:, y : y + tall, x : x + wide] = rng.uniform(-1, -0.7)
    return picture + rng.normal(0, 0.02, picture.shape).astype(np.float32)


def ocr(report, data, rng, _):
    folder = os.path.join(data, "rapidocr_onnxruntime", "models")
    for pattern, tolerance, shapes in (
        ("*_det_infer.onnx", 3e-4, [(1, 64, 96), (1, 160, 128), (2, 96, 96)]),
        ("*_cls_infer.onnx", 3e-5, [(1, 48, 192), (3, 48, 96)]),
        ("*_rec_infer.onnx", 3e-4, [(1, 48, 160), (1, 48, 333), (2, 48, 96)]),
    ):
        (path,) = glob.glob(os.path.join(folder, pattern))
        for batch, height, width in shapes:
            inputs = {"x": page(rng, batch, height, width)}
            want = run_ort(path, inputs)
            for backend in BACKENDS:
                report.check(f"{os.path.basename(path)} {inputs['x'].shape}", path, inputs, backend, want, tolerance)


def sound(rng, rate, batch, n):
    """Voiced sound of several loudnesses, with some noise."""
    time = np.arange(n) / rate
    one = sum(np.sin(2 * np.pi * f * time) / k for k, f in enumerate((140, 280, 420, 700), 1)) * 0.2
    return (np.stack([one * (1 + k) for k in range(batch)]) + rng.normal(0, 0.01, (batch, n))).astype(np.float32)


def voice_step(report, data, rng, name, rate, batch, tolerance, extra=None):
    """Runs two chunks of sound one after the other; the state that the first run returns is an input of the second."""
    path = os.path.join(data, "silero_vad", "data", name)
    length = 576 if rate == 16000 else 288
    heard = sound(rng, rate, batch, 2 * length)
    state = np.zeros((2, batch, 128), np.float32)
    for chunk in range(2):
        inputs = {"input": heard[:, chunk * length : (chunk + 1) * length].copy(), "state": state, **(extra or {})}
        want = run_ort(path, inputs)
        for backend in BACKENDS:
            report.check(f"{name} {rate} Hz, batch {batch}, chunk {chunk}", path, inputs, backend, want, tolerance)
        state = want[1]


def voice_ahead(report, data, rng, work):
    """Compiled for a sampling rate and a length; the state's size follows from the batch, which stays open."""
    path, rate = os.path.join(data, "silero_vad", "data", "silero_vad.onnx"), np.array(16000, np.int64)
    told = os.path.join(work, "rate.npy")
    np.save(told, rate)
    ahead = compiled(path, work, "--input", f"sr={told}", "--shape", "input=1x576")
    for batch in (1, 3):
        inputs = {"input": sound(rng, 16000, batch, 576), "state": np.zeros((2, batch, 128), np.float32), "sr": rate}
        report.check(f"silero_vad.onnx, batch {batch}, compiled ahead", ahead, inputs, "cpu", run_ort(path, inputs), 2e-5)


def voice(report, data, rng, work):
    """In most of these models the sampling rate chooses a branch."""
    voice_ahead(report, data, rng, work)
    rates = {rate: {"sr": np.array(rate, np.int64)} for rate in (16000, 8000)}
    for rate, batch in ((16000, 1), (8000, 1), (16000, 3)):
        voice_step(report, data, rng, "silero_vad.onnx", rate, batch, 2e-5, rates[rate])
    for rate in rates:
        voice_step(report, data, rng, "silero_vad_op18_ifless.onnx", rate, 2, 2e-5, rates[rate])
    voice_step(report, data, rng, "silero_vad_16k_op15.onnx", 16000, 2, 2e-5, rates[16000])
    voice_step(report, data, rng, "silero_vad_openvino_16k.onnx", 16000, 1, 2e-5)
    voice_step(report, data, rng, "silero_vad_half.onnx", 16000, 1, 2e-5)
    path = os.path.join(data, "silero_vad", "data", "silero_vad_16k_sequence.onnx")
    for steps in (1, 4):
        state = {name: np.zeros((1, 1, 128), np.float32) for name in ("h", "c")}
        inputs = {"input": sound(rng, 16000, 1, 576 * steps).reshape(steps, 576), **state}
        want = run_ort(path, inputs)
        for backend in BACKENDS:
            report.check(f"silero_vad_16k_sequence.onnx, {steps} steps", path, inputs, backend, want, 2e-5)


def files(report, data, rng, _):
    path = os.path.join(data, "magika", "models", "standard_v3_3", "model.onnx")
    text = b"#include <stdio.h>\nint main(void) {\n  puts(\"hello\");\n  return 0;\n}\n" * 20
    for batch in (1, 3):
        inputs = np.full((batch, 2048), 256, np.int32)  # 256: padding
        inputs[0, :1024] = np.frombuffer(text, np.uint8)[:1024]
        inputs[1:] = rng.integers(0, 257, (batch - 1, 2048))
        want = run_ort(path, {"bytes": inputs})
        for backend in BACKENDS:
            report.check(f"magika {inputs.shape}", path, {"bytes": inputs}, backend, want, 1e-5)


def embeddings(report, data, rng, _):
    """TensorFlow's map_fn over the sounds of a batch: a Loop that compares its counters with the size of the batch."""
    path = os.path.join(data, "lwake", "models", "speech-embedding.onnx")
    for batch, samples in ((1, 16000), (3, 20000)):
        inputs = {"samples:0": sound(rng, 16000, batch, samples)}
        want = run_ort(path, inputs)
        for backend in BACKENDS:
            report.check(f"speech-embedding.onnx {batch} of {samples}", path, inputs, backend, want, 1e-5)


def spectrograms(report, data, rng, work):
    """Front ends of speech recognisers, which are written twice: with STFT, and with Conv.  ONNX Runtime's STFT is off by up to 1e-3
    of the largest logarithm (its Conv by 1e-6), so both are compared with what it computes with Conv.  The first is compiled ahead of time
too; kaldi's windows make it one program for sounds of few samples and one for all others."""
    folder = os.path.join(data, "onnx_asr", "preprocessors", "data")
    for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "whisper80"):
        ahead = compiled(os.path.join(folder, f"{name}.onnx"), work)
        for batch, samples in ((1, 16000), (2, 5013)):
            lengths = np.array([samples, samples - 700][:batch], np.int64)
            inputs = {"waveforms": sound(rng, 16000, batch, samples), "waveforms_lens": lengths}
            want = run_ort(os.path.join(folder, f"{name}_conv.onnx"), inputs)
            for written in (f"{name}.onnx", f"{name}_conv.onnx"):
                for backend in BACKENDS:
                    title = f"{written} {batch} of {samples}"
                    report.check(title, os.path.join(folder, written), inputs, backend, want, 5e-5)
            report.check(f"{name} {batch} of {samples}, compiled ahead", ahead, inputs, "cpu", want, 5e-5)


def main():
    report, rng = Report(), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as work:
        for part in (ocr, voice, files, embeddings, spectrograms):
            part(report, sys.argv[1], rng, work)
    report.finish()


if __name__ == "__main__":
    main()
