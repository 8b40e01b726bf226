"""scikit_learn.py FOLDER: cases of models that skl2onnx makes of scikit-learn's estimators, with ONNX Runtime's results.

No test runs it, since scikit-learn, pandas and skl2onnx are many packages; ONNX Runtime needs the locale en_US.UTF-8 for texts:

    python3 -m venv VENV; VENV/bin/pip install scikit-learn pandas skl2onnx onnxruntime
    VENV/bin/python tests/contrib/scikit_learn.py FOLDER; onnx-xla test --atol 1e-4 --rtol 1e-4 FOLDER

The tolerance: both add float32 in orders of their own, hundreds of trees, support vectors or neurons, and take exponentials of the sums."""
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import pandas
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import DictionaryType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (calibration, cluster, cross_decomposition, decomposition, discriminant_analysis, ensemble, feature_selection, gaussian_process,
                     impute, linear_model, mixture, multiclass, multioutput, naive_bayes, neighbors, neural_network, preprocessing,
                     random_projection, svm, tree)
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_regression
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from runtime_cases import proto_of

OPSETS = {"": 18, "ai.onnx.ml": 3}
rng = np.random.default_rng(1)


def strings(width):
    return [("X", StringTensorType([None, width]))]


def classifiers():
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    pair = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier())]
    for m in (linear_model.LogisticRegression(), linear_model.LogisticRegressionCV(), linear_model.SGDClassifier(),
              linear_model.SGDClassifier(loss="log_loss"), linear_model.RidgeClassifier(), linear_model.Perceptron(),
              ensemble.RandomForestClassifier(20), ensemble.ExtraTreesClassifier(20), ensemble.GradientBoostingClassifier(n_estimators=10),
              ensemble.AdaBoostClassifier(n_estimators=10), ensemble.BaggingClassifier(n_estimators=5), ensemble.StackingClassifier(pair),
              tree.DecisionTreeClassifier(), svm.SVC(), svm.SVC(probability=True), svm.NuSVC(), svm.LinearSVC(), naive_bayes.GaussianNB(),
              naive_bayes.BernoulliNB(), neighbors.KNeighborsClassifier(), neural_network.MLPClassifier(max_iter=50),
              discriminant_analysis.LinearDiscriminantAnalysis(), discriminant_analysis.QuadraticDiscriminantAnalysis(),
              multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), multiclass.OneVsOneClassifier(linear_model.LogisticRegression()),
              calibration.CalibratedClassifierCV(svm.LinearSVC())):
        yield m.fit(x, y), x[::7], None
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for kind in (linear_model.LogisticRegression, svm.SVC, neighbors.KNeighborsClassifier, tree.DecisionTreeClassifier, ensemble.RandomForestClassifier):
        yield kind().fit(x, names), x[::7], None
        yield kind().fit(x[:100], y[:100]), x[:100:7], None
    for m in (naive_bayes.MultinomialNB(), naive_bayes.ComplementNB(), naive_bayes.CategoricalNB()):
        yield m.fit(np.round(x), y), np.round(x[::7]), None


def regressors():
    x, y = make_regression(200, 5, random_state=1)
    x, y = x.astype(np.float32), y.astype(np.float32) / 50
    pair = [("a", linear_model.LinearRegression()), ("b", tree.DecisionTreeRegressor())]
    for m in (linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(), linear_model.ElasticNet(), linear_model.BayesianRidge(),
              linear_model.ARDRegression(), linear_model.HuberRegressor(), linear_model.TheilSenRegressor(), linear_model.RANSACRegressor(),
              linear_model.SGDRegressor(), linear_model.QuantileRegressor(), ensemble.RandomForestRegressor(20), ensemble.ExtraTreesRegressor(20),
              ensemble.GradientBoostingRegressor(n_estimators=10), ensemble.AdaBoostRegressor(n_estimators=10), ensemble.BaggingRegressor(n_estimators=5),
              ensemble.VotingRegressor(pair), ensemble.StackingRegressor(pair), ensemble.IsolationForest(n_estimators=10), tree.DecisionTreeRegressor(),
              svm.SVR(), svm.NuSVR(), svm.LinearSVR(), svm.OneClassSVM(), neighbors.KNeighborsRegressor(), neighbors.LocalOutlierFactor(novelty=True),
              neural_network.MLPRegressor(max_iter=50), gaussian_process.GaussianProcessRegressor(), cross_decomposition.PLSRegression()):
        yield m.fit(x, y), x[::9], None
    for m in (linear_model.PoissonRegressor(), linear_model.TweedieRegressor()):
        yield m.fit(x, np.abs(y)), x[::9], None
    yield multioutput.MultiOutputRegressor(linear_model.Ridge()).fit(x, np.stack([y, -y], 1)), x[::9], None


