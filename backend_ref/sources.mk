# Written by m4/list-sources: do not edit.
backend_ref_sources = \
	backend_ref/eval.c \
	backend_ref/run.c
backend_ref_files = \
	backend_ref/eval.h \
	backend_ref/ref.h
