# Written by m4/list-sources: do not edit.
man_pages = \
	doc/onnx-xla.1
doc_files = \
	doc/benchmarks-1t.svg \
	doc/benchmarks-2t.svg \
	doc/benchmarks.md \
	doc/convolutions-mobilenet-v2.svg \
	doc/convolutions-resnet50.svg \
	doc/operators.md
