"""refusals.py PROGRAM: what the operators do not support is refused by name, and listed by `onnx-xla check`."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, S32 = np.zeros(1, np.float32), np.zeros(1, np.int32)


def of(*dims, like=F32):
    return np.zeros(dims, like.dtype)


class Known:
    """An input that is a constant of the model."""
    def __init__(self, values):
        self.values = np.array(values, np.int64)
        self.dtype, self.shape = self.values.dtype, self.values.shape


def grouped(**attributes):
    inputs = [of(1, 1, 32), of(1, 1, 16), of(1, 1, 16), of(1, 2, 4, 8), of(1, 2, 4, 8), of(1, like=S32), of(1, like=S32)]
    return "GroupQueryAttention", inputs, 3, {"num_heads": 4, "kv_num_heads": 2} | attributes


def with_inputs(case, more):
    op, inputs, outputs, attributes = case
    inputs = inputs + [None] * (max(more) + 1 - len(inputs))
    for k, x in more.items():
        inputs[k] = x
    return op, inputs, outputs, attributes


def bits(more=(), **attributes):
    inputs = [of(1, 32), of(4, 1, 16, like=np.zeros(1, np.uint8)), of(4, 1), *more]
    return "MatMulNBits", inputs, 1, {"K": 32, "N": 4, "block_size": 32} | attributes


def three(**attributes):
    inputs = [of(1, 2, 16), of(3, 1, 2, like=LONG), of(4, 4), of(4, 4)]
    return "MRotaryEmbedding", inputs, 1, {"num_heads": 2} | attributes


def table(**attributes):
    inputs = [of(6, 16, like=BYTES), of(2, like=LONG), of(6, 2)]
    return "GatherBlockQuantized", inputs, 1, {"block_size": 16} | attributes


def experts(**attributes):
    return "MoE", [of(3, 4), of(3, 2), of(2, 6, 4), None, of(2, 4, 6)], 1, attributes


def learning(op, inputs, outputs=1, **attributes):
    """A case of the domain ai.onnx.ml."""
    return "ai.onnx.ml." + op, inputs, outputs, attributes


def labels(x=None, **attributes):
    return learning("LabelEncoder", [of(2, like=LONG) if x is None else x], **attributes)


def classifier(**attributes):
    return learning("LinearClassifier", [of(2, 3)], 2, **{"coefficients": [1.0] * 6} | attributes)


def supports(**attributes):
    given = {"n_supports": 2, "support_vectors": [1.0] * 6, "coefficients": [1.0] * 2, "rho": [0.5], "kernel_params": [1.0] * 3}
    return learning("SVMRegressor", [of(2, 3)], **{k: v for k, v in (given | attributes).items() if v is not None})


def voters(**attributes):
    given = {"classlabels_ints": [1, 2], "vectors_per_class": [1, 1], "support_vectors": [1.0] * 6, "coefficients": [1.0] * 2, "rho": [0.5],
             "kernel_params": [1.0] * 3}
    return learning("SVMClassifier", [of(2, 3)], 2, **given | attributes)


def present(attributes):
    return {k: v for k, v in attributes.items() if v is not None and v != []}


STUMP = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
         "nodes_featureids": [0, 0, 0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}


def tree(op="TreeEnsembleRegressor", x=None, **attributes):
    """A tree of one comparison."""
    given = STUMP | {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1}
    return learning(op, [of(2, 3) if x is None else x], **present(given | attributes))


def tree_of(modes, on_true, on_false, **attributes):
    """A tree of these nodes, which all votes are for."""
    n = len(modes)
    nodes = {"nodes_treeids": [0] * n, "nodes_nodeids": list(range(n)), "nodes_modes": ["LEAF" if m == "-" else "BRANCH_LEQ" for m in modes],
             "nodes_values": [0.5] * n, "nodes_featureids": [0] * n, "nodes_truenodeids": on_true, "nodes_falsenodeids": on_false}
    votes = {"target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [1.0]}
    return tree(**nodes | votes | attributes)


def tree_classes(classes=2, ids=(0, 1), **attributes):
    given = STUMP | {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": list(ids), "class_weights": [1.0, 2.0],
                     "classlabels_int64s": list(range(classes))}
    return learning("TreeEnsembleClassifier", [of(2, 3)], 2, **present(given | attributes))


def numbers(values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind))


def compact(**attributes):
    given = {"tree_roots": [0], "nodes_modes": numbers([0, 1], np.uint8), "nodes_splits": numbers([0.5, 1.5]), "nodes_featureids": [0, 1],
             "nodes_truenodeids": [1, 0], "nodes_trueleafs": [0, 1], "nodes_falsenodeids": [1, 2], "nodes_falseleafs": [1, 1],
             "leaf_weights": numbers([1.0, 2.0, 3.0]), "leaf_targetids": [0, 0, 0], "n_targets": 1}
    return learning("TreeEnsemble", [of(2, 3)], **present(given | attributes))


BYTES, LONG = np.zeros(3, np.uint8), np.zeros(1, np.int64)
MANY = [of(1, 2, 32), of(1, 2, 32), of(1, 2, 32)]
# (operator, inputs, number of outputs, attributes), and a part of the message
CASES = [
    (("Gelu", [of(3)], 1, {"strange": 1}), "attribute 'strange' is not supported"),
    (("PagedAttention", [of(3)] * 5, 1, {}), "com.microsoft.PagedAttention: there is no such operator"),
    (("FusedMatMul", [of(4, 3), of(4)], 1, {"transA": 1}), "A is transposed"),
    (("FusedGemm", [of(2, 3), of(3, 4)], 1, {"activation": "Gelu"}), "activation 'Gelu' is not supported"),
    (("FusedGemm", [of(2, 3), of(3, 4)], 1, {"activation": "Elu", "activation_alpha": 1.0, "activation_gamma": 1.0}),
     "activation 'Elu' has no parameter activation_gamma"),
    (("FusedGemm", [of(2, 3), of(3, 4)], 1, {"activation": "LeakyRelu"}), "has 1 parameters, but 0 are given"),
    (("SkipLayerNormalization", [of(2, 3, 4), of(2, 5, 4), of(4)], 1, {}), "does not fit input"),
    (("SkipSimplifiedLayerNormalization", [of(2, 3, 4), of(2, 3, 4), of(4)], 2, {}), "output 1 ('y1') is not supported"),
    (grouped(sliding_window_cache=1), "sliding_window_cache is not supported"),
    (grouped(k_quant_type="PER_TENSOR"), "k_quant_type 'PER_TENSOR' is not supported"),
    (grouped(qk_output=1), "qk_output is not supported"),
    (with_inputs(grouped(), {14: of(8)}), "must be given together"),
    (with_inputs(grouped(), {12: of(1)}), "input k_scale is given"),
    (with_inputs(grouped(), {3: of(1, 2, 4, 8, like=np.zeros(1, np.int8)), 4: of(1, 2, 4, 8, like=np.zeros(1, np.int8))}),
     "a cache of another type is not supported"),
    (("MultiHeadAttention", MANY + [None, of(5, like=S32)], 1, {"num_heads": 4}), "this form of the mask is not supported"),
    (("MultiHeadAttention", MANY + [None] * 5 + [of(1, like=S32)], 1, {"num_heads": 4}), "past_key is missing"),
    (("MultiHeadAttention", MANY + [None] * 6 + [of(1, 1, 4, like=S32)], 1, {"num_heads": 4}), "cache_indirection without"),
    (("MultiHeadAttention", [of(1, 2, 4, 3, 8)], 1, {"num_heads": 4}), "packed keys and values are not supported"),
    (("MultiHeadAttention", MANY, 4, {"num_heads": 4, "unidirectional": 1}), "qk of unidirectional attention is not supported"),
    (("DecoderMaskedMultiHeadAttention", MANY, 1, {"num_heads": 4}), "there must be one step"),
    (("DecoderMaskedMultiHeadAttention", [of(1, 1, 32)] * 3, 1, {"num_heads": 4}), "input past_key is missing"),
    (("DecoderMaskedMultiHeadAttention", [of(1, 1, 32)] * 3 + [None] * 2 + [of(1, 4, 3, 8)] * 2, 3, {"num_heads": 4}),
     "a past without past_present_share_buffer and past_sequence_length is not supported"),
    (("Attention", [of(1, 2, 4), of(4, 24)], 1, {"num_heads": 2, "do_rotary": 1}), "do_rotary is not supported"),
    (("Attention", [of(1, 2, 4), of(4, 24), None, of(1, 1, 8, 8, like=S32)], 1, {"num_heads": 2}), "a mask of this rank"),
    (("RotaryEmbedding", [of(1, 2, 8), of(1, like=LONG), of(4, 4), of(4, 4)], 1, {"scale": 2.0}), "scale other than 1"),
    (three(mrope_section=[2, 1, 2]), "has the number 2; its numbers must be at least 0 and have the sum 4"),
    (three(mrope_section=[2, 1, 0]), "the sum of mrope_section is 3; it must be 4"),
    (three(mrope_section=[2, 2]), "mrope_section has 2 numbers; there must be 3"),
    (three(), "attribute mrope_section is missing"),
    (three(mrope_section=[2, 1, 1], mrope_layout=2), "mrope_layout"),
    (with_inputs(three(mrope_section=[2, 1, 1]), {1: of(1, 2, like=LONG)}), "position_ids is s64[1,2]"),
    (("NGramRepeatBlock", [of(1, 2, like=LONG), of(1, 5)], 1, {"ngram_size": 0}), "ngram_size"),
    (("NGramRepeatBlock", [of(1, 2, like=LONG), of(2, 5)], 1, {"ngram_size": 2}), "scores is f32[2,5]"),
    (("ScaledSiLU", [of(3), of(1)], 1, {}), "scale is f32[1]"),
    (("BranchwiseRMSNorm", [of(2, 6)], 1, {"num_branches": 4}), "no multiple of num_branches, 4"),
    (("BranchwiseRMSNorm", [of(2, 6), of(5)], 1, {}), "scale is f32[5]"),
    (("HyperConnectionPreMix", [of(2, 6), of(2, 5)], 1, {}), "pre_mix is f32[2,5]"),
    (("HyperConnectionPreMix", [of(2, 6), of(6)], 1, {}), "pre_mix is f32[6]"),
    (("HyperConnectionPostMix", [of(2, 6), of(6), of(6), of(2, 2)], 1, {"num_branches": 2}), "block_output is f32[6]"),
    (("HyperConnectionPostMix", [of(2, 6), of(6), of(2), of(6, 6)], 1, {}), "stream_mix is f32[6,6]"),
    (("EngramGate", [of(1, 2, 3, 4), of(1, 2, 3, 4), of(1, 2, 4), of(3, 4), of(3, 4)], 2, {}), "input conv_norm_scale is missing"),
    (("EngramGate", [of(1, 2, 3, 4), of(1, 2, 3, 4), of(1, 2, 3), of(3, 4), of(3, 4)], 1, {}), "value is f32[1,2,3]"),
    (("WordConvEmbedding", [of(2, 3, like=S32), of(4, 1, 2, 5), of(4), of(9, 5)], 1, {"embedding_size": 5}), "embedding_size is 5"),
    (("WordConvEmbedding", [of(2, 3, like=S32), of(4, 1, 5, 5), of(4), of(9, 5)], 1, {}), "shorter than the window of 5"),
    (("WordConvEmbedding", [of(2, 3, like=S32), of(4, 1, 2, 5), of(4), of(9, 6)], 1, {}), "C is f32[9,6]"),
    (bits([None, of(32, like=S32)]), "input g_idx is given"),
    (bits(bits=3), "weights of 3 bits are not supported"),
    (bits(weight_prepacked=1), "weight_prepacked is not supported"),
    (table(gather_axis=1), "gather_axis is 1 and quantize_axis 1"),
    (table(quantize_axis=0), "gather_axis is 0 and quantize_axis 0"),
    (table(block_size=0), "block_size is 0"),
    (("BiasSoftmax", [of(2, 3, 4), of(2, 1, 4)], 1, {"axis": 2, "is_inner_broadcast": 0}), "does not go with is_inner_broadcast 0"),
    (("BiasSoftmax", [of(2, 3, 4), of(3, 4)], 1, {"axis": 2, "is_inner_broadcast": 1}), "does not go with is_inner_broadcast 1"),
    (("BiasSoftmax", [of(2, 3, 4), of(1)], 1, {"axis": 2, "is_inner_broadcast": 0}), "bias is f32[1]"),
    (("ComplexMul", [of(2, 3), of(2, 2)], 1, {}), "A is f32[2,3]; its last dimension must be 2"),
    (("Rfft", [of(2, 3)], 1, {"normalized": 1}), "normalized 1 is not supported"),
    (("Rfft", [of(2, 3)], 1, {"signal_ndim": 3}), "signal_ndim is 3 but X is f32[2,3]"),
    (("Irfft", [of(2, 1, 2)], 1, {"signal_ndim": 1}), "a transform of 0 points"),
    (("GatedRelativePositionBias", [of(1, 2, 8), of(8), of(1, 2, 2, 2), of(4, 6), of(6), of(1, 2, 1, 1), of(1, 2, like=S32)], 1, {"num_heads": 2}),
     "input token_offset is given"),
    (("ConvTransposeWithDynamicPads", [of(1, 2, 3, 3), of(2, 1, 2, 2), np.zeros(4, np.int64)], 1, {"auto_pad": "VALID"}), "auto_pad VALID"),
    (table(bits=3), "3 bits are not supported"),
    (("QLinearAdd", [BYTES, of(2), None] * 2 + [of()], 1, {}), "the scale is f32[2]; it must have one element"),
    (("QLinearConcat", [of(), BYTES, BYTES, of()], 1, {"axis": 0}), "there are 4 inputs"),
    (("QuantizeLinear", [of(2, 3), of(3)], 1, {}), "there is no axis"),
    (("GroupNorm", [of(1, 2, 2, 4), of(4), of(4)], 1, {"groups": 3, "activation": 0}), "it must divide the 4 channels"),
    (("DynamicQuantizeLSTM", [of(1, 1, 2), of(1, 2, 4, like=BYTES), of(1, 1, 4, like=BYTES)], 1, {"hidden_size": 1}), "input 8 is missing"),
    (("DynamicQuantizeLSTM", [of(1, 1, 2), of(1, 2, 4, like=BYTES), of(1, 1, 4, like=BYTES), *[None] * 5, *[of(3), of(3, like=BYTES)] * 2],
      1, {"hidden_size": 1}), "a scale is f32[3]"),
    (("CDist", [of(2, 3), of(4, 3)], 1, {"metric": "cityblock"}), 'metric is "cityblock", which is unknown'),
    (("CDist", [of(2, 3), of(4, 2)], 1, {}), "B is f32[4,2]"),
    (("Inverse", [of(2, 3)], 1, {}), "X is f32[2,3]; the last two dims must be equal"),
    (("MatMulBnb4", [of(2, 3), of(2, like=BYTES), of(1)], 1, {"K": 3, "N": 2, "block_size": 16, "quant_type": 1}), "3 bytes are needed"),
    (("MatMulBnb4", [of(2, 3), BYTES, of(1)], 1, {"K": 3, "N": 2, "block_size": 16, "quant_type": 2}), "quant_type"),
    (("UnfoldTensor", [of(2, 3)], 1, {"size": 4}), "dimension 1 is smaller than size, 4"),
    (("Unique", [of(2, 3)], 3, {}), "x is f32[2,3]"),
    (("LinearAttention", MANY, 2, {"q_num_heads": 4, "kv_num_heads": 4, "update_rule": "linear", "state_window": 2}),
     "state_window is not supported"),
    (("LinearAttention", MANY, 2, {"q_num_heads": 4, "kv_num_heads": 3, "update_rule": "linear"}), "does not go with kv_num_heads 3"),
    (("CausalConvWithState", [of(1, 2, 3, 4), of(2, 1, 3, 3)], 2, {"ndim": 2}), "ndim 2 is not supported"),
    (experts(activation_type="swiglu", swiglu_fusion=2), "swiglu_fusion 2 is not supported"),
    (experts(use_sparse_mixer=1, k=2), "use_sparse_mixer is not supported"),
    (experts(k=3), "k is 3, but there are 2 experts"),
    (with_inputs(experts(), {6: of(2, 6, 4)}), "fc3_experts_weights is given"),
    (("GatedRMSNorm", [of(2, 6), of(4), of(2, 6)], 1, {}), "no multiple of 4"),
    (("GridSample", [of(1, 1, 2, 2, like=S32), of(1, 2, 2, 2, like=S32)], 1, {}), "X is s32[1,1,2,2]; floats are needed"),
    (learning("Scaler", [of(2, 3)], offset=[1.0, 2.0], scale=[1.0, 2.0]), "offset has 2 values; X is f32[2,3]"),
    (learning("Scaler", [of(2, 3)], offset=[1.0], scale=[1.0, 2.0, 3.0]), "offset has 1 values, but scale has 3"),
    (learning("Scaler", [of(2, 3)], offset=[1.0]), "scale has no values"),
    (learning("Scaler", [of(2, 3, 4)], offset=[1.0], scale=[1.0]), "X is f32[2,3,4]"),
    (learning("Normalizer", [of(2, 3)], norm="L3"), 'norm is "L3", which is unknown'),
    (learning("Imputer", [of(2, 3)], imputed_value_int64s=[1]), "imputed_value_floats has no values"),
    (learning("Imputer", [of(2, 3)], imputed_value_floats=[1.0] * 4), "imputed_value_floats has 4 values; X is f32[2,3]"),
    (learning("Imputer", [of(2, 3, like=LONG)], imputed_value_floats=[1.0], imputed_value_int64s=[1]), "are both given"),
    (learning("Imputer", [of(2, 3, like=S32)], imputed_value_int64s=[2 ** 40]), "imputed_value_int64s has 1099511627776, but X is s32"),
    (learning("Imputer", [of(2, 3, like=S32)], imputed_value_int64s=[1], replaced_value_int64=-2 ** 31 - 1), "but X is s32"),
    (learning("FeatureVectorizer", [of(2, 3), of(2, 3)], inputdimensions=[3]), "inputdimensions has 1 values; there are 2 inputs"),
    (learning("FeatureVectorizer", [of(2, 3)], inputdimensions=[-1]), "inputdimensions has -1"),
    (learning("FeatureVectorizer", [of(2, 3)], inputdimensions=[2 ** 62]), "inputdimensions has 4611686018427387904"),
    (learning("FeatureVectorizer", [of(2, 3), of(3, 3)]), "input 1 is f32[3,3]; it has another number of rows"),
    (learning("ArrayFeatureExtractor", [of(2, 3), of(0, like=LONG)]), "Y is s64[0]; there must be an index"),
    (learning("ArrayFeatureExtractor", [of(2, 3), Known([3])]), "Y holds 3, outside of [0, 3)"),
    (learning("ArrayFeatureExtractor", [of(2, 3), Known([-1])]), "Y holds -1, outside of [0, 3)"),
    (labels(), "none of keys_strings, keys_floats, keys_int64s and keys_tensor is given"),
    (labels(keys_strings=["a"], values_int64s=[1]), "the keys in keys_strings are str; X is s64[2]"),
    (labels(keys_int64s=[1], keys_floats=[1.0], values_int64s=[1]), "keys_floats and keys_int64s are both given"),
    (labels(keys_int64s=[1, 2], values_floats=[1.0]), "keys_int64s has 2 elements, but values_floats has 1"),
    (labels(keys_floats=[1.0], values_int64s=[1]), "the keys in keys_floats are f32; X is s64[2]"),
    (labels(keys_int64s=[1], values_tensor=helper.make_tensor("t", TensorProto.UINT8, [1], [1])), "values_tensor is u8"),
    (labels(keys_int64s=[1], values_int64s=[1], default_tensor=helper.make_tensor("t", TensorProto.FLOAT, [1], [1])),
     "default_tensor is f32[1]; one s64 is needed"),
    (labels(keys_int64s=[1], values_tensor=helper.make_tensor("t", TensorProto.INT16, [1], [1]), default_int64=40000),
     "default_int64 is 40000, but the values are s16"),
    (learning("OneHotEncoder", [of(2, 3)], cats_strings=["a"]), "X is f32[2,3], but cats_strings gives the categories"),
    (learning("OneHotEncoder", [of(2, 3)]), "neither cats_int64s nor cats_strings has labels"),
    (learning("OneHotEncoder", [of(2, 3, 4)], cats_int64s=[1]), "X is f32[2,3,4]"),
    (learning("OneHotEncoder", [Known([1, 2])], cats_int64s=[1], zeros=0), "the flag of an unknown category in X holds 1"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 4), "coefficients has 4 numbers for 1 vectors; X is f32[2,3]"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 7, targets=2), "coefficients has 7 numbers for 2 vectors"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 3, targets=0), "targets is 0"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 3, targets=2 ** 62), "targets is 4611686018427387904"),
    (learning("LinearRegressor", [of(2, 3)]), "coefficients has no numbers"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 3, intercepts=[1.0] * 2), "intercepts has 2 numbers; there are 1 scores"),
    (learning("LinearRegressor", [of(2, 3)], coefficients=[1.0] * 3, post_transform="TANH"), 'post_transform is "TANH", which is unknown'),
    (classifier(classlabels_ints=[1, 2], classlabels_strings=["a", "b"]), "classlabels_ints and classlabels_strings both have labels"),
    (classifier(classlabels_ints=[1, 2, 3], intercepts=[1.0] * 2), "classlabels_ints has 3 labels; there are 2 scores"),
    (classifier(classlabels_ints=[1], intercepts=[1.0]), "classlabels_ints has 1 labels; there are 1 scores"),
    (classifier(classlabels_ints=[1, 2], intercepts=[1.0], coefficients=[1.0] * 3, post_transform="PROBIT"), "PROBIT of one score"),
    (classifier(classlabels_ints=[1, 2], coefficients=[1.0] * 5), "coefficients has 5 numbers for 2 vectors"),
    (supports(kernel_type="COSINE"), 'kernel_type is "COSINE", which is unknown'),
    (supports(kernel_params=[1.0]), "kernel_params has 1 numbers; gamma, coef0 and degree are needed"),
    (supports(kernel_type="RBF", kernel_params=None), "kernel_params has 0 numbers"),
    (supports(n_supports=-1), "n_supports is -1"),
    (supports(n_supports=3), "coefficients has 2 numbers; n_supports is 3"),
    (supports(n_supports=0), "coefficients has 2 numbers for 1 vectors; X is f32[2,3]"),
    (supports(support_vectors=[1.0] * 7), "support_vectors has 7 numbers for 2 vectors"),
    (supports(support_vectors=[1.0] * 8), "support_vectors has 8 numbers for 2 vectors; X is f32[2,3]"),
    (supports(rho=None), "rho has no numbers"),
    (supports(post_transform="LOGISTIC"), "post_transform of a regression"),
    (voters(classlabels_strings=["a", "b"]), "classlabels_ints and classlabels_strings both have labels"),
    (voters(vectors_per_class=[2]), "vectors_per_class has 1 numbers; there are 2 labels"),
    (voters(vectors_per_class=[3, -1]), "vectors_per_class has -1"),
    (voters(vectors_per_class=[2 ** 62, 2 ** 62]), "vectors_per_class has 4611686018427387904"),
    (voters(vectors_per_class=[2, 1]), "coefficients has 2 numbers; there must be 1 for each of 3 support vectors"),
    (voters(rho=[1.0, 2.0]), "rho has 2 numbers; there must be 1"),
    (voters(prob_a=[1.0]), "prob_a has 1 numbers, but prob_b has 0"),
    (voters(prob_a=[1.0] * 2, prob_b=[1.0] * 2), "prob_a has 2 numbers; there must be 1"),
    (voters(vectors_per_class=[2], classlabels_ints=[1]), "a classifier of one class is not supported"),
    (voters(classlabels_ints=list(range(1025))), "classlabels_ints has 1025 labels; at most 1024"),
    (voters(post_transform="PROBIT"), "post_transform PROBIT of one score for two classes"),
    (voters(vectors_per_class=[0, 0]), "coefficients has 2 numbers; there must be 1 for each of 0 support vectors"),
    (tree(nodes_nodeids=[0, 1]), "nodes_nodeids has 2 elements; nodes_treeids has 3"),
    (tree(nodes_modes=["LEAF"]), "nodes_modes has 1 elements; nodes_treeids has 3"),
    (tree(nodes_values=[0.5]), "nodes_values has 1 elements; nodes_treeids has 3"),
    (tree(nodes_values_as_tensor=numbers([0.5] * 3)), "nodes_values and nodes_values_as_tensor are both given"),
    (tree(nodes_values=None, nodes_values_as_tensor=numbers([1, 2, 3], np.int64)), "nodes_values_as_tensor is s64[3]"),
    (tree(nodes_featureids=[0] * 4), "nodes_featureids has 4 elements"),
    (tree(nodes_truenodeids=[1]), "nodes_truenodeids has 1 elements"),
    (tree(nodes_falsenodeids=[]), "nodes_falsenodeids has 0 elements"),
    (tree(nodes_missing_value_tracks_true=[1]), "nodes_missing_value_tracks_true has 1 elements"),
    (tree(nodes_missing_value_tracks_true=[2, 0, 0]), "nodes_missing_value_tracks_true has 2; 0 or 1 is needed"),
    (tree(nodes_modes=["BRANCH_LIKE", "LEAF", "LEAF"]), 'nodes_modes has "BRANCH_LIKE", which is unknown'),
    (tree(nodes_modes=["", "LEAF", "LEAF"]), 'nodes_modes has "", which is unknown'),
    (tree(nodes_featureids=[-1, 0, 0]), "nodes_featureids has -1"),
    (tree(nodes_featureids=[2 ** 40, 0, 0]), "nodes_featureids has 1099511627776"),
    (tree(nodes_featureids=[3, 0, 0]), "nodes_featureids has 3; X is f32[2,3]"),
    (tree(x=of(2, 3, 4)), "X is f32[2,3,4]"),
    (tree(nodes_nodeids=[0, 1, 1]), "tree 0 has two nodes 1"),
    (tree(nodes_truenodeids=[7, 0, 0]), "nodes_truenodeids has 7; tree 0 has no such node"),
    (tree(nodes_treeids=[0, 0, 1]), "nodes_falsenodeids has 2; tree 0 has no such node"),
    (tree(nodes_falsenodeids=[1, 0, 0]), "no walk from a root leads to node 2"),
    (tree(nodes_truenodeids=[0, 0, 0]), "no walk from a root leads to node 1"),
    (tree_of("++--", [1, 0, 0, 0], [2, 3, 0, 0]), "node 0 is in a cycle, or follows one"),
    (tree_of("+--+--", [1, 0, 0, 4, 0, 0], [2, 0, 0, 5, 0, 0]), "no walk from a root leads to node 3"),
    (tree_of("+--++", [1, 0, 0, 4, 3], [2, 0, 0, 4, 3]), "no walk from a root leads to node 3"),
    (tree_of("+-" * 1025 + "-", [k + 1 for k in range(2051)], [k + 2 for k in range(2051)]), "a tree is more than 1024 nodes deep"),
    (tree_of("", [], [], target_treeids=[], target_nodeids=[], target_ids=[], target_weights=[]), "there are no trees"),
    (tree(target_treeids=[0]), "target_treeids has 1 elements; target_weights has 2"),
    (tree(target_nodeids=[1, 3]), "target_nodeids has 3; tree 0 has no such node"),
    (tree(target_treeids=[0, 1]), "target_nodeids has 2; tree 1 has no such node"),
    (tree(target_ids=[0, 1]), "a weight is for target 1; there are 1"),
    (tree(target_ids=[-1, 0]), "a weight is for target -1"),
    (tree(n_targets=None), "n_targets"),
    (tree(n_targets=0), "n_targets is 0"),
    (tree(n_targets=2 ** 27), "134217728 targets are not supported; there may be 1048576"),
    (tree_of("+-" * 130 + "-", [k + 1 for k in range(261)], [k + 2 for k in range(261)], target_treeids=[0] * 131, target_ids=[0, 1] * 65 + [0],
             target_nodeids=[*range(1, 260, 2), 260], target_weights=[1.0] * 131, n_targets=2 ** 20),
     "weights of 131 leaves for 1048576 targets are not supported"),
    (tree(base_values=[1.0, 2.0]), "base_values has 2 numbers; there are 1 targets"),
    (tree(aggregate_function="MEDIAN"), 'aggregate_function is "MEDIAN", which is unknown'),
    (tree(post_transform="TANH"), 'post_transform is "TANH", which is unknown'),
    (tree(aggregate_function="MIN", target_weights=[float("nan"), 1.0]), "a weight is NaN"),
    (tree_classes(1, (0, 0)), "a classifier of one class is not supported"),
    (tree_classes(classlabels_int64s=[], classlabels_strings=["a"]), "a classifier of one class"),
    (tree_classes(ids=(0, 2)), "a weight is for target 2; there are 2"),
    (tree_classes(base_values=[1.0]), "base_values has 1 numbers; there are 2 labels"),
    (tree_classes(ids=(0, 0), base_values=[1.0, 2.0]), "base_values has 2 numbers, which is not supported where all class_ids are 0"),
    (tree_classes(ids=(1, 1), base_values=[1.0]), "base_values has 1 numbers, which is not supported where all class_ids are 1"),
    (tree_classes(ids=(0, 0), class_nodeids=[1, 1]), "a leaf has several weights for class 0, which is not supported where all class_ids"),
    (tree_classes(ids=(0, 0), post_transform="PROBIT"), "PROBIT of one score"),
    (compact(nodes_splits=numbers([0.5, 1.5], np.float64)), "nodes_splits is f64[2]; one dimension of f32 is needed"),
    (compact(leaf_weights=numbers([0.5] * 3, np.float64)), "leaf_weights is f64[3]"),
    (compact(nodes_modes=numbers([0, 1], np.int64)), "nodes_modes is s64[2]; one dimension of u8 is needed"),
    (compact(nodes_modes=numbers([[0, 1]], np.uint8)), "nodes_modes is u8[1,2]"),
    (compact(nodes_modes=numbers([0, 7], np.uint8)), "nodes_modes has 7, which is unknown"),
    (compact(nodes_modes=None), "nodes_modes"),
    (compact(nodes_splits=numbers([0.5])), "nodes_splits has 1 elements; nodes_modes has 2"),
    (compact(leaf_targetids=[0, 0]), "leaf_targetids has 2 elements; leaf_weights has 3"),
    (compact(leaf_targetids=[0, 0, 1]), "a weight is for target 1"),
    (compact(nodes_modes=numbers([0, 6], np.uint8)), "membership_values has 0 sets; 1 nodes need one"),
    (compact(membership_values=numbers([1.0, float("nan")])), "membership_values has 1 sets; 0 nodes need one"),
    (compact(nodes_modes=numbers([0, 6], np.uint8), membership_values=numbers([1.0], np.float64)), "membership_values is f64[1]"),
    (compact(nodes_trueleafs=[0, 2]), "nodes_trueleafs has 2; 0 or 1 is needed"),
    (compact(nodes_falseleafs=[1]), "nodes_falseleafs has 1 elements"),
    (compact(nodes_truenodeids=[2, 0]), "nodes_truenodeids has 2; there are 2 nodes"),
    (compact(nodes_falsenodeids=[1, 3]), "nodes_falsenodeids has 3; there are 3 leaves"),
    (compact(nodes_falsenodeids=[-1, 2]), "nodes_falsenodeids has -1"),
    (compact(nodes_truenodeids=[1, 0], nodes_trueleafs=[0, 0]), "node 0 is in a cycle, or follows one"),
    (compact(tree_roots=[2]), "tree_roots has 2; there are 2 nodes"),
    (compact(tree_roots=[]), "there are no trees"),
    (compact(tree_roots=[1]), "no walk from a root leads to node 0"),
    (compact(aggregate_function=4), "aggregate_function is 4"),
    (compact(post_transform=-1), "post_transform is -1"),
]


def message(program, folder, op, inputs, outputs, attributes):
    given = ["" if x is None else "x%d" % k for k, x in enumerate(inputs)]
    wanted = ["y%d" % k for k in range(outputs)]
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(given, inputs)
            if n and not isinstance(x, Known)]
    known = [numpy_helper.from_array(x.values, n) for n, x in zip(given, inputs) if isinstance(x, Known)]
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in wanted]
    domain, _, name = op.rpartition(".")
    node = helper.make_node(name, given, wanted, domain=domain or "com.microsoft", **attributes)
    learning_version = 5 if name == "TreeEnsemble" else 4
    opsets = [helper.make_opsetid(*v) for v in (("", 17), ("com.microsoft", 1), ("ai.onnx.ml", learning_version))]
    model = helper.make_model(helper.make_graph([node], "case", info, out, known), opset_imports=opsets)
    model.ir_version = 10
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    done = subprocess.run([program, "check", path], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, part in CASES:
            code, text = message(sys.argv[1], folder, *case)
            if code == 0 or part not in text:
                print("FAIL %s: expected '%s', got: %s" % (case[0], part, text.strip() or "nothing"))
                failed += 1
    print("%d refusals" % (len(CASES) - failed))
    sys.exit(failed > 0)


main()
