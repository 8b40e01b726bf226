"""peers.py: other implementations: ONNX Runtime, and ONNX's own evaluator for a second opinion."""

import numpy as np
import onnx
from onnx import TensorProto, helper

import rows
from rows import CODE_OF_NP, NP

# Arrays of types that ONNX Runtime's Python interface does not take are passed in another type that can represent all
# their numbers.
PLAIN = {
    "bfloat16": "float",
    "int4": "int8",
    "uint4": "uint8",
    "int2": "int8",
    "uint2": "uint8",
    **{t: "float" for t in rows.TINY_FLOATS},
}
PLAIN = {t: u for t, u in PLAIN.items() if t in NP}  # an older onnx lacks some
CODE_OF_NAME = {name: CODE_OF_NP[dtype] for name, dtype in NP.items()}
PLAIN_CODE = {CODE_OF_NAME[t]: CODE_OF_NAME[u] for t, u in PLAIN.items()}


def plain_borders(model):
    m = onnx.ModelProto()
    m.CopyFrom(model)
    first, last = [], []
    for v in m.graph.input:
        t = v.type.tensor_type
        if t.elem_type in PLAIN_CODE:
            exactly = (
                {"saturate": 0}
                if rows.NAME_OF_CODE[t.elem_type].startswith("float8e")
                and rows.NAME_OF_CODE[t.elem_type] != "float8e8m0"
                else {}
            )  # infinities must not be saturated
            first.append(helper.make_node("Cast", [v.name + "_plain"], [v.name], to=t.elem_type, **exactly))
            v.name, t.elem_type = v.name + "_plain", PLAIN_CODE[t.elem_type]
    for v in m.graph.output:
        t = v.type.tensor_type
        if t.elem_type in PLAIN_CODE:
            last.append(helper.make_node("Cast", [v.name], [v.name + "_plain"], to=PLAIN_CODE[t.elem_type]))
            v.name, t.elem_type = v.name + "_plain", PLAIN_CODE[t.elem_type]
    nodes = first + list(m.graph.node) + last
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    return m


def _has_vnni():
    with open("/proc/cpuinfo") as f:
        text = f.read()
    return "avx512_vnni" in text or "avx_vnni" in text


HAS_VNNI = _has_vnni()


# Where ONNX Runtime differs from the standard: (operators, a function that tells from a node and the element types of its first input
# and output whether it does, the reason).
def _narrow(node, before, after):
    return before and rows.is_float(before) and after in ("int4", "uint4", "int2", "uint2")


def _wide(node, before, after):
    return before in ("double", "int32", "int64", "uint32", "uint64")


def _wide_fmod(node, before, after):
    return before in ("int64", "uint64") and any(a.name == "fmod" and a.i for a in node.attribute)


def _only_max(node, before, after):
    return before == "int64" and len(node.input) > 2 and node.input[1] == ""


def _causal_past(node, before, after):
    causal = any(a.name == "is_causal" and a.i for a in node.attribute)
    return causal and len(node.input) > 4 and node.input[4] != ""


def _whole(node, before, after):
    return before in rows.INTS


def _old_mask(node, before, after):
    return len(node.input) == 1 and len(node.output) > 1 and node.output[1] != ""


def _without_vnni(node, before, after):
    """Only VNNI adds four products of bytes without an intermediate sum of 16 bits."""
    return not HAS_VNNI


def _precision(node, before, after):
    return any(a.name == "precision" and a.i for a in node.attribute)


def _all(node, before, after):
    return True


