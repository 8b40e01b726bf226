"""nms_cases.py: NonMaxSuppression of random boxes; make_cases.py calls make()."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

F, I = T.FLOAT, T.INT64
N = h.make_node
rng = np.random.default_rng(1)


def boxes(batches, n, spread, centers=False):
    """Returns boxes as corners (y, x, y, x) in any order, or as center and size.  With a smaller spread more boxes overlap;
    some are equal."""
    first = rng.uniform(0, spread, (batches, n, 2))
    size = rng.uniform(0.5, 4, (batches, n, 2))
    if centers:
        b = np.concatenate([first, size], 2)
    else:
        b = np.concatenate([first, first + size], 2)
        flip = rng.random((2, batches, n)) < 0.3
        for axis in range(2):
            b[..., axis], b[..., axis + 2] = (np.where(flip[axis], b[..., axis + 2], b[..., axis]),
                                              np.where(flip[axis], b[..., axis], b[..., axis + 2]))
    b[:, n // 2:n // 2 + n // 8] = b[:, :n // 8]
    return b.astype(np.float32)


def scores(batches, classes, n, levels=None):
    """levels: the number of different scores, so that many are equal."""
    s = rng.random((batches, classes, n))
    return (np.round(s * levels) / levels if levels else s).astype(np.float32)


def spoiled(b, s):
    """Returns copies with NaN, infinities and boxes without area among the boxes, and with NaN and -0 among the scores."""
    b, s = b.copy(), s.copy()
    n = b.shape[1]
    for value in (np.nan, np.inf, -np.inf):
        b[:, rng.integers(0, n, 4), rng.integers(0, 4, 4)] = value
    b[:, rng.integers(0, n, 4), 2] = 0
    k = rng.integers(0, n, 3)
    b[:, k, 2:] = b[:, k, :2]
    s[:, :, rng.integers(0, n, 5)] = np.nan
    s[:, :, rng.integers(0, n, 5)] = -0.0
    s[:, :, rng.integers(0, n, 5)] = 0.0
    return b, s


def one(kind, value):
    return np.array([value], kind)


def make(case):
    all_inputs = [("b", F, ["batches", "n", 4]), ("s", F, ["batches", "classes", "n"]), ("m", I, [1]),
                  ("o", F, [1]), ("t", F, [1])]
    names = [i[0] for i in all_inputs]
    out = [("y", I, [None, 3])]

    def nms(inputs=names, **attributes):
        return N("NonMaxSuppression", inputs, ["y"], **attributes)

    def limits(m, o, t):
        return [one(np.int64, m), one(np.float32, o), one(np.float32, t)]

    # the limit and the thresholds are inputs, and each data set has sizes of its own
    sizes = [(1, 1, 1), (1, 1, 40), (2, 3, 50), (1, 80, 200), (3, 2, 33), (1, 2, 1000)]
    values = [(5, 0.5, 0.2), (40, 0.3, 0.0), (100, 0.0, 0.7), (3, 1.0, 0.5), (2**62, 0.45, -1.0), (1000, 0.7, 0.1)]
    for centers in (0, 1):
        case(f"nms_{'centers' if centers else 'corners'}", [nms(center_point_box=centers)], all_inputs, out,
             [[boxes(b, n, 10, centers), scores(b, c, n), *limits(*v)] for (b, c, n), v in zip(sizes, values)])
    # no box is chosen
    case("nms_nothing", [nms()], all_inputs, out,
         [[boxes(b, n, 10), scores(b, c, n), *limits(*v)]
          for b, c, n, v in [(1, 2, 20, (0, 0.5, 0.2)), (1, 2, 20, (-5, 0.5, 0.2)), (2, 2, 20, (10, 0.5, 2)),
                             (1, 2, 20, (10, 0.5, np.nan)), (1, 2, 0, (10, 0.5, 0.2)), (0, 2, 5, (10, 0.5, 0.2)),
                             (1, 0, 5, (10, 0.5, 0.2))]])
    # equal scores, also of equal boxes
    case("nms_ties", [nms()], all_inputs, out,
         [[boxes(2, 100, 8), scores(2, 2, 100, k), *limits(100, 0.4, 0.1)] for k in (1, 3, 10)])
    # boxes on a grid of powers of two: some overlap by exactly the threshold, and then none is suppressed
    grid = np.round(rng.uniform(0, 6, (1, 200, 2)))
    size = 2.0 ** rng.integers(0, 3, (1, 200, 2))
    grid = np.concatenate([grid, grid + size], 2).astype(np.float32)
    case("nms_boundary", [nms()], all_inputs, out,
         [[grid, scores(1, 2, 200, 20), *limits(200, o, 0.1)] for o in (0.25, 0.5, 1 / 3, 0.2, 1.0)])
    for centers in (0, 1):
        sets = [spoiled(boxes(2, 60, 6, centers), scores(2, 2, 60)) + tuple(limits(60, o, -1)) for o in (0.5, 0.0)]
        case(f"nms_spoiled_{centers}", [nms(center_point_box=centers)], all_inputs, out, sets)
    # the limit and the thresholds are constants or absent
    two = [("b", F, [2, 50, 4]), ("s", F, [2, 3, 50])]
    known = [("m", one(np.int64, 7)), ("o", one(np.float32, 0.4)), ("t", np.array(0.3, np.float32))]
    data = [[boxes(2, 50, 8), scores(2, 3, 50)] for _ in range(2)]
    data.append([data[0][0], np.where(data[0][1] < 0.5, -np.inf, data[0][1]).astype(np.float32)])
    case("nms_constants", [nms()], two, out, data, inits=known)
    case("nms_no_floor", [nms(["b", "s", "m", "o"])], two, out, data,
         inits=[("m", one(np.int64, 50)), known[1]])
    case("nms_no_overlap", [nms(["b", "s", "m", "", "t"])], two, out, data, inits=[known[0], known[2]])
    case("nms_no_number", [nms(["b", "s"])], two, out, data[:1])
    case("nms_of_constants", [nms(["b", "s", "m", "o", "t"])], [("m", I, [1])], out,
         [[one(np.int64, k)] for k in (3, 30, 0)], inits=[("b", data[0][0]), ("s", data[0][1]), known[1], known[2]])
    case("nms_version_10", [nms()], two, out, data, inits=known, opset=10)
    # as in detectors: boxes are computed, and the chosen boxes are gathered
    nodes = [N("Mul", ["raw", "scale"], ["b"]), N("Sigmoid", ["logits"], ["sg"]),
             N("Transpose", ["sg"], ["s"], perm=[0, 2, 1]), nms(), N("Gather", ["y", "two"], ["k"], axis=1),
             N("Squeeze", ["b", "zero"], ["b0"]),
             N("Gather", ["b0", "k"], ["kb"], axis=0), N("Gather", ["y", "one"], ["class"], axis=1),
             N("Reshape", ["k", "column"], ["k2"]), N("Sub", ["class", "class"], ["zeros"]),
             N("Concat", ["zeros", "class", "k2"], ["at"], axis=1), N("GatherND", ["s", "at"], ["ks"])]
    case("nms_then_gather", nodes, [("raw", F, [1, 300, 4]), ("logits", F, [1, 300, 5])],
         [("y", I, [None, 3]), ("kb", F, [None, 4]), ("ks", F, [None])],
         [[boxes(1, 300, 12), (3 * rng.standard_normal((1, 300, 5)) + shift).astype(np.float32)]
          for shift in (0, -3, -40)],
         inits=[("scale", np.array([2, 1, 2, 1], np.float32)), ("two", np.array(2)), ("one", np.array([1])),
                ("zero", np.array([0])), ("column", np.array([-1, 1])), ("m", one(np.int64, 20)),
                ("o", one(np.float32, 0.45)), ("t", one(np.float32, 0.25))])
