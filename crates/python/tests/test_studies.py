"""Tests of studies, executors and shards."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import fullpipe as fp
from test_scenarios import records

SWEEP = {
    "flow.download.congestion": ["cubic", "bbr3"],
    "topology.bottleneck.rate": ["5Mbit/s", "10Mbit/s"],
}
METRICS = {"goodput_bps": 'goodput_bps["download"]'}


def sweep(runs: int = 2) -> fp.Study:
    lossy = {"topology.bottleneck.loss": {"kind": "bernoulli", "probability": 0.001}}
    text = fp.Scenario("quick-start").resolve(lossy)
    return fp.Study.sweep(fp.Scenario(text), axes=SWEEP, metrics=METRICS, runs=runs)


def test_sweep_gives_an_array_with_a_dimension_for_each_axis(tmp_path: Path) -> None:
    results = sweep().run(out=tmp_path, jobs=2)
    data = results.to_xarray()
    assert dict(data.sizes) == {"congestion": 2, "rate": 2, "run": 2}
    assert data["rate"].values.tolist() == ["5Mbit/s", "10Mbit/s"]
    goodput = data["goodput_bps"].sel(congestion="bbr3", rate="10Mbit/s").mean("run")
    rows = results.runs
    mean = rows[(rows["congestion"] == "bbr3") & (rows["rate"] == "10Mbit/s")]["goodput_bps"].mean()
    assert float(goodput) == mean


def test_claims_have_verdicts(tmp_path: Path) -> None:
    claims = fp.Study("buffer-sizes", quick=True).run(out=tmp_path).claims
    assert len(claims) > 0
    assert set(claims["verdict"]) <= {"match", "refuted", "undecided", "no verdict", ""}


def test_progress_counts_all_runs(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    sweep().run(out=tmp_path, progress=lambda finished, total, label: seen.append((finished, total)))
    assert seen[0] == (0, 8) and seen[-1] == (8, 8)


def test_exception_of_the_progress_function_ends_the_study_and_keeps_runs(tmp_path: Path) -> None:
    def fail(finished: int, total: int, label: str) -> None:
        if finished == 3:
            raise ZeroDivisionError("in my function")

    with pytest.raises(ZeroDivisionError):
        sweep().run(out=tmp_path, jobs=1, progress=fail)
    assert sweep().run(out=tmp_path).reused >= 3


def test_executor_gives_the_same_records(tmp_path: Path) -> None:
    sweep().run(out=tmp_path / "threads")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        results = sweep().run(out=tmp_path / "processes", executor=executor)
    assert results.made == 8
    assert records(tmp_path / "threads") == records(tmp_path / "processes")


def test_lost_worker_costs_its_runs_alone(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        def kill(finished: int, total: int, label: str) -> None:
            if finished == 2:
                for process in list(executor._processes.values()):
                    process.kill()

        with pytest.raises(fp.RunError, match="runs failed"):
            sweep().run(out=tmp_path, executor=executor, in_flight=1, progress=kill)
    results = sweep().run(out=tmp_path)
    assert results.reused >= 2 and results.made + results.reused == 8


def test_file_of_a_scenario_travels_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULLPIPE_CACHE", str(tmp_path / "cache"))
    trace = "S 0 1 1 1\nw 64800 64800\nr 40000\nl 0 0\nI 0 0 245\nA 0 51257 51000\nA 6304 0 0\n"
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.cvec").write_text(trace)
    scenario = {
        "duration": "5s",
        "topology": {"kind": "chain", "link": [{"rate": "10Mbit/s", "delay": "10ms"}]},
        "flow": [{"name": "web", "from": "source", "to": "sink", "workload": "tmix", "file": "own.cvec"}],
    }
    study = fp.Study.sweep(
        fp.Scenario(scenario, folder=tmp_path / "here"),
        axes={"topology.link.0.rate": ["5Mbit/s", "10Mbit/s"]},
        metrics={"rx_packets": 'sum(rx_packets["*"])'},
        runs=1,
    )
    study.run(out=tmp_path / "threads")
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        study.run(out=tmp_path / "processes", executor=executor)
    assert records(tmp_path / "threads") == records(tmp_path / "processes")
    # A copy that is damaged is replaced.
    (copy,) = (tmp_path / "cache").glob("scenario-*/own.cvec")
    copy.write_text(trace[:20])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        study.run(out=tmp_path / "again", executor=executor)
    assert records(tmp_path / "threads") == records(tmp_path / "again")


def test_sixteen_shards_equal_the_whole(tmp_path: Path) -> None:
    study = sweep(runs=8)
    study.run(out=tmp_path / "whole")
    order = list(range(1, 17))
    random.Random(1).shuffle(order)
    folders = []
    for index in order:
        folder = tmp_path / f"shard-{index}"
        study.run(out=folder, shard=(index, 16), jobs=1)
        folders.append(folder)
    # One is lost and made again.
    lost = folders[5]
    for path in sorted(lost.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    lost.rmdir()
    study.run(out=lost, shard=(order[5], 16))
    fp.merge(folders, tmp_path / "merged")
    assert records(tmp_path / "merged") == records(tmp_path / "whole")


def test_killed_driver_continues(tmp_path: Path) -> None:
    program = f"""
import fullpipe as fp, os
from test_studies import sweep
def end(finished, total, label):
    if finished == 4:
        os.kill(os.getpid(), 9)
