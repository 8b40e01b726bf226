"""planted.py: faults, put into the sources one by one, that fuzz.py must find; test-planted calls this.

  planted.py SOURCES BUILD [--only NAME,NAME] [--seconds N] [--graphs N]

SOURCES is a copy that may be written to, BUILD is configured for it.  Each fault of the table is put in, built,
looked for, and taken out again.  A finding counts if the same graph passes without the fault.  Exits with 1 if
one is not found.

What is not found says what the tester never draws: it is the tester that is to be mended then.  Where a text of
the table no longer stands in its file, because the file was changed, the fault is to be planted in what took
its place."""

import argparse
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = ["libonnx-xla.la", "libonnx-xla-compiler.la"]
FIRST_SEED = 1

# (name, what it breaks, and what is changed: file, text that stands there exactly once, what takes its place)
Fault = collections.namedtuple("Fault", "name breaks edits")
FAULTS = [
    Fault(name, breaks, edits)
    for name, breaks, *edits in [
        (
            "transposes-composed",
            "two transposes become one in the wrong order",
            (
                "hlo/simplify_move.c",
                "p[k] = hlo_ints(x, HLO_ATTR_PERMUTATION)[hlo_ints(i, HLO_ATTR_PERMUTATION)[k]];",
                "p[k] = hlo_ints(i, HLO_ATTR_PERMUTATION)[hlo_ints(x, HLO_ATTR_PERMUTATION)[k]];",
            ),
        ),
        (
            "slice-of-strided-slice",
            "a slice of a strided slice starts too early",
            ("hlo/simplify_move.c", "(n ? out.starts[k] * in.strides[k] : 0)", "(n ? out.starts[k] : 0)"),
        ),
        (
            "layout-permutation",
            "strides and padding of pools go to the wrong dimensions",
            ("hlo/pass_layout.c", "out[p->p[i]] = list[i];", "out[i] = list[p->p[i]];"),
        ),
        (
            "recurrence-direction",
            "the second direction of a bidirectional recurrence runs forwards",
            (
                "hlo/composite_recurrence.c",
                "l.reverse = d == 1 || r->direction == HLO_DIR_REVERSE;",
                "l.reverse = r->direction == HLO_DIR_REVERSE;",
            ),
        ),
        (
            "liveness-short",
            "an operand that is read later is overwritten in place",
            ("hlo/buffers.c", "b->units[operand].last == time &&", "b->units[operand].last >= time &&"),
        ),
        (
            "tail-short",
            "the last element behind the vectors is left out",
            (
                "emit/kernel.c",
                "steps(n, emit_i64(ir, whole), emit_i64(ir, n->inner), 1, true);",
                "steps(n, emit_i64(ir, whole), emit_i64(ir, n->inner - 1), 1, true);",
            ),
        ),
        (
            "window-padding",
            "windows see zeros in the padding, also those that look for the largest",
            (
                "emit/window.c",
                "  g->outside = emit_acc_value(e->w, reducer_of(g), t, held);\n",
                "  g->outside = (emit_pair){LLVMConstNull(emit_register_type(e->w, t)), held.im};\n",
            ),
        ),
        (
            "cse-attribute",
            "equal instructions may have other lists of numbers",
            (
                "hlo/ir.c",
                "return a->n == b->n && (!a->n || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0);",
                "return a->n == b->n;",
            ),
            (
                "hlo/ir.c",
                "return mix_bytes(h, v->ints, v->n * sizeof *v->ints);",
                "return mix(h, v->n);",
            ),
        ),
        (
            "fusion-stores-early",
            "a result is stored before the next one has read what lies there",
            (
                "emit/kernel.c",
                "values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims));\n",
                "values[k] = emit_value(e, w->roots[k], emit_index_reshape(&e->x, at, s->rank, s->dims));\n"
                "    emit_store(e, w->results[k], hlo_type(w->roots[k]), emit_index_linear(&e->x, at), "
                "values[k], w->shared[k]);\n",
            ),
        ),
        (
            "carried-liveness",
            "a loop's next value is written while the body still reads the old one",
            (
                "hlo/buffers.c",
                "if (is_view(b, user) || is_control(user) || (f->time[user->id] >= first && !in_place)) {",
                "if (is_view(b, user) || is_control(user)) {",
            ),
        ),
        (
            "unsigned-compare",
            "unsigned integers are compared as signed ones",
            (
                "emit/elementwise.c",
                "emit_icmp(w, dtype_is_signed(t) ? with_sign[c] : without[c], x.v, y.v)",
                "emit_icmp(w, dtype_is_int(t) ? with_sign[c] : without[c], x.v, y.v)",
            ),
        ),
        (
            "unsigned-shift",
            "shifts to the right keep the highest bit of unsigned integers",
            (
                "emit/elementwise.c",
                'return emit_select(w, in_range, LLVMBuildLShr(b, x, by, ""), emit_i(x, 0));',
                'return emit_select(w, in_range, LLVMBuildAShr(b, x, by, ""), emit_i(x, 0));',
            ),
        ),
        (
            "scan-direction",
            "exclusive sums from the end run from the start",
            (
                "emit/update.c",
                "backward = hlo_int(i, HLO_ATTR_BACKWARD);",
                "backward = hlo_int(i, HLO_ATTR_BACKWARD) && !exclusive;",
            ),
        ),
        (
            "index-clamp",
            "indices are held below the last place",
            (
                "emit/element.c",
                'dtype_is_signed(hlo_type(v)), "");\n  n = emit_intrinsic2(e->w, "llvm.smax"',
                'dtype_is_signed(hlo_type(v)), "");\n  limit -= limit > 1;\n  n = emit_intrinsic2(e->w, "llvm.smax"',
            ),
        ),
        (
            "group-offset",
            "groups of a convolution begin one channel apart",
            (
                "emit/contract.c",
                "emit_pos_scale(&e->x, group, kernel->dims[1])",
                "emit_pos_scale(&e->x, group, kernel->dims[1] > 1 ? 1 : kernel->dims[1])",
            ),
        ),
        (
            "image-offset",
            "saved buffers lose a bit of their offsets",
            (
                "runtime/image.c",
                "  rt_put_i64(out, b->offset);\n",
                "  rt_put_i64(out, b->offset & ~(int64_t)64);\n",
            ),
        ),
        (
            "branches-exchanged",
            "a condition that holds takes the other branch",
            (
                "runtime/control.c",
                "    branch = !branch;\n",
                "    branch = branch != 0;\n",
            ),
        ),
        (
            "concat-joint",
            "in vectors across a joint of a concatenation the first element comes from the wrong side",
            (
                "emit/movement.c",
                "emit_icmp(c->e->w, LLVMIntSGE, own, emit_i(own, 0))",
                "emit_icmp(c->e->w, LLVMIntSGT, own, emit_i(own, 0))",
            ),
        ),
        (
            "pads-in-pairs",
            "windows are padded at the end as at the beginning",
            (
                "frontend/import_nn.c",
                "explicit_pads ? pads[spatial + k] : 0;",
                "explicit_pads ? pads[k] : 0;",
            ),
        ),
        (
            "remainder-unsigned",
            "remainders of negative integers are those of unsigned ones",
            (
                "emit/elementwise.c",
                'LLVMBuildSRem(b, x, safe, "")',
                'LLVMBuildURem(b, x, safe, "")',
            ),
        ),
    ]
]


