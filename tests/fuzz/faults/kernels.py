"""faults/kernels.py: faults in kernels that emit/ writes."""

from faults import ALGORITHMS, fault

ELEMENTWISE, ATTENTION = "emit/element/elementwise.c", "emit/contraction/attention_kernel.c"
DEPTHWISE, SUMS = "emit/contraction/depthwise.c", "emit/contraction/depthwise_sums.c"
MOVEMENT, REDUCE, COPIES = "emit/element/movement.c", "emit/element/reduce.c", "emit/product/product_copies.c"
CONCATENATE, WINDOW = "emit/element/concatenate.c", "emit/element/window.c"

FAULTS = [
    fault(
        "tail-short",
        "the last element behind the vectors is left out",
        (
            "emit/kernel/ranges.c",
            "emit_select(ir, last, emit_i64(ir, n->inner), emit_i64(ir, whole))",
            "emit_select(ir, last, emit_i64(ir, n->inner - 1), emit_i64(ir, whole))",
        ),
    ),
    fault(
        "window-padding",
        "windows see zeros in the padding, also those that look for the largest",
        (
            WINDOW,
            "g->outside = emit_acc_value(e->w, reducer_of(g), t, held);",
            "g->outside = (emit_pair){LLVMConstNull(emit_register_type(e->w, t)), held.im};",
        ),
    ),
    fault(
        "pairs-quotient",
        "lanes of which several have the same quotient get that of the lane after them",
        (
            "emit/llvm/position.c",
            "r->offsets[k] = floor_div(«s->offsets[k]», c);",
            "s->offsets[k] + 1",
        ),
    ),
    fault(
        "fusion-stores-early",
        "a result is stored before the next one has read what lies there",
        (
            "emit/kernel/kernel.c",
            "values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims));",
            "values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims)); "
            "emit_store(e, w->results[k], hlo_type(w->roots[k]), emit_index_linear(&e->x, at), values[k], "
            "w->shared[k]);",
        ),
    ),
    fault(
        "unsigned-compare",
        "unsigned integers are compared as signed ones",
        (
            ELEMENTWISE,
            "emit_icmp(w, dtype_is_signed(t) ? with_sign[c] : without[c], x.v, y.v)",
            "emit_icmp(w, dtype_is_int(t) ? with_sign[c] : without[c], x.v, y.v)",
        ),
    ),
    fault(
        "unsigned-shift",
        "shifts to the right keep the highest bit of unsigned integers",
        (
            ELEMENTWISE,
            'return emit_select(w, in_range, LLVMBuildLShr(b, x, by, ""), emit_i(x, 0));',
            'return emit_select(w, in_range, LLVMBuildAShr(b, x, by, ""), emit_i(x, 0));',
        ),
    ),
    fault(
        "scan-direction",
        "exclusive sums from the end run from the start",
        (
            "emit/kernel/update.c",
            "«hlo_int(g->i, HLO_ATTR_BACKWARD)» ? from_end",
            "hlo_int(g->i, HLO_ATTR_BACKWARD) && !hlo_int(g->i, HLO_ATTR_EXCLUSIVE)",
        ),
    ),
    fault(
        "index-clamp",
        "indices are held below the last place",
        (
            "emit/element/element.c",
            'emit_intrinsic2(e->w, "llvm.smin", n, most)',
            'emit_intrinsic2(e->w, "llvm.smin", n, LLVMBuildLShr(e->w->builder, most, emit_i(n, 1), ""))',
        ),
    ),
    fault(
        "group-offset",
        "groups of a convolution begin one channel apart",
        (
            "emit/element/contract.c",
            "emit_pos_scale(&e->x, group, kernel->dims[1])",
            "emit_pos_scale(&e->x, group, kernel->dims[1] > 1 ? 1 : kernel->dims[1])",
        ),
    ),
    fault(
        "concat-joint",
        "in vectors across a joint of a concatenation the first element comes from the wrong side",
        (
            CONCATENATE,
            "emit_icmp(c->e->w, LLVMIntSGE, own, emit_i(own, 0))",
            "emit_icmp(c->e->w, LLVMIntSGT, own, emit_i(own, 0))",
        ),
    ),
    fault(
        "remainder-unsigned",
        "remainders of negative integers are those of unsigned ones",
        (
            ELEMENTWISE,
            'return «is_signed ? LLVMBuildSRem(b, x, y, "") : LLVMBuildURem(b, x, y, "")»;',
            'LLVMBuildURem(b, x, y, "")',
        ),
    ),
    fault(
        "attention-last-keys",
        "lanes behind the last key count as the row's first of that vector",
        (
            ATTENTION,
            "from[j] = j < rest ? lanes - rest + j : lanes;",
            "from[j] = j < rest ? lanes - rest + j : 0;",
        ),
    ),
    fault(
        "attention-batch",
        "what is added to scores is that of the first batch",
        (ATTENTION, "k->row = emit_add(w, emit_times(w, batch, c->rows), row);", "k->row = row;"),
    ),
    fault(
        "winograd-height",
        "rows of a patch end where its columns do",
        ("emit/contraction/winograd_functions.c", "left = emit_sub(w, «number_of(g, WINOGRAD_IN + d)»", "number_of(g, WINOGRAD_IN + 1)"),
    ),
    fault(
        "depthwise-border",
        "the column behind the last one counts",
        (SUMS, "«at < t->in»));", "at <= t->in"),
    ),
    fault(
        "depthwise-edge",
        "a tile at the end of a row of any length reads a column behind the last one",
        (SUMS, "emit_icmp(w, «LLVMIntULT», at, s->tile->columns)", "LLVMIntULE"),
    ),
    fault(
        "depthwise-dilation",
        "taps of a dilated depthwise convolution read neighbouring rows",
        (
            DEPTHWISE,
            "dim_mul(table(g), p->dilation[0] * in_channels(p), p->in[1])",
            "dim_mul(table(g), in_channels(p), p->in[1])",
        ),
    ),
    fault(
        "depthwise-groups",
        "channels of small groups read the group's first",
        (SUMS, "from[lane] = lane / multiplier / group * group + (int)j;", "from[lane] = lane / multiplier / group * group;"),
        runs=ALGORITHMS,
    ),
    fault(
        "arg-last",
        "of equal elements the first is found where the last is wanted",
        (REDUCE, 'last ? LLVMBuildNot(b, earlier, "") : earlier', "earlier"),
    ),
    fault(
        "row-end",
        "a row's last vector leaves out the first of its elements that are left",
        ("emit/element/reduction_loop.c", "LLVMConstInt(w->i1, k >= seen, false)", "LLVMConstInt(w->i1, k > seen, false)"),
    ),
    fault(
        "pad-behind",
        "padding that takes away at one end what it adds at the other moves nothing",
        (MOVEMENT, "if («low == 0 && gap == 1 && x->dims[k] == at->dims[k]»)", "gap == 1 && x->dims[k] == at->dims[k]"),
    ),
    fault(
        "panel-groups",
        "packed operands of a grouped product are those of the first group",
        (COPIES, "emit_times(w, emit_modulo(w, outside, p->group.n), p->group.b)", "emit_i64(w, 0)"),
    ),
    fault(
        "dots-together",
        "the weights of a dot group are those of neighbouring columns",
        ("emit/product/product_pack.c", "row + (c * p->b_column + «j * p->dot_step») * (int64_t)bytes,", "j"),
    ),
    fault(
        "dots-of-group",
        "in A, a group of a convolution of dot groups begins as many elements behind the one before as there are integers between them",
        ("emit/product/product.c", "p->group.a /= group;", ";"),
    ),
    fault(
        "window-holes",
        "a dilated window in the padding begins one step too early",
        (WINDOW, "LLVMBuildUDiv(w->builder, «LLVMBuildAdd(w->builder, n, emit_i64(w, hole - 1), \"\")», emit_i64(w, hole)", "n"),
    ),
    fault(
        "exponential-of-softmax",
        "the exponential of a number up to 0 is twice as large",
        ("emit/math/math.c", "at_least(w, x, -106), «127 + 32», &n, &bits);", "127 + 33"),
    ),
]
