"""Tests of scenarios and results against the command `fullpipe`, which FULLPIPE names."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import _thread
import time
from pathlib import Path

import pytest

import fullpipe as fp

COMMAND = os.environ.get("FULLPIPE", "fullpipe")
LINK = {"rate": "10Mbit/s", "delay": "10ms"}
CHAIN = {"duration": "5s", "topology": {"kind": "chain", "link": [LINK]}}


def chain(**flow: object) -> dict[str, object]:
    return {**CHAIN, "flow": [{"name": "data", "from": "source", "to": "sink", **flow}]}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def records(folder: Path) -> dict[str, bytes]:
    """The files of a folder of records, without CPU times and what is generated from records."""
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {str(path.relative_to(folder)): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if name not in ("cpu.csv", "report.html") and not name.startswith("plots")
    }


def test_build_is_that_of_the_command() -> None:
    assert fp.build in command("--version").stdout


def test_records_equal_those_of_the_command(tmp_path: Path) -> None:
    command("run", "quick-start", "--seed", "7", "--quiet", "--out", str(tmp_path / "command"))
    fp.Scenario("quick-start").run(seed=7).save(tmp_path / "python", report=False)
    ours, theirs = records(tmp_path / "python"), records(tmp_path / "command")
    assert ours.keys() == theirs.keys()
    assert [file for file in ours if ours[file] != theirs[file]] == []


@pytest.mark.parametrize("name", fp.embedded_scenarios())
def test_records_have_the_hashes_of_the_committed_records(name: str, tmp_path: Path) -> None:
    """The command's records of each embedded scenario have these hashes: CI runs `.ci/records-check scenarios`."""
    checks = Path(os.environ["FULLPIPE_CHECKOUT"], ".ci")
    known = [line.split(" ", 1) for line in (checks / "records" / "scenarios").read_text().splitlines()]
    wanted = {path.removeprefix(f"{name}/"): digest for digest, path in known if path.startswith(f"{name}/")}
    if ["needs-real-time", name] in known:
        with pytest.raises(fp.ScenarioError, match="cannot run in virtual time"):
            fp.Scenario(name).run()
        return
    fp.Scenario(name).run().save(tmp_path, report=False)
    hashed = subprocess.run([str(checks / "records-hash"), str(tmp_path)], capture_output=True, text=True, check=True)
    assert {path: digest for digest, path in (line.split(" ", 1) for line in hashed.stdout.splitlines())} == wanted


def test_command_and_package_use_the_same_archive(tmp_path: Path) -> None:
    study = fp.Study("masque-delay", quick=True)
    results = study.run(out=tmp_path / "a", jobs=2)
    assert results.made > 0 and results.reused == 0
    again = command("study", "run", "masque-delay", "--quick", "--out", str(tmp_path / "a"))
    assert f"0 runs made, {results.made} reused" in again.stderr, again.stderr
    command("study", "run", "masque-delay", "--quick", "--quiet", "--out", str(tmp_path / "b"))
    reused = study.run(out=tmp_path / "b", jobs=2)
    assert (reused.made, reused.reused) == (0, results.made)
    assert records(tmp_path / "a") == records(tmp_path / "b")


def test_source_can_be_a_path_text_dict_or_name(tmp_path: Path) -> None:
    text = 'duration = "5s"\n[topology]\nkind = "chain"\nlink = [{ rate = "10Mbit/s", delay = "10ms" }]\n'
    text += '[[flow]]\nname = "data"\nfrom = "source"\nto = "sink"\nsize = "1MB"\n'
    (tmp_path / "chain.toml").write_text(text)
    goodputs = {
        float(fp.Scenario(source).run().flows.loc[0, "goodput_bps"])
        for source in (tmp_path / "chain.toml", str(tmp_path / "chain.toml"), text, chain(size="1MB"))
    }
    assert len(goodputs) == 1
    # 1 MB and headers of 52 in 1448 bytes at 10 Mbit/s, and less than a tenth for the start.
    assert 0.9 * 10e6 * 1448 / 1500 < goodputs.pop() < 10e6 * 1448 / 1500


def test_series_have_times_in_seconds() -> None:
    probe = {"flow": "data", "metrics": ["cwnd_bytes"], "interval": "100ms"}
    result = fp.Scenario({**chain(size="1MB"), "probe": [probe]}).run()
    series = result.series["data", "cwnd_bytes"]
    assert series.index[0] == 0.1 and series.index[1] == 0.2
    assert series.iloc[-1] >= series.iloc[1] > 0
    assert list(result.series) == [("data", "cwnd_bytes")]
    frame = result.series.frame
    assert frame["value"].tolist() == series.tolist()
    with pytest.raises(KeyError, match="did you mean"):
        result.series["data", "cwnd_byte"]


def test_arrow_table_has_units_and_needs_no_copy() -> None:
    table = fp.Scenario("quick-start").run().arrow("flows")
    assert table.schema.field("tx_packets").type == "uint64"
    assert table.schema.field("completion_s").metadata[b"unit"] == b"s"


def test_polars_reads_the_table() -> None:
    import polars

    frame = polars.from_arrow(fp.Scenario("quick-start").run().arrow("flows"))
    assert frame["flow"].to_list() == ["download", "download.reverse"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("quick-strat", 'did you mean "quick-start"?'),
        ({**CHAIN, "flwo": []}, "did you mean `?flow"),
        (chain(congestion="cubik"), "cubic"),
        ("duration = \"5s\"\nduration = \"6s\"\n", "duration"),
    ],
)
def test_invalid_scenario_raises_the_message_of_the_command(source: object, message: str) -> None:
    with pytest.raises(fp.ScenarioError, match=message):
        fp.Scenario(source).run()  # type: ignore[arg-type]


def test_wrong_types_raise() -> None:
    scenario = fp.Scenario("quick-start")
    with pytest.raises(TypeError, match="expected a path"):
        fp.Scenario(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="finite"):
        scenario.run(set={"topology.bottleneck.rate": float("nan")})
    with pytest.raises(TypeError, match="type object"):
        scenario.run(set={"topology.bottleneck.rate": object()})
    with pytest.raises(ValueError, match="seed is -1"):
        scenario.run(seed=-1)
    with pytest.raises(fp.ScenarioError, match="topology.bottleneck.rat"):
        scenario.run(set={"topology.bottleneck.rat": "1Mbit/s"})


def test_folder_with_other_content_raises(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(fp.FolderError, match="other files"):
        fp.Scenario("quick-start").run().save(tmp_path)


def test_other_threads_run_during_a_simulation() -> None:
    counted = [0]
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    fp.Scenario("bench/tcp-1").run(set={"duration": "10s"})
    done.set()
    thread.join()
    assert counted[0] >= 3


def test_interrupt_ends_a_run_and_keeps_the_interpreter() -> None:
    threading.Timer(0.5, _thread.interrupt_main).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fp.Scenario("bench/tcp-100").run(set={"duration": "1000s"})
    # The whole run takes minutes.
    assert time.monotonic() - begun < 30
    assert len(fp.Scenario("quick-start").run().flows) == 2


def test_notebook_shows_tables_and_plots() -> None:
    shown = fp.Scenario("quick-start").run()._repr_html_()
    assert "<table" in shown and "<svg" in shown


def test_resolved_scenario_is_that_of_the_record() -> None:
    scenario = fp.Scenario("quick-start")
    assert json.dumps(scenario.run(seed=1).scenario) == json.dumps(scenario.resolve({"seed": 1}))
