# Written by m4/list-sources: do not edit.
backend_ref_sources =
backend_ref_files =
