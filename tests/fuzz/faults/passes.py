"""faults/passes.py: faults in passes over HLO."""

from faults import fault

MOVE, TRANSPOSE = "hlo/passes/simplify/move.c", "hlo/passes/simplify/transpose.c"
MOTION, LAYOUT = "hlo/passes/transpose_sinking.c", "hlo/passes/layout.c"
ARITH, NORM, INTEGERS = "hlo/passes/simplify/arith.c", "hlo/passes/batch_norm.c", "hlo/passes/qdq_fusion.c"
SKIPPED, QUANTIZED = "hlo/passes/integer_sums.c", "hlo/analysis/quantized.c"
PHASES, MATRICES, PLACES = "hlo/passes/transposed_convolution.c", "hlo/passes/dot_canonicalization.c", "hlo/passes/fusion/concat_in_place.c"

FAULTS = [
    fault(
        "transposes-composed",
        "two transposes become one in the wrong order",
        (
            TRANSPOSE,
            "p[k] = hlo_ints(x, HLO_ATTR_PERMUTATION)[hlo_ints(i, HLO_ATTR_PERMUTATION)[k]];",
            "p[k] = hlo_ints(i, HLO_ATTR_PERMUTATION)[hlo_ints(x, HLO_ATTR_PERMUTATION)[k]];",
        ),
    ),
    fault(
        "transposes-joined",
        "dimensions that a reshaped transpose only brings side by side are joined",
        (
            TRANSPOSE,
            "first = k && at == place[to[k - 1]] + 1 ? first : at;",
            "first = k && at >= place[to[k - 1]] + 1 ? first : at;",
        ),
    ),
    fault(
        "slice-of-strided-slice",
        "a slice of a strided slice starts too early",
        (MOVE, "«n ? out.starts[k] * in.strides[k] : 0»)", "n ? out.starts[k] : 0"),
    ),
    fault(
        "layout-permutation",
        "strides and padding of pools go to the wrong dimensions",
        (LAYOUT, "out[p->p[i]] = list[i];", "out[i] = list[p->p[i]];"),
    ),
    fault(
        "recurrence-direction",
        "the second direction of a bidirectional recurrence runs forwards",
        (
            "hlo/ir/composite_recurrence.c",
            "l.reverse = d == 1 || r->direction == HLO_DIR_REVERSE;",
            "l.reverse = r->direction == HLO_DIR_REVERSE;",
        ),
    ),
    fault(
        "cse-attribute",
        "equal instructions may have other lists of numbers",
        (
            "hlo/ir/ir.c",
            "return a->n == b->n && (!a->n || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0);",
            "return a->n == b->n;",
        ),
        ("hlo/ir/ir.c", "return hash_bytes(v->ints, v->n * sizeof *v->ints, h);", "return hash_mix(h, v->n);"),
    ),
    fault(
        "norm-shift-unscaled",
        "what a folded batch norm adds before a scaling is not scaled",
        (
            NORM,
            "c->shift[k] = c->shift[k] * scale + shift;",
            "c->shift[k] = c->shift[k] + shift;",
        ),
    ),
    fault(
        "norm-subtraction",
        "a constant that is subtracted behind a contraction is added",
        (NORM, "s == MINUS ? -u : 0", "s == MINUS ? u : 0"),
    ),
    fault(
        "reduce-of-transpose",
        "a reduction of a transposed array leaves out the smaller transpose",
        (MOTION, "order[out++] = place[p[d]];", "order[out] = out; out++;"),
    ),
    fault(
        "pad-into-convolution",
        "padding before a convolution changes its sides",
        (MOTION, "low[s] = l + hlo_ints(i, HLO_ATTR_LOW)[s];", "low[s] = h + hlo_ints(i, HLO_ATTR_LOW)[s];"),
        (
            MOTION,
            "high[s] = h + hlo_ints(i, HLO_ATTR_HIGH)[s];",
            "high[s] = l + hlo_ints(i, HLO_ATTR_HIGH)[s];",
        ),
    ),
    fault(
        "pad-into-window",
        "a pool for the largest ignores zeros that were padded before it",
        (
            MOTION,
            "return «dtype_is_float(t) && hlo_is_splat(v, -__builtin_inf())»;",
            "dtype_is_float(t) && (hlo_is_splat(v, -__builtin_inf()) || hlo_is_splat(v, 0))",
        ),
    ),
    fault(
        "phases-order",
        "the phases of a transposed convolution come one behind the other",
        (PHASES, "order[1 + 2 * d] = 1 + d;", "order[1 + 2 * d] = 1 + n + g + d;"),
        (PHASES, "order[2 + 2 * d] = 1 + n + g + d;", "order[2 + 2 * d] = 1 + d;"),
    ),
    fault(
        "subtract-negated",
        "x - -y becomes x - y",
        (
            ARITH,
            "«hlo_binary(b, HLO_ADD, x_of(i), x_of(y_of(i).def))»",
            "hlo_binary(b, HLO_SUB, x_of(i), x_of(y_of(i).def))",
        ),
    ),
    fault(
        "cube",
        "x to the power of 3 becomes its square",
        (ARITH, "hlo_binary(b, HLO_MUL, hlo_binary(b, HLO_MUL, x, x), x)", "hlo_binary(b, HLO_MUL, x, x)"),
    ),
    fault(
        "divide-by-root",
        "x / sqrt(y) becomes x times a root of a root",
        (ARITH, "hlo_unary(b, HLO_RSQRT, x_of(root.def))", "hlo_unary(b, HLO_RSQRT, root)"),
    ),
    fault(
        "bytes-joined",
        "dequantised arrays of other scales are joined as bytes",
        (INTEGERS, "x->has_zero == y->has_zero && «hlo_along_equal(&x->scale, &y->scale)» &&", "1"),
    ),
    fault(
        "bytes-axis",
        "scales of channels stay at their dimension where a transpose of bytes moves it",
        (INTEGERS, "axis = d;", "axis = x.scale.axis;"),
    ),
    fault(
        "layout-of-reduced",
        "dimensions that a reduction leaves stand in the wrong order",
        (LAYOUT, "«p->p[k] < p->p[i]»;", "k < i"),
    ),
    fault(
        "not-less",
        "the opposite of < is >",
        (ARITH, "return inverse[c];", "return c == HLO_LT ? HLO_GT : inverse[c];"),
    ),
    fault(
        "join-behind-transpose",
        "a product's operand that comes through a transpose and a reshape is permuted the other way",
        (
            MATRICES,
            "p[n] = hlo_ints(i, HLO_ATTR_PERMUTATION)[x->permutation[n]];",
            "p[hlo_ints(i, HLO_ATTR_PERMUTATION)[n]] = x->permutation[n];",
        ),
    ),
    fault(
        "part-in-place",
        "a part of a concatenation that is written in place stands at its beginning",
        (
            PLACES,
            "starts_of(&b, hlo_shape(base), dimension, p->start)",
            "starts_of(&b, hlo_shape(base), dimension, 0)",
        ),
    ),
    fault(
        "bytes-skipped-bounds",
        "where numbers are not made bytes before the next contraction, the lower bound counts from 0 instead of the zero point",
        (SKIPPED, "hlo_value low = hlo_scalar(b, DTYPE_F32, «r.low - z»)", "r.low"),
    ),
    fault(
        "bytes-skipped-zero",
        "where numbers are not made bytes before the next contraction, it does not matter whether both zero points are equal",
        (SKIPPED, "x = «r.zero == z ? x : hlo_binary(b, HLO_ADD, x, hlo_splat(b, *hlo_shape(x), r.zero - z))»;", "x"),
    ),
    fault(
        "bytes-of-two-zeros",
        "bytes of which two contractions subtract other zero points are replaced by one difference",
        (SKIPPED, "if («!same && !is_difference») {", "0"),
    ),
    fault(
        "sums-beyond-f32",
        "sums of products of bytes are computed in f32, however many products there are",
        (SKIPPED, "return y <= largest_factor && «has_f32(w, hlo_result((hlo_instr *)i, 0))»;", "1"),
    ),
    fault(
        "zero-of-another-type",
        "a zero point that is no byte is subtracted in s16",
        (QUANTIZED, "return «has_number(t, hlo_along_at(&x->zero, 0))»;", "true"),
    ),
    fault(
        "bound-at-zero",
        "a bound is dropped if the quantisation after it clamps at that number of steps from 0 instead of from its zero point",
        (INTEGERS, "double at = «rint(bound) + q->zero»;", "rint(bound)"),
    ),
]
