"""cases_experimental.py: operators that ONNX removed.  The onnx package no longer knows them; ONNX Runtime knows most."""
import numpy as np

from case import case, f32, i64

IMAGE = f32(2, 3, 6, 7)

case("Affine", IMAGE, alpha=0.5, beta=-1.5)
case("Crop", IMAGE, name="border", border=[1, 2, 3, 1])
case("Crop", IMAGE, name="size", border=[1, 2, 0, 0], scale=[3, 4])
case("DynamicSlice", IMAGE, i64(1, -4), i64(3, 1000), i64(1, 3))
case("DynamicSlice", IMAGE, i64(0, 1), i64(-1, 2), name="first")
case("ImageScaler", IMAGE, scale=0.5, bias=[1.0, -2.0, 3.0])
case("ParametricSoftplus", IMAGE, alpha=0.5, beta=2.0)
case("Scale", IMAGE, scale=0.75)
case("Scale", IMAGE, expect=lambda x: x, name="default")
case("ScaledTanh", IMAGE, alpha=0.5, beta=2.0)
for across in (0, 1):
    for divide in (0, 1):
        case("MeanVarianceNormalization", IMAGE, until=1, name=f"across{across}-divide{divide}", across_channels=across,
             normalize_variance=divide)
case("ConstantFill", expect=lambda: np.full((2, 3), 1.5, np.float32), shape=[2, 3], value=1.5)
case("ConstantFill", IMAGE, expect=lambda x: np.full((*x.shape, 4), 7), name="like", value=7.0, dtype=7, extra_shape=[4])
case("ConstantFill", i64(3, 2), expect=lambda s: np.zeros((3, 2, 1), np.float32), name="contents", input_as_shape=1,
     extra_shape=[1])
case("GivenTensorFill", expect=lambda: np.float32([[1, 2], [3, 4.5]]), shape=[2, 2], values=[1.0, 2.0, 3.0, 4.5])
