"""Statistics of rounds in which several engines were measured in turns."""
import math
import statistics

MOST = 5  # a row counts at most this in a geometric mean
# Student's t for 95 %, by degrees of freedom; beyond the last the normal distribution's.
T95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13]


def paired(theirs, ours):
    """Returns the median of the rounds' ratios, and the 95 % confidence interval of their geometric mean."""
    logs = [math.log(a / b) for a, b in zip(theirs, ours)]
    mean, half = statistics.fmean(logs), 0.0
    if len(logs) > 1:
        t = T95[len(logs) - 2] if len(logs) - 2 < len(T95) else 1.96
        half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"ratio": math.exp(statistics.median(logs)), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(min(r, MOST)) for r in ratios))
