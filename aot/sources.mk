# Written by m4/list-sources: do not edit.
aot_sources = \
	aot/aot.c \
	aot/archive.c \
	aot/cpu.c \
	aot/dispatch.c \
	aot/elf.c \
	aot/entry.c \
	aot/example.c \
	aot/header.c \
	aot/host.c \
	aot/layout.c \
	aot/names.c \
	aot/ports.c \
	aot/room.c \
	aot/run.c \
	aot/state.c \
	aot/text.c \
	aot/thunks.c
aot_files = \
	aot/README \
	aot/aot.h \
	aot/archive.h \
	aot/cpu.h \
	aot/elf.h \
	aot/host.h \
	aot/names.h \
	aot/templates/CMakeLists.txt.in \
	aot/templates/Makefile.in \
	aot/templates/main.c.in \
	aot/templates/pool.h \
	aot/text.h
