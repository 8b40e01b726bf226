"""Sessions of ONNX Runtime with our execution provider before its own, or with its own only: what the scripts
ort_*.py share."""
import os
import re
import sys
import tempfile

import onnxruntime as ort

NAME = "OnnxXlaExecutionProvider"
TAKEN = re.compile(r"onnx-xla takes (\d+) of (\d+) nodes in (\d+) groups")
VERBOSE = 1  # the level at which ONNX Runtime shows what the provider says of its claims


def register(plugin, quiet=True):
    """quiet: what ONNX Runtime prints, at the verbose level a great deal, goes nowhere; Python's errors are seen."""
    if quiet:
        sys.stderr = os.fdopen(os.dup(2), "w")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    ort.register_execution_provider_library(NAME, plugin)


def is_early():
    """Returns whether ONNX Runtime is older than 1.25: it then gives a provider less of graphs with bodies (ort_provider's `early`)."""
    return tuple(int(n) for n in ort.__version__.split(".")[:2]) < (1, 25)


def devices():
    return [d for d in ort.get_ep_devices() if d.ep_name == NAME]


def session(model, provider=True, options=None, config=None, log=3, adjust=None):
    """model: a path or bytes; options: the provider's; config: the session's; adjust: gets the SessionOptions."""
    so = ort.SessionOptions()
    so.log_severity_level = log
    for key, value in (config or {}).items():
        so.add_session_config_entry(key, value)
    if adjust:
        adjust(so)
    if provider:  # without the fallback, which hides failures: Python would go on with ONNX Runtime's own provider
        so.add_provider_for_devices(devices(), options or {})
        return ort.InferenceSession(model, sess_options=so, enable_fallback=0)
    return ort.InferenceSession(model, sess_options=so, providers=["CPUExecutionProvider"])


def logged(make):
    """Returns what make() returns, and what ONNX Runtime and the provider log to standard error meanwhile."""
    with tempfile.TemporaryFile() as caught:
        saved = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            made = make()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        caught.seek(0)
        return made, caught.read().decode(errors="replace")


def claimed(make):
    """Returns what make() returns, and (nodes taken, nodes, groups) from the provider's last line of log about that."""
    made, told = logged(make)
    found = TAKEN.findall(told)
    return made, tuple(int(x) for x in found[-1]) if found else (0, 0, 0)