def read(path):
    with open(path) as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def check_table(sources):
    """What is wrong with the table: a fault whose place is not found, or found twice."""
    wrong = []
    for f in FAULTS:
        for file, old, _ in f.edits:
            n = read(os.path.join(sources, file)).count(old)
            if n != 1:
                wrong.append(f"{f.name}: its text stands {n} times in {file}")
    if len({f.name for f in FAULTS}) != len(FAULTS):
        wrong.append("two faults have one name")
    return wrong


def make(build):
    done = subprocess.run(
        ["make", "-s", "-j2", *LIBRARIES],
        cwd=build,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"make fails:\n{done.stdout[-3000:]}")


def fuzz(build, found, arguments):
    """fuzz.py on that build, as a process of its own group."""
    environment = {**os.environ, "top_builddir": build, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "fuzz.py"), "--no-shrink", "--found", found, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    )


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def passes_without(clean, seed, found):
    """Whether the graph of that seed passes on the build without the fault.  With no counts from before, a seed
    always gives the same graph."""
    process = fuzz(clean, found, ["--seed", str(seed), "--count", "1", "--jobs", "1"])
    text = process.communicate()[0]
    return process.returncode == 0 and "FAIL" not in text


def look(build, clean, options):
    """(seed, what was said) of the first finding that is the fault's, or None."""
    jobs = os.cpu_count() or 1
    batch = -(-options.graphs // jobs)  # one for each process: all begin without counts
    with tempfile.TemporaryDirectory() as found:
        process = fuzz(
            build,
            found,
            [
                "--seed",
                str(FIRST_SEED),
                "--count",
                str(options.graphs),
                "--batch",
                str(batch),
                "--jobs",
                str(jobs),
            ],
        )
        alarm = threading.Timer(options.seconds, end, [process])
        alarm.start()
        try:
            seen = set()
            for line in process.stdout:
                match = re.match(r"FAIL seed (\d+): (.*)", line)
                if match and int(match[1]) not in seen:
                    seen.add(int(match[1]))
                    if passes_without(clean, int(match[1]), found):
                        return int(match[1]), match[2][:90]
        finally:
            alarm.cancel()
            end(process)
            process.stdout.close()
    return None


def plant(f, options, clean):
    """One row of the result."""
    paths = [os.path.join(options.sources, file) for file, _, _ in f.edits]
    before = {path: read(path) for path in paths}
    try:
        for path, (_, old, new) in zip(paths, f.edits):
            write(path, read(path).replace(old, new))
        make(options.build)
        start = time.time()
        finding = look(options.build, clean, options)
        seconds = time.time() - start
    finally:
        for path, text in before.items():
            write(path, text)
    said = f"seed {finding[0]:5}  {finding[1]}" if finding else f"NOT FOUND: {f.breaks}"
    print(f"{f.name:24} {seconds:5.0f} s  {said}", flush=True)
    return finding is not None


def stop(number, frame):
    raise SystemExit(f"signal {number}")


def main():
    signal.signal(signal.SIGTERM, stop)  # with what it started
    p = argparse.ArgumentParser()
    p.add_argument("sources")
    p.add_argument("build")
    p.add_argument("--only", default="", help="names, with commas")
    p.add_argument("--seconds", type=float, default=180, help="for each fault")
    p.add_argument("--graphs", type=int, default=3000, help="for each fault")
    options = p.parse_args()
    options.sources, options.build = os.path.abspath(options.sources), os.path.abspath(options.build)
    wrong = check_table(options.sources)
    if wrong:
        raise SystemExit("\n".join(wrong))
    make(options.build)
    clean = tempfile.mkdtemp()
    try:
        shutil.copytree(os.path.join(options.build, ".libs"), os.path.join(clean, ".libs"), symlinks=True)
        chosen = [f for f in FAULTS if not options.only or f.name in options.only.split(",")]
        found = sum([plant(f, options, clean) for f in chosen])
    finally:
        shutil.rmtree(clean)
    print(f"{found} passed, {len(chosen) - found} failed")
    sys.exit(0 if found == len(chosen) else 1)


if __name__ == "__main__":
    main()
