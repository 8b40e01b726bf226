"""elements.py: ONNX's element types, as objects keep them in memory, and whether two arrays are close."""
import array
import math
import struct

FLOAT, BFLOAT16 = 1, 16
# The number of a type, its bytes in memory, its bits in a file, and its letter in Python's module array if there is one.
KINDS = {
    1: (4, 32, "f"), 2: (1, 8, "B"), 3: (1, 8, "b"), 4: (2, 16, "H"), 5: (2, 16, "h"), 6: (4, 32, "i"), 7: (8, 64, "q"),
    9: (1, 8, "B"), 10: (2, 16, None), 11: (8, 64, "d"), 12: (4, 32, "I"), 13: (8, 64, "Q"), 14: (8, 32, "f"),
    15: (16, 64, "d"), 16: (2, 16, None), 17: (1, 8, None), 18: (1, 8, None), 19: (1, 8, None), 20: (1, 8, None),
    21: (1, 4, "B"), 22: (1, 4, "b"), 23: (1, 4, None), 24: (1, 8, None), 25: (1, 2, "B"), 26: (1, 2, "b"),
    27: (1, 6, None), 28: (1, 6, None)}
SIGNED_PACKED = (22, 26)
COMPLEX = (14, 15)
# The small floats: exponent bits, mantissa bits, bias, whether there are infinities, and whether there is one zero only.
SMALL = {17: (4, 3, 7, False, False), 18: (4, 3, 8, False, True), 19: (5, 2, 15, True, False), 20: (5, 2, 16, False, True),
         23: (2, 1, 1, False, False), 27: (2, 3, 1, False, False), 28: (3, 2, 3, False, False)}
BFLOAT16_RTOL = 1 / 64  # two units in the last place


def unpacked(kind, raw, n):
    """Returns the bytes in memory of n elements of a file."""
    bits = KINDS[kind][1]
    if bits == 6 or bits >= 8:
        return bytes(raw)
    out = bytearray(n)
    for k in range(n):
        x = raw[k * bits // 8] >> k * bits % 8 & (1 << bits) - 1
        if kind in SIGNED_PACKED and x >> bits - 1:
            x |= 256 - (1 << bits)
        out[k] = x
    return bytes(out)


def packed(kind, data):
    """Returns the bytes in a file of an array in memory."""
    bits = KINDS[kind][1]
    if bits == 6 or bits >= 8:
        return data
    per_byte, out = 8 // bits, bytearray(-(-len(data) * bits // 8))
    for k, x in enumerate(data):
        out[k // per_byte] |= (x & (1 << bits) - 1) << k % per_byte * bits
    return bytes(out)


def from_numbers(kind, values, n):
    """Returns the bytes in memory of n elements that a file has as integers."""
    size, bits, _ = KINDS[kind]
    if kind == FLOAT or kind in COMPLEX or kind == 11:
        return b""
    if bits < 8 and bits != 6:
        return unpacked(kind, bytes(v & 255 for v in values), n)
    return b"".join((v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in values)


def small_float(kind, x):
    """Returns the value of a float of at most 8 bits."""
    if kind == 24:
        return math.nan if x == 255 else math.ldexp(1, x - 127)
    exponent_bits, mantissa_bits, bias, infinities, one_zero = SMALL[kind]
    sign = -1 if x >> exponent_bits + mantissa_bits & 1 else 1
    exponent, mantissa = x >> mantissa_bits & (1 << exponent_bits) - 1, x & (1 << mantissa_bits) - 1
    if one_zero and x == 128:
        return math.nan
    if exponent == (1 << exponent_bits) - 1:
        if infinities:
            return math.nan if mantissa else sign * math.inf
        if kind == 17 and mantissa == 7:
            return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


def values(kind, data):
    """Returns the elements as numbers; those of complex arrays are two each."""
    letter = KINDS[kind][2]
    if letter:
        return array.array(letter, data)
    if kind == 10:
        return struct.unpack(f"={len(data) // 2}e", data)
    if kind == BFLOAT16:
        return array.array("f", b"".join(b"\0\0" + data[k:k + 2] for k in range(0, len(data), 2)))
    return [small_float(kind, x) for x in data]


def is_close(got, want, rtol, atol):
    if got == want or (got != got and want != want):
        return True
    return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= atol + rtol * abs(want)


def difference(kind, got, want, rtol, atol):
    """Returns what differs between the bytes of two arrays, or None if they are close."""
    if got == want:
        return None
    if len(got) != len(want):
        return f"{len(got)} bytes, expected are {len(want)}"
    rtol = max(rtol, BFLOAT16_RTOL) if kind == BFLOAT16 else rtol
    bad = [(k, g, w) for k, (g, w) in enumerate(zip(values(kind, got), values(kind, want))) if not is_close(g, w, rtol, atol)]
    if not bad:
        return None
    k, g, w = bad[0]
    return f"{len(bad)} elements differ; the first, {k}, is {g:.9g}, expected is {w:.9g}"
