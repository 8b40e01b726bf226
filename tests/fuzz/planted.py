"""planted.py: faults put into a copy of the sources, which random graphs must find; test-planted calls this.

  planted.py check SOURCES            whether the text of each fault of faults/ stands in SOURCES, once; test-fuzz asks that
  planted.py plant SOURCES            puts all faults into SOURCES, each behind a switch
  planted.py hunt BUILD [--only NAME,NAME] [--kinds passes,mends] [--idioms NAME,NAME] [--graphs N]
                        [--may-miss N]

BUILD is made from the planted sources.  Graphs are built once with all switches off, every other one of
idioms, and run with one fault after the other whose place they reach (a quarter of them also with each way of
computing contractions, as fuzz.py does); a fault is found by the first graph that fails with it and passes
without.  Where the reference evaluator shares the fault, as one of an import, only what ONNX Runtime runs too
counts, which alone would tell, or a valid model that is refused, with which the graph could not have been
built.  Exits with 1 if more than --may-miss faults are not found.

What is not found says what the tester never draws: it is the tester that is to be mended then.  Where a text of
the tables no longer stands in its file, because the file was changed, the fault is to be planted in what took
its place."""

import argparse
import ctypes
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import faults  # noqa: E402
import general  # noqa: E402
import idioms  # noqa: E402
import peers  # noqa: E402
import registry  # noqa: E402
import rows  # noqa: E402
from fuzz import build_any  # noqa: E402
from models import is_refused_wrongly  # noqa: E402
from workers import Worker, in_child, wait_for  # noqa: E402

KINDS = ("passes", "kernels", "plans", "sizes", "mends")
ROUND = 40  # graphs of a process, between which it learns what others have found


def table(kinds=KINDS, only=()):
    """kind -> its faults."""
    found = {kind: importlib.import_module(f"faults.{kind}").FAULTS for kind in kinds}
    return {kind: [f for f in of if not only or f.name in only] for kind, of in found.items()}


def checked_table(sources):
    """All faults, whose texts stand in the sources."""
    everything = [f for of in table().values() for f in of]
    wrong = faults.check_table(sources, everything)
    if wrong:
        raise SystemExit("\n".join(wrong))
    return everything


def plant(sources):
    faults.plant(sources, checked_table(sources))


class Switches:
    """What planted code asks (faults.ON_TOP)."""

    def __init__(self):
        self.bytes = (ctypes.c_ubyte * faults.SWITCHES)()
        os.environ["PLANTED"] = str(ctypes.addressof(self.bytes))

    def off(self):
        ctypes.memset(self.bytes, 0, faults.SWITCHES)

    def only(self, name):
        self.off()
        self.bytes[faults.number(name)] = 2

    def reached(self, table):
        """The faults whose places were reached since all were off."""
        return [f for f in table if self.bytes[faults.number(f.name)]]


def is_reported(failure, graph):
    """Whether the tester says so while it builds the graph."""
    kind, _, code = failure.kind.partition(" ")
    return kind == "error" and is_refused_wrongly(code, graph.model)


def needs_sizes(f):
    return f.runs in (faults.SIZES, faults.SAVED_SIZES)


