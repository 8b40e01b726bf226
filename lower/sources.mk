# Written by m4/list-sources: do not edit.
lower_sources = \
	lower/lower.c
lower_files = \
	lower/README \
	lower/lower.h
