"""caffe2_models.py - run by test-caffe2 in Debian 11: Caffe2's ONNXIFI operator with our library behind it.

First a model that PyTorch exports is compared with PyTorch.  Then a net of Caffe2: its transformer asks our library about each
operator, exports the net and puts it into one Onnxifi operator.  That passes the weights by descriptors, and the batch may be
smaller than the declared one."""
import io
import sys

import numpy as np
import torch
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, workspace
from caffe2.python.model_helper import ModelHelper
from caffe2.python.onnx.onnxifi import onnxifi_caffe2_net

# The results are probabilities, from float32 sums of up to 3,136 products that may be added in another order.
TOLERANCE = 1e-5
failed = False


def compare(what, got, want):
    global failed
    same = got.shape == want.shape and bool(np.abs(got - want).max() <= TOLERANCE)
    failed |= not same
    print("OK" if same else "FAILED", what, got.shape, "max difference", np.abs(got - want).max() if got.shape == want.shape else "-", flush=True)


def exported():
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                        nn.Flatten(), nn.Linear(16 * 14 * 14, 10), nn.Softmax(1)).eval()
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        want = net(x).numpy()
    model = io.BytesIO()
    torch.onnx.export(net, x, model, input_names=["x"], output_names=["y"], opset_version=9)
    op = core.CreateOperator("Onnxifi", ["given"], ["made"], onnx_model=model.getvalue(), input_names=["x"], output_names=["y"],
                             use_onnx=1, backend_id=1, max_batch_size=2)
    info = caffe2_pb2.TensorProto()
    info.name, info.data_type = "y", caffe2_pb2.TensorProto.FLOAT
    info.dims.extend(want.shape)
    shapes = op.arg.add()
    shapes.name = "output_shape_info"
    shapes.tensors.extend([info])
    workspace.FeedBlob("given", x.numpy())
    for _ in range(3):
        workspace.RunOperatorOnce(op)
        compare("a model that PyTorch exported", workspace.FetchBlob("made"), want)


def transformed():
    m = ModelHelper(name="small", arg_scope={"order": "NCHW"})
    brew.conv(m, "x", "c", 3, 8, kernel=3, pad=1)
    brew.relu(m, "c", "r")
    brew.max_pool(m, "r", "p", kernel=2, stride=2)
    brew.fc(m, "p", "f", 8 * 8 * 8, 10)
    brew.softmax(m, "f", "y")
    x = np.random.RandomState(1).randn(4, 3, 16, 16).astype(np.float32)
    workspace.RunNetOnce(m.param_init_net)
    workspace.FeedBlob("x", x)
    workspace.CreateNet(m.net)
    workspace.RunNet(m.net)
    want = workspace.FetchBlob("y")
    net = m.net.Proto()
    net.external_output.extend(["y"])
    cut = onnxifi_caffe2_net(net, {"x": [4, 3, 16, 16]}, max_batch_size=4, use_onnx=True, weight_names=[str(p) for p in m.params])
    global failed
    types = [op.type for op in cut.op]
    print("OK" if types == ["Onnxifi"] else "FAILED", "the net became", types, flush=True)
    failed |= types != ["Onnxifi"]
    cut.name = "cut"
    workspace.FeedBlob("y", np.zeros(1, np.float32))
    workspace.CreateNet(cut)
    workspace.RunNet("cut")
    compare("the transformed net", workspace.FetchBlob("y"), want)
    workspace.FeedBlob("x", x[:2])
    workspace.RunNet("cut")
    compare("two rows of four", workspace.FetchBlob("y")[:2], want[:2])


exported()
transformed()
sys.exit(failed)
