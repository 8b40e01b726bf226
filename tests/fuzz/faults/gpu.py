"""faults/gpu.py: faults in kernels for blocks of threads, in how they are launched, and in recordings of launches."""

from faults import GPU, fault

GEOMETRY, TEAM, SCAN = "emit/blocks/tile_geometry.c", "emit/kernel/team.c", "emit/kernel/scan.c"
PRODUCTS = "emit/blocks/block_attention_products.c"
SORT, SCATTER, BLOCK = "emit/blocks/block_sort.c", "emit/kernel/block_scatter.c", "emit/kernel/block.c"

FAULTS = [
    fault(
        "gpu-row-tail",
        "a tile stores a row behind the last one",
        (GEOMETRY, "emit_icmp(x->w, «LLVMIntSLT», row, emit_size(x, g->rows.total))", "LLVMIntSLE"),
        runs=GPU,
    ),
    fault(
        "gpu-column-tail",
        "a tile stores a column behind the last one, which is the first one of the next row",
        (GEOMETRY, "emit_icmp(x->w, «LLVMIntSLT», column, emit_size(x, g->columns.total))", "LLVMIntSLE"),
        runs=GPU,
    ),
    fault(
        "gpu-grid-of-columns",
        "the last columns of a reduction have no block",
        (
            TEAM,
            "extents[1] = dim_ceildiv(w->e.x.sizes->table, s.total, EMIT_WARP);",
            "extents[1] = dim_max(w->e.x.sizes->table, 1, dim_floordiv(w->e.x.sizes->table, s.total, EMIT_WARP));",
        ),
        runs=GPU,
    ),
    fault(
        "gpu-lanes",
        "half of the lanes of a warp are not combined",
        (TEAM, "int half = «n / 2»; half >= 1", "n > 2 ? n / 4 : n / 2"),
        runs=GPU,
    ),
    fault(
        "gpu-blocks",
        "the last elements have no block",
        ("backend_gpu/runtime/kernel.c", ".blocks = «(all - 1) / threads + 1»", "all < threads ? 1 : all / threads"),
        runs=GPU,
    ),
    fault(
        "gpu-scan-lane",
        "a lane of a scan leaves out the first value",
        (SCAN, "emit_icmp(ir, «LLVMIntSGE», lane, emit_i64(ir, by))", "LLVMIntSGT"),
        runs=GPU,
    ),
    fault(
        "gpu-scan-identity",
        "the first warp of a scan begins with the sum of itself",
        (SCAN, "select_all(ir, s->n, emit_icmp(ir, LLVMIntSGT, warp, zero), earlier, s->identity);", "(void)zero;"),
        runs=GPU,
    ),
    fault(
        "gpu-sort-end",
        "a sort exchanges an item with what lies behind the last one",
        (SORT, "emit_icmp(ir, «LLVMIntSLT», y, m)", "LLVMIntSLE"),
        runs=GPU,
    ),
    fault(
        "gpu-scatter-twice",
        "threads without an update of their own apply the last one again",
        (SCATTER, 'is_own = LLVMBuildAnd(b, is_own, exists, "");', "(void)exists;"),
        runs=GPU,
    ),
    fault(
        "gpu-step-behind-the-end",
        "threads behind the last step compute one, too",
        (BLOCK, 'w->end = emit_intrinsic2(ir, "llvm.smin", next, LLVMGetParam(ir->function, EMIT_STEPS));', "w->end = next;"),
        runs=GPU,
    ),
    fault(
        "gpu-head-beyond",
        "what fills up the heads of attention is their last element and not 0",
        (PRODUCTS, "return «full ? v : emit_select(ir, inside, v, LLVMConstNull(k->element))»;", "((void)inside, v)"),
        runs=GPU,
    ),
    fault(
        "gpu-attention-lanes",
        "half of the lanes that share a row of attention are not joined",
        ("emit/blocks/block_attention_softmax.c", "unsigned half = (unsigned)«k->t.lanes / 2»;", "k->t.lanes / 4"),
        runs=GPU,
    ),
    fault(
        "gpu-part-end",
        "a part of a sum reaches beyond the end of the sum",
        (
            "emit/blocks/sum_parts.c",
            "{from, «emit_lesser(x->w, emit_add(x->w, from, emit_size(x, each)), end)»};",
            "emit_add(x->w, from, emit_size(x, each))",
        ),
        runs=GPU,
    ),
    fault(
        "gpu-transpose-gap",
        "a thread's further elements of a transposed tile leave out the gaps",
        ("emit/kernel/block_transpose.c", "int64_t step = along_line ? «THREADS + THREADS / run * gap» : s->step;", "THREADS"),
        runs=GPU,
    ),
    fault(
        "gpu-stage-before",
        "factors are copied to the stage that is multiplied next",
        ("emit/blocks/tiled_product.c", "LLVMValueRef before = unless(ir, stage, 0, «AHEAD»,", "AHEAD - 1"),
        runs=GPU,
    ),
]
