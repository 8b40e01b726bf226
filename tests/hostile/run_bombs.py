"""run_bombs.py ONNX_XLA DIR [NAME...]: runs the models of make_bombs.py on both backends, with budgets, and checks that these
hold.  The last line is "N passed, N failed"; VERBOSE_BOMBS=1 shows all runs.

Loading, compiling and running may take --max-time each.  SLACK is added, since time is only checked between two steps: a call
of a library, LLVM's work on one module, or a busy machine may take longer.  Resident memory may be --max-memory plus
OWN_MEMORY, for the program itself, LLVM and libraries.  Sanitizers multiply both, so they are not measured then."""
import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

SECONDS, MEMORY = 0.5, "512M"
SLACK = 8.0          # seconds
OWN_MEMORY = 300     # megabytes
AT_A_TIME = min(2, os.cpu_count() or 1)
SAYS = re.compile(r"\((resource|unsupported|invalid-model)\)$")
sanitized = bool(os.environ.get("ONNX_XLA_SANITIZERS"))


def megabytes(text):
    return int(text[:-1]) * {"M": 1, "G": 1024}[text[-1]]


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program, backend, name, extra):
    """Returns the exit status, the message, the seconds, and the peak of memory in megabytes."""
    arguments = [program, "run", "--quiet", "--backend", backend, "--max-time", str(SECONDS)]
    if "--max-memory" not in extra:
        extra = f"--max-memory {MEMORY} " + extra
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(arguments + extra.split() + [name + ".onnx"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=said, preexec_fn=limit)
        _, how, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(how)
        said.seek(0)
        text = said.read()
    return child.returncode, text, time.monotonic() - start, usage.ru_maxrss / 1024


def problem(code, text, seconds, peak, expect, extra):
    memory = re.search(r"--max-memory (\w+)", extra)
    most = megabytes(memory.group(1) if memory else MEMORY) + OWN_MEMORY
    if code not in (0, 1) or (code == 0 and expect == "refused"):
        return f"exit status {code}"
    if code == 1 and (text.count("\n") != 1 or not SAYS.search(text)):
        return "the message"
    if not sanitized and seconds > 3 * SECONDS + SLACK:
        return f"{seconds:.1f} s"
    if not sanitized and peak > most:
        return f"{peak:.0f} MB where {most} are allowed"
    return None


def main():
    program, folder, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.chdir(folder)
    verbose = os.environ.get("VERBOSE_BOMBS")
    with open("bombs") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    jobs = [(row, backend) for row in rows if not names or row[0] in names for backend in ("cpu", "ref")]

    def attempt(job):
        (name, expect, extra), backend = job
        result = run(program, backend, name, extra)
        return name, backend, result, problem(*result, expect, extra)

    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, backend, (code, text, seconds, peak), wrong in pool.map(attempt, jobs):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong or verbose:
                print(f"{'FAIL' if wrong else 'ok'} {name} on {backend}: {wrong or ''} (exit status {code}, {seconds:.1f} s, "
                      f"{peak:.0f} MB) {text.strip()[:300]}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
