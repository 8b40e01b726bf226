# Written by m4/list-sources: do not edit.
cpu_exec_sources = \
	backend_cpu/exec_contraction.c \
	backend_cpu/exec_kernel.c \
	backend_cpu/exec_nms.c \
	backend_cpu/exec_onednn.c \
	backend_cpu/exec_onednn_primitive.c \
	backend_cpu/exec_onednn_version.c \
	backend_cpu/exec_openblas.c \
	backend_cpu/exec_order.c \
	backend_cpu/exec_sort.c \
	backend_cpu/exec_target.c
cpu_compile_sources = \
	backend_cpu/compile_algorithm.c \
	backend_cpu/compile_attention.c \
	backend_cpu/compile_contraction.c \
	backend_cpu/compile_depthwise.c \
	backend_cpu/compile_dynamic_m.c \
	backend_cpu/compile_gemm.c \
	backend_cpu/compile_jobs.c \
	backend_cpu/compile_kernels.c \
	backend_cpu/compile_library.c \
	backend_cpu/compile_lower.c \
	backend_cpu/compile_measure.c \
	backend_cpu/compile_target.c \
	backend_cpu/compile_tune.c \
	backend_cpu/compile_tune_log.c \
	backend_cpu/compile_winograd.c
backend_cpu_files = \
	backend_cpu/README \
	backend_cpu/compile_algorithm.h \
	backend_cpu/compile_attention.h \
	backend_cpu/compile_contraction.h \
	backend_cpu/compile_dynamic_m.h \
	backend_cpu/compile_jobs.h \
	backend_cpu/compile_kernels.h \
	backend_cpu/compile_lower.h \
	backend_cpu/compile_measure.h \
	backend_cpu/compile_target.h \
	backend_cpu/compile_tune.h \
	backend_cpu/compile_tune_log.h \
	backend_cpu/exec_contraction.h \
	backend_cpu/exec_kinds.h \
	backend_cpu/exec_onednn.h \
	backend_cpu/exec_order.h \
	backend_cpu/exec_target.h
