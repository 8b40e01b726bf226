"""Gradient of ai.onnx.preview.training in whole graphs of double precision.  Expected are central differences of what ONNX's reference
evaluator gives for the graph without the Gradient: with h = 1e-5 they are exact to about 1e-9, since all numbers are near 1."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

DOMAIN = "ai.onnx.preview.training"
STEP = 1e-5
rng = np.random.default_rng(23)


def draw(*shape, low=-1.0, high=1.0):
    return np.asarray(rng.uniform(low, high, shape))


def differences(graph, opset, values, xs, y):
    """d sum(y) / dx for all elements of all xs, one after the other."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    run = ReferenceEvaluator(model)
    found = []
    for name in xs:
        d = np.zeros(values[name].shape)
        for at in np.ndindex(*d.shape):
            ends = []
            for h in (STEP, -STEP):
                moved = dict(values)
                moved[name] = values[name].copy()
                moved[name][at] += h
                ends.append(float(np.sum(run.run([y], moved)[0])))
            d[at] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(d)
    return found


def graph_of(text, values, outputs):
    """Returns the graph that consists of the text's nodes, with typed inputs; its weights are inputs, too."""
    head = ", ".join("%s[%s] %s" % ("double" if v.dtype == np.float64 else "int64", ",".join(map(str, v.shape)), k)
                     for k, v in values.items())
    return parser.parse_graph("g (%s) => (%s) { %s }" % (head, ", ".join("double " + o for o in outputs), text))


def write(w, name, text, values, xs, y="loss", opset=20, constants=(), spelled=()):
    """Writes a case: the gradient of y by xs.  constants: those of xs that are initializers of the model, not inputs.  spelled: pairs of
    a node of the text and the nodes that replace it for the reference evaluator, which cannot compute that node in f64."""
    graph = graph_of(text, values, [y])
    for node, nodes in spelled:
        assert node in text
        text = text.replace(node, nodes)
    expected = differences(graph_of(text, values, [y]), opset, values, xs, y)
    node = helper.make_node("Gradient", xs, ["d_" + x for x in xs], domain=DOMAIN, xs=xs, y=y)
    graph.node.append(node)
    del graph.output[:]
    for x, d in zip(xs, expected):
        graph.output.append(helper.make_tensor_value_info("d_" + x, TensorProto.DOUBLE, d.shape))
    for x in constants:
        graph.initializer.append(numpy_helper.from_array(values[x], x))
        graph.input.remove(next(i for i in graph.input if i.name == x))
    w.add_graph("Gradient_" + name, graph, [(i.name, values[i.name]) for i in graph.input],
                [("d_" + x, d) for x, d in zip(xs, expected)],
                [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)])


def write_networks(w):
    labels = np.array([2, 0, 1], np.int64)
    gelu = 'g = Gelu<approximate = "tanh">(h1)'
    write(w, "mlp", """
        h1 = Gemm<transB = 1>(x, w1, b1)  """ + gelu + """  h2 = MatMul(g, w2)
        loss = SoftmaxCrossEntropyLoss<reduction = "mean">(h2, labels)""",
          {"x": draw(3, 4), "w1": draw(5, 4), "b1": draw(5), "w2": draw(5, 3), "labels": labels}, ["x", "w1", "b1", "w2"],
          constants=["w1", "w2"], spelled=[(gelu, """
        c0 = Constant<value = double {0.044715}>()  c1 = Constant<value = double {0.7978845608028654}>()
        half = Constant<value = double {0.5}>()  hh = Mul(h1, h1)  hhh = Mul(hh, h1)  c = Mul(hhh, c0)  s = Add(h1, c)
        t = Mul(s, c1)  e = Tanh(t)  he = Mul(e, half)  phi = Add(he, half)  g = Mul(h1, phi)""")])
    write(w, "cnn", """
        c1 = Conv<pads = [1, 1, 1, 1], strides = [2, 1]>(x, k1, b1)  r1 = Relu(c1)
        p1 = MaxPool<kernel_shape = [2, 2], strides = [1, 2]>(r1)
        c2 = Conv<group = 2, dilations = [1, 2], pads = [0, 1, 1, 0]>(p1, k2)
        n2 = InstanceNormalization(c2, scale, shift)  s2 = Sigmoid(n2)
        a2 = AveragePool<kernel_shape = [2, 2], pads = [1, 0, 0, 1]>(s2)
        f = Flatten(a2)  z = MatMul(f, w3)
        loss = SoftmaxCrossEntropyLoss<reduction = "sum">(z, labels)""",
          {"x": draw(3, 2, 6, 6), "k1": draw(4, 2, 3, 3), "b1": draw(4), "k2": draw(2, 2, 2, 2), "scale": draw(2, low=0.5), "shift": draw(2),
           "w3": draw(8, 3), "labels": labels}, ["k1", "b1", "k2", "scale", "shift", "w3"])
    norm = "n = LayerNormalization<axis = -1, stash_type = 11, epsilon = 1e-3>(x, scale, shift)"
    write(w, "transformer", """
        c = Constant<value_ints = [2, 3, 2, 2]>()  m = Constant<value_ints = [2, 3, 4]>()
        """ + norm + """
        q0 = MatMul(n, wq)  k0 = MatMul(n, wk)  v0 = MatMul(n, wv)
        q1 = Reshape(q0, c)  k1 = Reshape(k0, c)  v1 = Reshape(v0, c)
        q = Transpose<perm = [0, 2, 1, 3]>(q1)  k = Transpose<perm = [0, 2, 3, 1]>(k1)  v = Transpose<perm = [0, 2, 1, 3]>(v1)
        s = MatMul(q, k)  p = Softmax<axis = -1>(s)  o0 = MatMul(p, v)
        o1 = Transpose<perm = [0, 2, 1, 3]>(o0)  o = Reshape(o1, m)  r = Add(o, x)  t = Tanh(r)  u = Mul(t, r)
        loss = ReduceMean<keepdims = 0>(u)""",
          {"x": draw(2, 3, 4), "scale": draw(4), "shift": draw(4), "wq": draw(4, 4), "wk": draw(4, 4), "wv": draw(4, 4)},
          ["x", "scale", "shift", "wq", "wk", "wv"], spelled=[(norm, """
        mean = ReduceMean<axes = [2]>(x)  d = Sub(x, mean)  dd = Mul(d, d)  var = ReduceMean<axes = [2]>(dd)
        epsilon = Constant<value = double {1e-3}>()  e = Add(var, epsilon)  dev = Sqrt(e)  z = Div(d, dev)  zs = Mul(z, scale)
        n = Add(zs, shift)""")], opset=17)
    write(w, "recurrent", """
        e = Gather(table, words)  y0, h0 = LSTM<hidden_size = 2>(e, w, r, b, , h, c)
        s0 = Shape<start = 0, end = 2>(y0)  rest = Constant<value_ints = [-1]>()  sh = Concat<axis = 0>(s0, rest)
        yt = Transpose<perm = [0, 2, 1, 3]>(y0)  t0 = Slice(yt, one, end)  h1 = Mul(h0, h0)  l1 = ReduceSum<keepdims = 0>(h1)
        l0 = ReduceLogSumExp<keepdims = 0>(t0)  loss = Add(l0, l1)""",
          {"table": draw(5, 3), "words": np.array([[1, 0], [4, 1], [1, 1]], np.int64), "w": draw(1, 8, 3), "r": draw(1, 8, 2), "b": draw(1, 16),
           "h": draw(1, 2, 2), "c": draw(1, 2, 2),
           "one": np.array([1], np.int64), "end": np.array([3], np.int64)}, ["table", "w", "r", "b", "h", "c"])


