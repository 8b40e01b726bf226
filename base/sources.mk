# Written by m4/list-sources: do not edit.
base_sources = \
	base/arena.c \
	base/bounds.c \
	base/dim.c \
	base/dim_nodes.c \
	base/dim_text.c \
	base/dtype.c \
	base/file.c \
	base/hash.c \
	base/headroom.c \
	base/literal.c \
	base/locale.c \
	base/nms.c \
	base/npy.c \
	base/random.c \
	base/shape.c \
	base/status.c
base_files = \
	base/README \
	base/arena.h \
	base/bounds.h \
	base/dim.h \
	base/dim_nodes.h \
	base/dtype.h \
	base/dtypes.def \
	base/file.h \
	base/hash.h \
	base/headroom.h \
	base/literal.h \
	base/locale.h \
	base/nms.h \
	base/npy.h \
	base/poison.h \
	base/random.h \
	base/shape.h \
	base/status.h \
	base/x86_features.def
