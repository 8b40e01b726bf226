# Written by m4/list-sources: do not edit.
runtime_sources = \
	runtime/control.c \
	runtime/executable.c \
	runtime/program.c
runtime_files = \
	runtime/executable.h \
	runtime/image.h \
	runtime/pool.h \
	runtime/program.h \
	runtime/target.h
