"""fuzz.py: random valid graphs through onnx-xla and elsewhere; see README.

  fuzz.py [--seed N] [--count N | --minutes M] [--jobs N] [--matrix plain|threads|gpu|short|full] [--variants N]
          [--only Op,Op] [--state FILE] [--found DIR]
  fuzz.py --sweep [--only Op,Op]

Exits with 1 if anything failed."""

import argparse
import itertools
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import general  # noqa: E402
import idioms  # noqa: E402
import peers  # noqa: E402
import registry  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import sanitizers  # noqa: E402
import shrink  # noqa: E402
import sizes  # noqa: E402
import sweep  # noqa: E402
import variants  # noqa: E402
import xla  # noqa: E402
from build import Builder  # noqa: E402
from finish import finish  # noqa: E402
from workers import Pool, in_child  # noqa: E402

DENSE = [("float",)] * 6 + [
    ("float", "int64"),
    ("float", "bool"),
    ("double",),
    ("float16",),
    ("bfloat16", "float"),
    ("int32",),
    ("int64",),
    ("uint8", "int8"),
    ("uint8", "bool"),
    ("float", "float16"),
    ("int16", "uint16"),
]

# The operators of common networks.  Passes have most to do if few operators feed each other often.
NETWORK = """
    Conv BatchNormalization Relu Add Mul Clip MaxPool AveragePool GlobalAveragePool Concat Sigmoid
    HardSwish LeakyRelu MatMul Gemm LayerNormalization RMSNormalization InstanceNormalization
    Softmax Transpose Reshape Slice Split Pad ReduceMean ReduceSum ReduceMax Sub Div Sqrt Pow Erf
    Gelu Tanh Gather Where Expand Squeeze Unsqueeze Flatten Resize ConvTranspose DepthToSpace
    Attention LSTM Cast
""".split()


# Families of operators to which rules and kernels of one kind apply; a graph of a few operators of one family has many places where
# these apply.
FAMILIES = [names.split() for names in """
    Transpose Reshape Slice Pad Concat Squeeze Unsqueeze Expand Split Gather Tile Flatten Identity
    Add;
    Add Sub Mul Div Neg Abs Max Min Clip Sqrt Pow Where;
    Cast Less Greater Equal Not And Or Xor Where BitShift BitwiseAnd BitwiseOr Sign Floor Max Add;
    ReduceSum ReduceMax ReduceMin ReduceMean ReduceProd ReduceL2 Softmax CumSum ArgMax Exp Sub Mul
    Transpose Expand Reshape;
    Conv MaxPool AveragePool BatchNormalization Relu Add Mul Sub Clip Pad Concat Resize
    ConvTranspose Transpose GlobalAveragePool;
    MatMul Gemm Add Mul Sub Relu Transpose Reshape Softmax Clip Sigmoid Split Einsum;
    If Loop Scan Add Sub Mul Max Slice Gather Concat Identity;
    LSTM GRU RNN Transpose Slice Squeeze Concat Tanh;
    QuantizeLinear DequantizeLinear QLinearConv QLinearMatMul MatMulInteger ConvInteger Cast Add
    Relu MaxPool Reshape Resize
""".split(";")]


def choose_menu(r, entries):
    """Returns the operators that a graph prefers: those of networks, of one family, or any few; None: no preference."""
    own = sorted(name for name in entries if name.startswith(rows.MICROSOFT))
    if own:
        return set(r.sample(own, r.randint(2, 6))) | set(r.sample(NETWORK, r.randint(2, 8))) & set(entries)
    chance = r.random()
    if chance < 0.1:
        return None
    if chance < 0.7:
        pool = r.choice(FAMILIES)
        return set(r.sample(pool, r.randint(3, min(len(pool), 9)))) & set(entries) or None
    pool = NETWORK if chance < 0.85 else sorted(entries)
    return set(r.sample(pool, r.randint(6, 16))) & set(entries) or None


