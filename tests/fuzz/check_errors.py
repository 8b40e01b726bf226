"""check_errors.py: in a long chain of operations, the errors that values may have are larger than what rounding does to them, but
not so large that the chain must end or that no result would count as wrong."""

import sys

import numpy as np

import registry
import rows
import xla
from build import Builder
from registry import Skip
from workers import in_child

STEPS = 20  # each of three operations
MOST = 0.01  # the largest error, divided by the largest number


def chain(newest):
    """Rotates vectors and applies activations again and again, in f32; returns (allowed error, actual error) of each step."""
    g = np.random.default_rng(1)
    b = Builder(1, rows.Table(newest), registry.load(), 17, dense=("float",))
    turn = np.linalg.qr(g.standard_normal((32, 32)))[0].astype(np.float32)
    x, w = b.new_input(g.standard_normal((8, 32)).astype(np.float32)), b.constant(turn, as_node=False)
    right, steps = x.array.astype(np.float64), []
    for _ in range(STEPS):
        x = b.add("Atan", [b.add("MatMul", [x, w], {})[0]], {})[0]
        right = np.arctan(right @ turn)
        x = b.add("Mul", [x, b.constant(np.float32([1.5]), as_node=False)], {})[0]
        right = right * 1.5
        largest = float(np.max(np.abs(right)))
        steps.append((x.error / largest, float(np.max(np.abs(right - x.array))) / largest))
    return steps


def check(newest):
    """Returns what is wrong, as a list of texts."""
    try:
        steps = chain(newest)
    except Skip as e:
        return [f"a chain of {STEPS} steps: {e}"]
    wrong = [f"step {k}: {far:.2g} off, {may:.2g} allowed" for k, (may, far) in enumerate(steps) if far > may]
    return wrong + [f"step {k}: {may:.2g} allowed" for k, (may, far) in enumerate(steps) if may > MOST]


def main():
    wrong = check(in_child(xla.newest_opset)[1])
    for text in wrong:
        print("FAIL check_errors.py:", text)
    sys.exit(bool(wrong))


main()
