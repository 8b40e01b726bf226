# Written by m4/list-sources: do not edit.
emit_sources = \
	emit/accumulate.c \
	emit/compile.c \
	emit/contract.c \
	emit/depthwise.c \
	emit/depthwise_plan.c \
	emit/element.c \
	emit/elementwise.c \
	emit/fold.c \
	emit/gemm.c \
	emit/index.c \
	emit/ir.c \
	emit/kernel.c \
	emit/math.c \
	emit/movement.c \
	emit/number.c \
	emit/plan.c \
	emit/pool.c \
	emit/product.c \
	emit/product_kernel.c \
	emit/product_pack.c \
	emit/random.c \
	emit/reduce.c \
	emit/rows.c \
	emit/support.c \
	emit/target.c \
	emit/tiles.c \
	emit/update.c \
	emit/window.c \
	emit/winograd.c \
	emit/winograd_plan.c
emit_files = \
	emit/README \
	emit/accumulate.h \
	emit/compile.h \
	emit/depthwise.h \
	emit/element.h \
	emit/elementwise.h \
	emit/fold.h \
	emit/gemm.h \
	emit/index.h \
	emit/ir.h \
	emit/kernel.h \
	emit/math.h \
	emit/module.h \
	emit/number.h \
	emit/plan.h \
	emit/product.h \
	emit/reduce.h \
	emit/target.h \
	emit/window.h \
	emit/winograd.h \
	emit/writer.h
