"""onnx_files.py: what the tests of objects need from ONNX's files, with Python's standard library only: tensors, and the inputs and
outputs of models.
"""
import os
import struct

import elements


def varint(data, at):
    """Returns a varint and the position behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields the number and the value of each field of a message: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
        else:
            n = 8 if kind == 1 else 4
            value, at = data[at:at + n], at + n
        yield key >> 3, value


def signed(value):
    """Returns the number that a varint of a signed type stands for."""
    return value - (1 << 64) if value >> 63 else value


def numbers(values):
    """Returns the integers of a repeated field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(signed(number))
    return out


class Tensor:
    """An array: ONNX's number of its element type, its dimensions, and its bytes as objects keep them in memory."""

    def __init__(self, kind, dims, data):
        self.kind, self.dims, self.data = kind, dims, data

    def packed(self):
        """Returns the bytes of the array in a file."""
        return elements.packed(self.kind, self.data)

    def elements(self):
        n = 1
        for d in self.dims:
            n *= d
        return n


def read_tensor(path):
    """Returns the tensor of a .pb file; None if it is no tensor of numbers."""
    with open(path, "rb") as f:
        parts = {}
        try:
            for number, value in fields(f.read()):
                parts.setdefault(number, []).append(value)
        except IndexError:
            return None
    kind = parts.get(2, [0])[0]
    if not isinstance(kind, int) or kind not in elements.KINDS:
        return None
    dims = numbers(parts.get(1, []))
    tensor = Tensor(kind, dims, b"")
    if 9 in parts:
        tensor.data = elements.unpacked(kind, parts[9][0], tensor.elements())
    elif 4 in parts or 10 in parts:
        tensor.data = b"".join(bytes(v) for v in parts.get(4, []) + parts.get(10, []))
    else:
        values = numbers(parts.get(5, []) + parts.get(7, []) + parts.get(11, []))
        tensor.data = elements.from_numbers(kind, values, tensor.elements())
    return tensor


class Value:
    """An input or output of a model: its name, and its dimensions: numbers, names, or None."""

    def __init__(self, data):
        self.name, self.dims, self.is_tensor = "", [], False
        for number, value in fields(data):
            if number == 1:
                self.name = value.decode()
            elif number == 2:
                self.read_type(value)

    def read_type(self, data):
        for number, value in fields(data):
            self.is_tensor = number == 1
            for part, content in fields(value) if number == 1 else ():
                if part == 2:
                    self.dims = [self.read_dim(v) for n, v in fields(content) if n == 1]

    @staticmethod
    def read_dim(data):
        for number, value in fields(data):
            return value if number == 1 else value.decode() or None
        return None


def read_model(path):
    """Returns the inputs and the outputs of a model.  Initializers are no inputs."""
    with open(path, "rb") as f:
        graph = next(value for number, value in fields(f.read()) if number == 7)
    inputs, outputs, initialized = [], [], set()
    for number, value in fields(graph):
        if number == 5:
            initialized.update(v.decode() for n, v in fields(value) if n == 8)
        elif number == 11:
            inputs.append(Value(value))
        elif number == 12:
            outputs.append(Value(value))
    return [v for v in inputs if v.name not in initialized], outputs


def light_input(dims):
    """Returns the input that ONNX's test runner uses for light models: element i of n is i/n."""
    dims = [d if isinstance(d, int) else 1 for d in dims]
    tensor = Tensor(elements.FLOAT, dims, b"")
    n = tensor.elements()
    tensor.data = struct.pack(f"={n}f", *(i / n for i in range(n)))
    return tensor


def read_tensors(folder, word):
    """Returns the tensors of word_0.pb, word_1.pb, ... in a folder."""
    out = []
    while os.path.exists(path := f"{folder}/{word}_{len(out)}.pb"):
        out.append(read_tensor(path))
    return out
