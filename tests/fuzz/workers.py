"""workers.py: runs batches of graphs in processes of their own, so that a crash is noticed, and the seed that caused it is known."""

import os
import pickle
import select
import signal
import struct
import sys
import time
import traceback

HANGS = 180  # a process without a message for this many seconds counts as hanging


def in_child(work):
    """Calls work() in a child process; returns (how the process died or None, what work() returned)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        silence()
        try:
            send(writer, work())
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    os.close(writer)
    data = b""
    deadline = time.time() + HANGS
    while True:
        ready, _, _ = select.select([reader], [], [], max(0, deadline - time.time()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            break
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            break
        data += chunk
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), pickle.loads(data[8:]) if len(data) > 8 else None


def silence():
    """Closes standard error, since what libraries print there is of no use in the middle of a run."""
    sys.stdout.flush()


def send(fd, thing):
    data = pickle.dumps(thing)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


class Worker:
    def __init__(self, seeds, work):
        self.seeds, self.buffer = list(seeds), b""
        self.current = self.graph = None
        self.peer = False
        self.heard = time.time()
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            try:
                work(self.seeds, lambda thing: send(writer, thing))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(3)
        os.close(writer)
        self.reader = reader

    def messages(self):
        """Returns the messages that have come; None at the end."""
        chunk = os.read(self.reader, 1 << 20)
        self.heard = time.time()
        if not chunk:
            return None
        self.buffer += chunk
        found = []
        while len(self.buffer) >= 8:
            n = struct.unpack("<Q", self.buffer[:8])[0]
            if len(self.buffer) < 8 + n:
                break
            found.append(pickle.loads(self.buffer[8 : 8 + n]))
            self.buffer = self.buffer[8 + n :]
        return found


def wait_for(running):
    """Yields (worker, messages, how it died or None) as messages come; the list `running` may grow meanwhile."""
    while running:
        ready, _, _ = select.select([w.reader for w in running], [], [], 5)
        for w in list(running):
            if w.reader in ready:
                found = w.messages()
                if found is not None:
                    yield w, found, None
                    continue
                running.remove(w)
                os.close(w.reader)
                _, status = os.waitpid(w.pid, 0)
                yield w, [], status and f"status {status}"
            elif time.time() - w.heard > HANGS:
                os.kill(w.pid, signal.SIGKILL)


class Pool:
    def __init__(self, options, table, entries, ort, run_seed, report_crash):
        self.options, self.table, self.entries, self.ort = options, table, entries, ort
        self.run_seed, self.report_crash = run_seed, report_crash

    def work(self, seeds, send_up):
        import xla

        if self.ort:
            self.ort.say = lambda stage: send_up((stage, None))
        for seed in seeds:
            send_up(("begin", seed))
            xla.tracer = None

            def say(stage, graph):
                send_up((stage, graph))

            result = self.run_seed(seed, self.table, self.entries, self.options, self.ort, say)
            send_up(("result", result))

    def last_node(self, seed):
        """Builds the graph of a seed again whose process died meanwhile, and returns the node at which it dies."""
        import xla

        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            xla.tracer = lambda model: send(writer, model)
            try:
                self.run_seed(
                    seed, self.table, self.entries, self.options, self.ort, lambda stage, graph: os._exit(0)
                )
            finally:
                os._exit(0)
        os.close(writer)
        data = b""
        while chunk := os.read(reader, 1 << 20):
            data += chunk
        os.close(reader)
        os.waitpid(pid, 0)
        last = None
        while len(data) >= 8 and len(data) >= 8 + (n := struct.unpack("<Q", data[:8])[0]):
            last, data = data[8 : 8 + n], data[8 + n :]
        import onnx

        return onnx.load_from_string(pickle.loads(last)) if last else None

    def run(self, seed, total):
        """Runs seeds from `seed` on; returns the next one."""
        options, running, waiting = self.options, [], []
        end = time.time() + options.minutes * 60 if options.minutes else None
        count = options.count if options.count is not None else (None if end else 100)
        left = count
        while True:
            while len(running) < options.jobs and (
                waiting or ((left is None or left > 0) and (end is None or time.time() < end))
            ):
                if waiting:
                    seeds = waiting.pop()
                else:
                    n = options.batch if left is None else min(options.batch, left)
                    seeds, seed = range(seed, seed + n), seed + n
                    left = None if left is None else left - n
                running.append(Worker(seeds, self.work))
            if not running:
                return seed
            ready, _, _ = select.select([w.reader for w in running], [], [], 5)
            for w in list(running):
                if w.reader in ready:
                    found = w.messages()
                    if found is None:
                        running.remove(w)
                        self.ended(w, waiting, total, end)
                        continue
                    for kind, thing in found:
                        self.heard(w, kind, thing, total)
                elif time.time() - w.heard > HANGS:
                    os.kill(w.pid, signal.SIGKILL)
                if end and time.time() > end + 60 and w in running:
                    os.kill(w.pid, signal.SIGKILL)
                    w.stopped = True

    def heard(self, w, kind, thing, total):
        if kind == "begin":
            w.current, w.graph, w.peer = thing, None, False
        elif kind == "graph":
            w.graph = thing
        elif kind in ("peer", "done"):
            w.peer = kind == "peer"
        else:
            w.seeds.remove(thing["seed"])
            w.current = None
            total.add(thing)

    def ended(self, w, waiting, total, end):
        os.close(w.reader)
        _, status = os.waitpid(w.pid, 0)
        if status == 0 or w.current is None or getattr(w, "stopped", False):
            return
        if os.WIFSIGNALED(status) and w.peer:
            print(f"seed {w.current}: ONNX Runtime crashed", flush=True)
            failure = None
        elif os.WIFSIGNALED(status):
            text = "hangs" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
            node = self.last_node(w.current) if w.graph is None else None
            failure = self.report_crash(self.options, w.current, node, w.graph, text)
        else:
            failure = {
                "what": "the tester failed",
                "message": f"seed {w.current}: see above",
                "nodes": 0,
                "folder": None,
            }
        if failure:
            total.add_crash(w.current, failure)
        w.seeds.remove(w.current)
        if w.seeds:
            waiting.append(w.seeds)
