# Written by m4/list-sources: do not edit.
verify_sources = \
	verify/compare.c \
	verify/evaluate.c \
	verify/lockstep.c \
	verify/outline.c \
	verify/passes.c \
	verify/program.c \
	verify/verify.c \
	verify/write.c
verify_files = \
	verify/README \
	verify/compare.h \
	verify/evaluate.h \
	verify/lockstep.h \
	verify/outline.h \
	verify/passes.h \
	verify/program.h \
	verify/verify.h \
	verify/write.h
