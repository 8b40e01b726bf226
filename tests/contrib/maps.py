"""Operators of ai.onnx.ml that make and read maps."""
import itertools

import numpy as np
from onnx import TensorProto, helper

from runtime_cases import F32, MACHINE_LEARNING, floats

S64, STRING = TensorProto.INT64, TensorProto.STRING
WORDS = ["dog", "cat", "", "Kuh", "émeu", "cats"]
NUMBERS = [7, -3, 2 ** 40, 0, 5, -2 ** 50]


def maps_of(key):
    return helper.make_sequence_type_proto(helper.make_map_type_proto(key, helper.make_tensor_type_proto(F32, [])))


def write_zip_map(w):
    for (attribute, key, labels), count in itertools.product(
            (("classlabels_strings", STRING, WORDS), ("classlabels_int64s", S64, NUMBERS)), (1, 3, 6)):
        for sets in ([[floats(n, count)] for n in (1, 4, 33)], [[floats(count)]]):
            w.add("ZipMap", sets, [maps_of(key)], {attribute: labels[:count]}, domain=MACHINE_LEARNING, one_program=False)
    w.add("ZipMap", [[floats(3, 4)]], [maps_of(S64)], {"classlabels_int64s": [5, 1, 5, 2]}, domain=MACHINE_LEARNING, one_program=False)
    # as scikit-learn's converters write a classifier
    graph = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=MACHINE_LEARNING, classlabels_ints=[0, 1, 2],
                              coefficients=floats(12).tolist(), intercepts=[0.5, 0.25, -1.0], multi_class=1, post_transform="SOFTMAX"),
             helper.make_node("ZipMap", ["scores"], ["maps"], domain=MACHINE_LEARNING, classlabels_int64s=[0, 1, 2])]
    w.add_graph("classifier_with_maps", graph, [{"x": floats(n, 4)} for n in (1, 5, 2)], {"label": S64, "maps": maps_of(S64)},
                one_program=False)


def cast_words(to, form):
    """What CastMap makes of a map with strings, which ONNX Runtime's Python interface does not take."""
    read = {"TO_FLOAT": float, "TO_STRING": str, "TO_INT64": lambda v: int(float(v)) if "e" not in v else int(v.split("e")[0])}[to]
    absent, kind = {"TO_FLOAT": (0, np.float32), "TO_STRING": ("0.f", object), "TO_INT64": (0, np.int64)}[to]

    def cast(x):
        keys = sorted(x) if form["map_form"] == "DENSE" else range(form["max_map"])
        return [np.array([[read(x[k]) if k in x else absent for k in keys]], kind)]
    return cast


def write_map_inputs(w):
    for attribute, keys, vocabulary in (("string_vocabulary", ["cat", "unknown", "émeu", "Kuh"], WORDS), ("int64_vocabulary", [5, 99, -3, 7], NUMBERS)):
        w.add("DictVectorizer", [[dict(zip(keys, [0.5, -1.5, 3.0, 2.25]))]], [F32], {attribute: vocabulary[:5] + vocabulary[1:2]},
              domain=MACHINE_LEARNING, one_program=False)
    words = dict(zip([5, 99, -3, 7], ["one", "", "zwei", "one"]))
    w.add("DictVectorizer", [[words]], [STRING], {"int64_vocabulary": NUMBERS}, domain=MACHINE_LEARNING, one_program=False,
          expected=lambda x: [np.array([[x.get(k, "") for k in NUMBERS]], object)])
    for (values, kind), to, form in itertools.product(
            (([1.5, -2.75, 1e6, 0.0], float), (["12", "-3.5", " 7", "1e3"], str)), ("TO_FLOAT", "TO_STRING", "TO_INT64"),
            ({"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 9}, {"map_form": "SPARSE", "max_map": 2})):
        x = dict(zip([6, 0, 3, 11] if form["map_form"] == "SPARSE" else [6, -1, 3, 11], map(kind, values)))
        w.add("CastMap", [[x]], [{"TO_FLOAT": F32, "TO_STRING": STRING, "TO_INT64": S64}[to]], {"cast_to": to, "max_map": 1} | form,
              domain=MACHINE_LEARNING, one_program=False, expected=cast_words(to, form) if kind is str else None)


def write(w):
    write_zip_map(w)
    write_map_inputs(w)
