"""by_trees.py: boosted trees of XGBoost, LightGBM and CatBoost, and classifiers and regressors of scikit-learn, as onnxmltools, CatBoost
and skl2onnx export them.  The catalogue has this table only in a Python that has onnxmltools (README)."""

import functools
import importlib.util
import os
import tempfile
import zlib

import numpy as np
from architecture import add

ROWS, FEATURES = 600, 8
SIZES = [{"rows": n} for n in (7, 1, 1000)]


def table(rows, seed, missing):
    """Numbers; the first two columns are categories.  missing: a tenth of the others is NaN."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    x[:, 0], x[:, 1] = rng.integers(0, 5, rows), rng.integers(0, 40, rows)
    x[:, 2:][rng.random((rows, FEATURES - 2)) < 0.1 * missing] = np.nan
    return x


def targets(x, kind):
    y = 2 * np.nan_to_num(x[:, 2]) + np.sin(3 * np.nan_to_num(x[:, 3])) + x[:, 1] % 5 - 2
    return {"regression": y, "positive": np.exp(y / 4), "two": (y > 0).astype(int), "four": np.digitize(y, [-1.5, 0, 1.5])}[kind]


def by_onnxmltools(model, x, y, package):
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    # Scores of classes would be maps, which only LightGBM's converter can leave out.
    options = {"zipmap": False} if package == "lightgbm" else {}
    return getattr(onnxmltools, "convert_" + package)(model.fit(x, y), initial_types=[("x", FloatTensorType([None, FEATURES]))], **options)


def by_xgboost(model, x, y):
    return by_onnxmltools(model, x, y, "xgboost")


def by_xgboost_of_categories(model, x, y):
    import pandas

    frame = pandas.DataFrame(x, columns=[f"f{k}" for k in range(FEATURES)])
    for column in ("f0", "f1"):
        frame[column] = frame[column].astype(int).astype("category")
    return by_onnxmltools(model, frame, y, "xgboost")


def by_lightgbm(model, x, y):
    return by_onnxmltools(model, x, y, "lightgbm")


def by_catboost(model, x, y):
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        model.fit(x, y, verbose=False).save_model(path, format="onnx")
        return onnx.load(path)


def by_skl2onnx(model, x, y):
    from skl2onnx import to_onnx
    from sklearn.base import is_classifier

    return to_onnx(model.fit(x, y), x[:1], options={"zipmap": False} if is_classifier(model) else None)


def draw(path, sizes, missing):
    import onnx

    name = onnx.load(path).graph.input[0].name
    return {name: table(sizes["rows"], zlib.crc32(repr(sizes).encode()), missing)}


def row(name, make, kind, convert, missing=False):
    def write(path):
        x = table(ROWS, 0, missing)
        with open(path, "wb") as file:
            file.write(convert(make(), x, targets(x, kind)).SerializeToString())

    add(f"trees/{name}", None, [], SIZES, write=write, draw=functools.partial(draw, missing=missing))


def xgboost_rows():
    from xgboost import XGBClassifier, XGBRegressor

    for depth in (1, 6, 12, 20):
        row(f"xgboost-depth-{depth}", lambda d=depth: XGBRegressor(n_estimators=30, max_depth=d), "regression", by_xgboost, depth == 6)
    row("xgboost-gamma", lambda: XGBRegressor(n_estimators=30, objective="reg:gamma"), "positive", by_xgboost)
    row("xgboost-two", lambda: XGBClassifier(n_estimators=30), "two", by_xgboost, True)
    row("xgboost-four", lambda: XGBClassifier(n_estimators=30), "four", by_xgboost, True)
    categories = {"enable_categorical": True, "max_cat_to_onehot": 1, "tree_method": "hist"}
    row("xgboost-categories", lambda: XGBRegressor(n_estimators=20, **categories), "regression", by_xgboost_of_categories)


def lightgbm_rows():
    from lightgbm import LGBMClassifier, LGBMRegressor

    def regressor(**options):
        return lambda: LGBMRegressor(verbose=-1, **options)

    for leaves in (2, 31, 200):
        row(f"lightgbm-leaves-{leaves}", regressor(n_estimators=50, num_leaves=leaves, min_child_samples=2), "regression", by_lightgbm, leaves == 31)
    row("lightgbm-poisson", regressor(n_estimators=30, objective="poisson"), "positive", by_lightgbm)
    row("lightgbm-categories", regressor(n_estimators=30, categorical_feature=[0, 1], min_data_per_group=5), "regression", by_lightgbm)
    for kind in ("two", "four"):
        row(f"lightgbm-{kind}", lambda: LGBMClassifier(n_estimators=30, verbose=-1), kind, by_lightgbm, True)


def catboost_rows():
    from catboost import CatBoostClassifier, CatBoostRegressor

    row("catboost", lambda: CatBoostRegressor(iterations=50), "regression", by_catboost, True)


def scikit_learn_rows():
    from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingClassifier, RandomForestClassifier, StackingClassifier
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    row("random-forest", lambda: RandomForestClassifier(20, max_depth=5, random_state=0), "four", by_skl2onnx)
    row("extra-trees", lambda: ExtraTreesRegressor(20, random_state=0), "regression", by_skl2onnx)
    row("gradient-boosting", lambda: GradientBoostingClassifier(n_estimators=10), "four", by_skl2onnx)
    row("support-vectors", lambda: make_pipeline(StandardScaler(), SVC()), "four", by_skl2onnx)
    row("support-vector-regression", lambda: make_pipeline(StandardScaler(), SVR()), "regression", by_skl2onnx)
    row("neighbours", lambda: KNeighborsRegressor(), "regression", by_skl2onnx)
    row("gaussian-process", lambda: GaussianProcessRegressor(alpha=0.1), "regression", by_skl2onnx)
    both = [("line", LogisticRegression()), ("trees", RandomForestClassifier(5, random_state=0))]
    row("stacking", lambda: make_pipeline(StandardScaler(), StackingClassifier(both)), "two", by_skl2onnx)


for package, rows in (("xgboost", xgboost_rows), ("lightgbm", lightgbm_rows), ("catboost", catboost_rows), ("skl2onnx", scikit_learn_rows)):
    if importlib.util.find_spec(package):
        rows()
