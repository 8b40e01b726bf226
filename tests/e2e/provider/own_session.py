"""Our own session, from Python through the C API: what ort_time.py measures the execution provider against."""
import ctypes
import os

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9}


class Options(ctypes.Structure):
    """The beginning of oxla_options."""
    _fields_ = [("size", ctypes.c_size_t), ("backend", ctypes.c_char_p), ("cpu", ctypes.c_char_p),
                ("threads", ctypes.c_int), ("lanes", ctypes.c_int),
                ("dims", ctypes.c_void_p), ("n_dims", ctypes.c_size_t),
                ("max_memory", ctypes.c_uint64), ("max_seconds", ctypes.c_double), ("closed_dims", ctypes.c_int),
                ("constants", ctypes.c_void_p), ("n_constants", ctypes.c_size_t), ("skip_passes", ctypes.c_char_p),
                ("tune", ctypes.c_char_p), ("cache", ctypes.c_char_p)]


class OwnSession:
    """Inputs are set once; run() computes the outputs in the run's own memory."""

    def __init__(self, plugin, path, feeds, threads, **options):
        self.lib = ctypes.CDLL(os.path.join(os.path.dirname(plugin), "libonnx-xla.so.0"))
        for name in ("oxla_load", "oxla_run_create", "oxla_set_input", "oxla_execute"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.oxla_error_message.restype = ctypes.c_char_p
        self.lib.oxla_error_message.argtypes = [ctypes.c_void_p]
        self.model, self.run_ = ctypes.c_void_p(), ctypes.c_void_p()
        o = Options(size=ctypes.sizeof(Options), threads=threads, **options)
        self.check(self.lib.oxla_load(os.fsencode(path), ctypes.byref(o), ctypes.byref(self.model)))
        self.check(self.lib.oxla_run_create(self.model, ctypes.byref(self.run_)))
        self.feeds = {name: np.asarray(x, order="C") for name, x in feeds.items()}  # borrowed
        for name, x in self.feeds.items():
            dims = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
            self.check(self.lib.oxla_set_input(self.run_, name.encode(), TYPES[x.dtype.name], x.ndim, dims,
                                               ctypes.c_void_p(x.ctypes.data)))
        self.run()

    def check(self, error):
        if error:
            raise RuntimeError(self.lib.oxla_error_message(error).decode())

    def run(self):
        self.check(self.lib.oxla_execute(self.run_))

    def close(self):
        self.lib.oxla_run_destroy(self.run_)
        self.lib.oxla_model_destroy(self.model)