class Hunt:
    """Faults that are not found yet, and how graphs are built."""

    def __init__(self, left, first, wanted):
        self.left, self.next, self.wanted, self.switches = left, first, wanted, Switches()
        self.entries = registry.load()
        idioms.load()
        self.table = rows.Table(in_child(lambda: __import__("xla").newest_opset())[1])
        self.ort = peers.OrtSupport()
        self.ort.newest_opset = in_child(lambda: self.ort.newest(self.table.newest))[1]

    def graph(self, number):
        """Every third one has other sizes, where a fault asks for these."""
        sizes = number % 3 == 2 and any(needs_sizes(f) for f in self.left)
        if number % 2 and not self.wanted:
            return build_any(number // 2, self.table, self.entries, self.ort, True, False, sizes)[0]
        return idioms.build_graph(number // 2, self.table, self.entries, self.ort, self.wanted, sizes)[0]

    def look(self, numbers, say):
        """In a process of its own; what it says last before a crash is known."""
        for number in numbers:
            say(("graph", number, None))
            self.switches.off()
            graph = self.graph(number)
            self.switches.off()
            wrong = graph and self.fails(graph, number)
            if graph is None or wrong:
                say(("wrong", number, str(wrong)) if wrong else ("done", number, None))
                continue
            reached = self.switches.reached(self.left)
            unseen = (faults.SAVED, faults.THREADS, faults.SAVED_SIZES)
            for f in [f for f in self.left if f in reached or f.runs in unseen]:
                if needs_sizes(f) != bool(graph.places):
                    continue
                say(("fault", number, f.name))
                failure = self.first_failure(graph, f)
                if failure and self.fails_without(graph, failure):
                    say(("wrong", number, str(failure)))
                elif failure and self.counts(graph, f):
                    say(("found", number, (f.name, str(failure))))
                    self.left = [g for g in self.left if g is not f]
            say(("done", number, None))

    def fails(self, graph, number):
        """A failure without any fault, or None."""
        if graph.places:
            return self.run(graph, "sizes")
        runs = [{"backend": "cpu"}]
        if number // 2 % 4 == 0 and any("algorithms" in f.runs for f in self.left):
            runs.append("algorithms")
        return next((f for f in (self.run(graph, run) for run in runs) if f), None)

    def first_failure(self, graph, f):
        self.switches.only(f.name)
        for run in f.runs:
            failure = self.run(graph, run)
            if failure:
                return failure
        return None

    def run(self, graph, run):
        if run in ("sizes", "saved-sizes"):
            name = {"sizes": "cpu-sizes"}.get(run, run)
            return general.run_one(graph, name, {}, general.order_of(graph, len(graph.inputs)))
        if run == "saved":
            return check.run_saved(graph)
        if run == "algorithms":
            return next((f for f in check.run_algorithms(graph, "full", None) if f), None)
        return check.run_one(graph, "cpu", run)

    def fails_without(self, graph, failure):
        """The same configuration with all switches off."""
        self.switches.off()
        return (general if graph.places else check).run_named(graph, failure)

    def counts(self, graph, f):
        """Whether the failure would be seen where expected values have the fault, too.  What is expected at other sizes
        comes from programs for one set of sizes."""
        if graph.places:
            return True
        self.switches.only(f.name)
        shared = check.run_one(graph, "ref", {"backend": "ref"})
        self.switches.off()
        return not shared or is_reported(shared, graph) or check.run_peer(graph)[1]

    def round(self, jobs):
        """The next graphs, over so many processes."""
        running = [
            Worker(range(self.next + j, self.next + ROUND * jobs, jobs), self.look) for j in range(jobs)
        ]
        self.next += ROUND * jobs
        for w, messages, died in wait_for(running):
            for kind, number, what in messages:
                w.at = (kind, number, what)
                if kind == "found":
                    self.found(number, *what)
                elif kind == "wrong":
                    print(f"graph {number}: {what} without a fault", flush=True)
            kind, number, what = getattr(w, "at", (None, 0, None))
            if died and kind == "fault":
                self.found(number, what, died)
                running.append(Worker([n for n in w.seeds if n >= number], self.look))
            elif died:
                print(f"graph {number}: {died} without a fault", flush=True)
                running.append(Worker([n for n in w.seeds if n > number], self.look))

    def found(self, number, name, text):
        if name in [f.name for f in self.left]:
            print(f"{name:32} graph {number:5}  {text[:110]}", flush=True)
            self.left = [f for f in self.left if f.name != name]


def hunt(options):
    os.environ["top_builddir"] = os.path.abspath(options.build)
    wanted = table(options.kinds.split(","), [n for n in options.only.split(",") if n])
    everything = [f for of in wanted.values() for f in of]
    h = Hunt(everything, options.first, [n for n in options.idioms.split(",") if n])
    while h.left and h.next < options.first + options.graphs:
        h.round(options.jobs)
    missed = 0
    for kind, of in wanted.items():
        lost = [f for f in of if f in h.left]
        for f in lost:
            print(f"{f.name:32} NOT FOUND: {f.breaks}")
        print(f"{kind}: {len(of) - len(lost)} of {len(of)} found")
        missed += len(lost)
    print(f"{len(everything) - missed} passed, {missed} failed, in {h.next - options.first} graphs")
    return 0 if missed <= options.may_miss else 1


def main():
    p = argparse.ArgumentParser()
    commands = p.add_subparsers(dest="command", required=True)
    commands.add_parser("check").add_argument("sources")
    commands.add_parser("plant").add_argument("sources")
    q = commands.add_parser("hunt")
    q.add_argument("build")
    q.add_argument("--only", default="", help="names, with commas")
    q.add_argument("--kinds", default=",".join(KINDS))
    q.add_argument("--idioms", default="", help="graphs of these alone, with commas")
    q.add_argument("--graphs", type=int, default=5000)
    q.add_argument("--first", type=int, default=0, help="number of the first graph")
    q.add_argument("--jobs", type=int, default=os.cpu_count())
    q.add_argument("--may-miss", type=int, default=2)
    options = p.parse_args()
    if options.command == "check":
        checked_table(options.sources)
    elif options.command == "plant":
        plant(options.sources)
    else:
        sys.exit(hunt(options))


if __name__ == "__main__":
    main()
