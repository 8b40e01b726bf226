# Written by m4/list-sources: do not edit.
lower_sources = \
	lower/concurrent_groups.c \
	lower/lower.c \
	lower/provenance.c \
	lower/sizes.c
lower_files = \
	lower/README \
	lower/concurrent_groups.h \
	lower/lower.h \
	lower/provenance.h \
	lower/sizes.h
