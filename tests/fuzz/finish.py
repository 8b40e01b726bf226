"""finish.py: the model of a grown graph: its outputs, symbolic sizes, functions."""

import onnx
from onnx import helper

from models import FUNCTIONS, IR_VERSION, make_model, opsets_of, value_info
from rows import CODE_OF_NP


class Graph:
    """A finished graph: the model, its inputs, and its values, with the errors that they may have."""

    def __init__(self, model, inputs, values, opset, places=()):
        self.model, self.inputs, self.values, self.opset = model, inputs, values, opset
        self.places = places  # for each of the other sizes (sizes.py) the values by name
        self.outputs = [o.name for o in model.graph.output]
        self.way = None  # (name, arguments of run_xla) of a variant, which is run in that way alone


def prune(b, r):
    """Removes most of the inputs and constants that no node uses, which were made for nodes that could not be added."""
    unused = {v.name for v in b.values if v.uses == 0 and (v.constant or v in b.inputs) and r.random() < 0.95}
    b.inputs = [v for v in b.inputs if v.name not in unused]
    b.initializers = [t for t in b.initializers if t.name not in unused]
    b.nodes = [n for n in b.nodes if n.op_type != "Constant" or n.output[0] not in unused]


# Outputs that a node may leave out, by number.
OPTIONAL = {
    "LSTM": (0, 1, 2),
    "GRU": (0, 1),
    "RNN": (0, 1),
    "MaxPool": (1,),
    "Dropout": (1,),
    "LayerNormalization": (1, 2),
    "SoftmaxCrossEntropyLoss": (1,),
    "Unique": (1, 2, 3),
    "Attention": (1, 2),
}


def leave_out(b, r):
    """Leaves out some of the optional outputs of nodes that no node uses: their names become empty."""
    unused = {v.name for v in b.values if v.uses == 0}
    for n in b.nodes:
        for k in () if n.domain else OPTIONAL.get(n.op_type, ()):
            if (
                k < len(n.output)
                and n.output[k] in unused
                and sum(map(bool, n.output)) > 1
                and r.random() < 0.3
            ):
                n.output[k] = ""


def make_function(b, r, outputs):
    """Sometimes makes a few nodes in a row a function of the model, which is called once."""
    if IR_VERSION[b.opset] < 8 or len(b.nodes) < 4 or r.random() > 0.2:
        return ()
    at = r.randrange(len(b.nodes) - 2)
    inside = b.nodes[at : at + r.randint(2, 6)]
    if any(a.type == onnx.AttributeProto.GRAPH for n in inside for a in n.attribute):
        return ()
    if any(n.op_type.startswith(("Random", "Bernoulli", "Multinomial")) for n in inside):
        return ()  # what they draw depends on their names
    made = [o for n in inside for o in n.output if o]
    taken = list(dict.fromkeys(i for n in inside for i in n.input if i and i not in made))
    wanted = (
        {o.name for o in outputs}
        | {v.name for n in b.nodes if n not in inside for v in b.captures(n)}
        | {i for n in b.nodes if n not in inside for i in n.input}
    )
    given = [o for o in made if o in wanted]
    if not given or len(set(given)) != len(given):
        return ()
    name = b.name("Function")
    function = helper.make_function(FUNCTIONS, name, taken, given, inside, opsets_of(b.opset))
    b.nodes[at : at + len(inside)] = [helper.make_node(name, taken, given, domain=FUNCTIONS)]
    return (function,)


def finish(b):
    """Returns the Graph.  Its outputs are all values that no node uses, some others, and a few inputs and constants.  Sometimes
    inputs get symbolic dimensions, one symbol for equal sizes; if the graph has other sizes (sizes.py), they always do."""
    r = b.r
    leave_out(b, r)
    made = {n for node in b.nodes for n in node.output}
    outputs = [v for v in b.values if v.name in made and not v.constant
               and (v.uses == 0 or v.name in b.kept or r.random() < 0.1)]
    outputs = outputs or [v for v in b.values if v.name in made and not v.constant][-1:]
    if not outputs:
        return None
    prune(b, r)
    constants = {t.name for t in b.initializers} | {i.name for i in b.inputs}
    outputs += [v for v in b.values if v.name in constants and v.uses and r.random() < 0.02]
    functions = make_function(b, r, outputs)
    symbolic = r.random() < 0.4
    names = {}

    def declared(v):
        if b.sizes:
            return value_info(v.name, v.array, b.sizes.dims(v, names))
        dims = []
        for d in v.shape:
            if symbolic and r.random() < 0.6:
                dims.append(None if r.random() < 0.15 else names.setdefault(d, f"N{len(names)}"))
            else:
                dims.append(d)
        return value_info(v.name, v.array, dims)

    inputs = [declared(v) for v in b.inputs]
    infos = [
        helper.make_tensor_value_info(v.name, CODE_OF_NP[v.array.dtype], None if symbolic or b.sizes else v.shape)
        for v in outputs
    ]
    model = make_model(b.nodes, inputs, infos, b.initializers, b.opset, functions=functions)
    places = [place.values for place in b.sizes.places] if b.sizes else ()
    return Graph(model, {v.name: v.array for v in b.inputs}, {v.name: v for v in b.values}, b.opset, places)