sweep().run(out={str(tmp_path / "killed")!r}, jobs=1, progress=end)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    killed = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert killed.returncode == -9
    results = sweep().run(out=tmp_path / "killed")
    assert results.reused >= 4
    sweep().run(out=tmp_path / "whole")
    assert records(tmp_path / "killed") == records(tmp_path / "whole")


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = sweep(1).run(out=tmp_path)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(fp.MissingExtraError, match=r"crates/python\[xarray\]' in a clone .*'fullpipe\[xarray\]' if") as missing:
        results.to_xarray()
    assert type(missing.value).__module__ == "fullpipe"


def test_invalid_settings_raise() -> None:
    with pytest.raises(fp.StudyError, match="did you mean"):
        fp.Study("buffer-size")
    with pytest.raises(ValueError, match="runs is 0"):
        fp.Study("buffer-sizes", runs=0)
    with pytest.raises(fp.StudyError):
        fp.Study("buffer-sizes", set={"no-such-axis": [1]})
    with pytest.raises(fp.StudyError, match="17"):
        sweep().run(shard=(17, 16))


def small(queues: list[str], runs: int = 1, **keywords: str) -> fp.Study:
    return fp.Study.sweep("quick-start", axes={"queue = topology.bottleneck.queue": queues}, runs=runs, **keywords)


def test_sweeps_without_a_name_have_different_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = small(["25kB", "50kB"]).run()
    second = small(["100kB"]).run()
    assert first.folder != second.folder and first.folder.parent == Path("fullpipe-out")
    assert first.runs["queue"].tolist() == ["25kB", "50kB"] and second.runs["queue"].tolist() == ["100kB"]
    # The same sweep with more runs continues.
    again = small(["25kB", "50kB"], runs=2).run()
    assert (again.folder, again.made, again.reused) == (first.folder, 2, 2)
    assert small(["25kB"], name="mine").run().folder == Path("fullpipe-out", "mine")


def test_results_whose_folder_another_study_changed_raise(tmp_path: Path) -> None:
    first = small(["25kB"]).run(out=tmp_path)
    read = first.runs
    small(["50kB"]).run(out=tmp_path)
    with pytest.raises(fp.FolderError, match="no longer has the records of this study: .* study.toml and summary.csv;"):
        first.summary
    # This table was read before.
    assert first.runs is read
    # The same study has the same tables.
    small(["25kB"]).run(out=tmp_path)
    assert first.summary["point"].tolist() == ["queue=25kB"]


def test_study_with_another_name_is_rejected(tmp_path: Path) -> None:
    small(["25kB"], name="mine").run(out=tmp_path)
    with pytest.raises(fp.FolderError, match='contains other records .*name = "mine".* another folder with out='):
        small(["25kB"]).run(out=tmp_path)


def test_table_that_the_study_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(fp.FolderError, match=r"has no robustness.csv \(one of: results, summary, flow_summary\)"):
        small(["25kB"]).run(out=tmp_path).arrow("robustness")


def test_means_without_random_numbers_have_one_value_and_no_interval(tmp_path: Path) -> None:
    table = small(["25kB"], runs=3).run(out=tmp_path).means("goodput_bps")
    assert table["n"].tolist() == [1] and table["low"].isna().all()


def test_array_has_units_and_names(tmp_path: Path) -> None:
    data = sweep(1).run(out=tmp_path).to_xarray()
    assert data["goodput_bps"].attrs == {"units": "bit/s", "long_name": "goodput_bps"}
    assert data.attrs["title"] == "Sweep over congestion, rate"


def test_sweep_accepts_dicts_as_values(tmp_path: Path) -> None:
    disciplines = [
        {"kind": "codel", "target": "10ms"},
        {"limit": "1BDP", "kind": "fifo"},
        {"label": "PIE", "value": {"kind": "pie"}},
    ]
    study = fp.Study.sweep("quick-start", axes={"d = topology.bottleneck.discipline": disciplines}, runs=1)
    labels = ["codel, target 10ms", "fifo, limit 1BDP", "PIE"]
    assert study.axes == {"sweep": {"d": labels}}
    results = study.run(out=tmp_path)
    assert results.means("goodput_bps")["d"].tolist() == labels
    assert results.to_xarray()["d"].values.tolist() == labels


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"topology.bottleneck.rat": ["5Mbit/s"]}, "rat=5Mbit/s:.*did you mean rate"),
        ({"flow.download.congestion": ["cubic", "bbr4"]}, 'congestion=bbr4:.*did you mean "bbr[13]?"'),
        ({"flow.download.size": ["1MB"], "topology.bottleneck.rate": ["5Mbit/s", "10Mbits"]}, "rate=10Mbits"),
    ],
)
def test_misspelled_axis_is_rejected_at_once(axes: dict[str, list[str]], message: str) -> None:
    with pytest.raises(fp.StudyError, match=f"(?s){message}"):
        fp.Study.sweep("quick-start", axes)


@pytest.mark.parametrize("name", ["run", "mean", "n"])
def test_axis_with_the_name_of_a_column_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"the axis '{name}' has the name of a column"):
        fp.Study.sweep("quick-start", {f"{name} = flow.download.size": ["1MB"]})


def test_metric_of_a_flow_that_does_not_exist_is_rejected_at_once() -> None:
    with pytest.raises(fp.StudyError, match="downlod"):
        fp.Study.sweep("quick-start", {"flow.download.size": ["1MB"]}, {"x": 'goodput_bps["downlod"]'})
