"""Every element type: casts, quantisation and movement, by numpy and ml_dtypes."""
import ml_dtypes
import numpy as np
from onnx import TensorProto, defs, helper

rng = np.random.default_rng(6)
F8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
FLOATS = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
NARROW_INTEGERS = ("INT2", "UINT2", "INT4", "UINT4")
INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64") + NARROW_INTEGERS
CASTS = FLOATS + F8 + ("FLOAT8E8M0", "FLOAT4E2M1") + INTEGERS + ("BOOL",)
VALUES = np.array([0, -0.0, 0.25, 0.5, 1, 1.5, 2.5, 3, 3.5, 5, 6.25, 7.5, -0.5, -1, -1.75, -2, -2.5, -7, -8, 15, 100, 127,
                   -128, 200, 240, 255, 256, 300, 447, 448, 465, -464.5, 480, 32767, 57344, 61000, -61441, 65504, 1e5,
                   2.0 ** -9, 2.0 ** -10, 2.0 ** -11, 3e-8, 1e-40, 3e38, 1e300, np.inf, -np.inf, np.nan])


def kind(name):
    return getattr(TensorProto, name)


def dtype_of(name):
    return helper.tensor_dtype_to_np_dtype(kind(name))


def is_integer(name):
    return name in INTEGERS


def limits(name):
    info = ml_dtypes.iinfo(dtype_of(name)) if is_integer(name) else ml_dtypes.finfo(dtype_of(name))
    return float(info.min), float(info.max)


def inputs_of(name):
    """Returns those of VALUES whose cast to the type is defined, in that type."""
    if name == "BOOL":
        return np.array([True, False])
    if is_integer(name):
        low, high = limits(name)
        whole = [v for v in VALUES if np.isfinite(v) and v == int(v) and low <= v <= high and abs(v) < 2 ** 53]
        info = ml_dtypes.iinfo(dtype_of(name))
        return np.array([int(v) for v in whole] + [info.min, info.max], np.uint64 if name == "UINT64" else np.int64).astype(dtype_of(name))
    with np.errstate(all="ignore"):
        values = np.abs(VALUES) if name == "FLOAT8E8M0" else VALUES
        if name in ("FLOAT4E2M1",):
            values = values[np.isfinite(values)].clip(-6, 6)
        return np.unique(values.astype(dtype_of(name)).view("u%d" % dtype_of(name).itemsize)).view(dtype_of(name))


def to_e8m0(x, saturate, mode):
    """Converts x, f64 and not negative, to float8_e8m0, whose bits are the exponent of a power of two."""
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(x)  # fraction in [0.5, 1)
    up = {"up": fraction > 0.5, "down": fraction < 0, "nearest": fraction >= 0.75}[mode]
    field = exponent - 1 + up + 127
    field = np.where(x == 0, -1000, np.where(np.isinf(x), 1000, field))
    if mode == "up":  # the next power of two that exists
        field = np.where(x > 0, np.maximum(field, 0), field)
    low, high = (0, 254) if saturate else (255, 255)
    field = np.where(field < 0, low, np.where(field > 254, high, field))
    return np.where(np.isnan(x), 255, field).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def cast(x, to, saturate=True, mode="up"):
    """Casts x as the specification's tables say."""
    target = dtype_of(to)
    with np.errstate(all="ignore"):
        if to == "BOOL":
            return x.astype(np.float64) != 0
        if is_integer(to):
            return x.astype(np.int64 if x.dtype.kind != "u" else np.uint64).astype(target)
        wide = x.astype(np.float64)
        if to == "FLOAT8E8M0":
            return to_e8m0(wide, saturate, mode)
        low, high = limits(to) if to not in FLOATS else (-np.inf, np.inf)
        if to == "FLOAT4E2M1" or (to in F8 and saturate):
            # numbers that would be rounded beyond the largest value are clamped as well
            return np.where(np.isnan(wide), wide, wide.clip(low, high)).astype(target)
        return narrowed(wide, target)


def narrowed(x, target):
    """Converts f64 to a type that is smaller than f32 with one rounding: by way of f32, whose last bit is set if bits are lost."""
    near = x.astype(np.float32)
    if target.itemsize >= 4:
        return x.astype(target)
    bits = near.view(np.int32)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(x), bits - 1, bits)
    inexact = np.isfinite(x) & (near.astype(np.float64) != x)
    return np.where(inexact, toward_zero | 1, bits).astype(np.int32).view(np.float32).astype(target)


def castable(x, source, to):
    """Returns the elements of x whose cast is defined."""
    if is_integer(to) and not is_integer(source) and source != "BOOL":
        low, high = limits(to)
        wide = x.astype(np.float64)
        return x[np.isfinite(wide) & (np.trunc(wide) >= low) & (np.trunc(wide) <= (high if high < 2 ** 53 else 2.0 ** 52))]
    if to == "FLOAT8E8M0" and source != "BOOL":
        wide = x.astype(np.float64)
        return x[~np.signbit(wide) & (is_integer(source) <= (wide < 2 ** 53))]
    return x[~np.isnan(x.astype(np.float64))] if to == "FLOAT4E2M1" else x


def write_casts(w):
    for source in CASTS:
        everything = inputs_of(source)
        by_input = {}
        for to in CASTS:
            if to == source:
                continue  # nothing is converted
            x = castable(everything, source, to)
            variants = [({"to": kind(to)}, cast(x, to))]
            if to in F8:
                variants.append(({"to": kind(to), "saturate": 0}, cast(x, to, False)))
            if to == "FLOAT8E8M0":
                variants += [({"to": kind(to), "saturate": s, "round_mode": mode}, cast(x, to, bool(s), mode))
                             for s in (0, 1) for mode in ("up", "down", "nearest")]
            by_input.setdefault(x.tobytes(), (x, []))[1].extend(variants)
        for x, variants in by_input.values():
            w.add_many("Cast", [x], variants, opset=25, name=source.lower())


