"""idioms: graphs of what exporters write: residuals, attention, norms, heads and others, composed at random.

  @idiom("image")                                   the kind of value that it starts from, see RANKS
  def squeeze_excite(k, x):                         k: Kit, which has the nodes as methods
      gate = k.Sigmoid(k.conv(k.GlobalAveragePool(x), x.shape[1], 1))
      return k.Mul(x, gate)                         the value that the next idiom may take

An idiom is a function of a few lines in a file of this folder.  The kit draws its operands: a second operand may be the
first one, a view of it, another value of that shape, an input or a constant (Kit.other); weights may be inputs; a
value may go through a Reshape and back (Kit.view).  Sizes are those that libraries, Winograd, register blocks and the
kernels of rows and attention take; Kit.afford limits the number of multiplications of a graph."""

import functools

import numpy as np

import rows
import sizes
from build import Builder
from finish import finish
from registry import Skip
from values import Value, draw_array, has_wild, size_of

RANKS = {"matrix": (2,), "rows": (3,), "image": (4,), "heads": (4,), "volume": (5,), "any": (2, 3, 4, 5)}
COMMUTE = ("Add", "Mul", "Max", "Min")
CHANNELS = (16, 24, 32, 48, 64, 96)
MOST = 3 << 16  # elements of a value
MULTIPLICATIONS = 6e6  # of a graph, since the reference evaluator is slow
OPSETS = (11, 12, 13, 14, 15, 16, 17, 18, 20, 21)


class Idiom:
    def __init__(self, make, takes, weight, since):
        self.name, self.make, self.takes, self.weight, self.since = make.__name__, make, takes, weight, since

    def fits(self, v):
        return rows.is_float(v.type) and v.rank in RANKS[self.takes]


IDIOMS = {}


def idiom(takes, weight=1.0, since=0):
    """Registers an idiom.  takes: the kind of value that it starts from; weight: how often it is drawn, relative to others; since: the
    first operator set that has its operators."""

    def take(make):
        assert make.__name__ not in IDIOMS, make.__name__
        IDIOMS[make.__name__] = Idiom(make, takes, weight, since)
        return make

    return take


def load():
    import idioms.attention  # noqa: F401
    import idioms.decisions  # noqa: F401
    import idioms.heads  # noqa: F401
    import idioms.language  # noqa: F401
    import idioms.loops  # noqa: F401
    import idioms.pieces  # noqa: F401
    import idioms.quantized  # noqa: F401
    import idioms.residual  # noqa: F401
    import idioms.updates  # noqa: F401
    import idioms.vision  # noqa: F401

    return IDIOMS


