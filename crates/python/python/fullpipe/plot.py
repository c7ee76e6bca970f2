"""Matplotlib styles for figures in papers (extra ``plot``).

``figure.savefig("window.pdf")`` writes a file with the width of the column.

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
from typing import TYPE_CHECKING, Any

import pandas as pd

from ._errors import extra, unknown
from ._study import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width of a figure in inches over one and two columns, by template.
#:
#: IEEE: "Size Requirements for Graphics", IEEE Author Center (3.5 inches and 7.16 inches). ACM: the format ``sigconf`` of
#: the LaTeX class ``acmart``, which has a paper width of 8.5 inches, margins of 54 pt and a column separation of 24 pt (1 inch
#: is 72.27 pt).
WIDTHS_INCHES = {
    "ieee": (3.5, 7.16),
    "acm": ((8.5 - 108 / 72.27 - 24 / 72.27) / 2, 8.5 - 108 / 72.27),
}

#: The colors of lines: blue, yellow, red and black of the scheme "high-contrast" of Paul Tol, *Colour Schemes*, SRON/EPS/TN/09-002.
#: The scheme is for readers with color vision deficiencies and for monochrome prints. The lightness L* (CIELAB) of any two of
#: these colors differs by at least 19.
COLORS = ("#004488", "#DDAA33", "#BB5566", "#000000")

#: The largest height of a figure in inches. A larger number is probably in another unit.
_MOST_HEIGHT_INCHES = 20

#: The distance between the points of two series at the same position, in points of 1/72 inch.
_OFFSET_POINTS = 4

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
        raise ValueError(unknown("template", template, WIDTHS_INCHES))
    if columns not in (1, 2):
        raise ValueError(f"columns is {columns!r}; expected 1 or 2")
    if height is not None:
        expected = f"expected a height in inches, more than 0 and at most {_MOST_HEIGHT_INCHES}"
        if isinstance(height, bool) or not isinstance(height, (int, float)):
            raise TypeError(f"height is {height!r}; {expected}")
        if not 0 < height <= _MOST_HEIGHT_INCHES:
            raise ValueError(f"height is {height!r}; {expected}")
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


def means(results: Results, metric: str, experiment: str | None = None) -> pd.DataFrame:
    """Returns the means of a metric of a study, as :meth:`fullpipe.Results.means` does."""
    if not isinstance(results, Results):
        kind = type(results).__name__
        raise TypeError(f"found results of type {kind}; expected the Results that Study.run returns")
    return results.means(metric, experiment)


def plot_means(
    table: pd.DataFrame, x: str, series: str | None = None, *, ax: Axes | None = None, scale: float = 1.0
) -> Axes:
    """Plots a table of :meth:`fullpipe.Results.means` with its 95 % intervals, one line for each label of the axis ``series``.

    Each line is drawn 4 points (1/72 inch) to the right of the previous line, and all lines together are centered. Intervals
    of several series at the same ``x`` therefore do not hide each other. Values are multiplied by ``scale``. Returns the
    axes, by default those of the current figure.

    >>> import pandas as pd
    >>> from fullpipe.plot import plot_means
    >>> table = pd.DataFrame({"buffer": [1, 2], "mean": [9e6, 9.5e6], "low": [8.9e6, 9.4e6], "high": [9.1e6, 9.6e6]})
    >>> axes = plot_means(table, x="buffer", scale=1e-6)
    >>> axes.get_xlabel()
    'buffer'
    """
    if not isinstance(table, pd.DataFrame) or not {"mean", "low", "high"} <= set(table.columns):
        kind = "a DataFrame without means" if isinstance(table, pd.DataFrame) else f"a value of type {type(table).__name__}"
        raise TypeError(f"found {kind}; expected the table that results.means(metric) returns")
    known = [name for name in table.columns if name not in ("n", "mean", "low", "high")]
    for argument, axis in (("x", x), ("series", series)):
        if axis not in known and (axis is not None or argument == "x"):
            raise ValueError(f"{argument}: {unknown('axis', axis, known)}")
    translation = extra("matplotlib.transforms", "plot").ScaledTranslation
    axes: Axes = extra("matplotlib.pyplot", "plot").gca() if ax is None else ax
    groups = [("", table)] if series is None else list(table.groupby(series, sort=False))
    for index, (label, group) in enumerate(groups):
        # With one run there is no interval.
        error = [scale * (group["mean"] - group["low"]).fillna(0), scale * (group["high"] - group["mean"]).fillna(0)]
        offset = _OFFSET_POINTS / 72 * (index - (len(groups) - 1) / 2)
        place = axes.transData + translation(offset, 0, axes.figure.dpi_scale_trans)
        container = axes.errorbar(group[x], scale * group["mean"], yerr=error, label=str(label) or None)
        # The limits of the axes now contain the line; they would not contain a line that is drawn with this transform.
        for artist in container.get_children():
            artist.set_transform(place)
    axes.set_xlabel(x)
    return axes