def focused_builder(seed, table, entries, ort, r):
    """Returns the builder of a graph for rows that were not drawn often: with a few operators that were drawn too rarely in one
    operator set, and a few types, so that nodes can read each other's results.  A quarter of these graphs have only nodes that
    ONNX Runtime can run.  Returns None if all rows were drawn often enough."""
    left = table.lacking(entries)
    if not left:
        return None
    row = r.choices(left, [table.lack(x) for x in left])[0]
    opset = table.opset_for(row[1], row[0], r)
    here = [x for x in left if table.at[opset].get(x[0]) and table.at[opset][x[0]].since == x[1]]
    menu = {row[0]} | {x[0] for x in r.choices(here, [table.lack(x) for x in here], k=8)}
    types = {row[3]} | {x[3] for x in r.choices([x for x in here if x[0] in menu], k=4)}
    peer = ort if ort and opset <= ort.newest_opset and r.random() < 0.25 else None
    b = Builder(seed, table, entries, opset, dense=sorted(types), menu=menu, peer=peer)
    b.focused = True
    return b


def build_graph(seed, table, entries, ort, options):
    """Returns the graph of a seed and its builder, of the kind that the options ask for."""
    if options.idioms is not None:
        return idioms.build_graph(seed, table, entries, ort, options.idioms, options.sizes)
    return build_any(seed, table, entries, ort, not options.closed_sizes, options.rows, options.sizes)


def build_any(seed, table, entries, ort, open_sizes, focused, any_sizes=False):
    """Returns the graph of a seed, and its builder.  A third of the graphs draw the rows that were drawn least; the others have few
    types, and most of them few operators, so that more nodes fit together.  Half have only nodes that ONNX Runtime can run.
    focused: the graph is for rows that were not drawn often.  any_sizes: the graph has other sizes, too."""
    r = random.Random(seed * 2 + 1)
    b = focused_builder(seed, table, entries, ort, r) if focused else None
    if b:
        b.open_sizes = open_sizes
        b.grow(r.randint(30, 60))
        return finish(b), b
    peer = ort if r.random() < 0.6 else None
    newest = min(table.newest, ort.newest_opset) if peer else table.newest
    opset = r.choice([newest, r.randint(rows.OLDEST, newest)])
    dense = r.choice(DENSE) if r.random() < 0.65 else None
    menu = choose_menu(r, entries) if dense else None
    heavy = bool(menu and menu & {"Conv", "MatMul", "Gemm"})  # small contractions call no library
    large = r.random() < (0.25 if heavy else 0.06)
    b = Builder(seed, table, entries, opset, dense, peer=peer, menu=menu, large=large)
    b.open_sizes = open_sizes
    b.sizes = sizes.Sizes(b) if any_sizes else None
    b.grow(r.randint(10, 60))
    return finish(b), b


def run_seed(seed, table, entries, options, ort, say):
    """Builds and runs the graph of one seed; returns the results as plain data."""
    start = time.time()
    graph, b = build_graph(seed, table, entries, ort, options)
    result = {
        "seed": seed,
        "drawn": b.drawn,
        "refusals": [[list(k), v] for k, v in b.refusals.items()],
        "statistics": b.statistics,
        "failures": [],
        "mishaps": b.mishaps,
        "skips": b.skips,
        "ort": False,
        "nodes": len(b.nodes),
        "idioms": b.idioms,
        "built": time.time() - start,
        "variants": 0,
        "tallies": [],
    }
    for name, message, model, inputs in b.faults:
        result["failures"].append(report_fault(options, seed, name, message, model))
    if graph is None:
        return result
    with_peer = b.peer is not None if graph.places else ort is not None
    result["ort"] = run_graph(graph, seed, with_peer, options, say, result)
    if variants.can_vary(graph):
        for k in range(options.variants):
            variant = variants.vary(graph, options.matrix, random.Random(f"{seed} {k}"))
            if variant:
                result["variants"] += 1
                run_graph(variant, seed, False, options, say, result)
    result["ran"] = time.time() - start
    return result


