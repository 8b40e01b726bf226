"""Trees of the domain ai.onnx.ml, as converters of scikit-learn, LightGBM and XGBoost write them."""
import itertools

import numpy as np
from onnx import TensorProto, numpy_helper

from runtime_cases import F32, MACHINE_LEARNING, floats, ints, rng

S64, F64 = TensorProto.INT64, TensorProto.DOUBLE
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
LEAF = "LEAF"


def eighths(*dims):
    """Numbers of which sums are exact, so that labels do not depend on the order of sums."""
    return rng.integers(-40, 41, dims) / 8


class Tree:
    """A tree of random shape.  Lists have an element for each node, in the order in which a walk meets them."""
    def __init__(self, depth, features, modes=MODES[:1], values=eighths, early=0.2):
        self.modes, self.features, self.values, self.children = [], [], [], []
        self._grow(depth, features, modes, values, early)

    def _grow(self, depth, features, modes, values, early):
        at = len(self.modes)
        leaf = depth == 0 or (at > 0 and rng.random() < early)
        self.modes.append(LEAF if leaf else str(rng.choice(modes)))
        self.features.append(0 if leaf else int(rng.integers(features)))
        self.values.append(0.0 if leaf else float(values(1)[0]))
        self.children.append((0, 0))
        if not leaf:
            self.children[at] = tuple(self._grow(depth - 1, features, modes, values, early) for _ in range(2))
        return at

    def leaves(self):
        return [k for k, mode in enumerate(self.modes) if mode == LEAF]


