# Written by m4/list-sources: do not edit.
hlo_sources = \
	hlo/builder.c \
	hlo/ir.c
hlo_files = \
	hlo/OPS.md \
	hlo/attrs.def \
	hlo/builder.h \
	hlo/ir.h \
	hlo/ops.def
