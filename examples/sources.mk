# Written by m4/list-sources: do not edit.
example_programs = \
	examples/ocr
examples_files = \
	examples/README \
	examples/draw-text \
	examples/objects/Makefile \
	examples/objects/filetype.c \
	examples/objects/spot.c \
	examples/objects/vad.c
examples_ocr_CPPFLAGS = $(FLAGS_OF_CLIENTS)
examples_ocr_LDADD = $(LIBS_OF_CLIENTS)
