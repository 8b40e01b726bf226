# Written by m4/list-sources: do not edit.
autotune_sources = \
	autotune/autotune.c \
	autotune/log.c \
	autotune/race.c
autotune_files = \
	autotune/README \
	autotune/autotune.h \
	autotune/log.h \
	autotune/race.h
