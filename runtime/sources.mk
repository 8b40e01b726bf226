# Written by m4/list-sources: do not edit.
runtime_sources = \
	runtime/exec/binding.c \
	runtime/exec/bounds.c \
	runtime/exec/check_buffers.c \
	runtime/exec/check_memory.c \
	runtime/exec/control.c \
	runtime/exec/executable.c \
	runtime/exec/guarded.c \
	runtime/exec/profile.c \
	runtime/exec/random.c \
	runtime/exec/trial.c \
	runtime/host/code_loader.c \
	runtime/host/relocation.c \
	runtime/host/roofline.c \
	runtime/host/stack.c \
	runtime/host/thread_pool.c \
	runtime/program/image.c \
	runtime/program/image_write.c \
	runtime/program/program.c \
	runtime/program/size_text.c \
	runtime/program/sizes.c \
	runtime/program/told.c \
	runtime/program/weight_pool.c
runtime_files = \
	runtime/README \
	runtime/block_abi.h \
	runtime/exec/binding.h \
	runtime/exec/bounds.h \
	runtime/exec/check_buffers.h \
	runtime/exec/check_memory.h \
	runtime/exec/executable.h \
	runtime/exec/guarded.h \
	runtime/exec/profile.h \
	runtime/exec/random.h \
	runtime/exec/trial.h \
	runtime/host/code_loader.h \
	runtime/host/relocation.h \
	runtime/host/roofline.h \
	runtime/host/stack.h \
	runtime/host/thread_pool.h \
	runtime/kernel_abi.h \
	runtime/kernel_externals.def \
	runtime/program/compile_options.def \
	runtime/program/image.h \
	runtime/program/image_internal.h \
	runtime/program/object_info.h \
	runtime/program/program.h \
	runtime/program/size_text.h \
	runtime/program/sizes.h \
	runtime/program/target.h \
	runtime/program/told.h \
	runtime/program/weight_pool.h
