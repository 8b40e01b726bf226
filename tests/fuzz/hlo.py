"""hlo.py: random HLO modules, whose instructions are compared one by one by `onnx-xla verify`.

  hlo.py [--seed N] [--count N] [--found DIR] [OPTION OF VERIFY]...

Frontends write only some of the attributes that operations have: no operator of ONNX has a pad with gaps that is cut to its former
size.  These modules have any attributes, and sizes that are often equal, of several element types.  Exits with 1 if anything
differs; --found keeps such modules."""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

TYPES = ["f32"] * 4 + ["s32", "u8", "s8", "f16", "s64", "bf16", "s16", "f64"]
INTEGERS = ["s8", "u8", "s16", "s32", "s64"]
MOST_ELEMENTS = 4000
OPERATIONS = []


def operation(make):
    """Registers make(g, x), which appends instructions that read x to the module g, or nothing if x does not suit it."""
    OPERATIONS.append(make)
    return make


def numbers(values):
    return "[" + ",".join(str(v) for v in values) + "]"


class Value:
    def __init__(self, name, element, dims, finite=True):
        self.name, self.element, self.dims = name, element, list(dims)
        self.finite = finite  # False if a maximum or minimum of nothing may be an element

    @property
    def rank(self):
        return len(self.dims)

    @property
    def type(self):
        return self.element + numbers(self.dims)


class Module:
    def __init__(self, seed):
        self.random, self.lines = random.Random(seed), []
        between, chance = self.random.randint, self.random.random
        common = [between(1, 4), between(1, 9), between(1, 9), between(1, 6)]
        self.parameters = []
        for k in range(4):
            dims = [self.random.choice(common) if chance() < 0.8 else between(1, 17) for _ in range(between(1, 4))]
            if chance() < 0.05:
                dims[0] = 0
            self.parameters.append(Value(f"%p{k}", "f32" if k < 2 else self.random.choice(TYPES), dims))
        self.values = list(self.parameters)
        for _ in range(between(3, 14)):
            self.random.choice(OPERATIONS)(self, self.pick(lambda v: v.element != "pred"))

    def between(self, low, high):
        return self.random.randint(low, high)

    def chance(self, p):
        return self.random.random() < p

    def pick(self, suits=lambda v: True):
        """Returns a random value that suits, or None if there is none."""
        known = [v for v in self.values if suits(v)]
        return self.random.choice(known) if known else None

    def add(self, op, operands, element, dims, **attributes):
        """Appends an instruction and returns its result, or None if that would be too large."""
        if len(dims) > 7 or math.prod(dims) > MOST_ELEMENTS:
            return None
        extreme = attributes.get("reducer") in ("maximum", "minimum")
        result = Value(f"%v{len(self.lines)}", element, dims, not extreme and all(v.finite for v in operands))
        listed = ", ".join(f"{k}={numbers(v) if isinstance(v, list) else v}" for k, v in attributes.items())
        read = ", ".join(v.name for v in operands)
        self.lines.append(f"    {result.name} = {op}({read}){' {' + listed + '}' if listed else ''} : {result.type}")
        self.values.append(result)
        return result

    def scalar(self, element, number):
        return self.add("constant", [], element, [], value=f"{element}[] {number}")

    def integers(self, values):
        listed = "{" + ",".join(str(v) for v in values) + "}"
        return self.add("constant", [], "s64", [len(values)], value=f"s64[{len(values)}] {listed}")

    def partner(self, x):
        """Returns a value of x's type: one that is known, or a number that is repeated."""
        same = self.pick(lambda v: v is not x and v.type == x.type)
        if same and self.chance(0.7):
            return same
        number = self.scalar(x.element, self.between(0, 3))
        return self.add("broadcast", [number], x.element, x.dims, dimensions=[]) if x.dims else number

    def text(self):
        last = [v for v in self.values[-3:] if not v.name.startswith("%p")] or self.values[-1:]
        inputs = ", ".join(f'{v.name}: {v.type} "{v.name[1:]}"' for v in self.parameters)
        outputs = ", ".join(f'{v.name} "o{k}"' for k, v in enumerate(last))
        body = "\n".join(self.lines)
        return f'onnx-xla hlo 1\nmodule "random" {{\n  entry main({inputs}) {{\n{body}\n    return {outputs}\n  }}\n}}\n'


