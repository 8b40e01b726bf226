"""ort_state.py PLUGIN DATA: decoders whose keys and values are in one buffer, which IOBinding binds both as input and as
output (exporters call it past_present_share_buffer), compared with ONNX Runtime's own provider, to which input
and output are bound in separate buffers."""
import os
import sys
import tempfile
import traceback

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ort_sessions import VERBOSE, claimed, register, session  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
BATCH, HEADS, ROWS, WIDTH, STEPS = 2, 3, 8, 4, 5
CACHE, ALL = (BATCH, HEADS, ROWS, WIDTH), HEADS * WIDTH
rng = np.random.default_rng(7)
node, info = helper.make_node, helper.make_tensor_value_info


# --- how the new keys, or values, "k" become part of "present_k"; "at" has the row ---

def tensor_scatter(s):
    return [node("TensorScatter", ["past_" + s, s, "at_of_each"], ["present_" + s], axis=2)]


def scatter_elements(s):
    return [node("Expand", ["at", "one_row"], ["index_" + s]),
            node("ScatterElements", ["past_" + s, "index_" + s, s], ["present_" + s], axis=2)]


def scatter_nd(s):
    return [node("Mul", ["at", "last"], ["row_" + s]), node("Add", ["lines", "row_" + s], ["index_" + s]),
            node("ScatterND", ["past_" + s, "index_" + s, s], ["present_" + s])]


def where(s):
    return [node("Equal", ["range", "at"], ["here_" + s]), node("Where", ["here_" + s, s, "past_" + s], ["present_" + s])]


def concat(s):
    return [node("Concat", ["past_" + s, s], ["present_" + s], axis=2)]


def decoder(update, rows=ROWS, after=ROWS):
    """y: attention of the token x to all rows; rows, after: of the past and of the present."""
    nodes, values = [], {"split": np.array([BATCH, 1, HEADS, WIDTH]), "range": np.arange(ROWS).reshape(1, 1, ROWS, 1),
                         "one_row": np.array([BATCH, HEADS, 1, WIDTH]), "last": np.array([[[[0, 0, 1]]]]),
                         "batch": np.array([BATCH]), "flat": np.array([1]),
                         "lines": np.stack(np.meshgrid(range(BATCH), range(HEADS), [0], indexing="ij"), -1)}
    for s in "qkv":
        values["w" + s] = rng.standard_normal((ALL, ALL)).astype(np.float32)
        nodes += [node("MatMul", ["x", "w" + s], [s + "_flat"]), node("Reshape", [s + "_flat", "split"], [s + "_split"]),
                  node("Transpose", [s + "_split"], [s], perm=[0, 2, 1, 3])]
    if update is tensor_scatter:
        nodes += [node("Reshape", ["at", "flat"], ["at_flat"]), node("Expand", ["at_flat", "batch"], ["at_of_each"])]
    for s in "kv":
        nodes += update(s)
    nodes += [node("Transpose", ["present_k"], ["turned"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "turned"], ["s"]),
              node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "present_v"], ["y"])]
    inputs = [info("x", FLOAT, [BATCH, 1, ALL])] + ([] if update is concat else [info("at", INT64, [1, 1, 1, 1])])
    inputs += [info("past_" + s, FLOAT, [BATCH, HEADS, rows, WIDTH]) for s in "kv"]
    outputs = [info("y", FLOAT, [BATCH, HEADS, 1, WIDTH])]
    outputs += [info("present_" + s, FLOAT, [BATCH, HEADS, after, WIDTH]) for s in "kv"]
    read = {i for n in nodes for i in n.input}
    graph = helper.make_graph(nodes, "decoder", inputs, outputs,
                              [numpy_helper.from_array(v, n) for n, v in values.items() if n in read])
    opset, version = (24, 11) if update is tensor_scatter else (18, 8)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version).SerializeToString()


def buffer(shape=CACHE):
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)


def decode(s, shared):
    """Returns y and both caches after each step.  shared: whether present and past have one buffer."""
    random, found = np.random.default_rng(11), []
    caches = {k: buffer() for k in "kv"}
    for k in caches:  # rows that the model fails to mask would change the results
        caches[k].update_inplace(random.standard_normal(CACHE).astype(np.float32))
    for step in range(STEPS):
        io, y = s.io_binding(), buffer((BATCH, HEADS, 1, WIDTH))
        io.bind_cpu_input("x", random.standard_normal((BATCH, 1, ALL)).astype(np.float32))
        io.bind_cpu_input("at", np.full((1, 1, 1, 1), step * 3 % ROWS))
        io.bind_ortvalue_output("y", y)
        for k in "kv":
            present = caches[k] if shared else buffer()
            io.bind_ortvalue_input("past_" + k, caches[k])
            io.bind_ortvalue_output("present_" + k, present)
            caches[k] = present
        s.run_with_iobinding(io)
        found += [y.numpy().copy()] + [caches[k].numpy().copy() for k in "kv"]
    return found


