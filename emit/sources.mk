# Written by m4/list-sources: do not edit.
emit_sources =
emit_files =
