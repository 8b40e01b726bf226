"""check_peers.py: ONNX Runtime gives the random tester the right answers about single nodes, whatever it was asked before."""

import sys

import numpy as np
from onnx import TensorProto, helper

import peers


def asked(op, opset, arrays, outputs, **attributes):
    """Returns a model of one node, and its inputs."""
    feeds = {f"x{k}": a for k, a in enumerate(arrays)}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, np.shape(a)) for n, a in feeds.items()]
    results = [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, dims) for k, dims in enumerate(outputs)]
    node = helper.make_node(op, list(feeds), [r.name for r in results], **attributes)
    graph = helper.make_graph([node], "node", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), feeds


def ones(*dims):
    return np.ones(dims, np.float32)


def recurrent(layout):
    dims = (2, 3, 4) if layout else (3, 2, 4)  # batch 2, three steps
    return asked(
        "RNN", 14, [ones(*dims), ones(1, 5, 4), ones(1, 5, 5)], [(2, 3, 1, 5) if layout else (3, 1, 2, 5)],
        hidden_size=5, layout=layout,
    )


def normalised(*dims):
    return asked("LRN", 13, [ones(*dims)], [dims], size=3)


# Nodes of one operator and type, of which ONNX Runtime runs one and not the other: (what differs, run, refused).
PAIRS = [
    ("attribute", recurrent(0), recurrent(1)),
    ("rank", normalised(1, 4, 3, 3), normalised(1, 4, 3)),
]


def check():
    """Returns what is wrong, as a list of texts."""
    wrong = []
    for what, good, bad in PAIRS:
        for order in ([good, bad], [bad, good]):
            support = peers.OrtSupport()
            answers = [support(*question) for question in order]
            if answers != [question is good for question in order]:
                wrong.append(f"another {what}: {answers}, the right one being number {order.index(good)}")
    scalar = np.float32(1) + ones()  # a number, no array
    if not peers.OrtSupport()(*asked("Max", 13, [scalar, ones(2)], [(2,)])):
        wrong.append("a scalar: refused")
    return wrong


def main():
    if not peers.has_ort():
        return
    wrong = check()
    for text in wrong:
        print("FAIL check_peers.py:", text)
    sys.exit(bool(wrong))


main()
