# Written by m4/list-sources: do not edit.
cpu_exec_sources =
cpu_compile_sources =
backend_cpu_files =