DISAGREES = [
    (
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
        _all,
        "draws numbers of its own",
    ),
    ("Shrink DFT STFT", _wide, "computes in float"),
    ("Einsum", _wide, "sums in float"),
    ("Mod", _wide_fmod, "divides doubles"),
    ("ReduceProd", _wide, "multiplies doubles"),
    ("Clip", _only_max, "leaves numbers of more than 32 bits as they are"),
    ("ReduceLogSumExp", _whole, "cuts each exponential to an integer"),
    ("Dropout", _old_mask, "gives a mask of zeros before version 12, of which the standard says nothing"),
    ("Cast CastLike", _narrow, "rounds where the standard cuts"),
    (
        "MatMulInteger ConvInteger QLinearMatMul QLinearConv",
        _without_vnni,
        "saturates sums of two products of unsigned and signed bytes at 16 bits, as its documentation says",
    ),
    ("QuantizeLinear", _precision, "divides in the scale's type whatever `precision` says"),
    ("QLinearAdd QLinearMul", _all, "rounds some halves to the odd neighbour"),
    ("Attention", _causal_past, "counts queries from the past's beginning, where they come after it"),
]


def disagrees(node, before, after):
    return any(node.op_type in names.split() and test(node, before, after) for names, test, _ in DISAGREES)


def may_disagree(node):
    """Returns whether ONNX Runtime differs for this operator with any types: for nodes in functions, whose types are not known."""
    return any(node.op_type in names.split() for names, _, _ in DISAGREES)


def has_ort():
    try:
        import onnxruntime  # noqa: F401

        return True
    except ImportError:
        return False


def ort_session(model, optimise=True):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        plain_borders(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run_ort(model, inputs, optimise=True):
    """Returns the outputs by name.  Raises what ONNX Runtime raises."""
    return run_session(ort_session(model, optimise), model, inputs)


def run_session(session, model, inputs):
    feeds = {}
    for name, a in inputs.items():
        a = np.asarray(a)  # numpy's arithmetic turns arrays without dimensions into numbers, which ONNX Runtime does not take
        t = rows.NAME_OF_NP[a.dtype]
        feeds[name + "_plain" if t in PLAIN else name] = a.astype(NP[PLAIN[t]]) if t in PLAIN else a
    wanted = {i.name for i in session.get_inputs()}
    out = session.run(None, {k: v for k, v in feeds.items() if k in wanted})
    types = [o.type.tensor_type.elem_type for o in model.graph.output]
    return {o.name: np.asarray(a).astype(rows.NP_OF_CODE[t]) for o, a, t in zip(model.graph.output, out, types)}


def run_reference(model, inputs):
    """Returns the outputs that ONNX's evaluator in Python computes."""
    from onnx.reference import ReferenceEvaluator

    out = ReferenceEvaluator(model).run(None, inputs)
    types = [o.type.tensor_type.elem_type for o in model.graph.output]
    return {o.name: np.asarray(a).astype(rows.NP_OF_CODE[t]) for o, a, t in zip(model.graph.output, out, types)}


class OrtSupport:
    """Tells whether ONNX Runtime runs a node.  It is asked about each node, since of two nodes with the same operator and types it may
    refuse one for an attribute, a rank or a size, and since a graph must not depend on nodes of earlier graphs."""

    def __init__(self):
        self.newest_opset = 0
        self.say = lambda stage: None  # is called with "peer" before ONNX Runtime is asked, since it may crash, and with "done" afterwards

    def newest(self, highest):
        """Returns the newest operator set that ONNX Runtime reads."""
        node = helper.make_node("Relu", ["x"], ["y"])
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy"]
        for opset in range(highest, 0, -1):
            model = helper.make_model(
                helper.make_graph([node], "g", infos[:1], infos[1:]),
                opset_imports=[helper.make_opsetid("", opset)],
                ir_version=10,
            )
            try:
                ort_session(model)
                return opset
            except Exception:
                continue
        return 0

    def __call__(self, model, inputs):
        return self.runs(model, [inputs]) is not None

    def runs(self, model, several):
        """Returns the outputs for each of several sets of inputs, run in one session; None if ONNX Runtime refuses one of them."""
        self.say("peer")
        try:
            session = ort_session(model, optimise=False)
            return [run_session(session, model, inputs) for inputs in several]
        except Exception:
            return None
        finally:
            self.say("done")
