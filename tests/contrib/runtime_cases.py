"""Cases of one node whose expected values come from ONNX Runtime.  A case may have several sets of inputs; dimensions in which these
differ are open in the model, and have one name where they have the same sizes in each set."""
import copy
import os

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import MapProto, SequenceProto, TensorProto, helper, numpy_helper

MICROSOFT, MACHINE_LEARNING = "com.microsoft", "ai.onnx.ml"
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(7)
BF16, bfloat16 = TensorProto.BFLOAT16, ml_dtypes.bfloat16
F32, F16, S32, U8, S8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8


def floats(*dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


def ints(low, high, *dims, dtype=np.int32):
    return rng.integers(low, high, dims).astype(dtype)


def map_type(x):
    """The type of a map that is a dict."""
    (key, value), *_ = x.items()
    numbers = {str: TensorProto.STRING, int: TensorProto.INT64, float: F32, np.float64: TensorProto.DOUBLE}
    return helper.make_map_type_proto(numbers[type(key)], helper.make_tensor_type_proto(numbers[type(value)], []))


def sequence_type(x):
    """The type of a sequence of arrays that is a list."""
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(x[0].dtype), None))


def map_proto(x, name=""):
    """numpy_helper.from_dict takes no strings as keys."""
    m = MapProto(name=name, key_type=map_type(x).map_type.key_type)
    m.values.elem_type = SequenceProto.TENSOR
    for key, value in x.items():
        (m.string_keys if isinstance(key, str) else m.keys).append(key.encode() if isinstance(key, str) else key)
        kind = {float: np.float32, str: object}.get(type(value))
        m.values.tensor_values.append(numpy_helper.from_array(np.array(value, kind)))
    return m


