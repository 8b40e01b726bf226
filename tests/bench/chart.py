"""Charts as SVG, written by hand: bars with marks on a logarithmic scale, and pairs of lines."""
import html
import math

COLOURS = {"convolution": "#3b6fb6", "transformer": "#2f9e6e", "small": "#c07a2c"}
BAR, LEFT, RIGHT, TOP, BOTTOM = 18, 150, 60, 50, 40
STYLE = "font-family='sans-serif' font-size='12'"


class Picture:
    def __init__(self, width, height):
        self.parts = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
                      f"{STYLE}>", f"<rect width='{width}' height='{height}' fill='#fff'/>"]

    def line(self, x1, y1, x2, y2, colour="#999", width=1):
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' "
                          f"stroke-width='{width}'/>")

    def box(self, x, y, width, height, colour):
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0.5):.1f}' height='{height:.1f}' fill='{colour}'/>")

    def text(self, x, y, what, anchor="start", weight="normal"):
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-weight='{weight}'>{html.escape(what)}</text>")

    def dot(self, x, y, colour, radius=3):
        self.parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='{colour}'/>")

    def done(self):
        return "\n".join([*self.parts, "</svg>", ""])


def ratios(title, bars, ticks=(0.25, 0.5, 0.75, 1, 1.35, 2, 3, 5)):
    """bars: (name, class, ratio, low, high).  A bar goes from 1 to its ratio; the thin line is the interval."""
    width, height = 820, TOP + BAR * len(bars) + BOTTOM
    least, most = math.log(ticks[0]), math.log(ticks[-1])
    picture = Picture(width, height)

    def at(ratio):
        share = (math.log(min(max(ratio, ticks[0]), ticks[-1])) - least) / (most - least)
        return LEFT + share * (width - LEFT - RIGHT)

    picture.text(10, 20, title, weight="bold")
    for k, (kind, colour) in enumerate(COLOURS.items()):
        picture.box(10 + 120 * k, 28, 10, 10, colour)
        picture.text(25 + 120 * k, 37, kind)
    for tick in ticks:
        picture.line(at(tick), TOP - 6, at(tick), height - BOTTOM, "#333" if tick == 1 else "#ddd")
        picture.text(at(tick), height - BOTTOM + 16, f"{tick:g}", "middle")
    for k, (name, kind, ratio, low, high) in enumerate(bars):
        y = TOP + BAR * k
        picture.text(LEFT - 8, y + 12, name, "end")
        picture.box(min(at(1), at(ratio)), y + 3, abs(at(ratio) - at(1)), BAR - 7, COLOURS[kind])
        picture.line(at(low), y + BAR / 2 - 0.5, at(high), y + BAR / 2 - 0.5, "#000")
        picture.text(width - RIGHT + 8, y + 12, f"{ratio:.2f}")
    return picture.done()


def pairs(title, names, series):
    """Vertical bars side by side: names along the axis, series: (label, colour, values)."""
    step = 6 * (len(series) + 1)
    width, height = LEFT / 3 + RIGHT / 3 + step * len(names) + 20, 340
    floor, most = height - 30, max(max(values) for _, _, values in series)
    picture = Picture(width, height)
    picture.text(10, 20, title, weight="bold")
    for k, (label, colour, _) in enumerate(series):
        picture.box(10 + 160 * k, 28, 10, 10, colour)
        picture.text(25 + 160 * k, 37, label)
    scale = (floor - TOP) / most
    tick = 10 ** math.floor(math.log10(most))
    tick = tick if most / tick > 2.5 else tick / 4
    for k in range(int(most / tick) + 1):
        y = floor - k * tick * scale
        picture.line(50, y, width - 10, y, "#ddd")
        picture.text(46, y + 4, f"{k * tick:g}", "end")
    for i in range(len(names)):
        for k, (_, colour, values) in enumerate(series):
            picture.box(55 + step * i + 6 * k, floor - values[i] * scale, 5.5, values[i] * scale, colour)
        if i % 5 == 0:
            picture.text(55 + step * i, floor + 16, str(i + 1))
    return picture.done()
