"""onnx_writer.py: writes tensors and small models as ONNX's files, with Python's standard library only."""
import onnx_files


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


def opened(path):
    """Returns the model of a file without the sizes of its inputs' dimensions, and without the shapes of its other values.
    Inputs of at most one dimension keep their sizes, since many decide by their contents what the operator does."""
    names = {v.name for v in onnx_files.read_model(path)[0]}
    with open(path, "rb") as f:
        return b"".join(opened_graph(value, names) if number == 7 else field(number, value)
                        for number, value in onnx_files.fields(f.read()))


def opened_graph(graph, names):
    out = b""
    for number, value in onnx_files.fields(graph):
        if number in (11, 12, 13):
            v = onnx_files.Value(value)
            open_it = v.is_tensor and (number != 11 or (v.name in names and len(v.dims) > 1))
            value = opened_value(value, number == 11) if open_it else value
        out += field(number, value)
    return field(7, out)


def opened_value(data, keep_rank):
    """Returns a value with open dimensions, or without a shape."""
    def shape(content):
        return b"".join(field(1, b"") for number, _ in onnx_files.fields(content) if number == 1)

    def tensor_type(content):
        return b"".join(field(n, shape(x) if n == 2 else x) for n, x in onnx_files.fields(content) if n != 2 or keep_rank)

    def type_of(content):
        return b"".join(field(n, tensor_type(x) if n == 1 else x) for n, x in onnx_files.fields(content))

    return b"".join(field(n, type_of(x) if n == 2 else x) for n, x in onnx_files.fields(data))
