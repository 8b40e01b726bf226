# Written by m4/list-sources: do not edit.
cpu_exec_sources = \
	backend_cpu/runtime/contraction.c \
	backend_cpu/runtime/kernel.c \
	backend_cpu/runtime/nms.c \
	backend_cpu/runtime/onednn.c \
	backend_cpu/runtime/onednn_library.c \
	backend_cpu/runtime/onednn_primitive.c \
	backend_cpu/runtime/onednn_version.c \
	backend_cpu/runtime/openblas.c \
	backend_cpu/runtime/order.c \
	backend_cpu/runtime/sort.c \
	backend_cpu/runtime/target.c
cpu_compile_sources = \
	backend_cpu/algorithms/algorithm.c \
	backend_cpu/algorithms/attention.c \
	backend_cpu/algorithms/contraction.c \
	backend_cpu/algorithms/depthwise.c \
	backend_cpu/algorithms/gemm.c \
	backend_cpu/algorithms/geometry.c \
	backend_cpu/algorithms/library.c \
	backend_cpu/algorithms/narrow_operands.c \
	backend_cpu/algorithms/plans.c \
	backend_cpu/algorithms/winograd.c \
	backend_cpu/autotune/contractions.c \
	backend_cpu/autotune/trial.c \
	backend_cpu/compile/assign_kernels.c \
	backend_cpu/compile/target.c \
	backend_cpu/lower/lower.c \
	backend_cpu/lower/special.c
backend_cpu_files = \
	backend_cpu/README \
	backend_cpu/algorithms/algorithm.h \
	backend_cpu/algorithms/algorithms.def \
	backend_cpu/algorithms/attention.h \
	backend_cpu/algorithms/contraction.h \
	backend_cpu/algorithms/geometry.h \
	backend_cpu/algorithms/plans.h \
	backend_cpu/autotune/contractions.h \
	backend_cpu/autotune/trial.h \
	backend_cpu/compile/assign_kernels.h \
	backend_cpu/compile/target.h \
	backend_cpu/lower/lower.h \
	backend_cpu/lower/special.h \
	backend_cpu/runtime/arm_calls.def \
	backend_cpu/runtime/contraction.h \
	backend_cpu/runtime/functions.h \
	backend_cpu/runtime/kinds.h \
	backend_cpu/runtime/onednn.h \
	backend_cpu/runtime/onednn_functions.def \
	backend_cpu/runtime/order.h \
	backend_cpu/runtime/target.h
