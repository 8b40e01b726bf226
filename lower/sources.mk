# Written by m4/list-sources: do not edit.
lower_sources = \
	lower/concurrent_groups.c \
	lower/lower.c \
	lower/provenance.c \
	lower/sizes.c
lower_kernels_sources = \
	lower/kernels/divide.c \
	lower/kernels/dynamic_m.c \
	lower/kernels/jobs.c \
	lower/kernels/kernels.c \
	lower/kernels/outline.c \
	lower/kernels/report.c \
	lower/kernels/special.c \
	lower/kernels/thunks.c
lower_files = \
	lower/README \
	lower/concurrent_groups.h \
	lower/kernels/divide.h \
	lower/kernels/dynamic_m.h \
	lower/kernels/jobs.h \
	lower/kernels/kernels.h \
	lower/kernels/outline.h \
	lower/kernels/report.h \
	lower/kernels/special.h \
	lower/kernels/thunks.h \
	lower/lower.h \
	lower/provenance.h \
	lower/sizes.h