def run_graph(graph, seed, with_peer, options, say, result):
    """Runs the graph in all configurations, at all of its sizes if it has several (general.py), and reports at most three failures;
    returns whether the peer ran."""
    say("graph", graph)
    runner = general if graph.places else check
    failures, peer_ran, *tallies = runner.run_all(
        graph, options.matrix, random.Random(seed), with_peer, lambda stage: say(stage, None)
    )
    say("done", None)
    result["tallies"] += tallies
    report_all(failures, options, seed, graph, runner.run_named, result["failures"])
    return peer_ran


def report_all(failures, options, seed, graph, run_named, reports):
    seen = set()
    for f in failures:
        if (f.kind, f.output) not in seen and len(seen) < 3:
            seen.add((f.kind, f.output))
            reports.append(report_failure(options, seed, graph, f, lambda g, f=f: run_named(g, f)))


def report_fault(options, seed, name, message, model):
    """Reports a one-node model that the library refuses as invalid, or for which it has an internal error."""
    return {
        "what": f"node {name}",
        "message": message,
        "nodes": 1,
        "folder": write_model(options, f"{seed}-{name}", model),
    }


def write_model(options, name, model):
    import onnx

    folder = os.path.join(options.found, name)
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    return folder


def report_failure(options, seed, graph, failure, fails):
    small = graph if options.no_shrink else shrink.shrink(graph, failure, fails)
    final = fails(small) or failure
    folder = unused_folder(os.path.join(options.found, f"{seed}-{failure.configuration}".replace(" ", "-")))
    shrink.save(small, folder, f"seed {seed}\n{final}")
    ops = [n.op_type for n in small.model.graph.node]
    return {
        "what": f"{failure.configuration}: {failure.kind}",
        "message": str(final),
        "nodes": len(ops),
        "ops": ops[:8],
        "folder": folder,
    }


def unused_folder(path):
    """Returns the path, with a number behind it if it exists: several variants of a graph may fail in the same way."""
    paths = itertools.chain([path], (f"{path}-{k}" for k in itertools.count(2)))
    return next(p for p in paths if not os.path.exists(p))


def report_crash(options, seed, stage, graph, status):
    """Reports that a worker died: the graph that it ran is made small, where each try has a process of its own."""
    if graph is None:
        folder = None
        if stage is not None:
            folder = write_model(options, f"{seed}-crash", stage)
        return {"what": "crash of a node", "message": status, "nodes": 1, "folder": folder}

    run_anywhere = general.run_all if graph.places else check.run_all
    failure = check.Failure(graph.way[0] if graph.way else "crash", {}, "crash", status)

    def fails(g):
        g.way = graph.way
        died, failures = in_child(
            lambda: run_anywhere(g, options.matrix, random.Random(seed), False)[0] and True
        )
        return failure if died else None

    return report_failure(options, seed, graph, failure, fails)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, help="the first (0, or where the state file left off)")
    p.add_argument("--count", type=int, help="graphs (100, unless --minutes is given)")
    p.add_argument("--minutes", type=float)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--matrix", choices=["plain", "threads", "gpu", "short", "full"], default="short")
    p.add_argument("--variants", type=int, default=0, help="further graphs of each that is built (variants.py)")
    p.add_argument("--only", default="", help="operators, with commas")
    p.add_argument("--state", help="a file with the next seed and the counts, read and written")
    p.add_argument("--found", default="found", help="where failing graphs go")
    p.add_argument("--sweep", action="store_true", help="one-node models of every row instead")
    p.add_argument(
        "--specials", action="store_true", help="the same with infinities, NaN and the largest numbers"
    )
    p.add_argument("--no-ort", action="store_true")
    p.add_argument("--no-shrink", action="store_true")
    p.add_argument(
        "--batch", type=int, default=25, help="graphs a process; the counts are those of before the batch"
    )
    p.add_argument("--table", action="store_true", help="prints how often each row was drawn")
    p.add_argument(
        "--rows",
        action="store_true",
        help=f"graphs about rows that were drawn less than {rows.ENOUGH} times, until there are none",
    )
    p.add_argument(
        "--idioms",
        nargs="?",
        const="",
        metavar="NAME,NAME",
        help="graphs of what exporters write (idioms/); of these idioms alone",
    )
    p.add_argument("--microsoft", action="store_true", help="graphs with operators that ONNX Runtime defines (ops/microsoft.py)")
    p.add_argument("--sizes", action="store_true", help="graphs whose dimensions are open, each at five sizes (sizes.py)")
    p.add_argument("--closed-sizes", action="store_true", help="NonZero, Unique and Compress of constants only")
    return p.parse_args()