def transformers():
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    p, d = preprocessing, decomposition
    for m in (p.StandardScaler(), p.MinMaxScaler(), p.MaxAbsScaler(), p.RobustScaler(), p.Normalizer(), p.Binarizer(), p.PolynomialFeatures(2),
              p.PowerTransformer(), p.QuantileTransformer(n_quantiles=50), p.KBinsDiscretizer(3, encode="onehot-dense"), p.FunctionTransformer(),
              p.KBinsDiscretizer(3, encode="ordinal"), d.PCA(2), d.TruncatedSVD(2), d.KernelPCA(2), d.IncrementalPCA(2), cluster.KMeans(3),
              cluster.MiniBatchKMeans(3), mixture.GaussianMixture(2), mixture.BayesianGaussianMixture(n_components=2), feature_selection.SelectKBest(k=2),
              feature_selection.VarianceThreshold(), impute.SimpleImputer(), impute.KNNImputer(), random_projection.GaussianRandomProjection(2)):
        yield m.fit(x, y), x[::7], None
    words = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", "y"]])
    for m in (p.OneHotEncoder(handle_unknown="ignore"), p.OrdinalEncoder(), p.TargetEncoder()):
        yield m.fit(np.repeat(words, 5, 0), np.tile([0, 1, 1, 0], 5)), words, strings(2)
    yield p.LabelEncoder().fit(words[:, 0]), words[:, :1], strings(1)


def texts():
    x = np.array(["The quick brown fox jumps", "over the lazy dog", "quick quick dog fox", "nothing here at all", "émeu chat Dog"])
    for m in (CountVectorizer(), TfidfVectorizer(), CountVectorizer(ngram_range=(1, 2)), TfidfVectorizer(analyzer="char", ngram_range=(2, 3)),
              TfidfVectorizer(stop_words=["the"]), CountVectorizer(lowercase=False, token_pattern="[a-zA-Z]+")):
        yield make_pipeline(m, linear_model.LogisticRegression()).fit(x, [0, 1, 1, 0, 1]), x.reshape(-1, 1), strings(1)


def tables():
    rows = [{"a": 1.0, "b": 2.0}, {"a": -1.0, "c": 0.5}] * 5
    yield (make_pipeline(DictVectorizer(sparse=False), linear_model.LogisticRegression()).fit(rows, [0, 1] * 5), {"a": 1.0, "c": 3.0},
           [("X", DictionaryType(StringTensorType([1]), FloatTensorType([])))])
    x = pandas.DataFrame({"num": rng.standard_normal(20).astype(np.float32), "cat": rng.choice(["u", "v", "w"], 20), "k": rng.integers(0, 5, 20)})
    scaled = make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = ColumnTransformer([("n", scaled, ["num"]), ("c", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["cat"]),
                                 ("o", preprocessing.OrdinalEncoder(), ["k"])])
    m = Pipeline([("columns", columns), ("forest", ensemble.RandomForestClassifier(10))]).fit(x, rng.integers(0, 2, 20))
    yield (m, {n: x[[n]].values for n in x}, [("num", FloatTensorType([None, 1])), ("cat", StringTensorType([None, 1])), ("k", Int64TensorType([None, 1]))])


def write(folder, name, estimator, x, types):
    model = convert_sklearn(estimator, initial_types=types, target_opset=OPSETS) if types else to_onnx(estimator, x[:1], target_opset=OPSETS)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = [i.name for i in session.get_inputs()]
    feeds = x if isinstance(x, dict) and set(inputs) <= set(x) else {inputs[0]: x}
    feeds = {n: v.astype(object) if getattr(v, "dtype", np.dtype("f")).kind == "U" else v for n, v in feeds.items()}
    data = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, name, "model.onnx"))
    for kind, values in (("input", [feeds[n] for n in inputs]), ("output", session.run(None, feeds))):
        for k, v in enumerate(values):
            with open(os.path.join(data, "%s_%d.pb" % (kind, k)), "wb") as f:
                f.write(proto_of(v, "").SerializeToString())


def main():
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    written = 0
    for group in (classifiers, regressors, transformers, texts, tables):
        for k, (estimator, x, types) in enumerate(group()):
            name = "%s_%02d_%s" % (group.__name__, k, type(estimator).__name__)
            try:
                write(sys.argv[1], name, estimator, x, types)
                written += 1
            except Exception as e:  # noqa: BLE001  # what skl2onnx cannot convert, and what ONNX Runtime refuses, differs from release to release
                print("%s: %s: %s" % (name, type(e).__name__, str(e).split("\n", maxsplit=1)[0][:100]))
    print("%d models" % written)


if __name__ == "__main__":
    main()