def chain(length, features):
    """A tree whose inner nodes follow one another."""
    t = Tree(0, 1)
    t.modes, t.features = [*["BRANCH_LEQ", LEAF] * length, LEAF], [k // 2 % features for k in range(2 * length + 1)]
    t.values = [3 - 6 * (k // 2) / length for k in range(2 * length + 1)]
    t.children = [(k + 2, k + 1) if k % 2 == 0 else (0, 0) for k in range(2 * length)] + [(0, 0)]
    return t


def sets_tree(depth, features, sizes=(1, 2, 9)):
    """A tree whose splits test whether a feature is one of several whole numbers: comparisons that follow one another and lead to the
    same node, as converters of LightGBM and XGBoost write categories.  Some such chains are broken by another comparison."""
    t = Tree(0, 1)
    t.modes, t.features, t.values, t.children = [], [], [], []

    def add(mode, feature=0, value=0.0):
        t.modes.append(mode), t.features.append(feature), t.values.append(float(value)), t.children.append((0, 0))
        return len(t.modes) - 1

    def grow(depth):
        if depth == 0:
            return add(LEAF)
        feature, members = int(rng.integers(features)), rng.choice(np.arange(-5, 6), rng.choice(sizes), replace=False)
        chain = [add("BRANCH_EQ", feature, m) for m in members]
        if depth == 2:
            chain.insert(1, add("BRANCH_LEQ", feature, -2))
        last, on_true = grow(depth - 1), grow(depth - 1)
        for k, at in enumerate(chain):
            t.children[at] = (on_true, (chain + [last])[k + 1])
        return chain[0]
    grow(depth)
    return t


def nodes_of(trees, missing=False):
    """The attributes nodes_* of TreeEnsembleRegressor and TreeEnsembleClassifier."""
    each = [(t, k) for t, tree in enumerate(trees) for k in range(len(tree.modes))]
    attributes = {"nodes_treeids": [t for t, _ in each], "nodes_nodeids": [k for _, k in each],
                  "nodes_modes": [trees[t].modes[k] for t, k in each], "nodes_values": [trees[t].values[k] for t, k in each],
                  "nodes_featureids": [trees[t].features[k] for t, k in each],
                  "nodes_truenodeids": [trees[t].children[k][0] for t, k in each],
                  "nodes_falsenodeids": [trees[t].children[k][1] for t, k in each]}
    if missing:
        attributes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(each)).tolist()
    return attributes


def votes_of(trees, targets, kind="target", weights=eighths, own=False, share=1.0):
    """The attributes target_* or class_*.  own: each tree votes for one target only; share: how many of a leaf's votes exist."""
    each = [(t, k, c) for t, tree in enumerate(trees) for k in tree.leaves() for c in range(targets)
            if (c == t % targets if own else rng.random() < share)]
    ids = "class_ids" if kind == "class" else "target_ids"
    return {kind + "_treeids": [t for t, _, _ in each], kind + "_nodeids": [k for _, k, _ in each], ids: [c for _, _, c in each],
            kind + "_weights": weights(len(each)).astype(np.float32).tolist()}


def rows(n, features=5, dtype=np.float32, missing=False):
    x = ints(-40, 41, n, features, dtype=dtype) if dtype in (np.int32, np.int64) else (eighths(n, features)).astype(dtype)
    return np.where(rng.random((n, features)) < 0.2, np.array(np.nan, dtype), x) if missing else x


def sets_of(dtype=np.float32, missing=False, sizes=(1, 6, 40)):
    return [[rows(n, dtype=dtype, missing=missing)] for n in sizes]


def forest(count=7, depth=4, **more):
    return [Tree(depth, 5, **more) for _ in range(count)]


def regress(w, trees, targets=1, sets=None, missing=False, votes=None, **attributes):
    attributes = nodes_of(trees, missing) | (votes or votes_of(trees, targets)) | {"n_targets": targets} | attributes
    sets = sets or sets_of(missing=missing)
    floating = sets[0][0].dtype in (np.float32, np.float64)  # ONNX Runtime has no kernels for integers
    w.add("TreeEnsembleRegressor", sets, [F32], attributes, domain=MACHINE_LEARNING, expected=None if floating else
          lambda x: w.run("TreeEnsembleRegressor", [x.astype(np.float32)], [F32], attributes, MACHINE_LEARNING))


def write_regressors(w):
    for opset, mode in itertools.product((1, 3), MODES):
        w.machine_learning_opset = opset
        regress(w, forest(modes=[mode]))
        regress(w, forest(modes=[mode]), missing=True)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        regress(w, forest(modes=MODES), sets=sets_of(dtype))
        regress(w, forest(modes=MODES[:2]), targets=3, sets=sets_of(dtype))
    for how, targets, missing in itertools.product(("SUM", "AVERAGE", "MIN", "MAX"), (1, 3), (False, True)):
        regress(w, forest(modes=MODES), targets, missing=missing, aggregate_function=how)
        regress(w, forest(), targets, base_values=eighths(targets).tolist(), aggregate_function=how)
        trees = forest()
        regress(w, trees, targets, votes=votes_of(trees, targets, own=True), aggregate_function=how)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):  # some rows get no vote for some targets
        trees = forest(4)
        regress(w, trees, 3, votes=votes_of(trees, 3, share=0.3), aggregate_function=how)
        write_without_votes(w, nodes_of(trees) | votes_of(trees, 5, own=True) | {"n_targets": 5, "aggregate_function": how})
    for transform, targets in itertools.product(("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"), (1, 2, 4)):
        regress(w, forest(2), targets, post_transform=transform)
    trees = [chain(1, 5)]
    regress(w, trees, votes=votes_of(trees, 1, weights=lambda n: rng.choice([0.125, 0.25, 0.75], n)), post_transform="PROBIT")
    write_graphs(w)
    write_shapes(w)
    write_wide(w)


def write_without_votes(w, attributes):
    """The standard adds base values to all targets, and ONNX Runtime to those that get a vote."""
    base = eighths(attributes["n_targets"]).astype(np.float32)
    w.add("TreeEnsembleRegressor", sets_of(), [F32], attributes | {"base_values": base.tolist()}, domain=MACHINE_LEARNING,
          expected=lambda x: [w.run("TreeEnsembleRegressor", [x], [F32], attributes, MACHINE_LEARNING)[0] + base])


def write_graphs(w):
    """Nodes with several parents, and leaves with several weights for one target."""
    w.machine_learning_opset = 3
    for dtype, missing in itertools.product((np.float32, np.float64), (False, True)):
        x = [[np.round(rows(n, 3, dtype, missing))] for n in (1, 6, 40)]
        regress(w, [sets_tree(4, 3) for _ in range(5)], 2, sets=x)
    trees = [sets_tree(3, 3) for _ in range(4)]
    classify(w, trees, votes_of(trees, 3, "class"), 3, sets=x)
    diamond = Tree(0, 1)
    diamond.modes, diamond.features, diamond.values = ["BRANCH_LEQ"] * 4 + [LEAF] * 3, [0, 1, 2, 3, 0, 0, 0], [0.0] * 7
    diamond.children = [(1, 2), (3, 4), (5, 3), (5, 6)] + [(0, 0)] * 3
    regress(w, [diamond, *forest(2)], 2)
    for how, targets in itertools.product(("SUM", "AVERAGE", "MIN", "MAX"), (1, 3)):
        trees = forest(3)
        votes, more = votes_of(trees, targets), votes_of(trees, targets)
        regress(w, trees, targets, votes={k: more[k] + v for k, v in votes.items()}, aggregate_function=how)
    votes = votes_of(trees, 3, "class")
    classify(w, trees, {k: v * 2 for k, v in votes.items()}, 3)


def write_shapes(w):
    """Single leaves, chains, deep trees, and batches without rows."""
    for depth, length in itertools.product((5, 22), (3, 16, 17, 90)):
        regress(w, [Tree(0, 1), *forest(3, depth), chain(length, 5), Tree(0, 1)], 2)
    for targets in (1, 2):
        regress(w, [Tree(0, 1)], targets)
        regress(w, [Tree(0, 1)] * 3, targets)
    regress(w, forest(), sets=sets_of(sizes=(0,)))
    regress(w, [chain(40, 5)], sets=sets_of(sizes=(0,)))
    trees = forest(6)
    attributes = nodes_of(trees)
    for name in ("nodes_treeids", "nodes_nodeids"):  # any numbers
        attributes[name] = [3 * k * k - 11 for k in attributes[name]]
    votes = votes_of(trees, 1)
    moved = {k: [3 * j * j - 11 for j in v] for k, v in votes.items() if k.endswith("treeids") or k.endswith("nodeids")}
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        attributes[name] = [3 * k * k - 11 for k in attributes[name]]
    w.add("TreeEnsembleRegressor", sets_of(), [F32], attributes | votes | moved | {"n_targets": 1}, domain=MACHINE_LEARNING,
          expected=lambda x: w.run("TreeEnsembleRegressor", [x], [F32], nodes_of(trees) | votes | {"n_targets": 1}, MACHINE_LEARNING))


def write_wide(w):
    """Numbers in f64, which f32 does not have."""
    trees = forest(modes=MODES[:4], values=lambda n: floats(n, dtype=np.float64))
    votes = votes_of(trees, 2)
    attributes = nodes_of(trees) | votes | {"n_targets": 2}
    for name in ("nodes_values", "target_weights"):
        attributes[name + "_as_tensor"] = numpy_helper.from_array(np.array(attributes.pop(name), np.float64))
    attributes["base_values_as_tensor"] = numpy_helper.from_array(np.array([0.1, -0.2]))
    values = np.array([v for t in trees for v in t.values])
    x = [[np.nextafter(rng.choice(values, (n, 5)), rng.choice([-9.0, 9.0], (n, 5)))] for n in (4, 30)]
    w.add("TreeEnsembleRegressor", x, [F32], attributes, domain=MACHINE_LEARNING)
    w.add("TreeEnsembleRegressor", [[y.astype(np.float32)] for y, in x], [F32], attributes, domain=MACHINE_LEARNING,
          expected=lambda x: w.run("TreeEnsembleRegressor", [x.astype(np.float64)], [F32], attributes, MACHINE_LEARNING))


LABELS = [7, -2, 5, 30, 11, 0]


def classify(w, trees, votes, labels, sets=None, missing=False, expected=None, kinds=(S64, F32), **attributes):
    attributes = nodes_of(trees, missing) | votes | ({"classlabels_int64s": LABELS[:labels]} if labels else {}) | attributes
    expected = expected and expected(w, attributes)
    w.add("TreeEnsembleClassifier", sets or sets_of(missing=missing), kinds, attributes, domain=MACHINE_LEARNING, expected=expected)


def as_three(w, attributes):
    """The result for two classes that both have weights, of which ONNX Runtime has the labels wrong, and also the scores if there are
    base values: those of a classifier with a third class that nothing votes for."""
    base = {"base_values": attributes["base_values"] + [-1e9]} if "base_values" in attributes else {}

    def expected(x):
        more = attributes | base | {"classlabels_int64s": LABELS[:3], "post_transform": "NONE"}
        more |= {k: v + [v[0] if k != "class_ids" else 2] for k, v in attributes.items() if k in ("class_treeids", "class_nodeids", "class_ids")}
        more["class_weights"] = attributes["class_weights"] + [-1e9]
        label, scores = w.run("TreeEnsembleClassifier", [x], [S64, F32], more, MACHINE_LEARNING)
        return [label, scores[:, :2]]
    return expected


def write_classifiers(w):
    for opset in (1, 3):
        w.machine_learning_opset = opset
        for transform, positive, only in itertools.product(("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"), (False, True), (0, 1)):
            def weights(n):
                return np.abs(eighths(n)) / 16 if positive else eighths(n)
            trees = forest()
            votes = votes_of(trees, 1, "class", weights)
            votes["class_ids"] = [only] * len(votes["class_ids"])
            classify(w, trees, votes, 2, post_transform=transform)
            if only == 0:
                classify(w, trees, votes, 2, post_transform=transform, base_values=[0.25])
        for transform, labels, own in itertools.product(("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"), (3, 6), (False, True)):
            trees = forest(2 * labels)
            votes = votes_of(trees, labels, "class", own=own)
            classify(w, trees, votes, labels, post_transform=transform, missing=own)
            classify(w, trees, votes, labels, post_transform=transform, base_values=eighths(labels).tolist())
    trees = [*forest(3), Tree(0, 1)]
    for share in (0.2, 0.6):  # some rows get no vote for some classes, but all get one
        votes = votes_of(trees[:3], 4, "class", share=share)
        last = {"class_treeids": 3, "class_nodeids": 0, "class_ids": 2, "class_weights": -2.5}
        classify(w, trees, {k: v + [last[k]] for k, v in votes.items()}, 4)
    classify(w, trees, votes_of(trees, 6, "class", weights=lambda n: -np.abs(eighths(n)), own=True), 6)
    for own in (False, True):
        trees = forest(8, modes=MODES)
        votes = votes_of(trees, 2, "class", own=own)
        classify(w, trees, votes, 2, expected=as_three, missing=True)
        classify(w, trees, votes, 2, expected=as_three, base_values=[0.5, -0.25])
    for dtype in (np.float64, np.int32, np.int64):
        classify(w, trees, votes_of(trees, 3, "class"), 3, sets=sets_of(dtype))
    trees = forest(30, depth=14, early=0.1)
    classify(w, trees, votes_of(trees, 5, "class", lambda n: rng.integers(0, 64, n) / 64), 5)


def compact(trees, dtype, targets, missing=False, members=()):
    """The attributes of TreeEnsemble.  members: the numbers of the splits that become tests of members, with their members."""
    splits = [(t, k) for t, tree in enumerate(trees) for k, mode in enumerate(tree.modes) if mode != LEAF]
    leaves = [(t, k) for t, tree in enumerate(trees) for k in tree.leaves()]
    place = {s: k for k, s in enumerate(splits)} | {s: k for k, s in enumerate(leaves)}
    modes = np.array([MODES.index(trees[t].modes[k]) for t, k in splits], np.uint8)
    values = np.array([trees[t].values[k] for t, k in splits], dtype)
    sets = dict(members)
    modes[list(sets)] = 6
    attributes = {"tree_roots": [place[t, 0] for t in range(len(trees))], "nodes_modes": numpy_helper.from_array(modes),
                  "nodes_splits": numpy_helper.from_array(values), "nodes_featureids": [trees[t].features[k] for t, k in splits],
                  "leaf_weights": numpy_helper.from_array(eighths(len(leaves)).astype(dtype)),
                  "leaf_targetids": rng.integers(0, targets, len(leaves)).tolist(), "n_targets": targets}
    for side, name in enumerate(("true", "false")):
        children = [(t, trees[t].children[k][side]) for t, k in splits]
        attributes["nodes_%snodeids" % name] = [place[c] for c in children]
        attributes["nodes_%sleafs" % name] = [int(trees[t].modes[k] == LEAF) for t, k in children]
    if missing:
        attributes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(splits)).tolist()
    if sets:
        numbers = [n for k in sorted(sets) for n in [*sets[k], np.nan]]
        attributes["membership_values"] = numpy_helper.from_array(np.array(numbers, dtype))
    return attributes


