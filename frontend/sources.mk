# Written by m4/list-sources: do not edit.
frontend_sources = \
	frontend/wire_scan.c \
	frontend/wire_unpack.c
frontend_files = \
	frontend/attributes.h \
	frontend/functions.h \
	frontend/model.h \
	frontend/onnx.proto \
	frontend/source.h \
	frontend/tensor.h \
	frontend/wire_scan.h
frontend_generated = \
	frontend/onnx.pb-c.c \
	frontend/onnx.pb-c.h