def padded(size, low, high, gap=1, reach=1):
    """Returns how many positions a window that covers `reach` elements has in a dimension with padding and gaps."""
    return (size - 1) * gap + 1 + low + high - (reach - 1) if size else low + high - (reach - 1)


# --- elementwise ---


@operation
def unary(g, x):
    g.add(g.random.choice(["negate"] if x.element == "u8" else ["negate", "abs", "sign"]), [x], x.element, x.dims)


@operation
def binary(g, x):
    op = g.random.choice(["add", "subtract", "multiply", "maximum", "minimum"])
    g.add(op, [x, g.partner(x)], x.element, x.dims)


OPERATIONS.append(binary)  # twice, as it is what most kernels are made of


@operation
def select(g, x):
    how = g.random.choice(["lt", "le", "gt", "ge", "eq", "ne"])
    seen = g.add("compare", [x, g.partner(x)], "pred", x.dims, comparison=how)
    g.add("select", [seen, x, g.partner(x)], x.element, x.dims)


@operation
def convert(g, x):
    g.add("convert", [x], g.random.choice(TYPES), x.dims, saturate="false", rounding="nearest")


@operation
def function(g, x):
    exact, others = ["ceil", "floor", "round-nearest-even"], ["tanh", "logistic", "erf", "atan", "sine"]
    if x.element in ("f32", "f64"):
        g.add(g.random.choice(exact + others), [x], x.element, x.dims)
    elif x.element in INTEGERS:
        g.add("not", [x], x.element, x.dims)


@operation
def integer(g, x):
    if x.element in INTEGERS:
        op = g.random.choice(["and", "or", "xor", "divide", "remainder", "shift-left", "shift-right"])
        g.add(op, [x, g.partner(x)], x.element, x.dims)


@operation
def clamp(g, x):
    low, high = g.scalar(x.element, g.between(0, 1)), g.scalar(x.element, g.between(2, 4))
    g.add("clamp", [low, x, high], x.element, x.dims)


# --- movement ---


@operation
def transpose(g, x):
    order = g.random.sample(range(x.rank), x.rank)
    g.add("transpose", [x], x.element, [x.dims[d] for d in order], permutation=order)


