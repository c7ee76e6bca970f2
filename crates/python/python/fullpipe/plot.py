"""Styles of matplotlib for figures of papers (extra ``plot``).

``figure.savefig("window.pdf")`` writes a file whose width is that of the column.

>>> import fullpipe as fp
>>> import matplotlib.pyplot as plt
>>> from fullpipe.plot import style
>>> result = fp.Scenario("quick-start").run()
>>> with style(columns=1):
...     figure, axes = plt.subplots()
...     _ = result.series["download", "cwnd_bytes"].plot(ax=axes)
>>> figure.get_size_inches().tolist()
[3.5, 2.1]
>>> plt.close(figure)
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._errors import extra

#: Width of a figure in inches over one and two columns, by template.
#:
#: IEEE: "Size Requirements for Graphics", IEEE Author Center (3.5 inches and 7.16 inches). ACM: the format ``sigconf`` of
#: the LaTeX class ``acmart``, which has paper of 8.5 inches, margins of 54 pt and a column separation of 24 pt (1 inch is
#: 72.27 pt).
WIDTHS_INCHES = {
    "ieee": (3.5, 7.16),
    "acm": ((8.5 - 108 / 72.27 - 24 / 72.27) / 2, 8.5 - 108 / 72.27),
}

#: The colors of lines: blue, yellow, red and black of the scheme "high-contrast" of Paul Tol, *Colour Schemes*, SRON/EPS/TN/09-002.
#: The scheme is for readers with color vision deficiencies and for monochrome prints. The lightness L* (CIELAB) of any two of
#: these colors differs by at least 19.
COLORS = ("#004488", "#DDAA33", "#BB5566", "#000000")

_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def parameters(columns: int = 1, template: str = "ieee", *, height: float | None = None, markers: bool = False) -> dict[str, Any]:
    """Returns the parameters of a style, for ``matplotlib.rcParams``.

    ``columns`` is 1 or 2, ``template`` is ``"ieee"`` or ``"acm"``, and ``height`` is in inches, by default 0.6 times the
    width of one column. Eight successive lines differ in color or line style. With ``markers``, they also have different
    markers, for sweeps with few points. Fonts are embedded as TrueType (type 42).

    >>> from fullpipe.plot import parameters
    >>> parameters(columns=2)["figure.figsize"]
    (7.16, 2.1)
    """
    if template not in WIDTHS_INCHES:
        raise ValueError(f"unknown template {template!r} (one of: {', '.join(WIDTHS_INCHES)})")
    if columns not in (1, 2):
        raise ValueError(f"columns is {columns!r}; expected 1 or 2")
    cycler = extra("cycler", "plot").cycler
    widths = WIDTHS_INCHES[template]
    lines = len(_MARKERS)
    cycle = cycler(color=[COLORS[i % 4] for i in range(lines)])
    # The second four lines have the colors of the first four with other line styles.
    cycle += cycler(linestyle=[_LINES[(i + i // 4 * 2) % 4] for i in range(lines)])
    if markers:
        cycle += cycler(marker=_MARKERS)
    return {
        "figure.figsize": (widths[columns - 1], widths[0] * 0.6 if height is None else height),
        "figure.dpi": 150,
        "figure.constrained_layout.use": True,
        # A tight bounding box would change the width.
        "savefig.bbox": None,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.4,
        "lines.linewidth": 1.2,
        "lines.markersize": 4,
        "errorbar.capsize": 2,
        "axes.prop_cycle": cycle,
    }


def style(
    columns: int = 1, template: str = "ieee", *, height: float | None = None, markers: bool = False
) -> AbstractContextManager[None]:
    """Returns a context in which figures have the style of :func:`parameters`. Other figures keep theirs.

    >>> from fullpipe.plot import style
    >>> style(columns=3)
    Traceback (most recent call last):
        ...
    ValueError: columns is 3; expected 1 or 2
    """
    matplotlib = extra("matplotlib", "plot")
    context: AbstractContextManager[None] = matplotlib.rc_context(
        parameters(columns, template, height=height, markers=markers)
    )
    return context
