"""Arrays of strings: ai.onnx.ml's operators that look them up or return them, and ai.onnx's that move and compare them."""
import itertools

import numpy as np
from onnx import TensorProto, helper

import trees
from machine_learning import TRANSFORMS, add, kernels, machine, of_sizes
from runtime_cases import F32, floats, ints

S64, STRING, BOOL = TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
WORDS = ["cat", "dog", "", "Kuh", "émeu", "cat dog", "猫"]


def words(*dims):
    return np.array(WORDS + ["unknown", "dogs", "ca"], object)[ints(0, 10, *dims)]


def write_lookups(w):
    sets = [[words(n, 3)] for n in (1, 5)]
    values = {"int64s": ([3, -4, 5, 6, 7, 2 ** 40, 9], S64), "floats": ([0.5, 1.5, -2, 3, 4, 5, 6], F32),
              "strings": (WORDS[::-1], STRING)}
    for opset, (v, (table, kind)) in itertools.product((3, 4), values.items()):
        w.machine_learning_opset = opset
        for count in (7, 1, 4):
            add(w, "LabelEncoder", sets, [kind], {"keys_strings": WORDS[:count], "values_" + v: table[:count]})
    for default in ({}, {"default_string": "none of them"}, {"default_string": "cat"}):
        add(w, "LabelEncoder", [[ints(-2, 8, n, dtype=np.int64)] for n in (2, 9)], [STRING],
            {"keys_int64s": list(range(7)), "values_strings": WORDS} | default)
    w.machine_learning_opset = 1
    for default in ({}, {"default_int64": 77, "default_string": "?"}):
        add(w, "LabelEncoder", sets, [S64], {"classes_strings": WORDS} | default)
        add(w, "LabelEncoder", [[ints(-2, 9, n, dtype=np.int64)] for n in (2, 9)], [STRING], {"classes_strings": WORDS} | default)
        mapping = {"cats_strings": WORDS, "cats_int64s": [4, -1, 2 ** 50, 0, 7, 8, 9]} | default
        add(w, "CategoryMapper", sets, [S64], mapping)
        add(w, "CategoryMapper", [[np.array([4, -1, 0, 2 ** 50, 3, 9])]], [STRING], mapping)
    w.machine_learning_opset = 3
    add(w, "OneHotEncoder", sets, [F32], {"cats_strings": WORDS})
    add(w, "ArrayFeatureExtractor", [[words(n, 4), np.array([3, 0])] for n in (1, 5)], [STRING])


def write_labels_of_classes(w):
    for transform, labels in itertools.product(TRANSFORMS[:4], (["no", "yes"], ["no", "yes", ""])):
        names = {"classlabels_strings": labels, "post_transform": transform}
        weights = {"coefficients": (floats(len(labels) * 4) / 5).tolist(), "intercepts": [0.15, 0.7, 0.8][:len(labels)]}
        add(w, "LinearClassifier", of_sizes(np.float32)[0], [STRING, F32], weights | names)
        voters = machine(len(labels), [2, 4, 1][:len(labels)], **next(kernels())) | names
        del voters["classlabels_ints"]
        add(w, "SVMClassifier", of_sizes(np.float32)[0], [STRING, F32], voters)


def write_trees(w):
    forest = trees.forest(6)
    for labels in (["no", "yes"], ["no", "", "yes"]):
        votes = trees.votes_of(forest, len(labels) if len(labels) > 2 else 1, "class")
        trees.classify(w, forest, votes, 0, kinds=[STRING, F32], classlabels_strings=labels)


def split(x, delimiter="", maxsplit=-1):
    """The standard's result, which is Python's; ONNX Runtime divides by blanks only, and makes no parts of an empty string."""
    parts = [s.split(delimiter or None, maxsplit) for s in x.ravel()]
    most = max(map(len, parts))
    return [np.array([p + [""] * (most - len(p)) for p in parts], object).reshape(*x.shape, most), np.array([*map(len, parts)]).reshape(x.shape)]


def normalize(x, case_change_action, is_case_sensitive, stopwords=()):
    """The standard's result; ONNX Runtime needs the system's locale en_US.UTF-8."""
    def key(s):
        return s if is_case_sensitive else s.lower()
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[case_change_action]
    left = [change(s) for s in x.ravel() if key(s) not in map(key, stopwords)] or [""]
    return [np.array(left, object).reshape(*x.shape[:-1], len(left))]


