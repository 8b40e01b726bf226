"""The operators that ops.py measures: a row each, a model of one node with seeded inputs.

row(name, operator, inputs, attributes) appends one.  An input is an array, which the run is given, const(array), which the model
holds, expanded(array, dims), which an Expand of the model makes of what the run is given, or None for one that is left out.  The
attribute `then` names an operator that is applied to the result, which a compiler computes in the same loop.  Rows of one operator
that is spelled in other ways, or in other types, share the function that builds them."""
import numpy as np
import onnx
from onnx import helper

OPSET = 21
ROWS = {}


class Const:
    def __init__(self, value):
        self.value = np.asarray(value)


class Expanded:
    def __init__(self, value, dims):
        self.value, self.dims = value, np.array(dims, np.int64)


class Row:
    def __init__(self, name, op, inputs, attributes):
        self.name, self.op, self.inputs, self.attributes = name, op, inputs, attributes
        self.n_outputs, self.opset = attributes.pop("outputs", 1), attributes.pop("opset", OPSET)
        self.then = attributes.pop("then", None)

    def feeds(self):
        given = {f"x{k}": v.value if isinstance(v, Expanded) else v for k, v in enumerate(self.inputs)}
        return {name: v for name, v in given.items() if isinstance(v, np.ndarray)}

    def save(self, path):
        names = ["" if v is None else f"x{k}" for k, v in enumerate(self.inputs)]
        held = [onnx.numpy_helper.from_array(v.value, f"x{k}") for k, v in enumerate(self.inputs) if isinstance(v, Const)]
        given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                 for n, v in self.feeds().items()]
        results = [f"y{k}" for k in range(self.n_outputs)]
        nodes = []
        for k, v in enumerate(self.inputs):
            if isinstance(v, Expanded):
                held.append(onnx.numpy_helper.from_array(v.dims, f"x{k}_dims"))
                nodes.append(helper.make_node("Expand", [names[k], f"x{k}_dims"], [f"x{k}_expanded"]))
                names[k] = f"x{k}_expanded"
        node = helper.make_node(self.op, names, results, **self.attributes)
        nodes.append(node)
        if self.then:
            node.output[0] = "before"
            nodes.append(helper.make_node(self.then, ["before"], results[:1]))
        graph = helper.make_graph(nodes, "op", given, [onnx.ValueInfoProto(name=r) for r in results], held)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10), path)


def const(value):
    return Const(value)


def expanded(value, *dims):
    return Expanded(value, dims)


def row(name, op, inputs, **attributes):
    assert name not in ROWS, name
    ROWS[name] = Row(name, op, inputs, attributes)


def rng(*seed):
    return np.random.default_rng([abs(s) for s in seed])


def normal(*dims, t=np.float32):
    return rng(*dims).standard_normal(dims, np.float32).astype(t)


def positive(*dims, t=np.float32):
    return (0.1 + rng(*dims).random(dims, np.float32)).astype(t)


def ints(low, high, *dims, t=np.int64):
    return rng(low, high, *dims).integers(low, high, dims).astype(t)


def i64(*values):
    return const(np.array(values, np.int64))


F16, F64, U8, S8, S32 = np.float16, np.float64, np.uint8, np.int8, np.int32

