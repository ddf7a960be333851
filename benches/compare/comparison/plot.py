"""A plot as SVG, both axes logarithmic, without anything that would have to be installed."""

from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 840, 420, 100, 330, 20, 50
COLOURS = ["#4269d0", "#e0912d", "#d0433c", "#3c9d8f", "#7b4fa3", "#8a6d3b", "#5f6a72", "#c2559d"]


def plot(series, across, up):
    """Lines of points: `series` has names and `{x: y}`."""
    xs = [x for _, points in series for x in points]
    ys = [y for _, points in series for y in points.values()]
    x_from, x_to = floor(log10(min(xs))), max(ceil(log10(max(xs))), floor(log10(min(xs))) + 1)
    y_from, y_to = floor(log10(min(ys))), max(ceil(log10(max(ys))), floor(log10(min(ys))) + 1)

    def at_x(x):
        return LEFT + (log10(x) - x_from) / (x_to - x_from) * (WIDTH - LEFT - RIGHT)

    def at_y(y):
        return HEIGHT - BOTTOM - (log10(y) - y_from) / (y_to - y_from) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for power in range(x_from, x_to + 1):
        x = at_x(10**power)
        out += [line(x, TOP, x, HEIGHT - BOTTOM, "#ddd"), text(x, HEIGHT - BOTTOM + 18, f"{10**power:,}".replace(",", " "), "middle")]
    for power in range(y_from, y_to + 1):
        y = at_y(10.0**power)
        out += [line(LEFT, y, WIDTH - RIGHT, y, "#ddd"), text(LEFT - 8, y + 4, f"{10.0**power:,.10g}".replace(",", " "), "end")]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across, "middle"),
            f'<g transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">{text(0, 0, up, "middle")}</g>']
    for number, (name, points) in enumerate(series):
        colour, places = COLOURS[number % len(COLOURS)], [(at_x(x), at_y(y)) for x, y in sorted(points.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 10 + 20 * number
        out += [line(WIDTH - RIGHT + 14, y, WIDTH - RIGHT + 34, y, colour, 3), text(WIDTH - RIGHT + 40, y + 4, name, "start")]
    return "\n".join([*out, "</svg>"]) + "\n"


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def text(x, y, words, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222">{escape(words)}</text>'
