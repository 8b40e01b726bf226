"""registry.py: the operators that can be drawn, each with a function that draws its operands and attributes.

  @operators("Acos Asin", ulps=8)
  def arc(b, o):                                    b: build.Builder, o: build.Operation
      return [b.tensor(o.type("T"), lo=-0.9, hi=0.9)], {}      operands, attributes[, outputs[, kind]]

kind says what the operator does to floats, and so whether two right implementations give the same bits:
  exact   moves, selects or negates them: results are exact if the operands are
  round   rounds each result once or a few times: the error is `ulps` of the largest number
  sum     sums up in any order: the error is that of `round` plus as many roundings as there are terms
  step    is not continuous: takes exact operands only, and its results are exact
  shape   depends on sizes only
On integers and booleans every operator is exact."""

EXACT, ROUND, SUM, STEP = "exact", "round", "sum", "step"


class Skip(Exception):
    """What was drawn does not fit: the caller draws again."""


class Entry:
    def __init__(self, name, generate, kind, ulps, liked, control, inner, unit):
        self.name, self.generate, self.kind, self.ulps = name, generate, kind, ulps
        self.liked, self.control, self.inner, self.unit = liked, control, inner, unit


REGISTRY = {}
# Operators that builders add on their own: --only does not leave them out.
HELPERS = (
    "Identity Reshape Slice Expand Cast Shape Gather Concat Not Equal Xor Mean Min Max Add Sub Mul MaxPool".split()
)


def operators(names, kind="round", ulps=8, liked=1.0, control=False, inner=None, unit=0.0):
    """Registers a generator of operators.  liked: how often they are drawn in graphs that do not depend on the counts.  inner: the type
    in which some steps are computed, or factors are given, whatever the type of the operands is.  unit: the size of a result's terms,
    if these may cancel."""

    def take(generate):
        for name in names.split():
            assert name not in REGISTRY, name
            REGISTRY[name] = Entry(name, generate, kind, ulps, liked, control, inner, unit)
        return generate

    return take


def load():
    import ops.control  # noqa: F401
    import ops.elementwise  # noqa: F401
    import ops.movement  # noqa: F401
    import ops.nn  # noqa: F401
    import ops.quantize  # noqa: F401
    import ops.random  # noqa: F401
    import ops.reduce  # noqa: F401
    import ops.signal  # noqa: F401

    return REGISTRY


def load_microsoft():
    """Returns the entries with those of the operators that ONNX Runtime defines."""
    load()
    import ops.microsoft  # noqa: F401

    return REGISTRY


def axes_input(b, o, axes, inputs, attributes):
    """Adds the axes where this version has them: as an attribute, or as the last operand."""
    if axes is None:
        return inputs, attributes
    if o.has("axes"):
        attributes["axes"] = list(axes)
        return inputs, attributes
    return inputs + [b.ints(axes)], attributes


def some_axis(b, rank, since_negative=True):
    """Returns an axis for that rank; in half of the cases a negative one."""
    k = b.r.randrange(rank)
    return k - rank if since_negative and b.r.random() < 0.5 else k


def some_axes(b, rank, negative=True):
    n = b.r.randint(1, rank)
    axes = sorted(b.r.sample(range(rank), n))
    if negative and b.r.random() < 0.3:
        axes = [k - rank for k in axes]
    return axes
