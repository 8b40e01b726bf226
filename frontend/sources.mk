# Written by m4/list-sources: do not edit.
frontend_sources = \
	frontend/attributes.c \
	frontend/external_data.c \
	frontend/functions.c \
	frontend/graph_check.c \
	frontend/graph_walk.c \
	frontend/import.c \
	frontend/import_activation.c \
	frontend/import_attention.c \
	frontend/import_binary.c \
	frontend/import_cast.c \
	frontend/import_common.c \
	frontend/import_control.c \
	frontend/import_conv.c \
	frontend/import_deform_conv.c \
	frontend/import_dropout.c \
	frontend/import_einsum.c \
	frontend/import_experimental.c \
	frontend/import_fourier.c \
	frontend/import_gather.c \
	frontend/import_generate.c \
	frontend/import_geometry.c \
	frontend/import_linear_attention.c \
	frontend/import_loop.c \
	frontend/import_loss.c \
	frontend/import_matmul.c \
	frontend/import_nn.c \
	frontend/import_norm.c \
	frontend/import_pool.c \
	frontend/import_quantize.c \
	frontend/import_random.c \
	frontend/import_reduce.c \
	frontend/import_resize.c \
	frontend/import_rnn.c \
	frontend/import_roi_align.c \
	frontend/import_sample.c \
	frontend/import_shape.c \
	frontend/import_signal.c \
	frontend/import_slice.c \
	frontend/import_softmax.c \
	frontend/import_sort.c \
	frontend/import_unary.c \
	frontend/importer.c \
	frontend/model.c \
	frontend/op_table.c \
	frontend/opsets.c \
	frontend/random_stream.c \
	frontend/source.c \
	frontend/tensor.c \
	frontend/wire_scan.c \
	frontend/wire_unpack.c
frontend_files = \
	frontend/README \
	frontend/attributes.h \
	frontend/external_data.h \
	frontend/functions.h \
	frontend/import.h \
	frontend/import_common.h \
	frontend/import_fourier.h \
	frontend/import_nn.h \
	frontend/import_sample.h \
	frontend/importer.h \
	frontend/model.h \
	frontend/model_parts.h \
	frontend/onnx.proto \
	frontend/onnx_ops.def \
	frontend/random_stream.h \
	frontend/scope.h \
	frontend/source.h \
	frontend/tensor.h \
	frontend/wire_scan.h
frontend_generated = \
	frontend/onnx.pb-c.c \
	frontend/onnx.pb-c.h
