"""sequences.py: sometimes a tensor goes through a sequence, and comes out unchanged.  This is no generator of an operator, since
these know tensors only: it adds a few nodes whose result is known beforehand."""

from onnx import helper

from rows import CODE_OF_NP
from values import Value


class Detour:
    """A list as it grows: the values in it, and its name in the graph."""

    def __init__(self, b, v):
        self.b, self.held = b, [v]
        if b.r.random() < 0.3:
            empty = self.node("SequenceEmpty", [], dtype=CODE_OF_NP[v.array.dtype])
            self.name = self.node("SequenceInsert", [empty, self.read(v)])
            return
        alike = [w for w in b.visible() if w.type == v.type]
        self.held += [b.r.choice(alike) for _ in range(b.r.randint(0, 3))]
        self.name = self.node("SequenceConstruct", [self.read(w) for w in self.held])

    def node(self, op, inputs, **attributes):
        self.b.nodes.append(helper.make_node(op, inputs, [self.b.name("s")], **attributes))
        return self.b.nodes[-1].output[0]

    def read(self, v):
        v.uses += 1
        return v.name

    def position(self, low, high):
        """Returns a position in [low, high], as a number and as a value of the graph."""
        at = self.b.r.randint(low, high)
        return at, self.read(self.b.ints(at, type=self.b.r.choice(["int32", "int64"])))

    def insert(self):
        n = len(self.held)
        at, where = self.position(-n, n) if n else (0, "")
        v = self.b.r.choice([w for w in self.b.visible() if w.type == self.held[0].type])
        self.name = self.node("SequenceInsert", [self.name, self.read(v), where])
        self.held.insert(at, v)

    def erase(self):
        n = len(self.held)
        if n > 1:
            at, where = self.position(-n, n - 1)
            self.name = self.node("SequenceErase", [self.name, where])
            del self.held[at]

    def identity(self):
        if self.b.opset >= 14:
            self.name = self.node("Identity", [self.name])

    def leave(self):
        n = len(self.held)
        at, where = self.position(-n, n - 1)
        v = self.held[at]
        made = Value(self.node("SequenceAt", [self.name, where]), v.array, exact=v.exact, error=v.error, varying=v.varying,
                     static=v.static)
        made.relative = v.relative
        self.b.values.append(made)
        if self.b.root.sizes:
            self.b.root.sizes.add_alias(made, v)


def detour(b):
    """Passes a value through a sequence, if this operator set has sequences."""
    schema = b.table.at[b.opset].get("SequenceConstruct")
    values = [v for v in b.visible() if schema and v.type in schema.types["T"]]
    if values:
        d = Detour(b, b.r.choice(values))
        for _ in range(b.r.randint(0, 3)):
            b.r.choice([d.insert, d.erase, d.identity])()
        d.leave()
