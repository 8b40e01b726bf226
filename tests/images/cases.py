"""cases.py FOLDER: makes a test case of each pixel format from the files of pictures.py: a model that decodes, with a data set for each
file.  Another model decodes and goes on with the pixels."""
import glob
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
FILES = sorted(glob.glob(os.path.join(folder, "*.img")))


def grey(rgb):
    """Pillow's convert("L")."""
    r, g, b = np.moveaxis(rgb.astype(np.uint32), -1, 0)
    return ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16).astype(np.uint8)[..., None]


def write(name, nodes, kind, expected):
    case = os.path.join(folder, name)
    info = [helper.make_tensor_value_info("x", TensorProto.UINT8, ["bytes"])]
    out = [helper.make_tensor_value_info("y", kind, None)]
    os.makedirs(case)
    model = helper.make_model(helper.make_graph(nodes, name, info, out), opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    onnx.save(model, os.path.join(case, "model.onnx"))
    for k, path in enumerate(FILES):
        data = os.path.join(case, "test_data_set_%d" % k)
        os.makedirs(data)
        arrays = np.fromfile(path, np.uint8), expected(np.load(path[:-4] + ".npy"))
        for end, n, x in zip(("input_0", "output_0"), "xy", arrays):
            with open(os.path.join(data, end + ".pb"), "wb") as f:
                f.write(numpy_helper.from_array(np.ascontiguousarray(x), n).SerializeToString())


def decoder(out, **attributes):
    return helper.make_node("ImageDecoder", ["x"], [out], **attributes)


write("rgb", [decoder("y")], TensorProto.UINT8, lambda p: p)
write("bgr", [decoder("y", pixel_format="BGR")], TensorProto.UINT8, lambda p: p[..., ::-1])
write("grey", [decoder("y", pixel_format="Grayscale")], TensorProto.UINT8, grey)
after = [decoder("p"), helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT), helper.make_node("Transpose", ["f"], ["y"], perm=[2, 0, 1])]
write("planes", after, TensorProto.FLOAT, lambda p: p.astype(np.float32).transpose(2, 0, 1))
