"""DFT and STFT against numpy.fft; windows and mel filters by the formulas of the specification."""
import numpy as np
from onnx import TensorProto, helper

rng = np.random.default_rng(4)
SPLIT = 1025  # too long for one matrix of cosines, so that the transform is divided into two factors
PRIME, TWICE_PRIME = 1031, 2062


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def signal(*dims, dtype=np.float64):
    return rng.standard_normal(dims).astype(dtype)


def dft(x, length, axis, inverse, onesided):
    """Computes DFT as the specification describes it, for x [..., 1 or 2]: real or complex numbers."""
    z = x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]
    if onesided:
        return np.fft.irfft(z, length, axis)[..., None] if inverse else pairs(np.fft.rfft(z, length, axis))
    return pairs((np.fft.ifft if inverse else np.fft.fft)(z, length, axis))


def write_dft(w):
    for n in (1, 2, 3, 5, 8, 13, 100, SPLIT, PRIME, TWICE_PRIME, 4096):
        for parts, inverse, onesided in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (2, 1, 0), (1, 0, 1)):
            x = signal(2, n, parts)
            attributes = {"inverse": inverse, "onesided": onesided}
            w.add("DFT", [x], [dft(x, None, 1, inverse, onesided)], attributes, opset=20)
        x = signal(2, n // 2 + 1, 2)
        w.add("DFT", [x, np.array(n)], [dft(x, n, 1, 1, 1)], {"inverse": 1, "onesided": 1}, opset=20, name="real")
    for dtype in (np.float16, np.float32):
        x = signal(2, 24, 2, dtype=dtype)
        w.add("DFT", [x], [dft(x.astype("d"), None, 1, 0, 0).astype(dtype)], opset=20, name="narrow")
    for n in (7, 10, SPLIT):  # shorter and longer than the signal, along each axis
        for axis in (0, 1, -3, -2):
            x = signal(9, 9, 2, 1)
            where = axis if axis >= 0 else axis + 4
            w.add("DFT", [x, np.array(n), np.array(axis)], [dft(x, n, where, 0, 0)], opset=20, name="length")
            w.add("DFT", [x, np.array(n, np.int32)], [dft(x, n, where, 1, 0)], {"axis": axis, "inverse": 1}, opset=17,
                  name="old")


def write_stft(w):
    for length, step, parts, onesided in ((16, 4, 1, 1), (16, 5, 1, 0), (7, 3, 2, 0), (40, 1, 1, 1)):
        for dtype in (np.float32, np.float64):
            x = signal(2, 40, parts, dtype=dtype)
            for window in (None, rng.random(length).astype(dtype)):
                frames = [x[:, k:k + length] for k in range(0, 40 - length + 1, step)]
                frames = np.stack(frames, 1) * (1 if window is None else window[:, None])
                y = dft(frames.astype("d"), None, 2, 0, onesided).astype(dtype)
                w.add("STFT", [x, np.array(step), window, np.array(length)], [y], {"onesided": onesided}, opset=17)
                if parts == 1:  # as PyTorch writes it
                    w.add("STFT", [x[..., 0], np.array(step), window, np.array(length)], [y], {"onesided": onesided}, opset=17,
                          name="rank_2")
                if window is not None:
                    w.add("STFT", [x, np.array(step, np.int32), window], [y], {"onesided": onesided}, opset=17)


WINDOWS = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}
NUMBERS = [t for t in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8,
                       TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT32)]


def write_windows(w):
    for op, (a, b, c) in WINDOWS.items():
        for size in (1, 2, 9, 16):
            for periodic in (0, 1):
                turn = 2 * np.pi * np.arange(size) / (size if periodic else max(size - 1, 1))
                y = a - b * np.cos(turn) + c * np.cos(2 * turn)
                y = np.full(1, np.nan) if size == 1 and not periodic else y  # 0/0 in the function that defines the operator
                for t in NUMBERS if size == 9 else NUMBERS[:1]:
                    dtype = helper.tensor_dtype_to_np_dtype(t)
                    if dtype.kind not in "iu" or np.all(np.abs(y - np.round(y)) > 1e-6):  # one just below a whole number would be truncated
                        w.add(op, [np.array(size)], [y.astype(dtype)], {"periodic": periodic, "output_datatype": t},
                              opset=17)


def mel_matrix(bins, length, rate, low, high):
    spectrogram = length // 2 + 1
    mel = 2595 * np.log10(1 + np.array([low, high]) / 700)
    edges = mel[0] + np.arange(bins + 2) * (mel[1] - mel[0]) / (bins + 2)
    edges = ((length + 1) * (700 * (10 ** (edges / 2595) - 1)) // rate).astype(int)
    y = np.zeros((spectrogram, bins))
    for k in range(bins):
        first, centre, last = edges[k:k + 3]
        y[first:centre, k] = (np.arange(first, centre) - first) / max(centre - first, 1)
        y[centre, k] = 1
        y[centre:last, k] = (last - np.arange(centre, last)) / max(last - centre, 1)
    return y


def write_mel(w):
    for bins, length, rate, low, high in ((8, 16, 8192, 0.0, 4096.0), (20, 400, 16000, 20.0, 7600.0), (1, 8, 100, 0.0, 50.0)):
        y = mel_matrix(bins, length, rate, low, high)
        for t in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32):
            x = [np.array(bins), np.array(length), np.array(rate), np.float32(low), np.float32(high)]
            w.add("MelWeightMatrix", x, [y.astype(helper.tensor_dtype_to_np_dtype(t))], {"output_datatype": t}, opset=17)