def load_state(path, table):
    if not path or not os.path.exists(path):
        return 0
    with open(path) as f:
        state = json.load(f)
    for row, n in state["counts"]:
        table.counts[tuple(row)] = n
    for row, message in state.get("refused", []):
        table.refused[tuple(row)] = message
    return state["next"]


def save_state(path, table, seed):
    if path:
        with open(path + ".new", "w") as f:
            json.dump(
                {
                    "next": seed,
                    "counts": [[list(k), v] for k, v in table.counts.items()],
                    "refused": [[list(k), v] for k, v in table.refused.items()],
                },
                f,
            )
        os.replace(path + ".new", path)


def run_rows(pool, seed, total):
    """Runs graphs until all rows were drawn often enough, the time or number of graphs is used up, or a round draws no further row."""
    options, table = pool.options, total.table
    end = time.time() + options.minutes * 60 if options.minutes else None
    left, lacks = options.count, None
    while left != 0 and (end is None or time.time() < end):
        now = sum(table.lack(row) for row in table.lacking(pool.entries))
        if now in (0, lacks):
            break
        lacks = now
        options.count = min(left or 1000, 10 * options.batch * options.jobs)
        left = left and left - options.count
        options.minutes = end and max(0, end - time.time()) / 60
        seed = pool.run(seed, total)
        save_state(options.state, table, seed)
        print(f"{total.graphs} graphs: {now} draws lacked", flush=True)
    return seed


def main():
    options = parse()
    sanitizers.restart()
    options.found = os.path.abspath(options.found)
    if options.matrix == "gpu":
        xla.use_interpreter_of_ptx()
    entries = registry.load_microsoft() if options.microsoft else registry.load()
    if options.idioms is not None:
        known = idioms.load()
        options.idioms = [name for name in options.idioms.split(",") if name]
        unknown = [name for name in options.idioms if name not in known]
        if unknown:
            sys.exit(f"no such idiom: {', '.join(unknown)}")
    if options.only:
        wanted = options.only.split(",")
        entries = {name: e for name, e in entries.items() if name in wanted or name in registry.HELPERS}
        for name, e in entries.items():
            e.liked = 1.0 if name in wanted else 0.1
    died, newest = in_child(lambda: __import__("xla").newest_opset())
    table = rows.Table(newest)
    if options.microsoft:
        table.add_microsoft(entries)
    first = load_state(options.state, table)
    first = options.seed if options.seed is not None else first
    ort = None if options.no_ort or not peers.has_ort() else peers.OrtSupport()
    if ort:
        ort.newest_opset = in_child(lambda: ort.newest(table.newest))[1]
    if options.sweep or options.specials:
        sys.exit(sweep.run(table, entries, options, ort))
    total = report.Totals(table, entries)
    pool = Pool(options, table, entries, ort, run_seed, report_crash)
    next_seed = run_rows(pool, first, total) if options.rows else pool.run(first, total)
    save_state(options.state, table, next_seed)
    total.print(options.table)
    sys.exit(1 if total.failures else 0)


if __name__ == "__main__":
    main()
