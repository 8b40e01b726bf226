# Written by m4/list-sources: do not edit.
hlo_sources = \
	hlo/buffers.c \
	hlo/builder.c \
	hlo/composite_recurrence.c \
	hlo/composites.c \
	hlo/fuse.c \
	hlo/fuse_cluster.c \
	hlo/ir.c \
	hlo/op_table.c \
	hlo/parse.c \
	hlo/pass.c \
	hlo/pass_batch_norm.c \
	hlo/pass_cse.c \
	hlo/pass_dce.c \
	hlo/pass_epilogue.c \
	hlo/pass_fold.c \
	hlo/pass_inline_composites.c \
	hlo/pass_layout.c \
	hlo/pass_loop_fusion.c \
	hlo/pass_motion.c \
	hlo/pass_reduce_fusion.c \
	hlo/pass_simplify.c \
	hlo/print.c \
	hlo/rewrite.c \
	hlo/schedule.c \
	hlo/shape_loops.c \
	hlo/shape_movement.c \
	hlo/shape_rules.c \
	hlo/simplify_arith.c \
	hlo/simplify_control.c \
	hlo/simplify_index.c \
	hlo/simplify_loops.c \
	hlo/simplify_move.c \
	hlo/text_literal.c \
	hlo/text_token.c \
	hlo/verify.c
hlo_files = \
	hlo/OPS.md \
	hlo/README \
	hlo/attrs.def \
	hlo/buffers.h \
	hlo/builder.h \
	hlo/composites.def \
	hlo/composites.h \
	hlo/fuse.h \
	hlo/ir.h \
	hlo/ops.def \
	hlo/pass.h \
	hlo/passes.def \
	hlo/rewrite.h \
	hlo/schedule.h \
	hlo/shape_rules.h \
	hlo/simplify.h \
	hlo/text.h \
	hlo/text_internal.h \
	hlo/verify.h
