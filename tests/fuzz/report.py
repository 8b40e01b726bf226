"""report.py: sums up the results of workers, and prints them."""

import collections
import time

import idioms
import rows

LEAST_GENERAL = 0.3  # the part of all runs that must be by programs for all sizes


class Totals:
    def __init__(self, table, entries):
        self.table, self.entries = table, entries
        self.start = time.time()
        self.built_graphs = self.graphs = self.nodes = self.ort = self.failures = 0
        self.statistics = collections.Counter()
        self.kinds = collections.Counter()
        self.mishaps = collections.Counter()
        self.skips = collections.Counter()
        self.idioms = collections.Counter()
        self.built = self.ran = 0.0
        self.general = self.exact = self.programs = self.sessions = self.all_general = 0
        self.reasons = collections.Counter()

    def add(self, result):
        self.built_graphs += 1
        self.graphs += 1 + result["variants"]
        self.nodes += result["nodes"]
        self.ort += result["ort"]
        self.statistics.update(result["statistics"])
        self.table.counts.update(tuple(row) for row in result["drawn"])
        for row, message in result["refusals"]:
            self.table.refused.setdefault(tuple(row), message)
        self.skips.update(result["skips"])
        self.idioms.update(result["idioms"])
        self.built += result["built"]
        self.ran += result.get("ran", 0.0)
        for tally in result["tallies"]:
            self.add_tally(tally)
        for text in result["mishaps"]:
            self.mishaps[text] += 1
        for f in result["failures"]:
            self.add_failure(result["seed"], f)

    def add_tally(self, tally):
        self.general += tally.general
        self.exact += tally.exact
        self.programs += tally.programs
        self.sessions += tally.general + tally.exact > 0
        self.all_general += tally.general > 0 and tally.exact == 0
        self.reasons.update(tally.reasons)

    def add_crash(self, seed, f):
        """Adds the crash of a seed whose process reported nothing else."""
        self.graphs += 1
        self.add_failure(seed, f)

    def add_failure(self, seed, f):
        self.failures += 1
        self.kinds[f["what"]] += 1
        ops = ",".join(f.get("ops", []))
        print(
            f"FAIL seed {seed}: {f['message'][:300]}\n     {f['nodes']} nodes {ops}: {f['folder']}", flush=True
        )

    def print(self, with_table):
        values = max(1, self.statistics["values"])
        seconds = time.time() - self.start
        print(
            f"{self.graphs} graphs, {self.built_graphs} of them built with {self.nodes / max(1, self.built_graphs):.0f} "
            f"nodes, the others variants of those, in {seconds:.0f} s; ONNX Runtime ran {self.ort}"
        )
        good = 100 * (1 - self.statistics["degenerate"] / values)
        print(f"{good:.1f} % of {values} values are finite and not constant")
        if with_table:
            print(
                "draws that led nowhere: " + "; ".join(f"{n} {text}" for text, n in self.skips.most_common(20))
            )
        if self.general + self.exact:
            self.print_sizes()
        if self.idioms:
            self.print_idioms(with_table)
        else:
            self.print_rows(with_table)
        for text, n in self.mishaps.most_common():
            print(f"{n:5} generator {text}")
        for what, n in self.kinds.most_common():
            print(f"{n:5} {what}")
        print(f"{self.graphs - self.failures} passed, {self.failures} failed")

    def print_sizes(self):
        """Prints by which programs graphs were run; too few runs by programs for all sizes are a failure."""
        all_runs = self.general + self.exact
        print(
            f"{self.general} of {all_runs} sizes ({100 * self.general / all_runs:.1f} %), all of {self.all_general} of "
            f"{self.sessions} graphs, were run by programs for all sizes, of which there were {self.programs}; why others were "
            "needed:"
        )
        for text, n in self.reasons.most_common(25):
            print(f"{n:7} {text}")
        if self.general < LEAST_GENERAL * all_runs:
            self.failures += 1
            self.kinds["few programs for all sizes"] += 1

    def print_idioms(self, with_table):
        unused = sorted(set(idioms.IDIOMS) - set(self.idioms))
        print(f"{len(self.idioms)} of {len(idioms.IDIOMS)} idioms were used")
        if with_table:
            print(f"built in {self.built:.0f} s, run in {self.ran - self.built:.0f} s")
            for name, n in self.idioms.most_common() + [(name, 0) for name in unused]:
                print(f"{n:7} {name}")

    def print_rows(self, with_table):
        all_rows = [r for r in self.table.rows() if r[0] not in rows.REASON]
        drawn = [r for r in all_rows if self.table.counts[r]]
        often = sum(self.table.counts[r] >= 50 for r in all_rows)
        print(
            f"{len(drawn)} of {len(all_rows)} rows (operator, version, type) were drawn, {often} at least 50 times"
        )
        missing = sorted({r[0] for r in all_rows if r[0] not in self.entries})
        if missing and len(missing) < 50:  # with --only there are few
            print("operators without a generator: " + " ".join(missing))
        if with_table:
            for row in sorted(all_rows):
                note = (
                    ""
                    if self.table.counts[row]
                    else "  "
                    + ("no generator" if row[0] not in self.entries else self.table.refused.get(row, ""))[:120]
                )
                print(f"{self.table.counts[row]:7} {row[0]}-{row[1]} {row[2]} {row[3]}{note}")
            for reason, names in rows.LEFT_OUT.items():
                print(f"left out ({reason}): {names}")
