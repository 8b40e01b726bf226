"""xla.py: onnx-xla through its C API (plugin/api/onnx-xla.h), so that thousands of models run in one process."""

import ctypes
import os

import numpy as np
from rows import NP_OF_CODE, CODE_OF_NP

MAX_RANK = 16
CODES = dict(
    enumerate("OK INVALID_ARGUMENT INVALID_FILE INVALID_MODEL UNSUPPORTED RESOURCE IO INTERNAL".split())
)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("dims", ctypes.c_int64 * MAX_RANK),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
    ]


class Options(ctypes.Structure):
    """oxla_options.  New fields are at its end, so an older library reads the fields that it knows."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("backend", ctypes.c_char_p),
        ("cpu", ctypes.c_char_p),
        ("threads", ctypes.c_int),
        ("lanes", ctypes.c_int),
        ("dims", ctypes.c_void_p),
        ("n_dims", ctypes.c_size_t),
        ("max_memory", ctypes.c_uint64),
        ("max_seconds", ctypes.c_double),
        ("closed_dims", ctypes.c_int),
        ("constants", ctypes.c_void_p),
        ("n_constants", ctypes.c_size_t),
        ("skip_passes", ctypes.c_char_p),
        ("tune", ctypes.c_char_p),
        ("cache", ctypes.c_char_p),
        ("exact", ctypes.c_int),
        ("cache_bytes", ctypes.c_uint64),
        ("precision", ctypes.c_char_p),
        ("log", ctypes.c_void_p),
        ("log_data", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("deterministic", ctypes.c_int),
        ("verify", ctypes.c_int),
        ("unchecked", ctypes.c_int),
        ("check_memory", ctypes.c_int),
        ("specialise", ctypes.c_char_p),
    ]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class XlaError(Exception):
    """An error of the library.  `code` is one of CODES' names."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


def find_library():
    build = os.environ.get("top_builddir", ".")
    for folder in (os.path.join(build, ".libs"), build):
        path = os.path.join(folder, "libonnx-xla.so")
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"no libonnx-xla.so in {build}: set top_builddir to the build's folder")


