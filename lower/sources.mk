# Written by m4/list-sources: do not edit.
lower_sources = \
	lower/beside.c \
	lower/lower.c
lower_files = \
	lower/README \
	lower/beside.h \
	lower/lower.h