def quantized(x, scale, zero, to, saturate=True):
    """Quantises x.  scale has x's shape, in f32; zero has x's shape, in f64."""
    y = (x.astype(np.float32) / scale.astype(np.float32)).astype(np.float64)
    if is_integer(to):
        low, high = limits(to)
        return (np.rint(y) + zero).clip(low, high).astype(dtype_of(to))
    return cast((y + zero).astype(np.float32), to, saturate)


QUANTIZED = NARROW_INTEGERS + ("INT8", "UINT8", "INT16", "UINT16") + F8 + ("FLOAT4E2M1",)


def write_quantisation(w):
    x = (rng.standard_normal((4, 6)) * 20).astype(np.float32)
    layouts = {"tensor": ((), {}), "axis": ((6,), {"axis": 1}), "first_axis": ((4,), {"axis": 0}),
               "blocks": ((4, 3), {"axis": 1, "block_size": 2}), "uneven_blocks": ((2, 6), {"axis": -2, "block_size": 3})}
    for to in QUANTIZED:
        for name, (dims, attributes) in layouts.items():
            scale = rng.uniform(0.5, 8, dims).astype(np.float32)
            low, high = limits(to)
            zero = rng.integers(low // 2, high // 2 + 1, dims).astype(dtype_of(to)) if is_integer(to) else np.zeros(dims, dtype_of(to))
            s, z = (spread(v, x.shape, attributes) for v in (scale, zero))
            y = quantized(x, s, z.astype(np.float64), to)
            w.add("QuantizeLinear", [x, scale, zero], [y], attributes, opset=25, name=name)
            w.add("QuantizeLinear", [x, scale], [quantized(x, s, 0, to)], attributes | {"output_dtype": kind(to)},
                  opset=25, name=name)
            back = (y.astype(np.float64) - z.astype(np.float64)).astype(np.float32) * s
            w.add("DequantizeLinear", [y, scale, zero], [back], attributes, opset=25, name=name)
            with np.errstate(over="ignore"):
                plain = (y.astype(np.float32) * s).astype(np.float16)
            w.add("DequantizeLinear", [y, scale], [plain], attributes | {"output_dtype": kind("FLOAT16")},
                  opset=25, name=name)
        if to in F8:
            y = quantized(x * 1e4, np.float32(2), 0, to, False)
            w.add("QuantizeLinear", [x * np.float32(1e4), np.float32(2), np.zeros((), dtype_of(to))], [y], {"saturate": 0},
                  opset=25, name="overflow")


def spread(v, dims, attributes):
    """Broadcasts a scale or a zero point to x's dims."""
    axis, block = attributes.get("axis", 1), attributes.get("block_size", 0)
    if block:
        return np.take(np.repeat(v, block, axis), range(dims[axis]), axis)
    return np.broadcast_to(v.reshape([-1 if k == axis else 1 for k in range(len(dims))]) if v.ndim else v, dims)


def add(w, name, op, *case, opset):
    """Adds the case if the operator can give elements of this type."""
    schema = defs.get_schema(op, opset)
    variable = schema.outputs[0].type_str
    if any("tensor(%s)" % name.lower() in c.allowed_type_strs for c in schema.type_constraints
           if c.type_param_str == variable):
        w.add(op, *case, opset=opset)


def write_movement(w):
    """Operators that move elements of all types, by numpy's functions, which only copy bytes."""
    for name in CASTS + ("COMPLEX64", "COMPLEX128"):
        dtype = dtype_of(name)
        x = rng.integers(-2 if not name.startswith("U") else 0, 2, (2, 3, 4)).astype(np.float32)
        x = (np.abs(x) if name == "FLOAT8E8M0" else x).astype(dtype)
        x = x * dtype.type(1 - 1j) if dtype.kind == "c" else x
        one = x[:1, :1, :1].reshape(())
        add(w, name, "Transpose", [x], [x.transpose(2, 0, 1)], {"perm": [2, 0, 1]}, opset=25)
        add(w, name, "Reshape", [x, np.array([4, -1])], [x.reshape(4, 6)], opset=25)
        add(w, name, "Concat", [x, x[:1]], [np.concatenate([x, x[:1]])], {"axis": 0}, opset=13)
        add(w, name, "Gather", [x, np.array([2, -3])], [x[:, [2, 0]]], {"axis": 1}, opset=13)
        add(w, name, "Where", [x[0] == x[1], x[0], x[1]], [np.where(x[0] == x[1], x[0], x[1])], opset=16)
        add(w, name, "Expand", [x[:, :1], np.array([2, 3, 4])], [np.broadcast_to(x[:, :1], (2, 3, 4))], opset=13)
        add(w, name, "Slice", [x, np.array([3]), np.array([0]), np.array([2]), np.array([-2])], [x[:, :, 3:0:-2]], opset=13)
        add(w, name, "Tile", [x, np.array([1, 2, 1])], [np.tile(x, (1, 2, 1))], opset=13)
        padded = np.full((2, 3, 6), one)
        padded[:, :, 1:5] = x
        add(w, name, "Pad", [x, np.array([0, 0, 1, 0, 0, 1]), one], [padded], opset=25)


def write_many_operands(w):
    """More operands than one kernel takes, some of them empty."""
    for axis in (0, 1):
        parts = [np.full((k % 3, 3) if axis == 0 else (3, k % 3), k, np.float32) for k in range(200)]
        w.add("Concat", parts, [np.concatenate(parts, axis)], {"axis": axis}, opset=13, name=f"many_{axis}")
