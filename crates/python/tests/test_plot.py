"""Tests of the styles of figures, and of what a notebook shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import fullpipe as fp
from fullpipe.plot import COLORS, WIDTHS_INCHES, means, parameters, plot_means, style


def lightness(color: str) -> float:
    """L* (CIELAB) of a color of sRGB."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


@pytest.mark.parametrize("template", WIDTHS_INCHES)
@pytest.mark.parametrize("columns", [1, 2])
def test_pdf_has_the_width_of_the_column_and_truetype_fonts(template: str, columns: int, tmp_path: Path) -> None:
    series = fp.Scenario("quick-start").run().series["download", "cwnd_bytes"]
    with style(columns, template):
        figure, axes = plt.subplots()
        series.plot(ax=axes, label="download")
        axes.set_ylabel("a label that needs some room")
        axes.legend()
        figure.savefig(tmp_path / "figure.pdf")
        plt.close(figure)
    content = (tmp_path / "figure.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    assert box is not None
    # PDF has 72 points per inch.
    assert float(box[1]) / 72 == pytest.approx(WIDTHS_INCHES[template][columns - 1], abs=0.001)
    # Type 42: the font is embedded as TrueType (FontFile2) and not as Type 3.
    assert b"/FontFile2" in content and b"/Subtype /Type3" not in content


def test_widths_are_those_of_the_templates() -> None:
    assert WIDTHS_INCHES["ieee"] == (3.5, 7.16)
    # \columnwidth and \textwidth of acmart's sigconf in TeX points.
    assert WIDTHS_INCHES["acm"][0] * 72.27 == pytest.approx(241.15, abs=0.01)
    assert WIDTHS_INCHES["acm"][1] * 72.27 == pytest.approx(506.30, abs=0.01)


def test_colors_differ_in_grayscale() -> None:
    values = sorted([*(lightness(color) for color in COLORS), lightness("#FFFFFF")])
    assert min(b - a for a, b in zip(values, values[1:])) >= 19


@pytest.mark.parametrize("markers", [False, True])
def test_eight_lines_differ_without_color(markers: bool) -> None:
    cycle = list(parameters(markers=markers)["axes.prop_cycle"])
    assert len({(entry["color"], entry["linestyle"]) for entry in cycle}) == len(cycle) == 8
    if markers:
        assert len({entry["marker"] for entry in cycle}) == 8


def test_style_ends_with_its_context() -> None:
    before = dict(matplotlib.rcParams)
    with style(2, markers=True):
        assert matplotlib.rcParams["pdf.fonttype"] == 42
    assert dict(matplotlib.rcParams) == before


def test_unknown_template_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown template 'springer' .one of: ieee, acm."):
        style(template="springer")


def test_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(fp.MissingExtraError, match=r"pip install './crates/python\[plot\]' in a clone"):
        style()


def test_notebook_shows_tables_and_plots() -> None:
    shown = fp.Scenario("quick-start").run()._repr_html_()
    assert "<table" in shown and shown.count("<svg") == 4
    assert "e+06" not in shown


def test_notebook_shows_the_table_of_a_run_without_records() -> None:
    class Constant(fp.CongestionControl):
        def on_ack(self, ack: fp.Ack) -> None:
            self.cwnd_bytes = 50_000

    shown = fp.Scenario("quick-start").run(controls={"download": Constant})._repr_html_()
    assert "<table" in shown and "<svg" not in shown


def test_means_have_the_axes_and_the_intervals_of_the_summary(tmp_path: Path) -> None:
    axes = {"congestion = flow.download.congestion": ["cubic", "bbr3"], "size = flow.download.size": [500_000, 1_000_000]}
    # Without losses at random, all runs are equal, and the summary has no interval.
    loss = {"kind": "bernoulli", "probability": 0.01}
    scenario = fp.Scenario("quick-start").resolve({"topology.bottleneck.loss": loss})
    results = fp.Study.sweep(scenario, axes=axes, metrics={"goodput_bps": 'goodput_bps["download"]'}, runs=3).run(out=tmp_path)
    table = means(results, "goodput_bps")
    assert table[["congestion", "size"]].values.tolist() == [["cubic", 500_000], ["cubic", 1_000_000], ["bbr3", 500_000], ["bbr3", 1_000_000]]
    assert (table["low"] < table["mean"]).all() and (table["mean"] < table["high"]).all() and (table["n"] == 3).all()
    runs = results.runs[(results.runs["congestion"] == "bbr3") & (results.runs["size"] == 500_000)]
    assert table.loc[2, "mean"] == pytest.approx(runs["goodput_bps"].mean())

    figure, ax = plt.subplots()
    plot_means(table, x="size", series="congestion", ax=ax, scale=1e-6)
    assert [text for text in ax.get_legend_handles_labels()[1]] == ["cubic", "bbr3"]
    line = ax.containers[1].lines[0]
    assert line.get_ydata()[0] == pytest.approx(table.loc[2, "mean"] / 1e6)
    plt.close(figure)
    with pytest.raises(ValueError, match="unknown metric 'goodput'; did you mean 'goodput_bps'. .one of: goodput_bps."):
        means(results, "goodput")


@pytest.mark.parametrize(
    ("height", "kind"), [(-1, ValueError), (0, ValueError), (60, ValueError), (float("nan"), ValueError), ("2", TypeError)]
)
def test_invalid_height_raises(height: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="height is .*; expected a height in inches, more than 0 and at most 20"):
        style(height=height)  # type: ignore[arg-type]


TABLE = pd.DataFrame(
    {
        "buffer": [1, 2, 1, 2],
        "control": ["cubic", "cubic", "bbr3", "bbr3"],
        "n": 3,
        "mean": [8.0, 9.0, 8.0, 9.0],
        "low": [7.0, 8.0, 7.0, 8.0],
        "high": [9.0, 10.0, 9.0, 10.0],
    }
)


def test_intervals_of_series_at_the_same_position_are_next_to_each_other() -> None:
    figure, ax = plt.subplots()
    plot_means(TABLE, x="buffer", series="control", ax=ax)
    figure.draw_without_rendering()
    first, second = (container.lines[0] for container in ax.containers)
    pixels = [line.get_transform().transform(line.get_xydata())[0] for line in (first, second)]
    assert pixels[1][0] - pixels[0][0] == pytest.approx(4 / 72 * figure.dpi)
    assert pixels[1][1] == pytest.approx(pixels[0][1])
    # Lines and bars have the same offset, and the limits contain the intervals.
    bars = ax.containers[1].lines[2][0]
    assert bars.get_transform().transform((1, 8))[0] == pytest.approx(pixels[1][0])
    assert ax.get_ylim()[0] < 7 and ax.get_ylim()[1] > 10 and ax.get_xlim()[0] < 1 and ax.get_xlim()[1] > 2
    plt.close(figure)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda results: plot_means(TABLE, x="bufer"), ValueError, "x: .*'bufer'; did you mean 'buffer'. .one of: buffer, control"),
        (lambda results: plot_means(TABLE, x="buffer", series="cc"), ValueError, "series: unknown axis 'cc' .one of: buffer, control"),
        (lambda results: plot_means(results, x="rate"), TypeError, "type Results; expected the table that results.means"),
        (lambda results: plot_means(results.runs, x="rate"), TypeError, "without means; expected the table"),
        (lambda results: means(results.runs, "goodput_bps"), TypeError, "type DataFrame; expected the Results"),
        (lambda results: means(results, "goodput_bps", "foo"), fp.StudyError, "unknown experiment 'foo' .one of: sweep"),
        (lambda results: results.means("goodput"), ValueError, "unknown metric 'goodput'; did you mean 'goodput_bps'"),
    ],
)
def test_invalid_argument_is_named(
    call: Callable[[fp.Results], object], kind: type[Exception], message: str, results: fp.Results
) -> None:
    with pytest.raises(kind, match=message):
        call(results)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> fp.Results:
    axes = {"rate = topology.bottleneck.rate": ["5Mbit/s"]}
    return fp.Study.sweep("quick-start", axes, runs=1).run(out=tmp_path_factory.mktemp("sweep"))
