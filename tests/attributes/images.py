"""Resize with filters of all widths and in all types.  Expected values come from ONNX's reference."""
import numpy as np
from onnx import TensorProto, helper

import oracles

rng = np.random.default_rng(7)


def write_resize(w):
    for mode in ("linear", "cubic"):
        for dims, sizes in (((1, 1, 9, 100), (1, 1, 4, 5)), ((2, 200, 3), (2, 3, 3)), ((700,), (1,)), ((40, 2), (1, 5))):
            for exclude in (0, 1):
                x = rng.standard_normal(dims)
                attributes = {"mode": mode, "antialias": 1, "exclude_outside": exclude}
                given = [x, None, None, np.array(sizes)]
                y = oracles.run("reference", "Resize", given, [TensorProto.DOUBLE], attributes, 19)
                w.add("Resize", given, y, attributes, opset=19, name="antialias")
    # sums in the middle between two integers
    for dtype in (np.uint8, np.int8, np.int16, np.int32):
        x = rng.integers(0 if dtype == np.uint8 else -90, 90, (1, 2, 3, 5)).astype(dtype)
        for attributes, sizes in (({}, (1, 2, 6, 10)), ({"coordinate_transformation_mode": "align_corners"}, (1, 2, 5, 9))):
            given = [x, None, None, np.array(sizes)]
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            y = oracles.run("reference", "Resize", given, [kind], attributes | {"mode": "linear"}, 19)
            w.add("Resize", given, y, attributes | {"mode": "linear"}, opset=19, name="integers")