def write_new_strings(w):
    def plain(op, sets, kinds, attributes=None, **more):
        w.add(op, sets, kinds, attributes, domain="", opset=20, one_program=False, **more)
    plain("StringConcat", [[words(n, 1, 4), words(3, 1)] for n in (1, 5)], [STRING])
    plain("StringConcat", [[words(), words(2)], [words(), words(5)]], [STRING])
    sentences = np.array(["a b  c ", "", " x", "one", "a,b,,c", ",", "\tcat \u732b\n", "a, b, c"], object)
    for a in ({}, {"delimiter": ","}, {"delimiter": ", "}, {"maxsplit": 1}, {"delimiter": ",", "maxsplit": 2}, {"maxsplit": 0},
              {"delimiter": "a"}):
        plain("StringSplit", [[sentences], [sentences[3:5]], [sentences[:1]]], [STRING, S64], a, expected=lambda x, a=a: split(x, **a))
    plain("StringSplit", [[sentences.reshape(2, 4)], [sentences[:3].reshape(1, 3)]], [STRING, S64], expected=split)
    mixed = np.array(["Cat", "cat", "\xc9meu", "STRASSE", "kuh", "\u0416\u0436"], object)
    for case, sensitive, stops in itertools.product(("NONE", "LOWER", "UPPER"), (0, 1), ([], ["cat", "\xe9meu"], WORDS)):
        a = {"case_change_action": case, "is_case_sensitive": sensitive} | ({"stopwords": stops} if stops else {})
        for sets in ([[mixed], [mixed[:2]], [words(1)], [words(7)]], [[mixed.reshape(1, -1)], [words(1, 3)]]):
            plain("StringNormalizer", sets, [STRING], a, expected=lambda x, a=a: normalize(x, **a))
    # what is made may be compared and looked up
    nodes = [helper.make_node("StringConcat", ["x", "s"], ["plural"]), helper.make_node("Equal", ["plural", "x"], ["same"]),
             helper.make_node("LabelEncoder", ["plural"], ["number"], domain="ai.onnx.ml", keys_strings=["cats", "dogs", "unknowns"],
                              values_int64s=[1, 2, 3])]
    w.add_graph("strings_made", nodes, [{"x": words(n), "s": np.array(["s"], object)} for n in (2, 9)],
                {"same": BOOL, "number": S64, "plural": STRING}, {"s"}, one_program=False, opset=20)


# RE2's syntax, with what differs from that of other libraries.
PATTERNS = [r"", r".", r"(?s).*", r"[^\n]*", r"a|ab|abc", r"(\W|^)[\w.\-]{0,25}@(yahoo|hotmail|gmail)\.com(\W|$)", r"\d{3}-\d{2,4}", r"\s*\w+\s*",
            r"[\s]", r"\v|\f|\a", r"(?i)stra(ss|\xdf)e", r"(?i)[k-s]\W?", r"(?i)[[:upper:]]+", r"[[:space:][:punct:]]+", r"\pL+", r"[^\p{Greek}]*",
            r"\p{Greek}|\P{^Han}", r"(?m)^a$\n^b$", r"(?m)a\n^", r"(?m)a$\n", r"a$", r"\ba\b.*", r"(|a)+", r"(a*)*b?", r"(a+)+", r"a{2,3}?", r"a{,2}", r"x{0}",
            r"\x{1F408}|\x41|\101", r"\Qa.b\E*", r"(?P<n>a)(?:b|(?i)c)d", r"[]a-c-]", r"[^]]", r"(a{0,9}){0,3}", r"\pN\PN", r"[\P{Lu}]\z", r"^*a\b+$?", r"[\s-z]+"]
TEXTS = ["", "a", "ab", "abc", "aa", "aaa", "A", "\n", "a\n", "a\nb", " cat ", "\v", "\xa0", "account@gmail.com", "x@y.com", "555-1234", "Strasse", "STRA\xdfE",
         "k", "\u212a", "\u017f", "\xe9", "\u03b1", "\xb5", "\u732b", "\U0001f408", "a,2", "a{,2}", "a.b", "a.bb", "abd", "aCD", "abD", "]", "-", "7\u0661", "\u0378",
         "\x01", "! ?", "a" * 900, "a" * 901]


def write_patterns(w):
    """Compared with RE2, which ONNX Runtime calls."""
    for pattern in PATTERNS:
        sets = [[np.array(TEXTS, object)], [np.array(TEXTS[:6], object)]]
        w.add("RegexFullMatch", sets, [BOOL], {"pattern": pattern}, domain="", opset=20, one_program=False)
    w.add("RegexFullMatch", [[np.array(TEXTS[:6], object).reshape(2, 3)], [np.array([], object).reshape(0, 3)]], [BOOL], {"pattern": "a+"}, domain="",
          opset=20, one_program=False)


SENTENCES = ["Hello World", "I love computer science !", "", " a  b ", "one,two;three, four", "émeu 猫 chat", "word", "a1 b22 c333", "...", "\n x\ty"]


def write_tokenizers(w):
    """The first set has as many strings as the second; the third has two dimensions where the case has no others."""
    ways = [{"separators": s} for s in ([" "], [""], [",", ";"], [", ?", " "], [r"\s+"], ["x*"], ["a|b", "l+"], ["o", "lo"])]
    ways += [{"tokenexp": t} for t in (".", r"\w+", r"[a-zA-Z0-9_]+", r"\pL\pL*", r"[^ ]+", r"x*", r"\d", r"(?s).")]
    for way, least, mark in itertools.product(ways, (1, 2), (0, 1)):
        if least == 2 and (way.get("separators") == [""] or way.get("tokenexp") == "."):
            continue  # ONNX Runtime has no such tokens
        w.add("Tokenizer", [[np.array(SENTENCES, object)], [np.array(SENTENCES[:3], object)], [np.array(SENTENCES[4:5], object)]], [STRING],
              {"mark": mark, "mincharnum": least, "pad_value": "#"} | way, one_program=False)
    for texts in (np.array(SENTENCES, object).reshape(2, 5), np.array(["", ""], object), np.array([""], object), np.zeros((2, 0), object)):
        for mark in (0, 1):
            w.add("Tokenizer", [[texts]], [STRING], {"mark": mark, "mincharnum": 1, "pad_value": "", "separators": [" "]}, one_program=False)


