"""faults/mends.py: fixes that are undone: faults that real models found first, and that random graphs must find from now on."""

from faults import ALGORITHMS, fault

RESIDUAL = (
    "backend_cpu/lower/lower.c",
    "return is_only_residual(p, i->operands[operand]);",
    "return p->sum.def && hlo_value_equal(p->sum, i->operands[operand]);",
)

FAULTS = [
    fault(
        "residual-over-operand",
        "a residual is written over although the convolution or dot reads it, too; checks of buffers say so",
        RESIDUAL,
    ),
    fault(
        "residual-over-operand-unseen",
        "the same, and no check looks at the buffers",
        RESIDUAL,
        ("lower/lower.c", "TRY(hlo_check_overlaps(a, m, rules, c.buffers));", ";"),
        ("runtime/exec/check_buffers.c", "return check_overlaps(t);", "return NULL;"),
    ),
    fault(
        "attention-operands",
        "what attention reads may be what its fusion makes a copy of",
        ("hlo/analysis/attention.c", "«i->op == HLO_TRANSPOSE || i->op == HLO_BROADCAST»;", "i->op == HLO_TRANSPOSE"),
        ("hlo/analysis/attention.c", "if («!hlo_is_free(v.def)») {\n      shown", "1"),
        (
            "hlo/analysis/attention.c",
            "a->q.def->op == HLO_PARAMETER && a->k.def->op == HLO_PARAMETER && a->v.def->op == HLO_PARAMETER",
            "1",
        ),
    ),
    fault(
        "misread-arrays",
        "the library's convolution by matrix products is given arrays of the result's shape",
        (
            "backend_cpu/runtime/onednn_primitive.c",
            "return found && c->g.channels_last;",
            "return false;",
        ),
        runs=ALGORITHMS,
    ),
    fault(
        "pool-larger-window",
        "with ceil_mode a window that is larger than the image is refused",
        (
            "frontend/ops/nn/pool.c",
            "enough[k] = starts ? dim_add_const(t, in[k], more) : in[k];",
            "enough[k] = in[k];",
        ),
    ),
    fault(
        "prelu-slope",
        "a slope of more dimensions than x is refused",
        ("frontend/ops/math/activation.c", "more <= 0 || !dim_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), s, 0, more), 1)", "1"),
    ),
    fault(
        "rotary-one-batch",
        "caches of one batch for all are refused",
        ("frontend/ops/nn/attention.c", "dims[0] = !dim_equal(t, s->dims[0], r->batch) && dim_equal(t, s->dims[0], 1) ? 1 : r->batch;", "dims[0] = r->batch;"),
    ),
    fault(
        "compress-condition",
        "a condition of the input's shape is refused where Compress has no axis",
        ("frontend/ops/math/select.c", "condition = flat(b, condition);", ";"),
    ),
]
