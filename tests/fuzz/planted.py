"""planted.py: faults put into a copy of the sources, which random graphs must find; test-planted calls this.

  planted.py check SOURCES            checks that the text of each fault of faults/ occurs once in SOURCES; test-fuzz runs this
  planted.py plant SOURCES            puts all faults into SOURCES, each behind a switch
  planted.py hunt BUILD [--only NAME,NAME] [--kinds passes,mends] [--idioms NAME,NAME] [--graphs N]
                        [--may-miss N]

BUILD is made from the planted sources.  Each graph is built once, with all switches off; every other graph consists of
idioms.  Then it is run with each fault whose place in the code it reaches, one at a time (a quarter of the graphs also with
each algorithm for contractions, as in fuzz.py).  A fault is found by the first graph that fails with it and passes without
it.  If the reference evaluator has the fault, too, as with a fault in an import, expected values would be wrong as well.
Then the graph counts only if ONNX Runtime runs it, which would show the fault, or if a valid model is refused, since such
a graph could not have been built.  Exits with 1 if more than --may-miss faults are not found.

A fault that is not found shows what the tester never draws: then the tester must be improved.  If the text of a fault is no
longer in its file, because the file was changed, the fault must be planted in the code that replaced it."""

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

KINDS = ("passes", "kernels", "plans", "sizes", "mends", "gpu")
ROUND = 40  # the graphs that a process runs before it learns which faults other processes have found


def table(kinds=KINDS, only=()):
    """Returns {kind: its faults}."""
    found = {kind: importlib.import_module(f"faults.{kind}").FAULTS for kind in kinds}
    return {kind: [f for f in of if not only or f.name in only] for kind, of in found.items()}


def checked_table(sources):
    """Returns all faults, after checking that their texts are in the sources."""
    everything = [f for of in table().values() for f in of]
    wrong = faults.check_table(sources, everything)
    if wrong:
        raise SystemExit("\n".join(wrong))
    return everything


def plant(sources):
    faults.plant(sources, checked_table(sources))


class Switches:
    """The switches that planted code reads (faults.ON_TOP)."""

    def __init__(self):
        self.bytes = (ctypes.c_ubyte * faults.SWITCHES)()
        os.environ["PLANTED"] = str(ctypes.addressof(self.bytes))

    def off(self):
        ctypes.memset(self.bytes, 0, faults.SWITCHES)

    def only(self, name):
        self.off()
        self.bytes[faults.number(name)] = 2

    def reached(self, table):
        """Returns the faults whose places in the code were reached since all switches were turned off."""
        return [f for f in table if self.bytes[faults.number(f.name)]]


def is_reported(failure, graph):
    """Returns whether the tester would report the failure while it builds the graph."""
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
        """Builds graph number `number`; every third one has other sizes, if any fault needs them."""
        sizes = number % 3 == 2 and any(needs_sizes(f) for f in self.left)
        if number % 2 and not self.wanted:
            return build_any(number // 2, self.table, self.entries, self.ort, True, False, sizes)[0]
        return idioms.build_graph(number // 2, self.table, self.entries, self.ort, self.wanted, sizes)[0]

    def look(self, numbers, say):
        """Runs graphs in a process of its own; if it crashes, its last message tells what it was doing."""
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
            unseen = (faults.SAVED, faults.THREADS, faults.SAVED_SIZES, faults.GPU)
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
        """Returns a failure of the graph without any fault, or None."""
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
        """Runs the configuration of the failure with all switches off."""
        self.switches.off()
        return (general if graph.places else check).run_named(graph, failure)

    def counts(self, graph, f):
        """Returns whether the failure would be noticed although expected values may have the fault, too.  At other sizes they do not
        have it, since they come from programs for one set of sizes."""
        if graph.places:
            return True
        self.switches.only(f.name)
        shared = check.run_one(graph, "ref", {"backend": "ref"})
        self.switches.off()
        return not shared or is_reported(shared, graph) or check.run_peer(graph)[1]

    def round(self, jobs):
        """Runs the next graphs, divided among `jobs` processes."""
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
