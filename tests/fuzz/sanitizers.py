"""sanitizers.py: the tester on a build with sanitizers (configure --enable-sanitize, by GCC).

Python cannot open such a library unless the sanitizer's own library was loaded first, so the tester starts itself again
with that one preloaded.  A report ends the process by SIGABRT, so it counts as a crash of its seed.

Run as a program, this file checks that: it misuses the C API, and exits with 1 if the sanitizer reports nothing."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading

import models
import numpy as np
import onnx
import rows
import xla

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = {
    # Python keeps what it allocates until it ends, so leaks cannot be found here.  The C tests look for them.
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0:intercept_tls_get_addr=0:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": f"abort_on_error=1:halt_on_error=1:die_after_fork=0:suppressions={HERE}/../tsan.supp",
}
ENVIRONMENT = {
    # Python's own allocator divides large pieces of memory, so that a sanitizer would not know where a small one ends.
    "PYTHONMALLOC": "malloc",
    # A process with several threads may not fork under TSan.
    "OPENBLAS_NUM_THREADS": "1",
}


def needed_first():
    """Returns the path of the sanitizer's library that ours needs, or None."""
    listed = subprocess.run(["ldd", xla.find_library()], capture_output=True, text=True, check=True).stdout
    found = re.search(r"/\S*/lib[at]san\.so\S*", listed)
    return found and found[0]


def restart():
    """Starts this process again with the sanitizer's library preloaded; returns if none is needed or it is already preloaded.  The C++
    library is preloaded as well, since the sanitizers look for its functions when they start.  Variables that the caller has set are
    not changed."""
    library = needed_first()
    if not library or library in os.environ.get("LD_PRELOAD", ""):
        return
    environment = {**os.environ, "LD_PRELOAD": f"{library}:libstdc++.so.6", **ENVIRONMENT}
    for name in OPTIONS:
        environment[name] = f"{OPTIONS[name]}:{os.environ.get(name, '')}"
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def relu(n):
    """Returns a model of a Relu of n elements, as bytes."""
    x, out = (models.value_info(name, np.zeros(n, np.float32)) for name in ("x", "out"))
    node = onnx.helper.make_node("Relu", ["x"], ["out"])
    return models.make_model([node], [x], [out], [], rows.NEWEST).SerializeToString()


def overread():
    """an array that is shorter than it says"""
    short = np.zeros(4000, np.float32)
    longer = np.lib.stride_tricks.as_strided(short, (4001,))
    xla.run_xla(relu(4001), {"x": longer}, backend="ref")


def race():
    """a run that two threads change at once"""
    lib, model, run = xla.library(), ctypes.c_void_p(), ctypes.c_void_p()
    data = relu(1)
    lib.oxla_load_memory(data, len(data), None, ctypes.byref(model))
    lib.oxla_run_create(model, ctypes.byref(run))

    def change():
        for seed in range(100000):
            lib.oxla_set_seed(run, seed)

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def reports(work):
    """Returns whether a process that does this ends as after a sanitizer's report."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT


if __name__ == "__main__":
    restart()
    misuse = race if "libtsan" in needed_first() else overread
    if not reports(misuse):
        sys.exit(f"no report of {misuse.__doc__}")
    print(f"{misuse.__doc__} is reported")
