"""rows.py: element types, and the rows that must be drawn.  A row is (operator, version, type constraint, type) from ONNX's schemas; how
often it was drawn is counted."""

import collections
import types

import numpy as np
from onnx import TensorProto, defs, helper

NP_OF_CODE = {
    code: np.dtype(helper.tensor_dtype_to_np_dtype(code))
    for name, code in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING")
}
CODE_OF_NP = {dtype: code for code, dtype in NP_OF_CODE.items()}
_SCHEMA_NAMES = {"FLOAT": "float", "DOUBLE": "double", "FLOAT16": "float16"}
NAME_OF_CODE = {code: _SCHEMA_NAMES.get(name, name.lower()) for name, code in TensorProto.DataType.items()}
NP = {NAME_OF_CODE[code]: dtype for code, dtype in NP_OF_CODE.items()}  # "float16" -> its numpy type
NAME_OF_NP = {dtype: name for name, dtype in NP.items()}

FLOATS = ("float", "double", "float16", "bfloat16")
TINY_FLOATS = (
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "float4e2m1",
    "float8e8m0",
    "float6e2m3",
    "float6e3m2",
)
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TINY_INTS = ("int4", "uint4", "int2", "uint2")
COMPLEX = ("complex64", "complex128")


def is_float(name):
    return name in FLOATS or name in TINY_FLOATS


def is_inexact(name):
    """Returns whether arithmetic of the type rounds."""
    return is_float(name) or name in COMPLEX


def bits(name):
    """Returns the bits of the type's mantissa, including the hidden one; 64 for types without a mantissa."""
    return {
        "float": 24,
        "double": 53,
        "float16": 11,
        "bfloat16": 8,
        "complex64": 24,
        "complex128": 53,
        "float8e4m3fn": 4,
        "float8e4m3fnuz": 4,
        "float8e5m2": 3,
        "float8e5m2fnuz": 3,
        "float4e2m1": 2,
        "float8e8m0": 1,
        "float6e2m3": 4,
        "float6e3m2": 3,
    }.get(name, 64)


def eps(name):
    return 2.0 ** (1 - bits(name))


# Operators that the tester leaves out, with the reason that the table prints.
LEFT_OUT = {
    "sequences (in sequences.py, without counts), optionals": "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
    "SequenceMap SplitToSequence ConcatFromSequence Optional OptionalGetElement "
    "OptionalHasElement",
    "strings": "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer",
    "images in files": "ImageDecoder",
}
REASON = {name: reason for reason, names in LEFT_OUT.items() for name in names.split()}


def _tensor_types(constraint):
    """Returns the element types of a constraint's tensors that the tester can draw; strings and sequences are left out."""
    names = [t[len("tensor(") : -1] for t in constraint.allowed_type_strs if t.startswith("tensor(")]
    return [n for n in names if n in NP]


class Schema:
    """An operator at one version of the operator set."""

    def __init__(self, schema):
        self.schema = schema
        self.name = schema.name
        self.since = schema.since_version
        self.attributes = schema.attributes
        self.types = {c.type_param_str: _tensor_types(c) for c in schema.type_constraints}
        self.types = {k: v for k, v in self.types.items() if v}
        self.rows = [(self.name, self.since, k, t) for k, allowed in self.types.items() for t in allowed]
        self.rows = self.rows or [(self.name, self.since, "-", "-")]

    def formal(self, params, k):
        """Returns the parameter for argument k; the last one may be variadic."""
        return params[min(k, len(params) - 1)]

    def rows_of(self, input_types, output_types):
        """Returns the rows that a node with these element types (None: absent) covers."""
        found = set()
        for params, given in ((self.schema.inputs, input_types), (self.schema.outputs, output_types)):
            for k, t in enumerate(given):
                if t and params:
                    found.add((self.name, self.since, self.formal(params, k).type_str, t))
        return [row for row in found if row in self._row_set()] or [(self.name, self.since, "-", "-")]

    def _row_set(self):
        if not hasattr(self, "_rows"):
            self._rows = set(self.rows)
        return self._rows


MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators, whose names here begin with it


def domain_and_type(name):
    """Returns the domain and the op_type of an operator."""
    domain, _, op_type = name.rpartition(".")
    return domain, op_type


class MicrosoftSchema:
    """A schema of ONNX Runtime, with the attributes that Schema reads of those of onnx."""

    def __init__(self, schema):
        self.name, self.since_version = f"{MICROSOFT}.{schema.name}", schema.since_version
        self.attributes, self.type_constraints = schema.attributes, schema.type_constraints
        self.inputs = [types.SimpleNamespace(type_str=p.typeStr) for p in schema.inputs]
        self.outputs = [types.SimpleNamespace(type_str=p.typeStr) for p in schema.outputs]


ENOUGH = 50  # draws of a row
NEWEST = defs.onnx_opset_version()
OLDEST = 7


class Table:
    """The schemas of each operator set, and the counts."""

    def __init__(self, newest=NEWEST):
        self.newest = min(newest, NEWEST)
        self.counts = collections.Counter()
        self.refused = {}  # row -> message of ours
        by_name = collections.defaultdict(list)
        for schema in defs.get_all_schemas_with_history():
            if schema.domain == "":
                by_name[schema.name].append(schema)
        self.at = {}
        cache = {}
        for opset in range(OLDEST, self.newest + 1):
            ops = {}
            for name, schemas in by_name.items():
                fitting = [s for s in schemas if s.since_version <= opset]
                newest_one = max(fitting, key=lambda s: s.since_version, default=None)
                if newest_one is not None and not newest_one.deprecated:
                    key = (name, newest_one.since_version)
                    if key not in cache:
                        cache[key] = Schema(newest_one)
                    ops[name] = cache[key]
            self.at[opset] = ops
        self.schemas = {key: s for key, s in cache.items() if key[1] <= self.newest}

    def add_microsoft(self, names):
        """Adds these operators of ONNX Runtime to each operator set."""
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

        for schema in get_all_operator_schema():
            if schema.domain == MICROSOFT and f"{MICROSOFT}.{schema.name}" in names:
                made = Schema(MicrosoftSchema(schema))
                self.schemas[made.name, made.since] = made
                for ops in self.at.values():
                    ops[made.name] = made

    def rows(self):
        return [row for s in self.schemas.values() for row in s.rows]

    def lack(self, row):
        """Returns how often the row must still be drawn."""
        return max(0, ENOUGH - self.counts[row])

    def lacking(self, names):
        """Returns the rows of those operators that were not drawn often enough."""
        return [row for row in self.rows() if row[0] in names and self.lack(row)]

    def opset_for(self, since, name, r):
        """Returns an operator set that has that version of the operator."""
        fitting = [v for v, ops in self.at.items() if name in ops and ops[name].since == since]
        return r.choice(fitting)
