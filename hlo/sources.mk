# Written by m4/list-sources: do not edit.
hlo_sources = \
	hlo/buffers.c \
	hlo/builder.c \
	hlo/ir.c \
	hlo/op_table.c \
	hlo/parse.c \
	hlo/print.c \
	hlo/schedule.c \
	hlo/shape_loops.c \
	hlo/shape_movement.c \
	hlo/shape_rules.c \
	hlo/text_literal.c \
	hlo/text_token.c \
	hlo/verify.c
hlo_files = \
	hlo/OPS.md \
	hlo/attrs.def \
	hlo/buffers.h \
	hlo/builder.h \
	hlo/ir.h \
	hlo/ops.def \
	hlo/schedule.h \
	hlo/shape_rules.h \
	hlo/text.h \
	hlo/text_internal.h \
	hlo/verify.h
