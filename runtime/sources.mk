# Written by m4/list-sources: do not edit.
runtime_sources = \
	runtime/bounds.c \
	runtime/check_memory.c \
	runtime/code_loader.c \
	runtime/control.c \
	runtime/executable.c \
	runtime/guarded.c \
	runtime/image.c \
	runtime/profile.c \
	runtime/program.c \
	runtime/random.c \
	runtime/roofline.c \
	runtime/thread_pool.c \
	runtime/trial.c \
	runtime/weight_pool.c
runtime_files = \
	runtime/README \
	runtime/bounds.h \
	runtime/check_memory.h \
	runtime/code_loader.h \
	runtime/compile_options.def \
	runtime/executable.h \
	runtime/guarded.h \
	runtime/image.h \
	runtime/profile.h \
	runtime/program.h \
	runtime/random.h \
	runtime/roofline.h \
	runtime/target.h \
	runtime/thread_pool.h \
	runtime/trial.h \
	runtime/weight_pool.h