@operation
def reshape(g, x):
    dims = []
    for n in x.dims:
        if g.chance(0.2):
            dims.append(1)
        if dims and g.chance(0.35):
            dims[-1] *= n
        elif n > 2 and n % 2 == 0 and g.chance(0.3):
            dims += g.random.choice([[2, n // 2], [n // 2, 2]])
        elif n != 1 or g.chance(0.5):
            dims.append(n)
    g.add("reshape", [x], x.element, dims)


@operation
def broadcast(g, x):
    dims, places = list(x.dims), list(range(x.rank))
    for _ in range(g.between(1, 2)):
        at = g.between(0, len(dims))
        dims.insert(at, g.between(1, 5))
        places = [p + (p >= at) for p in places]
    for p in places:
        if dims[p] == 1 and g.chance(0.5):
            dims[p] = g.between(2, 4)
    g.add("broadcast", [x], x.element, dims, dimensions=places)


@operation
def slices(g, x):
    starts = [g.between(0, n - 1) if n and g.chance(0.5) else 0 for n in x.dims]
    limits = [g.between(a + 1, n) if n > a and g.chance(0.5) else n for a, n in zip(starts, x.dims)]
    strides = [g.between(1, 3) if g.chance(0.3) else 1 for _ in x.dims]
    dims = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides)]
    g.add("slice", [x], x.element, dims, starts=starts, limits=limits, strides=strides)


@operation
def pad(g, x):
    low, high, interior, dims = [], [], [], []
    for n in x.dims:
        low.append(g.between(-2, 3) if g.chance(0.4) else 0)
        high.append(g.between(-3, 3) if g.chance(0.4) else 0)
        interior.append(g.between(1, 2) if n and g.chance(0.25) else 0)
        size = padded(n, low[-1], high[-1], interior[-1] + 1)
        wanted = n if g.chance(0.3) else max(size, 0)  # often the size that it had
        high[-1] += wanted - size
        dims.append(wanted)
    g.add("pad", [x, g.scalar(x.element, g.between(0, 2))], x.element, dims, low=low, high=high, interior=interior)


OPERATIONS.append(pad)


@operation
def concatenate(g, x):
    if x.rank:
        along, parts = g.between(0, x.rank - 1), [x]
        others = x.dims[:along] + x.dims[along + 1 :]
        for _ in range(g.between(1, 3)):
            parts.append(g.pick(lambda v: v.element == x.element and v.rank == x.rank and v.dims[:along] + v.dims[along + 1 :] == others))
        dims = list(x.dims)
        dims[along] = sum(p.dims[along] for p in parts)
        g.add("concatenate", parts, x.element, dims, dimension=along)


@operation
def reverse(g, x):
    g.add("reverse", [x], x.element, x.dims, dimensions=[d for d in range(x.rank) if g.chance(0.5)])


@operation
def take(g, x):
    if x.rank and min(x.dims) > 0:
        along = g.between(0, x.rank - 1)
        at = g.integers([g.between(0, x.dims[along] - 1) for _ in range(g.between(1, 6))])
        at = g.pick(lambda v: v.element == "s64" and v.rank == 1 and v.dims[0]) if g.chance(0.5) else at
        sizes, dims = list(x.dims), list(x.dims)
        sizes[along], dims[along] = 1, at.dims[0]
        g.add("gather", [x, at], x.element, dims, offset_dims=[d for d in range(x.rank) if d != along], collapsed_dims=[along],
              operand_batch=[], indices_batch=[], index_map=[along], index_vector_dim=1, sizes=sizes)


@operation
def dynamic(g, x):
    if x.rank:
        starts, sizes = g.integers([g.between(-1, n) for n in x.dims]), [g.between(1, n) if n else 0 for n in x.dims]
        if g.chance(0.5):
            g.add("dynamic-slice", [x, starts], x.element, sizes, sizes=sizes)
        else:
            part = g.add("slice", [x], x.element, sizes, starts=[0] * x.rank, limits=sizes, strides=[1] * x.rank)
            g.add("dynamic-update-slice", [x, part, starts], x.element, x.dims)


def places(g, x):
    """Draws where parts of x lie: returns the attributes and the indices of a gather or scatter, the sizes of the parts, and the
    dimensions of all parts."""
    free = g.random.sample(range(x.rank), x.rank)
    batch = [free.pop()] if x.rank > 1 and g.chance(0.3) else []
    mapped = free[: g.between(1, len(free))]
    sizes = [1 if d in batch else g.between(1, n) for d, n in enumerate(x.dims)]
    collapsed = sorted(d for d in free if g.chance(0.5))
    for d in collapsed:
        sizes[d] = 1
    shape = [g.between(1, 4) for _ in range(g.between(0, 2))]
    at = g.between(0, len(shape))
    shape[at:at] = [x.dims[d] for d in batch]
    whole, vector = list(shape), g.between(0, len(shape))
    if len(mapped) > 1 or g.chance(0.5):
        whole.insert(vector, len(mapped))
    else:
        vector = len(whole)
    of_batch = [at + (at >= vector)] if batch else []
    count = math.prod(whole)
    listed = g.integers([g.between(-1, max(x.dims)) for _ in range(count)])
    indices = g.add("reshape", [listed], "s64", whole)
    kept = [sizes[d] for d in range(x.rank) if d not in collapsed and d not in batch]
    offsets = sorted(g.random.sample(range(len(shape) + len(kept)), len(kept)))
    dims, rest = [0] * (len(shape) + len(kept)), iter(shape)
    for d, n in zip(offsets, kept):
        dims[d] = n
    dims = [dims[d] if d in offsets else next(rest) for d in range(len(dims))]
    return {"offset_dims": offsets, "collapsed_dims": collapsed, "operand_batch": batch, "indices_batch": of_batch,
            "index_map": mapped, "index_vector_dim": vector}, indices, sizes, dims


@operation
def gather(g, x):
    if x.rank and min(x.dims):
        attributes, indices, sizes, dims = places(g, x)
        g.add("gather", [x, indices], x.element, dims, **attributes, sizes=sizes)


@operation
def scatter(g, x):
    if x.rank and min(x.dims) and x.element not in ("f16", "bf16"):
        attributes, indices, _, dims = places(g, x)
        updates = g.scalar(x.element, g.between(0, 3))
        updates = g.add("broadcast", [updates], x.element, dims, dimensions=[])
        steps = updates and x.element != "pred" and g.add("iota", [], x.element, dims, dimension=0) if dims else None
        how = g.random.choice(["replace", "add", "maximum", "minimum"])
        if updates:
            g.add("scatter", [x, indices, steps or updates], x.element, x.dims, **attributes, reducer=how)


# --- reductions and windows ---


@operation
def reduce(g, x):
    gone = [d for d in range(x.rank) if g.chance(0.4)] or list(range(x.rank))
    kept = [d for d in range(x.rank) if d not in gone]
    how = g.random.choice(["add", "maximum", "minimum"])
    y = g.add("reduce", [x], x.element, [x.dims[d] for d in kept], dimensions=gone, reducer=how)
    if g.chance(0.5):  # and goes on as a normalisation does
        spread = g.add("broadcast", [y], x.element, x.dims, dimensions=kept)
        g.add(g.random.choice(["subtract", "add", "multiply"]), [x, spread], x.element, x.dims)


@operation
def reduce_window(g, x):
    window = [g.between(1, 3) if g.chance(0.6) else 1 for _ in x.dims]
    strides, holes = [g.between(1, 2) for _ in x.dims], [g.between(1, 2) for _ in x.dims]
    low, high = ([g.between(0, 2) if w > 1 else g.between(-1, 1) for w in window] for _ in range(2))
    room = [padded(n, a, b, 1, (w - 1) * h + 1) for n, a, b, w, h in zip(x.dims, low, high, window, holes)]
    if x.rank and x.element != "bf16" and min(n + a + b for n, a, b in zip(x.dims, low, high)) >= 0 and min(x.dims) > 0:
        dims = [max(0, (n - 1) // s + 1) for n, s in zip(room, strides)]
        g.add("reduce-window", [x], x.element, dims, window=window, strides=strides, low=low, high=high, rhs_dilation=holes,
              reducer=g.random.choice(["maximum", "minimum", "add"]))


def yes_or_no(g):
    return g.random.choice(["true", "false"])


@operation
def arg_reduce(g, x):
    along = g.between(0, max(x.rank - 1, 0))
    if x.rank and x.dims[along]:
        g.add("arg-reduce", [x], "s64", x.dims[:along] + x.dims[along + 1 :], dimension=along, largest=yes_or_no(g), last=yes_or_no(g))


@operation
def cumulative(g, x):
    if x.rank and x.element not in ("f16", "bf16"):
        g.add("cumulative", [x], x.element, x.dims, dimension=g.between(0, x.rank - 1), exclusive=yes_or_no(g),
              backward=yes_or_no(g), reducer=g.random.choice(["add", "maximum", "minimum"]))


@operation
def sort(g, x):
    if x.rank:
        g.add("sort", [x], x.element, x.dims, dimension=g.between(0, x.rank - 1), descending=yes_or_no(g))


# --- contractions ---


@operation
def dot(g, x):
    y = g.pick(lambda v: v.element == x.element and 0 < v.rank < 4 and set(v.dims) & set(x.dims))
    if not y or x.rank > 4 or x.element not in ("f32", "f64", "s32", "s8", "u8"):
        return
    left = g.random.choice([d for d in range(x.rank) if x.dims[d] in y.dims])
    right = g.random.choice([d for d in range(y.rank) if y.dims[d] == x.dims[left]])
    batch = []
    for d in range(x.rank):
        same = [k for k in range(y.rank) if k != right and y.dims[k] == x.dims[d] and k not in [b[1] for b in batch]]
        if d != left and same and g.chance(0.4):
            batch.append((d, same[0]))
    lefts, rights = [b[0] for b in batch], [b[1] for b in batch]
    dims = [x.dims[d] for d in lefts] + [x.dims[d] for d in range(x.rank) if d != left and d not in lefts]
    dims += [y.dims[d] for d in range(y.rank) if d != right and d not in rights]
    element = "s32" if x.element in ("s8", "u8") else x.element
    g.add("dot", [x, y], element, dims, lhs_batch=lefts, rhs_batch=rights, lhs_contract=[left], rhs_contract=[right])


def kernel(g, element, dims):
    """Returns a kernel of small integers, whose products and sums are exact."""
    rows = g.add("iota", [], element, dims, dimension=0)
    columns = g.add("iota", [], element, dims, dimension=g.between(1, len(dims) - 1))
    twice = rows and g.add("add", [rows, rows], element, dims)
    return twice and g.add("subtract", [columns, twice], element, dims)


@operation
def convolution(g, x):
    """Reads finite numbers only, since pass transposed_convolution changes products of infinities with zeros."""
    if not x.finite or x.element not in ("f32", "u8", "s8") or not 3 <= x.rank <= 5 or min(x.dims) == 0:
        return
    last = g.chance(0.5)
    channels, spatial = (x.dims[-1], x.dims[1:-1]) if last else (x.dims[1], x.dims[2:])
    groups = g.random.choice([k for k in range(1, channels + 1) if channels % k == 0])
    size, outputs = [g.between(1, 3) for _ in spatial], groups * g.between(1, 3)
    strides, holes = [g.between(1, 3) for _ in spatial], [g.between(1, 2) for _ in spatial]
    gaps = [g.between(1, 3) if g.chance(0.3) else 1 for _ in spatial]
    low, high = ([g.between(-1, 2) for _ in spatial] for _ in range(2))
    room = [padded(n, a, b, gap, (k - 1) * h + 1) for n, a, b, gap, k, h in zip(spatial, low, high, gaps, size, holes)]
    element, of_kernel = ("f32", "f32") if x.element == "f32" else ("s32", g.random.choice(["s8", "u8"]))
    weights = kernel(g, of_kernel, [outputs, channels // groups] + size)
    if weights and min(room) > 0:
        windows = [(n - 1) // s + 1 for n, s in zip(room, strides)]
        dims = x.dims[:1] + (windows + [outputs] if last else [outputs] + windows)
        g.add("convolution", [x, weights], element, dims, strides=strides, low=low, high=high, lhs_dilation=gaps, rhs_dilation=holes,
              groups=groups, layout="channels-last" if last else "channels-first")


OPERATIONS.append(convolution)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=400, help="the number of modules")
    parser.add_argument("--found", help="the folder for modules that differ")
    args, options = parser.parse_known_args()
    tool, failed = os.environ.get("ONNX_XLA", "onnx-xla"), 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.hlo")
        for seed in range(args.seed, args.seed + args.count):
            text = Module(seed).text()
            with open(path, "w") as f:
                f.write(text)
            run = subprocess.run([tool, "verify", path, "-O", folder, *options], capture_output=True, text=True)
            if run.returncode == 0:
                continue
            failed += 1
            print(f"FAIL: module of seed {seed}, {' '.join([tool, 'verify', *options])} ends with {run.returncode}:")
            print(run.stdout + run.stderr)
            if args.found:
                os.makedirs(args.found, exist_ok=True)
                with open(os.path.join(args.found, f"{seed}.hlo"), "w") as f:
                    f.write(text)
    print(f"random HLO modules: {args.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
