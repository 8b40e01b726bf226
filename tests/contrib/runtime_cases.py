"""Cases of one node whose expected values come from ONNX Runtime.  A case may have several sets of inputs; dimensions in which these
differ are open in the model, and have one name where they have the same sizes in each set."""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
onnxruntime.set_default_logger_severity(4)
rng = np.random.default_rng(7)
F32, F16, S32, U8, S8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8


def floats(*dims, dtype=np.float32):
    return rng.standard_normal(dims).astype(dtype)


def ints(low, high, *dims, dtype=np.int32):
    return rng.integers(low, high, dims).astype(dtype)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.names = {}

    def add(self, op, sets, kinds, attributes=None, *, constants=(), domain=MICROSOFT, name="", opset=17, expected=None):
        """sets: lists of inputs, None for one that is left out; kinds: the outputs' element types, None for one that is left out;
        constants: the numbers of the inputs that are initializers; expected: a function of a set in place of ONNX Runtime."""
        first = sets[0]
        given = ["" if x is None else "x%d" % k for k, x in enumerate(first)]
        wanted = ["" if t is None else "y%d" % k for k, t in enumerate(kinds)]
        dims = {}
        info, initializers = [], []
        for k, x in enumerate(first):
            if k in constants:
                initializers.append(numpy_helper.from_array(np.asarray(x), given[k]))
            elif x is not None:
                sizes = list(zip(*(np.shape(s[k]) for s in sets)))
                shape = [s[0] if len(set(s)) == 1 else dims.setdefault(s, "s%d" % len(dims)) for s in sizes]
                info.append(helper.make_tensor_value_info(given[k], helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), shape))
        out = [helper.make_tensor_value_info(n, t, None) for n, t in zip(wanted, kinds) if n]
        node = helper.make_node(op, given, wanted, domain=domain, **(attributes or {}))
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(helper.make_graph([node], "case", info, out, initializers), opset_imports=opsets)
        model.ir_version = 10
        session = None if expected else onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = [{n: np.asarray(s[k]) for k, n in enumerate(given) if n and k not in constants} for s in sets]
        results = [expected(*s) if expected else session.run(None, f) for s, f in zip(sets, feeds)]
        self._save("%s_%s" % (op, name) if name else op, model, feeds, results)

    def _save(self, stem, model, feeds, results):
        self.names[stem] = self.names.get(stem, 0) + 1
        path = os.path.join(self.folder, "%s_%d" % (stem, self.names[stem]))
        os.makedirs(path)
        onnx.save(model, os.path.join(path, "model.onnx"))
        for k, (feed, y) in enumerate(zip(feeds, results)):
            data = os.path.join(path, "test_data_set_%d" % k)
            os.makedirs(data)
            named = zip([o.name for o in model.graph.output], y)
            for kind, arrays in (("input", feed.items()), ("output", named)):
                for j, (n, x) in enumerate(arrays):
                    with open(os.path.join(data, "%s_%d.pb" % (kind, j)), "wb") as f:
                        f.write(numpy_helper.from_array(np.ascontiguousarray(x).reshape(np.shape(x)), n).SerializeToString())
