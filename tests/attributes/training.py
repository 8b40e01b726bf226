"""Optimizers of ai.onnx.preview.training: double precision, later steps, several tensors, every attribute.  Expected values are
computed by numpy in double precision, after the specification's pseudocode."""
import numpy as np

DOMAIN = "ai.onnx.preview.training"
rng = np.random.default_rng(11)
SHAPES = ((2, 3), (4,), ())


def tensors(dtype, positive=False):
    drawn = [np.asarray(rng.standard_normal(s)) for s in SHAPES]
    return [(np.abs(x) if positive else x).astype(dtype) for x in drawn]


def adagrad(r, t, x, g, h, decay_factor, epsilon, norm_coefficient):
    g = norm_coefficient * x + g
    h = h + g * g
    return x - r / (1 + t * decay_factor) * g / (np.sqrt(h) + epsilon), h


def adam(r, t, x, g, v, h, alpha, beta, epsilon, norm_coefficient, norm_coefficient_post):
    g = norm_coefficient * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    r = r * np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else r
    return (1 - norm_coefficient_post) * (x - r * v / (np.sqrt(h) + epsilon)), v, h


def momentum(r, t, x, g, v, alpha, beta, mode, norm_coefficient):
    g = norm_coefficient * x + g
    v = alpha * v + (beta if t > 0 else 1) * g
    return x - r * (g + alpha * v if mode == "nesterov" else v), v


def write_case(w, op, step, states, positive, attributes):
    """states: how many arrays the operator keeps for each tensor; positive: the last of them is a sum of squares."""
    for dtype in (np.float32, np.float64):
        for t in (0, 3):
            groups = [tensors(dtype), tensors(dtype)] + [tensors(dtype, positive and k == states - 1) for k in range(states)]
            rate, count = dtype(0.25), np.int64(t)
            made = [step(float(rate), t, *(np.float64(x) for x in one), **attributes) for one in zip(*groups)]
            expected = [np.asarray(y).astype(dtype) for group in zip(*made) for y in group]
            inputs = [np.asarray(rate), np.asarray(count)] + [x for group in groups for x in group]
            w.add(op, inputs, expected, attributes, domain=DOMAIN, name="%s_%d" % (dtype.__name__, t))


def write_optimizers(w):
    write_case(w, "Adagrad", adagrad, 1, True, {"decay_factor": 0.125, "epsilon": 0.0625, "norm_coefficient": 0.25})
    write_case(w, "Adam", adam, 2, True, {"alpha": 0.75, "beta": 0.875, "epsilon": 0.0625, "norm_coefficient": 0.25,
                                          "norm_coefficient_post": 0.125})
    for mode in ("standard", "nesterov"):
        write_case(w, "Momentum", momentum, 1, False, {"alpha": 0.75, "beta": 0.5, "mode": mode, "norm_coefficient": 0.25})