def write_compact(w):
    w.machine_learning_opset = 5
    kinds = {np.float32: F32, np.float64: F64}
    for dtype, missing, targets in itertools.product(kinds, (False, True), (1, 3)):
        for how, transform in ((1, 0), (0, 1), (2, 2), (3, 3)):
            trees = forest(modes=MODES, early=0.1)
            attributes = compact(trees, dtype, targets, missing) | {"aggregate_function": how}
            # ONNX Runtime has the numbers 1 and 2, for softmax and logistic, the other way round
            other = attributes | {"post_transform": {1: 2, 2: 1}.get(transform, transform)}
            w.add("TreeEnsemble", sets_of(dtype, missing), [kinds[dtype]], attributes | {"post_transform": transform},
                  domain=MACHINE_LEARNING,
                  expected=lambda x, a=other: w.run("TreeEnsemble", [x], [kinds[x.dtype.type]], a, MACHINE_LEARNING))
        # ONNX Runtime takes only whole numbers as members
        members = {k: rng.choice(np.arange(-40, 41), size, replace=False) for k, size in ((0, 30), (3, 1), (4, 2), (7, 9), (11, 17))}
        attributes = compact(forest(modes=MODES, early=0.1), dtype, targets, missing, members)
        w.add("TreeEnsemble", [[x * 8] for x, in sets_of(dtype, missing)], [kinds[dtype]], attributes, domain=MACHINE_LEARNING)
    half = compact(forest(modes=MODES, early=0.1), np.float16, 2)
    wide = half | {k: numpy_helper.from_array(numpy_helper.to_array(half[k]).astype(np.float32)) for k in ("nodes_splits", "leaf_weights")}
    w.add("TreeEnsemble", sets_of(np.float16), [TensorProto.FLOAT16], half, domain=MACHINE_LEARNING,
          expected=lambda x: [w.run("TreeEnsemble", [x.astype("f")], [F32], wide, MACHINE_LEARNING)[0].astype(x.dtype)])
    w.machine_learning_opset = 3