# --- pools ---
image = normal(1, 64, 56, 56)
row("MaxPool 2x2/2", "MaxPool", [image], kernel_shape=[2, 2], strides=[2, 2])
row("MaxPool 3x3/2 112", "MaxPool", [normal(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
row("MaxPool 3x3 28", "MaxPool", [normal(1, 192, 28, 28)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
row("MaxPool 5x5 20", "MaxPool", [normal(1, 128, 20, 20)], kernel_shape=[5, 5], pads=[2, 2, 2, 2])
row("MaxPool 13x13 20", "MaxPool", [normal(1, 128, 20, 20)], kernel_shape=[13, 13], pads=[6, 6, 6, 6])
row("MaxPool 3x3/2 u8", "MaxPool", [ints(0, 255, 1, 64, 56, 56, t=U8)], kernel_shape=[3, 3], strides=[2, 2])
row("MaxPool 1d 4/4", "MaxPool", [normal(8, 64, 1000)], kernel_shape=[4], strides=[4])
row("MaxPool 3d 2x2x2", "MaxPool", [normal(1, 16, 16, 56, 56)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
row("MaxPool indices", "MaxPool", [image], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
row("AveragePool 2x2/2", "AveragePool", [image], kernel_shape=[2, 2], strides=[2, 2])
row("AveragePool 3x3", "AveragePool", [image], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
row("AveragePool 3x3 pad", "AveragePool", [image], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
row("AveragePool 7x7", "AveragePool", [normal(1, 512, 14, 14)], kernel_shape=[7, 7])
row("LpPool 3x3/2", "LpPool", [image], kernel_shape=[3, 3], strides=[2, 2])
row("GlobalAveragePool 7", "GlobalAveragePool", [normal(1, 2048, 7, 7)])
row("GlobalMaxPool 56", "GlobalMaxPool", [image])

# --- resizing ---
small = normal(1, 64, 40, 40)
for mode in ("nearest", "linear", "cubic"):
    row(f"Resize {mode} 2x", "Resize", [small, None, const(np.array([1, 1, 2, 2], np.float32))], mode=mode)
row("Resize nearest floor 2x", "Resize", [small, None, const(np.array([1, 1, 2, 2], np.float32))], mode="nearest",
    nearest_mode="floor", coordinate_transformation_mode="asymmetric")
row("Resize nearest floor 2x, Relu", "Resize", [small, None, const(np.array([1, 1, 2, 2], np.float32))], mode="nearest",
    coordinate_transformation_mode="asymmetric", nearest_mode="floor", then="Relu")
row("Resize nearest 2x of u8", "Resize", [ints(0, 255, 1, 64, 40, 40, t=U8), None, const(np.array([1, 1, 2, 2], np.float32))],
    mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
row("Resize nearest to 57", "Resize", [small, None, None, i64(1, 64, 57, 57)], mode="nearest")
row("Resize linear to 57", "Resize", [small, None, None, i64(1, 64, 57, 57)], mode="linear")
row("Resize linear half", "Resize", [image, None, const(np.array([1, 1, .5, .5], np.float32))], mode="linear")
row("Resize linear RGB 224", "Resize", [normal(1, 3, 480, 640), None, None, i64(1, 3, 224, 224)], mode="linear")
row("Resize nearest 1d 4x", "Resize", [normal(1, 64, 1000), None, const(np.array([1, 1, 4], np.float32))], mode="nearest")

# --- elementwise ---
line = normal(1 << 18)
for op in ("Relu", "Tanh", "Sigmoid", "Erf", "Exp", "Gelu", "Softplus", "Elu", "HardSwish", "LeakyRelu", "Abs", "Neg", "Floor",
           "Round", "Sin", "Cos", "Sign", "Atan", "Sinh", "HardSigmoid", "Softsign", "Selu", "Ceil", "Tan", "Celu", "Mish",
           "ThresholdedRelu", "Asinh"):
    row(op, op, [line])
for op in ("Sqrt", "Log", "Reciprocal"):
    row(op, op, [positive(1 << 18)])
row("Gelu tanh", "Gelu", [line], approximate="tanh")
for op in ("Add", "Mul", "Sub", "Div", "Max", "Min", "Greater", "Equal", "PRelu"):
    row(op, op, [line, normal(1 << 18)[::-1].copy()])
row("Pow 2", "Pow", [line, const(np.float32(2))])
row("Pow x", "Pow", [positive(1 << 18), normal(1 << 18)])
row("Mod f32", "Mod", [line, positive(1 << 18)], fmod=1)
row("Mod s64", "Mod", [ints(-9999, 9999, 1 << 16), ints(1, 99, 1 << 16)])
row("Div s32", "Div", [ints(-9999, 9999, 1 << 16, t=S32), ints(1, 99, 1 << 16, t=S32)])
row("Add row", "Add", [normal(512, 768), normal(768)])
row("Add column", "Add", [normal(512, 768), normal(512, 1)])
row("Add channel", "Add", [image, normal(64, 1, 1)])
row("Mul outer", "Mul", [normal(512, 1), normal(1, 512)])
row("Add s64", "Add", [ints(0, 99, 1 << 16), ints(0, 99, 1 << 16)])
row("Add f64", "Add", [normal(1 << 16, t=F64), normal(1 << 16, t=F64)])
row("Exp f64", "Exp", [normal(1 << 16, t=F64)])
row("Tanh f64", "Tanh", [normal(1 << 16, t=F64)])
row("Add f16", "Add", [normal(1 << 18, t=F16), normal(1 << 18, t=F16)])
row("Where", "Where", [line > 0, line, normal(1 << 18)[::-1].copy()])
row("Where scalar", "Where", [line > 0, line, const(np.float32(-1e9))])
row("Clip", "Clip", [line, const(np.float32(-1)), const(np.float32(1))])
row("Not", "Not", [line > 0])
row("And", "And", [line > 0, line < 1])
row("IsNaN", "IsNaN", [line])
row("BitShift u32", "BitShift", [ints(0, 99, 1 << 16, t=np.uint32), ints(0, 9, 1 << 16, t=np.uint32)], direction="LEFT")
for name, a, b in (("f32 f16", np.float32, F16), ("f16 f32", F16, np.float32), ("f32 s64", np.float32, np.int64),
                   ("s64 f32", np.int64, np.float32), ("u8 f32", U8, np.float32), ("f32 u8", np.float32, U8),
                   ("s64 s32", np.int64, S32), ("f32 bool", np.float32, np.bool_), ("f32 f64", np.float32, F64)):
    row("Cast " + name, "Cast", [(np.abs(line) * 20).astype(a)], to=helper.np_dtype_to_tensor_dtype(np.dtype(b)))

# --- rows ---
for n in (16, 49, 128, 197, 1000):
    row(f"Softmax {n}", "Softmax", [normal(768, n)])
row("Softmax axis 1", "Softmax", [normal(4, 64, 56, 56)], axis=1)
row("LogSoftmax 1000", "LogSoftmax", [normal(64, 1000)])
row("Hardmax 1000", "Hardmax", [normal(64, 1000)])
for n in (768, 96, 770, 49):
    row(f"LayerNorm {n}", "LayerNormalization", [normal(256, n), const(positive(n)), const(normal(n))])
row("GroupNorm", "GroupNormalization", [image, const(positive(64)), const(normal(64))], num_groups=8)
row("InstanceNorm", "InstanceNormalization", [image, const(positive(64)), const(normal(64))])
row("BatchNorm", "BatchNormalization", [image, const(positive(64)), const(normal(64)), const(normal(64)), const(positive(64))])
row("LpNormalization", "LpNormalization", [normal(256, 768)])
row("LRN", "LRN", [image], size=5)
row("MeanVarianceNorm", "MeanVarianceNormalization", [normal(4, 16, 56, 56)])

# --- reductions ---
for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"):
    cube = normal(64, 128, 96)
    row(f"{op} last", op, [cube, i64(2)])
    row(f"{op} middle", op, [cube, i64(1)])
    row(f"{op} first", op, [cube, i64(0)])
row("ReduceSum all", "ReduceSum", [normal(64, 128, 96)])
row("ReduceMean 0,2", "ReduceMean", [normal(64, 128, 96), i64(0, 2)])
row("ReduceMax s8", "ReduceMax", [ints(-99, 99, 256, 1024, t=S8), i64(1)])
row("ReduceSum s64", "ReduceSum", [ints(-99, 99, 256, 1024), i64(1)])
row("ReduceProd", "ReduceProd", [positive(256, 97), i64(1)])
row("ReduceSum f64", "ReduceSum", [normal(256, 1024, t=F64), i64(1)])
row("ArgMax last", "ArgMax", [normal(256, 1000)], axis=1)
row("ArgMax middle", "ArgMax", [normal(16, 21, 64, 64)], axis=1)
row("ArgMax u8", "ArgMax", [ints(0, 255, 256, 1000, t=U8)], axis=1)
row("CumSum last", "CumSum", [normal(256, 512), const(np.int64(1))])
row("CumSum first", "CumSum", [normal(256, 512), const(np.int64(0))])
row("TopK 5 of 1000", "TopK", [normal(128, 1000), i64(5)], outputs=2)
row("TopK 1 of 1000", "TopK", [normal(128, 1000), i64(1)], outputs=2)
row("TopK 300 of 8400", "TopK", [normal(1, 8400), i64(300)], outputs=2)
row("TopK 100 of 50257", "TopK", [normal(1, 50257), i64(100)], outputs=2)
row("TopK all of 1000", "TopK", [normal(16, 1000), i64(1000)], outputs=2)
row("TopK 8 of 64 axis 1", "TopK", [normal(16, 64, 49), i64(8)], outputs=2, axis=1)
row("TopK 5 s64", "TopK", [ints(-9999, 9999, 128, 1000), i64(5)], outputs=2)

# --- movement ---
row("Transpose 768x768", "Transpose", [normal(768, 768)], perm=[1, 0])
row("Transpose heads", "Transpose", [normal(1, 128, 12, 64)], perm=[0, 2, 1, 3])
row("Transpose 0231", "Transpose", [image], perm=[0, 2, 3, 1])
row("Transpose 0312", "Transpose", [normal(1, 56, 56, 64)], perm=[0, 3, 1, 2])
row("Transpose 3 channels", "Transpose", [normal(1, 224, 224, 3)], perm=[0, 3, 1, 2])
row("Transpose to 3", "Transpose", [normal(1, 3, 224, 224)], perm=[0, 2, 3, 1])
row("Transpose 210", "Transpose", [normal(33, 65, 97)], perm=[2, 1, 0])
row("Transpose 2031", "Transpose", [normal(17, 19, 23, 29)], perm=[2, 0, 3, 1])
row("Transpose u8", "Transpose", [ints(0, 255, 1, 224, 224, 3, t=U8)], perm=[0, 3, 1, 2])
row("Transpose s64", "Transpose", [ints(0, 255, 256, 256)], perm=[1, 0])
row("Transpose f16", "Transpose", [normal(768, 768, t=F16)], perm=[1, 0])
row("Concat channels", "Concat", [image, normal(1, 32, 56, 56)], axis=1)
row("Concat last", "Concat", [normal(512, 64), normal(512, 33)], axis=1)
row("Concat 8", "Concat", [normal(64, 100) for _ in range(8)], axis=1)
row("Concat pairs", "Concat", [normal(4096, 2, 1), normal(4096, 2, 1)], axis=2)
row("Split 3", "Split", [normal(128, 2304)], outputs=3, axis=1, num_outputs=3)
row("Split channels", "Split", [image], outputs=2, axis=1, num_outputs=2)
row("Slice inner", "Slice", [image, i64(3, 3), i64(50, 50), i64(2, 3)])
row("Slice step 2", "Slice", [image, i64(0), i64(56), i64(3), i64(2)])
row("Slice reverse", "Slice", [image, i64(-1), i64(-99), i64(3), i64(-1)])
row("Pad 1", "Pad", [image, i64(0, 0, 1, 1, 0, 0, 1, 1)])
row("Pad 3 reflect", "Pad", [image, i64(0, 0, 3, 3, 0, 0, 3, 3)], mode="reflect")
row("Pad edge", "Pad", [image, i64(0, 0, 1, 1, 0, 0, 1, 1)], mode="edge")
row("Gather rows", "Gather", [normal(30000, 256), ints(0, 30000, 128)])
row("Gather columns", "Gather", [normal(512, 768), ints(0, 768, 300)], axis=1)
row("Gather middle", "Gather", [normal(8, 300, 96), ints(0, 300, 200)], axis=1)
row("Gather scalar", "Gather", [normal(128, 768), const(np.int64(0))], axis=0)
row("GatherElements", "GatherElements", [normal(512, 768), ints(0, 768, 512, 100)], axis=1)
row("GatherElements 0", "GatherElements", [normal(512, 768), ints(0, 512, 100, 768)], axis=0)
row("GatherElements rows", "GatherElements", [normal(5000, 64), expanded(ints(0, 5000, 20000, 1), 20000, 64)], axis=0)
row("GatherND", "GatherND", [normal(64, 64, 128), ints(0, 64, 500, 2)])
row("ScatterElements", "ScatterElements", [normal(512, 768), ints(0, 768, 512, 1), normal(512, 1)], axis=1)
row("ScatterElements add", "ScatterElements", [normal(512, 768), ints(0, 512, 100, 768), normal(100, 768)], axis=0,
    reduction="add")
row("ScatterElements rows add", "ScatterElements",
    [normal(5000, 64), expanded(ints(0, 5000, 20000, 1), 20000, 64), normal(20000, 64)], axis=0, reduction="add")
row("ScatterND", "ScatterND", [normal(512, 768), np.arange(100, dtype=np.int64)[:, None] * 3, normal(100, 768)])
row("Expand", "Expand", [normal(64, 1, 1), i64(64, 56, 56)])
row("Expand last", "Expand", [normal(512, 1), i64(512, 768)])
row("Tile", "Tile", [normal(64, 96), i64(8, 8)])
row("DepthToSpace", "DepthToSpace", [image], blocksize=2)
row("DepthToSpace, Relu", "DepthToSpace", [image], blocksize=2, then="Relu")
row("SpaceToDepth", "SpaceToDepth", [image], blocksize=2)
row("Reshape", "Reshape", [image, i64(64, -1)])
row("Identity", "Identity", [image])
row("OneHot", "OneHot", [ints(0, 1000, 128), const(np.int64(1000)), const(np.array([0, 1], np.float32))])
row("Trilu", "Trilu", [normal(512, 512)])
row("EyeLike", "EyeLike", [normal(512, 512)])
row("Range", "Range", [np.array(k, np.float32) for k in (0, 4096, 1)])
row("ReverseSequence", "ReverseSequence", [normal(64, 16, 96), ints(1, 64, 16)])
row("Compress", "Compress", [normal(1000, 64), ints(0, 2, 1000, t=np.bool_)], axis=0)
row("NonZero", "NonZero", [ints(0, 2, 256, 256, t=np.float32)])
row("Unique", "Unique", [ints(0, 500, 4096)])
row("GridSample", "GridSample", [normal(1, 32, 56, 56), np.clip(normal(1, 56, 56, 2) / 2, -1, 1)])
row("RoiAlign", "RoiAlign", [normal(1, 64, 50, 50), np.abs(normal(50, 4)) * 5 + np.array([0, 0, 20, 20], np.float32),
                             np.zeros(50, np.int64)], output_height=7, output_width=7, sampling_ratio=2)

# --- integers ---
scale, zero = const(np.float32(0.03)), const(np.uint8(120))
row("QuantizeLinear", "QuantizeLinear", [line, scale, zero])
row("QuantizeLinear s8", "QuantizeLinear", [line, scale, const(np.int8(0))])
row("QuantizeLinear axis", "QuantizeLinear", [image, const(positive(64) / 20), const(np.zeros(64, U8))], axis=1)
row("DequantizeLinear", "DequantizeLinear", [ints(0, 255, 1 << 18, t=U8), scale, zero])
row("DequantizeLinear axis", "DequantizeLinear", [ints(0, 255, 512, 768, t=U8), const(positive(768)), const(np.zeros(768, U8))],
    axis=1)
row("DynamicQuantizeLinear", "DynamicQuantizeLinear", [normal(128, 768)], outputs=3)
row("MatMulInteger", "MatMulInteger", [ints(0, 255, 128, 768, t=U8), const(ints(-127, 127, 768, 768, t=S8)), const(U8(128))])
row("QLinearMatMul", "QLinearMatMul", [ints(0, 255, 128, 768, t=U8), scale, zero, const(ints(-127, 127, 768, 768, t=S8)), scale,
                                       const(np.int8(0)), const(np.float32(2)), zero])

# --- products, recurrence ---
row("MatMul 128x768x768", "MatMul", [normal(128, 768), const(normal(768, 768))])
row("MatMul no constant", "MatMul", [normal(128, 768), normal(768, 768)])
row("MatMul batch", "MatMul", [normal(12, 128, 64), normal(12, 64, 128)])
row("MatMul vector", "MatMul", [normal(1, 768), const(normal(768, 3072))])
row("MatMul vector, none const", "MatMul", [normal(1, 768), normal(768, 3072)])
row("MatMul long rows", "MatMul", [normal(1, 4096), normal(4096, 4096)])
row("MatMul f64", "MatMul", [normal(128, 256, t=F64), normal(256, 256, t=F64)])
row("Gemm transB", "Gemm", [normal(128, 768), const(normal(768, 768)), const(normal(768))], transB=1)
row("Einsum bhid,bhjd", "Einsum", [normal(2, 8, 64, 32), normal(2, 8, 64, 32)], equation="bhid,bhjd->bhij")
row("Einsum ij,jk", "Einsum", [normal(128, 256), normal(256, 128)], equation="ij,jk->ik")
row("Einsum outer sum", "Einsum", [normal(64, 128), normal(64, 96)], equation="bi,bj->ij")
for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    row(f"{op} 50x128", op, [normal(50, 1, 128), const(normal(1, gates * 128, 128) / 12), const(normal(1, gates * 128, 128) / 12),
                             const(normal(1, gates * 256) / 12)], outputs=2, hidden_size=128)
row("LSTM 20x256 batch 8", "LSTM", [normal(20, 8, 256), const(normal(1, 1024, 256) / 16), const(normal(1, 1024, 256) / 16)],
    outputs=2, hidden_size=256)
row("LSTM both ways", "LSTM", [normal(50, 1, 64), const(normal(2, 256, 64) / 8), const(normal(2, 256, 64) / 8)], outputs=2,
    hidden_size=64, direction="bidirectional")
row("Conv 3x3 64", "Conv", [image, const(normal(64, 64, 3, 3) / 24)], pads=[1, 1, 1, 1])
row("ConvTranspose 2x2/2", "ConvTranspose", [small, const(normal(64, 32, 2, 2) / 8)], strides=[2, 2])
row("RotaryEmbedding", "RotaryEmbedding", [normal(1, 32, 128, 64), normal(1, 128, 32), normal(1, 128, 32)], opset=23)
row("RotaryEmbedding by pairs", "RotaryEmbedding", [normal(1, 32, 128, 64), normal(1, 128, 32), normal(1, 128, 32)], opset=23,
    interleaved=1)
row("Col2Im 3x3", "Col2Im", [normal(1, 576, 3136), i64(56, 56), i64(3, 3)], pads=[1, 1, 1, 1])
row("Col2Im 4x4/4", "Col2Im", [normal(1, 1024, 196), i64(56, 56), i64(4, 4)], strides=[4, 4])
row("DFT 512", "DFT", [normal(16, 512, 1), None, const(np.int64(1))])
row("Det", "Det", [normal(64, 16, 16)])


def convolution(name, inputs, outputs, *kernel, groups=1, image=(56, 56), op="Conv", **attributes):
    """Adds a row with the padding that keeps the size, unless the attributes say otherwise."""
    taps = (outputs, inputs // groups) if op == "Conv" else (inputs, outputs // groups)
    w = normal(*taps, *kernel) / np.sqrt(inputs // groups * np.prod(kernel)).astype(np.float32)
    attributes = {"pads": [k // 2 for k in kernel] * 2, "group": groups, **attributes}
    row(name, op, [normal(1, inputs, *image), const(w), const(normal(outputs))], kernel_shape=list(kernel), **attributes)


convolution("Conv 3x3/2", 64, 128, 3, 3, strides=[2, 2])
convolution("Conv 3x3 one output", 64, 1, 3, 3)
convolution("Conv 3x3 32 groups", 128, 128, 3, 3, groups=32)
convolution("Conv 3x3 dilated", 64, 64, 3, 3, dilations=[2, 2], pads=[2] * 4)
convolution("Conv 7x7/2 image", 3, 64, 7, 7, image=(224, 224), strides=[2, 2])
for size in (3, 7, 31, 51):
    convolution(f"Conv depthwise {size}x{size}", 64, 64, size, size, groups=64)
convolution("Conv depthwise 31", 256, 256, 31, groups=256, image=(500,))
convolution("Conv audio 10/5", 1, 512, 10, image=(16000,), strides=[5], pads=[0, 0])
convolution("Conv audio 3 dilated", 64, 64, 3, image=(4000,), dilations=[4], pads=[4, 4])
convolution("ConvTranspose 3x3/2", 128, 64, 3, 3, op="ConvTranspose", image=(28, 28), strides=[2, 2], output_padding=[1, 1])
convolution("ConvTranspose depthwise", 64, 64, 4, 4, op="ConvTranspose", groups=64, image=(28, 28), strides=[2, 2], pads=[1] * 4)

# --- n-grams: words and pairs of words of a vocabulary in texts of 30 words ---
words, pairs = np.arange(20000), np.unique(np.random.default_rng(7).integers(0, 20000, (20000, 2)), axis=0)
row("TfIdfVectorizer, 40,000 n-grams", "TfIdfVectorizer", [ints(0, 24000, 200, 30)], opset=9, mode="TFIDF", min_gram_length=1,
    max_gram_length=2, max_skip_count=0, ngram_counts=[0, len(words)], pool_int64s=np.concatenate([words, pairs.ravel()]),
    ngram_indexes=np.arange(len(words) + len(pairs)))
