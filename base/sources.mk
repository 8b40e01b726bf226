# Written by m4/list-sources: do not edit.
base_sources = \
	base/arena.c \
	base/clock.c \
	base/dim/answer.c \
	base/dim/dim.c \
	base/dim/dim_evaluate.c \
	base/dim/dim_interval.c \
	base/dim/dim_nodes.c \
	base/dim/dim_text.c \
	base/dim/guard.c \
	base/dynamic_library.c \
	base/file.c \
	base/hash.c \
	base/headroom.c \
	base/locale.c \
	base/machine/function_set.c \
	base/machine/machine.c \
	base/nms.c \
	base/placement.c \
	base/random.c \
	base/status.c \
	base/tensor/bounds.c \
	base/tensor/dtype.c \
	base/tensor/literal.c \
	base/tensor/npy.c \
	base/tensor/shape.c
base_files = \
	base/README \
	base/arena.h \
	base/arith.h \
	base/choice.h \
	base/clock.h \
	base/dim/answer.h \
	base/dim/dim.h \
	base/dim/dim_nodes.h \
	base/dim/guard.h \
	base/dynamic_library.h \
	base/file.h \
	base/hash.h \
	base/headroom.h \
	base/locale.h \
	base/machine/function_set.h \
	base/machine/machine.h \
	base/machine/x86_features.def \
	base/memory_span.h \
	base/nms.h \
	base/placement.h \
	base/poison.h \
	base/protobuf_wire.h \
	base/random.h \
	base/status.h \
	base/tensor/bounds.h \
	base/tensor/dtype.h \
	base/tensor/dtypes.def \
	base/tensor/literal.h \
	base/tensor/npy.h \
	base/tensor/shape.h