def use_interpreter_of_ptx():
    """Replaces CUDA's driver by one that works on the host and interprets PTX (tests/ptx).  Must be called before the first session."""
    path = os.path.join(os.environ.get("top_builddir", "."), "tests/unit/backend_gpu/.libs/module_fake_cuda.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"no {path}: make check TESTS= builds it")
    os.environ["ONNX_XLA_CUDA_DRIVER"] = os.path.abspath(path)
    os.environ["FAKE_CUDA_PTX"] = "1"


_library = None
tracer = None  # is called with each model before it runs, so that after a crash the last one is known


SEED = 1  # of random operators, in all runs


def library():
    """Returns the library, which is opened at the first call, in the process that uses it: it may start threads, which a fork would
    lose."""
    global _library
    if _library is None:
        lib = ctypes.CDLL(find_library())
        P, S = ctypes.c_void_p, ctypes.c_char_p
        for name, result, arguments in [
            ("oxla_error_code", ctypes.c_int, [P]),
            ("oxla_error_message", S, [P]),
            ("oxla_error_free", None, [P]),
            ("oxla_load", P, [S, P, P]),
            ("oxla_load_memory", P, [P, ctypes.c_size_t, P, P]),
            ("oxla_model_destroy", None, [P]),
            ("oxla_input_count", ctypes.c_size_t, [P]),
            ("oxla_input_name", S, [P, ctypes.c_size_t]),
            ("oxla_output_count", ctypes.c_size_t, [P]),
            ("oxla_output_name", S, [P, ctypes.c_size_t]),
            ("oxla_run_create", P, [P, P]),
            ("oxla_run_destroy", None, [P]),
            ("oxla_set_seed", P, [P, ctypes.c_uint64]),
            ("oxla_set_input", P, [P, S, ctypes.c_int, ctypes.c_int, P, P]),
            ("oxla_compile", P, [P]),
            ("oxla_execute", P, [P]),
            ("oxla_get_output", P, [P, S, P]),
            ("oxla_save", P, [P, S]),
            ("oxla_onnx_versions", P, [P, P]),
        ]:
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        _library = lib
    return _library


def _check(error):
    if error:
        lib = library()
        code, message = CODES[lib.oxla_error_code(error)], lib.oxla_error_message(error).decode(
            errors="replace"
        )
        lib.oxla_error_free(error)
        raise XlaError(code, message)


def newest_opset():
    ir, opset = ctypes.c_int(), ctypes.c_int()
    _check(library().oxla_onnx_versions(ctypes.byref(ir), ctypes.byref(opset)))
    return opset.value


class Session:
    """An opened model and a run of it.  model: bytes, or None if `path` names a file.  cache: the folder for compiled programs and for
    measurements, if any.  log: a list to which the lines of the log are appended."""

    def __init__(
        self,
        model,
        backend="cpu",
        threads=1,
        skip_passes=None,
        lanes=0,
        path=None,
        tune="off",
        cache="",
        exact=False,
        check_memory=False,
        specialise="auto",
        cpu=None,
        log=None,
    ):
        self.lib = lib = library()
        if tracer:
            tracer(model)
        self.log = LOG(lambda data, level, line: log.append(line.decode(errors="replace")))
        options = Options(
            size=ctypes.sizeof(Options),
            backend=backend.encode() if backend else None,
            threads=threads,
            cpu=cpu.encode() if cpu else None,
            lanes=lanes,
            skip_passes=skip_passes.encode() if skip_passes else None,
            max_seconds=60,
            tune=tune.encode(),
            cache=cache.encode(),
            exact=exact,
            check_memory=check_memory,
            specialise=specialise.encode(),
            log=None if log is None else ctypes.cast(self.log, ctypes.c_void_p),
        )
        self.handle, self.run_handle = ctypes.c_void_p(), ctypes.c_void_p()
        if path:
            _check(lib.oxla_load(path.encode(), ctypes.byref(options), ctypes.byref(self.handle)))
        else:
            self.model = model  # its bytes stay in use
            _check(lib.oxla_load_memory(model, len(model), ctypes.byref(options), ctypes.byref(self.handle)))

    def __enter__(self):
        try:
            _check(self.lib.oxla_run_create(self.handle, ctypes.byref(self.run_handle)))
            _check(self.lib.oxla_set_seed(self.run_handle, SEED))
        except XlaError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.lib.oxla_run_destroy(self.run_handle)
        self.lib.oxla_model_destroy(self.handle)

    def run(self, inputs, runs=1):
        """Runs the model `runs` times; returns the outputs of the last run by name."""
        lib, run = self.lib, self.run_handle
        kept = []
        for k in range(lib.oxla_input_count(self.handle)):
            name = lib.oxla_input_name(self.handle, k)
            value = inputs[name.decode()]
            code = CODE_OF_NP[value.dtype]
            # ml_dtypes leaves the upper bits of a byte 0; the library wants them to extend the sign.
            value = value.astype(np.int8) if value.dtype.name in ("int4", "int2") else value
            value = np.ascontiguousarray(value).reshape(value.shape)
            dims = (ctypes.c_int64 * max(1, value.ndim))(*value.shape)
            kept.append((value, dims))
            _check(lib.oxla_set_input(run, name, code, value.ndim, dims, value.ctypes.data))
        for _ in range(runs):
            _check(lib.oxla_execute(run))
        outputs = {}
        for k in range(lib.oxla_output_count(self.handle)):
            name, t = lib.oxla_output_name(self.handle, k), Tensor()
            _check(lib.oxla_get_output(run, name, ctypes.byref(t)))
            raw = ctypes.string_at(t.data, t.bytes) if t.bytes else b""
            outputs[name.decode()] = np.frombuffer(raw, dtype=NP_OF_CODE[t.type]).reshape(
                tuple(t.dims[: t.rank])
            )
        return outputs

    def save(self, path):
        _check(self.lib.oxla_save(self.handle, path.encode()))


def run_xla(model, inputs, runs=1, save=None, **options):
    """Runs the model `runs` times in a session with these options; returns the outputs of the last run by name.  save: the path to which the
    compiled program is saved, if any."""
    with Session(model, **options) as session:
        outputs = session.run(inputs, runs)
        if save:
            session.save(save)
        return outputs
