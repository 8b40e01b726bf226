"""onnx_writer.py: writes tensors and small models as ONNX's files, with Python's standard library only."""


def varint(x):
    x &= (1 << 64) - 1
    out = bytearray()
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    out.append(x)
    return bytes(out)


def field(number, value):
    """Returns a field of a message: an integer, a text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(kind, dims, data, name="x"):
    return b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) + field(9, data)


def dimension(d):
    return b"" if d is None else field(1 if isinstance(d, int) else 2, d)


def value(name, kind, dims):
    """Returns an input or output; a dimension is a number, a name, or None."""
    shape = b"".join(field(1, dimension(d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def node(op, inputs, outputs, attributes=b""):
    return b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + attributes


def model(nodes, inputs, outputs, initializers=(), name="graph"):
    graph = b"".join(field(1, n) for n in nodes) + field(2, name) + b"".join(field(5, t) for t in initializers)
    graph += b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs)
    return field(1, 10) + field(7, graph) + field(8, field(2, 21))


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
