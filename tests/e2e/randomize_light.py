"""randomize_light.py LIGHT.onnx OUT.onnx [--seed N] [--softmax]: gives one of ONNX's light_* models weights.

Those models have the graphs of well-known networks, but all elements of a weight are equal, and so are those of each output, so
that they do not test convolutions.  Here each weight becomes an initializer with seeded random contents, scaled so that activations
neither vanish nor overflow.  A Softmax at the end is removed unless --softmax is given, since it would hide differences."""
import argparse
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# For each operator and operand: the kind of random distribution of its contents.
ROLES = {
    ("Conv", 1): "kernel", ("Conv", 2): "bias", ("Gemm", 1): "matrix", ("Gemm", 2): "bias",
    ("BatchNormalization", 1): "scale", ("BatchNormalization", 2): "bias", ("BatchNormalization", 3): "bias",
    ("BatchNormalization", 4): "scale", ("Mul", 1): "scale", ("Add", 1): "bias", ("Sum", 1): "bias",
}


def splats(graph):
    """Returns {name: dims} of all weights: results of ConstantOfShape with a constant shape, and float initializers."""
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.data_type == TensorProto.INT64}
    found = {t.name: list(t.dims) for t in graph.initializer if t.data_type == TensorProto.FLOAT}
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            found[node.output[0]] = [int(d) for d in shapes[node.input[0]]]
    return found


def users(graph):
    """Returns {name: (node, operand number)} of the first use of each value; a use by an Unsqueeze stands for the uses of its result."""
    first = {}
    for node in reversed(graph.node):
        for k, name in enumerate(node.input):
            first[name] = first.get(node.output[0], (node, k)) if node.op_type == "Unsqueeze" else (node, k)
    return first


def contents(name, dims, use, ends_branch, seed):
    node, operand = use
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    role = ROLES.get((node.op_type, operand), "bias")
    if role == "kernel":
        deviation = np.sqrt(2 / np.prod(dims[1:]))
    elif role == "matrix":
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        deviation = np.sqrt(2 / dims[1 if transposed else 0])
    elif role == "scale":
        # Branches that are added up must not make the sum grow from block to block.
        low, high = (0.3, 0.7) if ends_branch and operand == 1 else (0.5, 1.5)
        return rng.uniform(low, high, dims).astype(np.float32)
    else:
        deviation = 0.1
    return (rng.standard_normal(dims, np.float32) * np.float32(deviation)).astype(np.float32)


def drop_softmax(graph):
    for node in graph.node:
        if node.op_type == "Softmax" and node.output[0] == graph.output[0].name:
            graph.output[0].CopyFrom(helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, None))
            graph.node.remove(node)
            return


def randomize(model, seed=1, softmax=False):
    """Returns the model with random weights; its inputs are only those that a run must be given."""
    graph = model.graph
    if not softmax:
        drop_softmax(graph)
    weights, first = splats(graph), users(graph)
    summed = {name for node in graph.node if node.op_type == "Sum" for name in node.input}
    tensors = []
    for name, dims in weights.items():
        if name in first:
            node = first[name][0]
            values = contents(name, dims, first[name], node.output[0] in summed, seed)
            tensors.append(numpy_helper.from_array(values, name))
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape" or n.output[0] not in weights]
    used = {name for n in nodes for name in n.input}
    tensors += [t for t in graph.initializer if t.name in used and t.name not in weights]
    known = {t.name for t in tensors}
    inputs = [i for i in graph.input if i.name in used and i.name not in known]
    made = helper.make_graph(nodes, graph.name, inputs, list(graph.output), tensors)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("light")
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--softmax", action="store_true")
    args = parser.parse_args()
    onnx.save(randomize(onnx.load(args.light), args.seed, args.softmax), args.out)


if __name__ == "__main__":
    main()
