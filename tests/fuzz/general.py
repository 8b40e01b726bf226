"""general.py: runs a graph that has other sizes (sizes.py) at all of them in one session, whose programs are for all sizes,
and compares the outputs.  The session's log tells by which program each size was run, so that a run by a program for one set of sizes
does not go unnoticed."""

import collections
import os
import random
import re
import tempfile

import check
import peers
import xla

GENERAL = [("ref-sizes", {"backend": "ref"}), ("cpu-sizes", {"check_memory": True})]
WAYS = [(f"{name}-sizes", arguments) for name, arguments in check.WAYS if name.split("-")[1][:5] in ("threa", "lanes")]
EXACT = ("cpu-exact-sizes", {"specialise": "full"})  # a program for each set of sizes
SAVED = "saved-sizes"


def values_at(graph, k):
    return graph.places[k - 1] if k else graph.values


def inputs_at(graph, k):
    return {name: values_at(graph, k)[name].array for name in graph.inputs}


def sizes_text(graph, k):
    return ", ".join(f"{name}{list(a.shape)}" for name, a in inputs_at(graph, k).items())


class Tally:
    """Counts how many runs were by a program for all sizes, and why the others were not."""

    def __init__(self):
        self.general = self.exact = self.programs = 0
        self.reasons = collections.Counter()

    def read(self, lines):
        """Counts one run, whose lines of log these are."""
        bound = any(line.startswith("bound to") for line in lines)
        self.general += bound
        self.exact += not bound
        for line in lines:
            self.programs += line.startswith("compiled for all sizes")
            reason = re.match(r"(another program is needed|no program is for all sizes): (.*)", line)
            if reason:
                self.reasons[reason[1].split()[0] + ": " + re.sub(r"\d+", "#", re.sub(r"^\S+: ", "", reason[2]))[:90]] += 1


def run_order(graph, session, order, name, arguments, log=(), tally=None):
    """Runs the graph in a session at the sizes in `order`; returns a Failure or None."""
    for k in order:
        before = len(log)
        try:
            outputs = session.run(inputs_at(graph, k))
        except xla.XlaError as e:
            message = f"{e.message} at {sizes_text(graph, k)}"
            return check.Failure(name, {**arguments, "order": order}, "error " + e.code, message)
        wrong = check.compare(graph, outputs, values_at(graph, k))
        if wrong:
            message = f"{wrong[0]}: {wrong[1]} at {sizes_text(graph, k)}"
            return check.Failure(name, {**arguments, "order": order}, "wrong", message, wrong[0])
        if tally:
            tally.read(log[before:])
    return None


def run_one(graph, name, arguments, order, tally=None):
    """Runs the graph at the sizes in `order` in a session with these options; the first sizes are those at which it is compiled."""
    log = []
    options = {"specialise": "off", **arguments}
    model = graph.model.SerializeToString()
    if name == SAVED:
        return run_saved(graph, model, order)
    try:
        with xla.Session(model, log=log, **options) as session:
            return run_order(graph, session, order, name, arguments, log, tally)
    except xla.XlaError as e:  # the model is refused, which may happen if shrink.py has made it
        return check.Failure(name, {**arguments, "order": order}, "error " + e.code, e.message)


def run_saved(graph, model, order):
    """Runs the graph, saves it with its programs, loads it, and runs it in the opposite order."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.oxla")
        with xla.Session(model, specialise="off") as session:
            failure = run_order(graph, session, order, SAVED, {})
            if failure:
                return failure
            session.save(path)
        with xla.Session(None, path=path) as session:
            return run_order(graph, session, order[::-1], SAVED, {})


def order_of(graph, seed):
    """Returns the numbers of the sizes in an order that depends on the seed."""
    places = list(range(1 + len(graph.places)))
    return random.Random(seed).sample(places, len(places))


def configurations(graph, matrix, r):
    """Returns (name, arguments, order) of the sessions."""
    order, other, last = (order_of(graph, r.getrandbits(32)) for _ in range(3))
    if matrix in ("threads", "gpu"):
        sessions = check.THREADS if matrix == "threads" else check.GPU
        return [(f"{name}-sizes", arguments, order) for name, arguments in sessions]
    found = [(name, arguments, order) for name, arguments in GENERAL]
    if matrix == "plain":
        return found
    skipped = ",".join(sorted(r.sample(check.PASSES, r.choice([1, 1, 2, 4]))))
    found += [(*r.choice(WAYS), other), (SAVED, {}, last)]
    found.append((f"cpu-sizes-without-{skipped}", {"skip_passes": skipped, "check_memory": True}, order))
    return found + [(*EXACT, order)]


def choose_way(graph, matrix, r):
    """Returns one of the configurations for a variant (variants.py), in half of the cases the cpu target's without changes."""
    if matrix not in ("threads", "gpu") and r.random() < 0.5:
        return "cpu-sizes", {"check_memory": True}, order_of(graph, r.getrandbits(32))
    return r.choice(configurations(graph, matrix if matrix in ("threads", "gpu") else "short", r))


def run_peer(graph):
    """Runs the graph in ONNX Runtime; returns (failures, at how many sizes it ran)."""
    found, ran = [], 0
    for k in range(1 + len(graph.places)):
        failure, here = check.run_peer(graph, inputs_at(graph, k), values_at(graph, k))
        ran += here
        if failure:
            failure.message += f" at {sizes_text(graph, k)}"
            found.append(failure)
    return found[:1], ran


def run_named(graph, failure):
    """Runs the graph again in the configuration of a failure."""
    if failure.configuration == "onnxruntime":
        return next(iter(run_peer(graph)[0]), None)
    arguments = dict(failure.arguments)
    return run_one(graph, failure.configuration, arguments, arguments.pop("order"))


def run_all(graph, matrix, r, with_peer, say=lambda stage: None):
    """Returns all failures, at how many sizes the peer ran, and the Tally of the cpu target."""
    tally, found, ran = Tally(), [], 0
    for name, arguments, order in [graph.way] if graph.way else configurations(graph, matrix, r):
        found.append(run_one(graph, name, arguments, order, tally if name == "cpu-sizes" else None))
    if with_peer and not graph.way:
        say("peer")
        wrong, ran = run_peer(graph)
        found += wrong
    return [f for f in found if f], ran, tally
