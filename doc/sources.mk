# Written by m4/list-sources: do not edit.
man_pages =
doc_files =
