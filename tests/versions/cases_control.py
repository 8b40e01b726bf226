"""cases_control.py: If, Loop and Scan, with bodies of the same version.  Loops in numpy compute the expected values; for Scan-8
ONNX Runtime does."""
import numpy as np

from case import BOOL, FLOAT, INT64, case, f32, graph, i64, node

X = f32(2, 3)

# --- If; its branches read values of the outer graph ---

BRANCHES = {
    "then_branch": graph([node("Add", ["x1", "x1"], ["t"])], [], [("t", FLOAT, [2, 3])], "then"),
    "else_branch": graph([node("Mul", ["x1", "x1"], ["e"]), node("Neg", ["e"], ["f"])], [], [("f", FLOAT, [2, 3])], "else"),
}

for name, flag in (("then", True), ("else", False)):
    case("If", np.bool_(flag), around=[X], expect=lambda c, x: x + x if c else -(x * x), name=name, **BRANCHES)

# --- Loop ---

STATE = [("i", INT64, []), ("c", BOOL, []), ("s", FLOAT, [2, 3])]
SUM = graph(
    [node("And", ["c", "c"], ["go"]), node("Add", ["s", "x3"], ["next"]), node("Mul", ["next", "s"], ["seen"])],
    STATE,
    [("go", BOOL, []), ("next", FLOAT, [2, 3]), ("seen", FLOAT, [2, 3])],
)


def summed(count, go, s, x):
    seen = []
    for _ in range(int(count)):
        s, before = s + x, s
        seen.append(s * before)
    return s, np.array(seen)


case("Loop", np.int64(4), np.bool_(True), X, around=[X / 2], expect=summed, outputs=2, name="count", body=SUM)
case("Loop", np.int64(4), None, X, around=[X / 2], expect=summed, outputs=2, name="count-only", body=SUM)
UNTIL = graph(
    [node("Add", ["s", "x3"], ["next"]), node("Less", ["next", "x4"], ["go"])],
    [("i", INT64, []), ("c", BOOL, [1]), ("s", FLOAT, [1])],
    [("go", BOOL, [1]), ("next", FLOAT, [1])],
)


def until(count, go, s, x, limit):
    steps = 0
    while steps < (100 if count is None else count) and (go is None or go):
        s, steps = s + x, steps + 1
        go = s < limit
    return s


ONE = np.float32([0.75]), np.float32([5])
case("Loop", None, np.array([True]), np.float32([0]), around=ONE, expect=until, name="until", body=UNTIL)
case("Loop", np.int64(3), np.array([True]), np.float32([0]), around=ONE, expect=until, name="both", body=UNTIL)
case("Loop", np.int64(100), np.array([False]), np.float32([2]), around=ONE, expect=until, name="never", body=UNTIL)

# --- Scan ---

STEP = graph(
    [node("Add", ["s", "x"], ["next"]), node("Mul", ["next", "x"], ["y"])],
    [("s", FLOAT, [3]), ("x", FLOAT, [3])],
    [("next", FLOAT, [3]), ("y", FLOAT, [3])],
)


def scanned(reverse_in=False, axis_in=0, reverse_out=False, axis_out=0):
    def run(s, x):
        steps = np.moveaxis(x, axis_in, 0)
        out = []
        for row in steps[::-1] if reverse_in else steps:
            s = s + row
            out.append(s * row)
        return s, np.stack(out[::-1] if reverse_out else out, axis_out)

    return run


SCAN = {"outputs": 2, "num_scan_inputs": 1, "body": STEP}
case("Scan", f32(3), f32(5, 3), expect=scanned(), since=9, **SCAN)
case("Scan", f32(3), f32(5, 3), expect=scanned(True, 0, True), since=9, name="reverse", scan_input_directions=[1],
     scan_output_directions=[1], **SCAN)
case("Scan", f32(3), f32(3, 5), expect=scanned(False, 1, False, 1), since=9, name="axes", scan_input_axes=[1],
     scan_output_axes=[1], **SCAN)
case("Scan", f32(3), f32(3, 5), expect=scanned(False, 1, False, 1), since=11, name="negative", scan_input_axes=[-1],
     scan_output_axes=[-1], **SCAN)

# In version 8 all values have a batch dimension in front, and each sequence may have a length.  Results after a
# sequence's end are undefined; they are 0 here, as in ONNX Runtime.
BATCH = f32(2, 3), f32(2, 5, 3)
case("Scan", None, *BATCH, until=8, **SCAN)
case("Scan", None, *BATCH, until=8, name="reverse", directions=[1], **SCAN)
case("Scan", i64(2, 5), *BATCH, until=8, name="lengths", **SCAN)
case("Scan", i64(4, 1), *BATCH, until=8, name="lengths-reverse", directions=[1], **SCAN)
