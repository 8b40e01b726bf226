"""any_model.py: a list of inputs of random sizes for any ONNX model, for run-sizes."""
import os

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from bench_models import Failed
from size_lists import SizeList


def read_ranges(texts):
    """Returns {name: the sizes that the dimension may have} of texts NAME=N, NAME=A..B and NAME=A..B/STEP."""
    ranges = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        try:
            span, _, step = sizes.partition("/")
            low, _, high = span.partition("..")
            ranges[name] = range(int(low), int(high or low) + 1, int(step or 1))
        except ValueError as e:
            raise Failed(f"--dim {text}: NAME=N, NAME=A..B or NAME=A..B/STEP is wanted") from e
        if not name or not ranges[name]:
            raise Failed(f"--dim {text}: there is no such size")
    return ranges


def size_of(dim, sizes):
    """Returns the size of a dimension of an input; a name such as "past + new" is a sum of other dimensions."""
    name = dim.dim_param
    if not name:
        return dim.dim_value
    parts = [name] if name in sizes else [part.strip() for part in name.split("+")]
    missing = [part for part in parts if part not in sizes and not part.isdigit()]
    if missing:
        raise Failed(f"the model leaves sizes open: --dim {missing[0]}=A..B")
    return sum(sizes[part] if part in sizes else int(part) for part in parts)


def value_of(name, kind, dims, rng):
    """Returns numbers that nearly all models take: masks of ones, integers that are 0 or 1, normally distributed floats."""
    if "mask" in name:
        return np.ones(dims, kind)
    if np.issubdtype(kind, np.floating):
        return rng.standard_normal(dims).astype(kind)
    return rng.integers(0, 2, dims).astype(kind)


def any_model(path, ranges, steps):
    """Returns a list of `steps` runs of the model; each open dimension has random sizes of its range in `ranges`."""
    if not os.path.exists(path):
        raise Failed(f"{path} is not there")
    model = onnx.load(path, load_external_data=False)
    weights = {w.name for w in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    odd = [i.name for i in inputs if not i.type.HasField("tensor_type") or not i.type.tensor_type.HasField("shape")]
    if odd:
        raise Failed(f"input {odd[0]} is no array of a known rank")

    def draw(seed):
        rng = np.random.default_rng(seed)
        sizes = {name: int(rng.choice(span)) for name, span in ranges.items()}
        return {i.name: value_of(i.name, tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
                                 [size_of(d, sizes) for d in i.type.tensor_type.shape.dim], rng) for i in inputs}
    return SizeList(os.path.abspath(path), draw(0), [draw(k + 1) for k in range(steps)])
