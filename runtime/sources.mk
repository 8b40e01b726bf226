# Written by m4/list-sources: do not edit.
runtime_sources =
runtime_files =