def same(want, got):
    assert len(want) == len(got) == 3 * STEPS
    for a, b in zip(want, got):
        assert a.shape == b.shape and np.allclose(a, b, 1e-5, 1e-5), f"off by {np.abs(a - b).max()}"


def updates():
    newest = tuple(int(n) for n in ort.__version__.split(".")[:2]) >= (1, 24)  # before, there is no opset 24
    return [scatter_elements, scatter_nd, where] + [tensor_scatter] * newest


def check_caches(folder):
    """Past and present in one buffer or in two; caches of a size that is known or not; also with `verify`, which compares
    results with the reference evaluator's before they are written over its inputs."""
    for update in updates():
        for rows in (ROWS, "rows"):
            m = decoder(update, rows, rows)
            want = decode(session(m, provider=False), False)
            for options in ({}, {"verify": "1"}, {"check_memory": "1"}, {"backend": "ref"}):
                s, (taken, nodes, groups) = claimed(lambda: session(m, log=VERBOSE, options=options))
                assert taken == nodes and groups == 1, f"{update.__name__}: {taken} of {nodes} nodes are taken"
                for shared in (True, False, True):
                    same(want, decode(s, shared))


def check_compiled(folder):
    """A compiled model that was saved and loaded also gives the same numbers in one buffer as in two."""
    for update in updates():
        m, saved = decoder(update), os.path.join(folder, update.__name__ + ".onnx")
        session(m, config={"ep.context_enable": "1", "ep.context_file_path": saved})
        same(decode(session(m, provider=False), False), decode(session(saved), True))


def refusal(run):
    try:
        run()
    except Exception as e:  # noqa: BLE001  # what ONNX Runtime raises
        return str(e)
    return ""


def bind(s, memory, past, present):
    """past, present: (element at which it begins, rows); memory: for k and v."""
    io = s.io_binding()
    io.bind_cpu_input("x", np.ones((BATCH, 1, ALL), np.float32))
    io.bind_output("y", "cpu")
    for k in "kv":
        for name, at, (start, rows) in (("past_", io.bind_input, past), ("present_", io.bind_output, present)):
            at(name + k, "cpu", 0, np.float32, (BATCH, HEADS, rows, WIDTH), memory[k].ctypes.data + 4 * start)
    return io


def check_growing(folder):
    """A present that is longer than the past cannot be in the past's memory; it can be in other memory."""
    m = decoder(concat, "past", "present")
    s, alone = session(m), session(m, provider=False)
    line = BATCH * HEADS * WIDTH
    memory = {k: rng.standard_normal(20 * line).astype(np.float32) for k in "kv"}
    before = {k: x.copy() for k, x in memory.items()}
    for past, present in (((0, 3), (0, 4)), ((0, 3), (8, 4)), ((8, 3), (0, 4)), ((4 * line - 1, 3), (0, 4))):
        said = refusal(lambda: s.run_with_iobinding(bind(s, memory, past, present)))
        assert "overlaps" in said and any(f"'past_{k}'" in said and f"'present_{k}'" in said for k in "kv"), said
        assert all(np.array_equal(before[k], memory[k]) for k in "kv"), "a refused run has written something"
    wanted = {k: x.copy() for k, x in memory.items()}
    for rows in range(6):  # by turns in one half of the buffer and in the other
        places = (rows % 2 * 10 * line, rows), ((rows + 1) % 2 * 10 * line, rows + 1)
        s.run_with_iobinding(bind(s, memory, *places))
        alone.run_with_iobinding(bind(alone, wanted, *places))
        assert all(np.allclose(wanted[k], memory[k], 1e-5, 1e-5) for k in "kv"), "other numbers"


def main():
    register(sys.argv[1])
    failures, checks = 0, [check_caches, check_compiled, check_growing]
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(folder)
            except Exception:  # the next one may still say something
                print("FAIL", check.__name__, traceback.format_exc(limit=-3), flush=True)
                failures += 1
    print(f"{len(checks) - failures} passed, {failures} failed")
    sys.exit(bool(failures))


main()