def write_meanings(w):
    """Cases of what the names in Gradient's attributes may be: intermediate values, names for which other values are given,
    values on which y does not depend, and y itself."""
    x, v = draw(3), draw(3)
    ones = np.ones(3)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]

    def case(name, text, inputs, outputs):
        head = ", ".join("double[%s] %s" % (",".join(map(str, a.shape)), k) for k, a in inputs)
        graph = parser.parse_graph("g (%s) => (%s) { %s }" % (head, ", ".join("double[3] " + k for k, _ in outputs), text))
        w.add_graph("Gradient_" + name, graph, inputs, outputs, opsets)

    gradient = DOMAIN + ".Gradient"
    case("intermediate", """h = Mul(x, x) y = Mul(h, x)
         dh = %s<xs = ["h"], zs = ["x"], y = "y">(h, x)""" % gradient, [("x", x)], [("dh", x)])
    case("other_values", """h = Mul(x, x) y = Mul(h, v)
         dx, dv = %s<xs = ["x", "v"], y = "y">(v, x)""" % gradient, [("x", x), ("v", v)], [("dx", 2 * v * x), ("dv", v * v)])
    case("independent", """y = Exp(v) z = Neg(x)
         dx, dv = %s<xs = ["x", "v"], y = "y">(x, v)""" % gradient, [("x", x), ("v", v)], [("dx", 0 * x), ("dv", np.exp(v))])
    case("itself", """y = Exp(x) dy, dx = %s<xs = ["y", "x"], y = "y">(y, x)""" % gradient, [("x", x)], [("dy", ones), ("dx", 0 * x)])
    case("left_out", """y = Mul(x, v) , dv = %s<xs = ["x", "v"], y = "y">(x, v)""" % gradient, [("x", x), ("v", v)], [("dv", x)])
    case("before_y", """dx = %s<xs = ["x"], y = "y">(x) a = Sin(v) h = Mul(x, a) y = Mul(h, x)""" % gradient,
         [("x", x), ("v", v)], [("dx", 2 * x * np.sin(v))])
    case("second_order", """h = Mul(x, x) y = Mul(h, v) d1, dv = %s<xs = ["x", "v"], y = "y">(x, v)
         d2, dm = %s<xs = ["x", "v"], y = "d1">(x, v) d3 = %s<xs = ["v"], y = "d2">(v)""" % ((gradient,) * 3),
         [("x", x), ("v", v)], [("d1", 2 * x * v), ("d2", 2 * v), ("dm", 2 * x), ("d3", 2 * ones)])
    case("trained", """y = Sin(x) d = %s<xs = ["x"], y = "y">(x) r = Constant<value_float = 0.5>() t = Constant<value_int = 0>()
         z = Constant<value = double[3] {0, 0, 0}>()
         n, s = %s.Momentum<alpha = 0.5, beta = 1.0, mode = "standard", norm_coefficient = 0.0>(r, t, x, d, z)""" % (gradient, DOMAIN),
         [("x", x)], [("n", x - 0.5 * np.cos(x)), ("s", np.cos(x))])


def write_gradients(w):
    write_networks(w)
    write_meanings(w)