def proto_of(x, name):
    """The message of an array, of a map that is a dict, or of a list of these."""
    if isinstance(x, list):
        s = SequenceProto(name=name, elem_type=SequenceProto.MAP if isinstance(x[0], dict) else SequenceProto.TENSOR)
        s.map_values.extend(map_proto(v) for v in x if isinstance(v, dict))
        s.tensor_values.extend(proto_of(v, "") for v in x if not isinstance(v, dict))
        return s
    return map_proto(x, name) if isinstance(x, dict) else numpy_helper.from_array(np.ascontiguousarray(x).reshape(np.shape(x)), name)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.machine_learning_opset = 3
        self.names = {}

    def run(self, op, inputs, kinds, attributes=None, domain=MICROSOFT):
        """ONNX Runtime's results of a node."""
        names = ["" if x is None else "x%d" % k for k, x in enumerate(inputs)]
        wanted = ["y%d" % k for k in range(len(kinds))]
        info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs) if n]
        out = [helper.make_tensor_value_info(n, t, None) for n, t in zip(wanted, kinds)]
        node = helper.make_node(op, names, wanted, domain=domain, **(attributes or {}))
        return self._session([node], info, out).run(None, {n: x for n, x in zip(names, inputs) if n})

    def in_f32(self, op, attributes=None):
        """A function for `expected`: ONNX Runtime's result, which is one array, of the inputs converted to f32, rounded to the type
        of the first of them.  ONNX Runtime has few operators for bf16."""
        def result(*inputs):
            wide = [x.astype(np.float32) if x is not None and x.dtype == inputs[0].dtype else x for x in inputs]
            return [self.run(op, wide, [F32], attributes)[0].astype(inputs[0].dtype)]
        return result

    def _model(self, nodes, info, out, initializers=(), opset=17):
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1),
                   helper.make_opsetid(MACHINE_LEARNING, self.machine_learning_opset)]
        model = helper.make_model(helper.make_graph(nodes, "case", info, out, initializers), opset_imports=opsets)
        model.ir_version = 10
        return model

    def _session(self, *parts):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(self._model(*parts).SerializeToString(), options, providers=["CPUExecutionProvider"])

    def _results(self, nodes, info, out, initializers, opset, feeds):
        """ONNX Runtime's results for each set of inputs.  numpy has no bf16, so such inputs and outputs are f32 in the model that
        it runs, and casts make bf16 of them."""
        before, after = [], []
        info, out, nodes = ([*map(copy.deepcopy, x)] for x in (info, out, nodes))
        for values, casts, to in ((info, before, BF16), (out, after, F32)):
            for v in values:
                if v.type.tensor_type.elem_type == BF16:
                    v.type.tensor_type.elem_type = F32
                    ends = (v.name + "_f32", v.name)
                    casts.append(helper.make_node("Cast", [ends[to == F32]], [ends[to == BF16]], to=to))
                    v.name += "_f32"
        session = self._session(before + nodes + after, info, out, initializers, opset)
        narrow = {v.name[:-4] for v in info if v.name.endswith("_f32")}
        wide = [{n + "_f32" * (n in narrow): x.astype("f") if n in narrow else x for n, x in f.items()} for f in feeds]
        return [[y.astype(bfloat16) if o.name.endswith("_f32") else y for o, y in zip(out, session.run(None, f))] for f in wide]

    def add(self, op, sets, kinds, attributes=None, *, constants=(), domain=MICROSOFT, name="", expected=None, one_program=True, opset=17):
        """Writes a case of one node.  sets: lists of inputs, None for one that is left out; kinds: the outputs' element types, None for
        one that is left out; constants: the numbers of the inputs that are initializers; expected: a function that computes a set's
        outputs in place of ONNX Runtime."""
        given = ["" if x is None else "x%d" % k for k, x in enumerate(sets[0])]
        wanted = ["" if t is None else "y%d" % k for k, t in enumerate(kinds)]
        node = helper.make_node(op, given, wanted, domain=domain, **(attributes or {}))
        named = [{n: x if isinstance(x, dict) else np.asarray(x) for n, x in zip(given, s) if n} for s in sets]
        results = expected and [expected(*s) for s in sets]
        self.add_graph("%s_%s" % (op, name) if name else op, [node], named, {n: t for n, t in zip(wanted, kinds) if n},
                       {given[k] for k in constants if k < len(given) and given[k]}, results, one_program, opset)

    def add_graph(self, name, nodes, sets, outputs, constants=(), results=None, one_program=True, opset=17):
        """Writes a case of several nodes.  sets: {input: array} for each set; outputs: {output: element type, or a TypeProto}; constants: the
        names of the inputs that are initializers; one_program: whether one program, which knows no contents of inputs, must serve
        all sets."""
        dims = {}
        info = []
        for n, x in sets[0].items():
            if isinstance(x, (dict, list)):
                info.append(helper.make_value_info(n, map_type(x) if isinstance(x, dict) else sequence_type(x)))
            elif n not in constants:
                sizes = zip(*(s[n].shape for s in sets))
                shape = [s[0] if len(set(s)) == 1 else dims.setdefault(s, "s%d" % len(dims)) for s in sizes]
                info.append(helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), shape))
        out = [helper.make_tensor_value_info(n, t, None) if isinstance(t, int) else helper.make_value_info(n, t)
               for n, t in outputs.items()]
        initializers = [numpy_helper.from_array(sets[0][n], n) for n in sets[0] if n in constants]
        feeds = [{n: x for n, x in s.items() if n not in constants} for s in sets]
        if results is None:
            results = self._results(nodes, info, out, initializers, opset, feeds)
        self._save(name, self._model(nodes, info, out, initializers, opset), feeds, results, dims if one_program else {})

    def _save(self, stem, model, feeds, results, dims):
        self.names[stem] = self.names.get(stem, 0) + 1
        path = os.path.join(self.folder, "%s_%d" % (stem, self.names[stem]))
        os.makedirs(path)
        onnx.save(model, os.path.join(path, "model.onnx"))
        if dims:  # the ranges of open dimensions, as options of onnx-xla
            with open(os.path.join(path, "dims"), "w", encoding="ascii") as f:
                f.write(" ".join("-d %s=%d..%d" % (n, min(s), max(s)) for s, n in dims.items()))
        for k, (feed, y) in enumerate(zip(feeds, results)):
            data = os.path.join(path, "test_data_set_%d" % k)
            os.makedirs(data)
            named = zip([o.name for o in model.graph.output], y)
            for kind, arrays in (("input", feed.items()), ("output", named)):
                for j, (n, x) in enumerate(arrays):
                    with open(os.path.join(data, "%s_%d.pb" % (kind, j)), "wb") as f:
                        f.write(proto_of(x, n).SerializeToString())
