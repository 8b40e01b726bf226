"""faults/sizes.py: faults in programs for all sizes: in guards, in expressions of sizes, and in their binding."""

from faults import SAVED_SIZES, SIZES, fault

RESIZE, SIZES_OF, MACRO = "frontend/ops/nn/resize_symbolic.c", "hlo/ir/fold_sizes.c", "emit/product/macro_kernel.c"
GUARD, BINDING, EVALUATE = "base/dim/guard.c", "runtime/exec/binding.c", "runtime/program/sizes.c"

FAULTS = [
    fault(
        "unequal-forgotten",
        "what was decided because two sizes differ is taken for right where they are equal",
        (
            GUARD,
            "add_guard(t, x == y ? DIM_EQUAL : DIM_NOT_EQUAL, a, b);",
            "if (x == y) add_guard(t, DIM_EQUAL, a, b);",
        ),
        runs=SIZES,
    ),
    fault(
        "at-most-forgotten",
        "what was decided because a size is at most another is taken for right where it is larger",
        (GUARD, "add_guard(t, DIM_AT_MOST, a, b);", ";"),
        runs=SIZES,
    ),
    fault(
        "guards-unread",
        "a program is bound to sizes for which its guards do not hold",
        (EVALUATE, "«k < p->n_guards»; k++) {\n    TRY(check_holds", "0"),
        runs=SIZES,
    ),
    fault(
        "definitions-unread",
        "a program is bound to inputs whose dimensions are not those that follow from the others",
        (EVALUATE, "TRY(«given->dims[k] == size» ? NULL", "1"),
        runs=SIZES,
    ),
    fault(
        "quotients-up",
        "a size that is a quotient is rounded up when it is computed",
        (EVALUATE, "&out) ? «out» : RT_NO_SIZE", "out + (n->op == DIM_FLOORDIV && b > 1 && a % b)"),
        runs=SIZES,
    ),
    fault(
        "solution-without-rest",
        "a symbol that follows from a sum is taken to be the sum",
        ("lower/sizes.c", "  if («rest») {\n    rt_size negative", "0"),
        runs=SIZES,
    ),
    fault(
        "rung-short",
        "of the rows of a product that are left for low blocks, the last one is not computed",
        (
            MACRO,
            "emit_sub(w, to, left), «emit_div(w, left, m->rows)»}",
            "emit_div(w, emit_greater(w, emit_sub(w, left, emit_i64(w, 1)), emit_i64(w, 0)), m->rows)",
        ),
        runs=SIZES,
    ),
    fault(
        "grid-of-another",
        "the last part of a kernel's grid is not computed",
        (
            "backend_cpu/runtime/kernel.c",
            "return t->sizes[0];",
            "return t->n_sizes > 1 && t->sizes[0] > 1 ? t->sizes[0] - 1 : t->sizes[0];",
        ),
        runs=SIZES,
    ),
    fault(
        "arguments-exchanged",
        "a kernel gets its first two sizes in the other order",
        (
            "lower/kernels/kernels.c",
            "sizes[t->n_sizes++] = size_of(c, info->sizes[k]);",
            "sizes[t->n_sizes++] = size_of(c, info->sizes[info->n_sizes > 1 && k < 2 ? 1 - k : k]);",
        ),
        runs=SIZES,
    ),
    fault(
        "slot-lives-short",
        "an array of a bound program is overwritten at once",
        (BINDING, ".last = «p->slots[k].last»};", "p->slots[k].first"),
        runs=SIZES,
    ),
    fault(
        "guards-unsaved",
        "a saved program loses its guards",
        ("runtime/program/image_write.c", "rt_put_i64(out, p->n_guards);", "rt_put_i64(out, 0);"),
        ("runtime/program/image_write.c", "«k < p->n_guards»; k++", "0"),
        runs=SAVED_SIZES,
    ),
    fault(
        "rung-of-one-iteration",
        "low blocks are computed only if they have rows in the first iteration of the loops around them",
        (MACRO, 'return «LLVMBuildOr(w->builder, several, some, "")»;', "some"),
        runs=SIZES,
    ),
    fault(
        "rung-of-one-block",
        "low blocks are computed only if there are two",
        (MACRO, "emit_icmp(w, «LLVMIntSGE», row_blocks_of(m, m->first_outer).n, one)", "LLVMIntSGT"),
        runs=SIZES,
    ),
    fault(
        "resize-shrink",
        "antialiasing adds taps, but does not widen the filter",
        (RESIZE, "filter(t, «shrink == 1 ? far : op(t, HLO_MUL, far, number(t, shrink))»)", "far"),
        runs=SIZES,
    ),
    fault(
        "resize-outside",
        "the tap behind the last element counts",
        (RESIZE, "hlo_compare(t->b, «HLO_LT», tap[k], t->in)", "HLO_LE"),
        runs=SIZES,
    ),
    fault(
        "resize-weights",
        "the weights of a widened filter do not have the sum 1",
        (RESIZE, "if («!t->r->exclude_outside && shrink == 1») {", "!t->r->exclude_outside"),
        runs=SIZES,
    ),
    fault(
        "resize-cubic",
        "the cubic filter has its usual coefficient",
        (RESIZE, "double a = «t->r->cubic_a»;", "-0.75"),
        runs=SIZES,
    ),
    fault(
        "sizes-ceiling",
        "a ceiling of a size that is computed in floats is its floor",
        (SIZES_OF, ": «i->op == HLO_CEIL» ? dim_ceildiv", "0"),
        runs=SIZES,
    ),
    fault(
        "sizes-fractions",
        "fractions of sizes are added without a common denominator",
        (SIZES_OF, "dim left = «dim_signed_mul(t, a->over, b->under)»", "a->over"),
        runs=SIZES,
    ),
    fault(
        "sizes-negative",
        "a remainder or quotient of a negative size is that of its absolute value",
        (
            SIZES_OF,
            "return dim_signed_sub(t, 0, divide(t, dim_signed_sub(t, 0, a), b, rest));",
            "return divide(t, dim_signed_sub(t, 0, a), b, rest);",
        ),
        runs=SIZES,
    ),
]
