# Written by m4/list-sources: do not edit.
backend_ref_sources = \
	backend_ref/complex.c \
	backend_ref/contract.c \
	backend_ref/control.c \
	backend_ref/elementwise.c \
	backend_ref/eval.c \
	backend_ref/movement.c \
	backend_ref/number.c \
	backend_ref/random.c \
	backend_ref/reduce.c \
	backend_ref/run.c \
	backend_ref/scan_sort.c \
	backend_ref/target.c \
	backend_ref/update.c \
	backend_ref/window.c
backend_ref_files = \
	backend_ref/README \
	backend_ref/complex.h \
	backend_ref/eval.h \
	backend_ref/ref.h \
	backend_ref/target.h