def digits(x):
    """The fewest digits from which a float can be read again; ONNX Runtime writes 8 digits, or 17 of a double."""
    texts = ["%.*g" % (n, x) for n in range(1, 18)]
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(texts[0]) or next(t for t in texts if x.dtype.type(t) == x)


def write_casts(w):
    def cast(texts, kind, expected=None, **more):
        w.add("Cast", [[np.array(texts, object)], [np.array(texts[:1], object)]], [kind], {"to": kind}, domain="",
              one_program=False, expected=expected, **more)
    numbers = ["3.14", "1e-5", "-1E8", "0", "-0.0", "16777217", "0.1", "1e400"]
    for kind in (F32, TensorProto.DOUBLE):
        cast(numbers[:6], kind)
        cast(["INF", "-inf", "+INF", "NaN", "nan"], kind, lambda x, k=kind: [x.astype(helper.tensor_dtype_to_np_dtype(k))])
    cast(["100", "-7", "127", "0"], TensorProto.INT8)
    cast(["9223372036854775807", "-9223372036854775808", "12", "+5"], S64)
    cast(["18446744073709551615", "0"], TensorProto.UINT64)
    cast(["100.5", "-2.9"], S64, lambda x: [np.vectorize(float)(x).astype(np.int64)])
    cast(["0", "2"], BOOL, lambda x: [np.vectorize(float)(x) != 0])
    for dtype in (np.float32, np.float64, np.float16):
        values = np.concatenate([floats(9).astype(dtype), np.array([0.1, 1 / 3, 1e4, 2048, -0.0, 6e-5, np.inf, -np.inf, np.nan], dtype)])
        w.add("Cast", [[values], [values[:2]]], [STRING], {"to": STRING}, domain="", one_program=False,
              expected=lambda x: [np.array([digits(v) for v in x], object)])
    for values in (np.array([5, -2 ** 63, 2 ** 63 - 1]), np.array([2 ** 64 - 1, 0], np.uint64), np.array([-128, 7], np.int8)):
        w.add("Cast", [[values]], [STRING], {"to": STRING}, domain="", one_program=False)
    for like, x in ((np.array(["a"], object), np.array([1.5, -2.0], np.float32)), (np.zeros(1, np.float32), np.array(["1.5", "-2e3"], object))):
        w.add("CastLike", [[x, like]], [STRING if like.dtype == object else F32], domain="", one_program=False)
    w.add("Cast", [[np.array(["a", "b"], object)]], [STRING], {"to": STRING}, domain="", one_program=False)


def write_movement(w):
    def plain(op, sets, kinds, attributes=None, **more):
        w.add(op, sets, kinds, attributes, domain="", **more)
    sets = [[words(n, 4)] for n in (1, 5)]
    plain("Identity", sets, [STRING])
    plain("Transpose", sets, [STRING])
    plain("Flatten", sets, [STRING])
    plain("Concat", [[words(n, 4), words(n, 2)] for n in (1, 5)], [STRING], {"axis": 1})
    plain("Gather", [[words(n, 4), np.array([[0, -1], [2, 0]])] for n in (1, 5)], [STRING], {"axis": 1})
    plain("Where", [[ints(0, 2, n, 4) > 0, words(n, 4), words(4)] for n in (1, 5)], [STRING])
    plain("Equal", [[words(n, 4), words(4)] for n in (1, 5)], [BOOL], opset=19)
    plain("Tile", [[words(n, 2), np.array([2, 3])] for n in (1, 5)], [STRING], constants=(1,))
    plain("Slice", [[words(n, 5), np.array([-1]), np.array([-5]), np.array([1]), np.array([-2])] for n in (1, 4)], [STRING],
          constants=(1, 2, 3, 4))
    plain("Expand", [[words(n, 1), np.array([1, 3])] for n in (1, 4)], [STRING], constants=(1,))
    plain("ScatterElements", [[words(5, n), ints(0, 5, 2, n, dtype=np.int64)[:1], words(1, n)] for n in (2, 6)], [STRING])
    grams = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4],
             "pool_strings": ["cat", "", "猫", "cat", "dog", "dog", "cat"]}
    for mode in ("TF", "IDF", "TFIDF"):
        plain("TfIdfVectorizer", [[words(n, 9)] for n in (1, 4)], [F32], grams | {"mode": mode, "weights": [1.0, 2, 3, 4, 5]})


def write(w):
    write_lookups(w)
    write_labels_of_classes(w)
    write_trees(w)
    write_movement(w)
    write_new_strings(w)
    write_patterns(w)
    write_tokenizers(w)
    write_casts(w)
