# Written by m4/list-sources: do not edit.
example_programs =
examples_files = \
	examples/draw-text