class Kit:
    """What an idiom writes nodes with: k.Relu(x), k.Conv(x, w, pads=[...]), and helpers in small letters.
    Numbers among the operands become constants of the type of the others."""

    def __init__(self, b):
        self.b, self.r, self.left = b, b.r, MULTIPLICATIONS
        self.type = "double" if b.r.random() < 0.06 else "float"
        self.made = []  # the results of idioms

    def __getattr__(self, name):
        if not name[0].isupper():
            raise AttributeError(name)
        return functools.partial(self.node, name)

    def node(self, name, *operands, outputs=1, kind=None, wild=False, **attributes):
        """Adds a node.  wild: whether its results may be as large as masks, or all equal."""
        schema = self.b.table.at[self.b.opset].get(name)
        if schema is None:
            raise Skip(f"{name} is not in opset {self.b.opset}")
        given = [v for v in operands if isinstance(v, Value)]
        types = [v.type for v in given if v.type != "bool"]
        numbers = next((t for t in types if rows.is_float(t)), types[0] if types else self.type)
        inputs = [self.scalar(v, numbers) if isinstance(v, (int, float)) else v for v in operands]
        if name in COMMUTE and self.r.random() < 0.3:
            inputs.reverse()
        for lists in ("axes", "split"):  # operands since version 13 or 18
            if lists in attributes and lists not in schema.attributes:
                inputs.append(self.ints(attributes.pop(lists)))
        made = self.b.add(name, inputs, attributes, outputs, kind, wild=wild)
        return made[0] if outputs == 1 else made

    # --- chance ---

    def chance(self, p):
        return self.r.random() < p

    def one(self, *choices):
        return self.r.choice(choices)

    def shuffled(self, *things):
        return self.r.sample(things, len(things))

    def afford(self, multiplications):
        if multiplications > self.left:
            raise Skip("too many multiplications")
        self.left -= multiplications

    def need(self, condition):
        """Raises Skip if the condition, which an idiom requires of its operand, does not hold."""
        if not condition:
            raise Skip("not of that shape")

    # --- constants and inputs ---

    def scalar(self, number, type=None):
        v = self.b.constant(np.asarray(number, rows.NP[type or self.type]).reshape(self.one((), (), (1,))))
        v.wild = has_wild(v.array)
        return v

    def ints(self, numbers):
        """Returns sizes or axes: mostly a constant."""
        array = np.asarray(numbers, np.int64)
        return self.b.constant(array) if not self.b.sizes and self.chance(0.9) else self.b.ints(array)

    def array(self, shape, lo=-1.0, hi=1.0, type=None):
        return draw_array(self.r, type or self.type, tuple(shape), lo, hi)

    def const(self, array):
        return self.b.constant(np.asarray(array))

    def input(self, shape, lo=-2.0, hi=2.0, type=None):
        return self.b.new_input(self.array(shape, lo, hi, type))

    def weights(self, shape, terms):
        """Returns weights such that sums of this many terms are about as large as the operand."""
        most = float(np.sqrt(3.0 / terms))
        array = self.array(shape, -most, most)
        return self.const(array) if self.chance(0.85) else self.b.new_input(array)

    def vector(self, n, middle=0.0, shape=None):
        """Returns biases (near 0) or scales (near 1)."""
        array = self.array((n,) if shape is None else shape, middle - 0.5, middle + 0.5)
        return self.const(array) if self.chance(0.9) else self.b.new_input(array)

    def indices(self, shape, count, type="int64"):
        array = draw_array(self.r, type, tuple(shape), 0, count - 1)
        return self.b.new_input(array) if self.chance(0.7) else self.const(array)

    # --- operands ---

    def source(self, takes):
        """Returns a new value of that kind."""
        r = self.r
        channels = r.choice(CHANNELS)
        most = {16: 56, 24: 56, 32: 56, 48: 28, 64: 28, 96: 20}[channels]
        side = min(most, r.choice((7, 8, 14, 14, 16, 20, 28, 56)))
        batch = r.choice((1, 1, 2, 3))
        steps = r.choice((8, 16, 17, 32, 49, 64, 128))
        shape = {
            "image": (batch, channels, side, side if r.random() < 0.8 else max(7, side - 3)),
            "rows": (batch, steps, channels),
            "heads": (batch, r.choice((2, 4, 8)), steps, r.choice((8, 16, 32))),
            "matrix": (r.choice((1, 2, 4, 8, 16, 32, 64)), channels),
            "volume": (r.choice((1, 2)), r.choice((8, 16, 24)), r.choice((3, 4, 8)), r.choice((7, 8, 14)), 8),
        }
        shape = shape[takes if takes != "any" else r.choice(list(shape))]
        if size_of(shape) > MOST:
            shape = (1,) + shape[1:]
        if self.chance(0.05):
            return self.const(self.array(shape, -2, 2))
        v = self.input(shape)
        return self.node("Relu", v) if self.chance(0.3) else v

    def alike(self, x):
        """Returns the existing values that have x's type and shape."""
        return [
            v for v in self.b.values if v.type == x.type and v.shape == x.shape and v.finite and not v.wild
        ]

    def other(self, x):
        """Returns an operand of x's shape: x, a view of it, an existing value, an input, or a constant."""
        chance = self.r.random()
        if chance < 0.15:
            return x
        if chance < 0.3:
            return self.view(x)
        found = self.alike(x)
        if chance < 0.75 and found:
            return self.r.choice(found[-8:])
        if chance < 0.9:
            return self.input(x.shape)
        return self.const(self.array(x.shape))

    def view(self, x):
        """Returns x after nodes that change nothing, such as a Reshape and back."""
        way = self.r.randrange(4)
        if way == 0 and x.rank >= 2:
            return self.reshape(self.reshape(x, (-1, x.shape[-1])), x.shape)
        if way == 1:
            return self.Squeeze(self.Unsqueeze(x, axes=[0]), axes=[0])
        if way == 2 and x.rank == 4:
            flat = self.reshape(x, x.shape[:2] + (x.shape[2] * x.shape[3],))
            return self.reshape(flat, x.shape)
        if way == 3 and x.rank >= 3:
            perm = [0] + list(range(2, x.rank)) + [1]
            return self.Transpose(self.Transpose(x, perm=perm), perm=[int(p) for p in np.argsort(perm)])
        return self.Identity(x)

    def maybe_view(self, x):
        return self.view(x) if self.chance(0.2) else x

    # --- movement ---

    def reshape(self, x, shape):
        shape = list(shape)
        if -1 in shape:
            k = shape.index(-1)
            shape[k] = x.size // -size_of(shape)
        self.need(size_of(shape) == x.size)
        written = list(shape)
        if self.chance(0.4):
            written[self.r.randrange(len(written))] = -1
        elif self.chance(0.3):
            written = [0 if k < x.rank and d == x.shape[k] else d for k, d in enumerate(written)]
        return self.Reshape(x, self.ints(written))

    def transpose(self, x, *perm):
        return self.Transpose(x, perm=list(perm))

    def swap(self, x):
        """Exchanges the last two dimensions."""
        return self.transpose(x, *range(x.rank - 2), x.rank - 1, x.rank - 2)

    def slice(self, x, axis, start, end, step=1):
        operands = [self.const(np.array([n], np.int64)) for n in (start, end, axis, step)]
        return self.Slice(x, *operands[: 4 if step != 1 or self.chance(0.3) else 3])

    def split(self, x, axis, parts):
        """Splits x into equal parts, by Split or by slices."""
        n = x.shape[axis]
        self.need(n % parts == 0)
        if self.chance(0.6):
            equal = self.b.opset >= 18
            more = {"num_outputs": parts} if equal else {"split": [n // parts] * parts}
            return self.Split(x, outputs=parts, axis=axis, **more)
        return [self.slice(x, axis, k * n // parts, (k + 1) * n // parts) for k in range(parts)]

    def concat(self, values, axis):
        return self.Concat(*values, axis=axis)

    def expand(self, x, shape, **more):
        return self.Expand(x, self.ints(shape), **more)

    def pad(self, x, pads, value=None, mode="constant"):
        """pads: a list of (axis, before, after)."""
        numbers = np.zeros((2, x.rank), np.int64)
        for axis, before, after in pads:
            numbers[:, axis] = before, after
        return self.Pad(x, self.const(numbers.reshape(-1)), value and self.scalar(value, x.type), mode=mode)

    def clip(self, x, lo=None, hi=None):
        bounds = [None if v is None else self.const(np.asarray(v, rows.NP[x.type])) for v in (lo, hi)]
        return self.Clip(x, *bounds)

    # --- contractions ---

    def matmul(self, x, y):
        self.afford(size_of(x.shape) * y.shape[-1])
        return self.MatMul(x, y)

    def linear(self, x, n, bias=None):
        """Returns x @ w + b over the last dimension."""
        k = x.shape[-1]
        bias = self.chance(0.7) if bias is None else bias
        if x.rank == 2 and self.chance(0.5):
            self.afford(x.size * n)
            turned = self.chance(0.5)
            w = self.weights((n, k) if turned else (k, n), k)
            return self.Gemm(x, w, *[self.vector(n)] * bias, transB=int(turned))
        y = self.matmul(x, self.weights((k, n), k))
        return self.Add(y, self.vector(n)) if bias else y

    def conv(self, x, m=None, kernel=3, stride=1, group=1, dilation=1, bias=None, pads=None):
        """Returns a convolution with as many spatial dimensions as x has; with stride 1 it does not change their sizes."""
        rank, c = x.rank - 2, x.shape[1]
        m = m or c
        self.need(rank >= 1 and c % group == 0 and m % group == 0)
        taps = kernel**rank
        places = [-(-d // stride) for d in x.shape[2:]]
        self.afford(x.shape[0] * m * size_of(places) * c // group * taps)
        w = self.weights((m, c // group) + (kernel,) * rank, c // group * taps)
        low = dilation * (kernel - 1) // 2
        pads = [low] * rank + [dilation * (kernel - 1) - low] * rank if pads is None else pads
        more = [self.vector(m)] * (self.chance(0.6) if bias is None else bias)
        attributes = {"dilations": [dilation] * rank} if dilation != 1 else {}
        return self.Conv(
            x,
            w,
            *more,
            kernel_shape=[kernel] * rank,
            strides=[stride] * rank,
            pads=pads,
            group=group,
            **attributes,
        )

    def depthwise(self, x, kernel=None, **more):
        return self.conv(x, x.shape[1], kernel or self.one(3, 3, 5, 7), group=x.shape[1], **more)

    def deconv(self, x, m=None, kernel=2, stride=2, group=1, pads=0):
        rank, c = x.rank - 2, x.shape[1]
        m = m or c
        self.need(rank >= 1 and c % group == 0 and m % group == 0)
        self.afford(x.size * m // group * kernel**rank)
        w = self.weights((c, m // group) + (kernel,) * rank, c // group * kernel**rank)
        more = [self.vector(m)] * self.chance(0.6)
        return self.ConvTranspose(
            x,
            w,
            *more,
            kernel_shape=[kernel] * rank,
            strides=[stride] * rank,
            pads=[pads] * 2 * rank,
            group=group,
        )

    def batch_norm(self, x):
        c = x.shape[1]
        w = [
            self.const(self.array((c,), lo, hi))
            for lo, hi in ((0.5, 1.5), (-0.5, 0.5), (-0.5, 0.5), (0.5, 2))
        ]
        return self.BatchNormalization(x, *w, epsilon=self.one(1e-5, 1e-3))

    # --- parts of other idioms ---

    def piece(self, names, x):
        return IDIOMS[self.r.choice(names.split())].make(self, x)

    def activation(self, x):
        from idioms import pieces

        return self.piece(pieces.ACTIVATIONS, x)

    def maybe_activation(self, x):
        return self.activation(x) if self.chance(0.5) else x

    def norm(self, x):
        """Returns a norm over the last dimension."""
        from idioms import pieces

        return self.piece(pieces.ROW_NORMS, x)


def calm(k, v):
    """Returns the value, scaled down if it is large, since sums of residuals grow."""
    if v.finite and max(abs(v.low), abs(v.high)) > 60:
        return k.Mul(v, 2.0 / max(abs(v.low), abs(v.high)))
    return v


def is_sure(v):
    """Returns whether the value's error is so small that many operations can follow."""
    return v.error <= 1e-3 * max(abs(v.low), abs(v.high))


def start(k, idiom):
    """Returns the value that the idiom starts from: mostly the newest one that fits, sometimes another one or a new one."""
    found = [v for v in k.made if idiom.fits(v) and v.finite and not v.wild and is_sure(v)]
    if found and k.chance(0.85):
        return found[-1] if k.chance(0.75) else k.r.choice(found)
    return k.source(idiom.takes)


def take(k, idiom):
    """Adds the idiom's nodes; if it turns out not to fit, the nodes that were added stay."""
    try:
        x = start(k, idiom)
        y = idiom.make(k, k.maybe_view(calm(k, x)))
        k.made += y if isinstance(y, list) else [y]
        k.b.root.idioms.append(idiom.name)
    except Skip as e:
        k.b.root.skips[f"{idiom.name}: {e}"[:60]] += 1
    except (ValueError, IndexError, OverflowError, ZeroDivisionError) as e:
        trace = e.__traceback__
        while trace.tb_next and "idioms" in trace.tb_next.tb_frame.f_code.co_filename:
            trace = trace.tb_next
        k.b.root.mishaps.append(f"{idiom.name}: {e!r} in line {trace.tb_lineno}")


def choose(r, wanted=None):
    """Returns the idioms that a graph consists of: a few that are used often, of some kinds or of any."""
    all_idioms = [i for i in IDIOMS.values() if not wanted or i.name in wanted]
    if r.random() < 0.7:
        kinds = r.choice(
            (
                ("image",),
                ("image", "any"),
                ("rows", "any"),
                ("rows", "heads", "matrix"),
                ("any",),
                ("volume", "any"),
                ("heads", "any"),
                ("rows", "image"),
            )
        )
        all_idioms = [i for i in all_idioms if i.takes in kinds] or all_idioms
    return r.sample(all_idioms, min(len(all_idioms), r.randint(1, 5)))


def build_graph(seed, table, entries, ort, wanted=None, any_sizes=False):
    """Returns the graph of a seed, and its builder.  wanted: the names of the idioms that it may consist of; any_sizes: it has
    other sizes, too."""
    import random

    r = random.Random(seed * 2 + 1)
    newest = min(table.newest, ort.newest_opset) if ort else table.newest
    menu = choose(r, wanted)
    opset = max([r.choice(OPSETS + (newest,) * 4)] + [i.since for i in menu])
    peer = ort if r.random() < 0.6 else None
    b = Builder(seed, table, entries, min(opset, newest), dense=("float",), peer=peer)
    b.most, b.idioms = MOST, []
    b.sizes = sizes.Sizes(b, CHANNELS) if any_sizes else None
    k = Kit(b)
    for _ in range(r.choice((1, 2, 2, 3, 3, 4, 6))):
        if len(b.nodes) > 70:
            break
        take(k, r.choices(menu, [i.weight for i in menu])[0])
    if r.random() < 0.1:
        b.menu = {
            "Add",
            "Mul",
            "Relu",
            "Transpose",
            "Reshape",
            "Concat",
            "Slice",
            "Sub",
            "Max",
            "Clip",
            "ReduceMax",
        }
        b.grow(r.randint(1, 6))
    return (finish(b) if b.nodes else None), b
