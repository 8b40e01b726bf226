# Written by m4/list-sources: do not edit.
man_pages = \
	doc/onnx-xla.1
doc_files = \
	doc/operators.md
