"""Products with small integers in blocks, and of bytes with floating-point results."""
import itertools

import numpy as np

from runtime_cases import F16, F32, floats, ints, rng


def write_matmul_nbits(w):
    for bits, block, (k, n), points, accuracy in ((4, 32, (64, 24), None, 0), (4, 32, (64, 24), "packed", 4), (4, 16, (80, 5), "packed", 0),
                                                  (4, 16, (72, 5), "packed", 1), (4, 128, (256, 16), "float", 0), (8, 32, (64, 24), None, 0),
                                                  (8, 32, (96, 7), "packed", 0), (2, 32, (64, 8), None, 0), (2, 32, (160, 8), "packed", 0),
                                                  # so many weights, of an odd number of columns, stay small integers
                                                  (4, 32, (512, 519), None, 0), (4, 32, (512, 519), "packed", 0),
                                                  (4, 64, (512, 519), "float", 0), (8, 32, (512, 519), "packed", 0)):
        blocks = -(-k // block)
        # small enough that the rounding of long sums is below the tolerance where they are near 0
        scales = floats(n, blocks) * np.float32(1 if k < 512 else 2.0 ** -12)
        weights = [ints(0, 256, n, blocks, block * bits // 8, dtype=np.uint8), scales]
        if points == "packed":
            weights.append(ints(0, 256, n, -(-blocks * bits // 8), dtype=np.uint8))
        elif points == "float":
            weights.append(floats(n, blocks) + 8)
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        exact = attributes | ({"accuracy_level": 1} if accuracy == 4 else {})
        constants = list(range(1, 1 + len(weights)))
        for rows in ([(1, 1, k), (1, 9, k)], [(3, k), (17, k)], [(2, 2, 3, k)]):
            sets = [[floats(*d)] + weights for d in rows]
            results = {id(s[0]): w.run("MatMulNBits", s, [F32], exact) for s in sets} if accuracy == 4 else None
            w.add("MatMulNBits", sets, [F32], attributes | ({"accuracy_level": accuracy} if accuracy else {}), constants=constants,
                  expected=results and (lambda x, *rest, r=results: r[id(x)]))
        w.add("MatMulNBits", [[floats(m, k)] + (weights + [None] * 2)[:3] + [None, floats(n)] for m in (1, 4)][:1], [F32], exact,
              constants=constants)
    k, n = 64, 12
    flat = [ints(0, 256, n, 2, 16, dtype=np.uint8), floats(2 * n), ints(0, 256, n, dtype=np.uint8)]  # as older exporters write them
    w.add("MatMulNBits", [[floats(3, k)] + flat], [F32], {"K": k, "N": n, "bits": 4, "block_size": 32}, constants=[1, 2, 3])
    half = [floats(2, k, dtype=np.float16), ints(0, 256, n, 2, 16, dtype=np.uint8), floats(n, 2, dtype=np.float16)]
    w.add("MatMulNBits", [half], [F16], {"K": k, "N": n, "bits": 4, "block_size": 32}, constants=[1, 2])


def write_bytes(w):
    for a_type, b_type in itertools.product((np.uint8, np.int8), repeat=2):
        for columns, pointed, biased in ((1, 1, 1), (5, 1, 0), (5, 0, 1)):
            # ONNX Runtime adds pairs of products in 16 bits on some processors
            b = ints(0, 60, 7, 5, dtype=b_type)
            zero = [ints(0, 100, 1, dtype=a_type), ints(0, 60, columns, dtype=b_type)] if pointed else [None, None]
            rest = [b, np.array([0.25], np.float32), rng.random(columns).astype("f"), *zero]
            rest += [floats(5)] if biased else []
            while rest[-1] is None:
                rest.pop()
            sets = [[ints(0, 100, *d, 7, dtype=a_type)] + rest for d in ((2, 3), (1, 6))]
            if a_type == np.uint8 or b_type == np.int8:  # the other pairs have no kernel
                w.add("MatMulIntegerToFloat", sets, [F32], constants=[k for k in range(1, len(sets[0])) if sets[0][k] is not None])
            rest = [b, rng.random(columns).astype("f"), zero[1]] + ([floats(5)] if biased else [])
            while rest[-1] is None:
                rest.pop()
            sets = [[floats(*d, 7)] + rest for d in ((2, 3), (1, 6))]
            if a_type == np.uint8:
                w.add("DynamicQuantizeMatMul", sets, [F32], constants=[k for k in range(1, len(sets[0])) if sets[0][k] is not None])
