# Written by m4/list-sources: do not edit.
gpu_exec_sources = \
	backend_gpu/runtime/block_copies.c \
	backend_gpu/runtime/cuda.c \
	backend_gpu/runtime/cuda_code.c \
	backend_gpu/runtime/cuda_driver.c \
	backend_gpu/runtime/cuda_measure.c \
	backend_gpu/runtime/cuda_module.c \
	backend_gpu/runtime/cuda_recording.c \
	backend_gpu/runtime/cuda_staging.c \
	backend_gpu/runtime/cuda_stream.c \
	backend_gpu/runtime/emulated_block.c \
	backend_gpu/runtime/emulator.c \
	backend_gpu/runtime/kernel.c \
	backend_gpu/runtime/race_check.c \
	backend_gpu/runtime/target.c
gpu_compile_sources = \
	backend_gpu/algorithms/attention.c \
	backend_gpu/algorithms/config.c \
	backend_gpu/algorithms/contraction.c \
	backend_gpu/compile/target.c \
	backend_gpu/lower/lower.c
backend_gpu_files = \
	backend_gpu/README \
	backend_gpu/algorithms/attention.h \
	backend_gpu/algorithms/config.h \
	backend_gpu/algorithms/contraction.h \
	backend_gpu/compile/target.h \
	backend_gpu/lower/lower.h \
	backend_gpu/runtime/README-cuda.md \
	backend_gpu/runtime/block_copies.h \
	backend_gpu/runtime/cuda.h \
	backend_gpu/runtime/cuda_device.h \
	backend_gpu/runtime/cuda_driver.h \
	backend_gpu/runtime/cuda_functions.def \
	backend_gpu/runtime/device.h \
	backend_gpu/runtime/emulated_block.h \
	backend_gpu/runtime/emulator.h \
	backend_gpu/runtime/kinds.h \
	backend_gpu/runtime/race_check.h \
	backend_gpu/runtime/target.h
