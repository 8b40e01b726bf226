"""faults/plans.py: faults in imports, buffers, plans of library calls, and what runs them."""

from faults import ALGORITHMS, SAVED, THREADS, fault

BUFFERS, PLACEMENT = "hlo/schedule/buffers.c", "base/placement.c"
CONTRACTION, CONV = "backend_cpu/algorithms/contraction.c", "frontend/ops/nn/conv.c"
THUNKS, NORM = "lower/kernels/thunks.c", "frontend/ops/math/norm.c"

FAULTS = [
    fault(
        "liveness-short",
        "an operand that is read later is overwritten in place",
        (BUFFERS, "«b->units[operand].last == time» &&", "b->units[operand].last >= time"),
    ),
    fault(
        "carried-liveness",
        "a loop's next value is written while the body still reads the old one",
        (BUFFERS, "(end_time(f, user) >= first && !in_place)", "0"),
    ),
    fault(
        "image-offset",
        "saved buffers lose a bit of their offsets",
        ("runtime/program/image_write.c", "rt_put_i64(out, b->offset);", "rt_put_i64(out, b->offset & ~(int64_t)64);"),
        runs=SAVED,
    ),
    fault(
        "branches-exchanged",
        "a condition that holds takes the other branch",
        ("runtime/exec/control.c", "branch = !branch;", "branch = branch != 0;"),
    ),
    fault(
        "pads-in-pairs",
        "windows are padded at the end as at the beginning",
        (
            "frontend/import/import_helpers.c",
            "«explicit_pads ? pads[spatial + k] : 0»;",
            "explicit_pads ? pads[k] : 0",
        ),
    ),
    fault(
        "linear-posts",
        "what is added behind a product before a factor is not multiplied",
        (
            CONTRACTION,
            "beta = «first->beta * second->alpha» + second->beta;",
            "first->beta",
        ),
        runs=ALGORITHMS,
    ),
    fault(
        "bias-after-activation",
        "what is added to channels behind an activation becomes the bias before it",
        (CONTRACTION, "«c->n_post_ops == 0 &&\n      !c->g.has_bias» && !bytes", "!c->g.has_bias"),
        runs=ALGORITHMS,
    ),
    fault(
        "product-as-sum",
        "an array that a contraction is multiplied by is added to it",
        (CONTRACTION, "«post_op->kind == CPU_POST_OP_ADD && whole»", "whole"),
        runs=ALGORITHMS,
    ),
    fault(
        "arrays-overlap",
        "arrays that live at one time share a line",
        (
            PLACEMENT,
            "«clash[k]->offset < at + padded(s->bytes)»; k++",
            "clash[k]->offset + 64 < at + padded(s->bytes)",
        ),
    ),
    fault(
        "arrays-meet",
        "a result may lie where an operand of its instruction does",
        (
            PLACEMENT,
            "«other->first <= s->last && s->first <= other->last»",
            "other->first < s->last && s->first < other->last",
        ),
    ),
    fault(
        "init-twice",
        "a loop writes over a first value that another carried value has, too",
        (BUFFERS, "«j == k || find(b, unit_of(b, i->operands[j])) != init»;", "1"),
    ),
    fault(
        "concurrent-overwrites",
        "what runs side by side may write over each other's operands",
        (BUFFERS, "find(b, unit_of(b, j->operands[k])) == u", "0"),
        runs=THREADS,
    ),
    fault(
        "neighbours-transposed",
        "a transpose that exchanges neighbouring dimensions is a view",
        (THUNKS, "if («from < last»)", "from < last - 1"),
    ),
    fault(
        "same-upper",
        "of a total padding the larger half goes to the other end",
        (
            CONV,
            "w->auto_pad == ONNX_PAD_SAME_UPPER ? half : rest",
            "w->auto_pad == ONNX_PAD_SAME_UPPER ? rest : half",
        ),
    ),
    fault(
        "transposed-groups",
        "kernels of grouped transposed convolutions keep their order",
        (
            CONV,
            "w = hlo_transpose(b, hlo_reshape(b, w, 4, split), (int64_t[]){0, 2, 1, 3});",
            "w = hlo_reshape(b, w, 4, split);",
        ),
    ),
    fault(
        "shuffle-axes",
        "DepthToSpace exchanges height and width of its blocks",
        ("frontend/ops/array/shape.c", "«(int64_t[]){0, 1, 4, 2, 5, 3}», to)", "(int64_t[]){0, 1, 4, 3, 5, 2}"),
    ),
    fault(
        "norm-epsilon",
        "BatchNormalization does not read its epsilon",
        (NORM, "onnx_plus(b, variance, p.epsilon)", "onnx_plus(b, variance, 1e-5f)"),
    ),
    fault(
        "pool-counts",
        "means at the end of the image count what lies beyond it",
        ("frontend/ops/nn/pool.c", "more = include_pad ? w->low[k] + w->high[k] : «0»;", "w->high[k]"),
        ("frontend/ops/nn/pool.c", "high = p->beyond[k] - «(include_pad ? w->high[k] : 0)»;", "w->high[k]"),
    ),
    fault(
        "slice-backwards",
        "a slice that runs backwards by steps ends at the wrong element",
        (
            "frontend/ops/array/slice.c",
            "(slice_dim){dim_sub(t, start, last), dim_add_const(t, start, 1), stride, true}",
            "(slice_dim){dim_add_const(t, end, 1), dim_add_const(t, start, 1), stride, true}",
        ),
    ),
    fault(
        "old-softmax",
        "Softmax before version 13 is over one dimension",
        ("frontend/ops/math/softmax.c", "if («n->since < 13») {", "n->since < 11"),
    ),
    fault(
        "col2im-padding",
        "blocks of Col2Im begin at the image's first element, whatever the padding",
        ("frontend/ops/math/geometry.c", "«tap * g->dilations[k] - g->low[k]», g->strides[k])", "tap * g->dilations[k]"),
    ),
    fault(
        "col2im-tiles",
        "where blocks lie side by side, an element's place in the block and the block's number change places",
        ("frontend/ops/math/geometry.c", "x = hlo_transpose(b, x, order);", ";"),
    ),
]
