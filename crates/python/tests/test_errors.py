"""Tests of invalid input and of failures during a study: an exception with a message of ours, and finished runs are kept."""

from __future__ import annotations

import concurrent.futures
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _thread
import pytest

import fullpipe as fp
from test_controls import SCENARIO
from test_studies import sweep

TRACE = "S 0 1 1 1\nw 64800 64800\nr 40000\nl 0 0\nI 0 0 245\nA 0 51257 51000\nA 6304 0 0\n"


def finished(folder: Path) -> int:
    return len([path for path in (folder / "runs").iterdir() if not path.name.startswith(".")])


def study_with_file(folder: Path, file: str) -> fp.Study:
    scenario = {
        "duration": "5s",
        "topology": {"kind": "chain", "link": [{"rate": "10Mbit/s", "delay": "10ms"}]},
        "flow": [{"name": "web", "from": "source", "to": "sink", "workload": "tmix", "file": file}],
    }
    return fp.Study.sweep(
        fp.Scenario(scenario, folder=folder),
        axes={"topology.link.0.rate": ["5Mbit/s", "10Mbit/s"]},
        metrics={"rx_packets": 'sum(rx_packets["*"])'},
        runs=4,
    )


@pytest.fixture(scope="module")
def processes() -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        yield executor


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"jobs": "2"}, TypeError, "jobs is '2'; expected an integer from 1 to"),
        ({"jobs": 1.5}, TypeError, "jobs is 1.5; expected an integer"),
        ({"jobs": math.nan}, TypeError, "jobs is nan; expected an integer"),
        ({"jobs": 0}, ValueError, "jobs is 0; expected an integer from 1 to"),
        # 4 times as many threads would overflow.
        ({"jobs": 2**63}, ValueError, "expected an integer from 1 to"),
        ({"in_flight": 5}, ValueError, "in_flight .* executor"),
        ({"executor": concurrent.futures.ProcessPoolExecutor}, TypeError, "the class ProcessPoolExecutor; expected an object"),
        ({"executor": 5}, TypeError, "type int; expected an executor of concurrent.futures"),
        ({"progress": 5}, TypeError, "progress is 5; expected True, False or a function"),
        ({"progress": lambda: None}, TypeError, "positional arguments"),
        ({"shard": "1/3"}, TypeError, r"expected a tuple \(I, N\)"),
        ({"shard": (-1, 3)}, ValueError, "is -1; expected an integer"),
        ({"shard": (1, 2, 3)}, TypeError, r"expected a tuple \(I, N\)"),
        ({"audit": "no"}, TypeError, "audit is 'no'; expected True or False"),
        ({"out": __file__}, fp.FolderError, "is not a folder"),
    ],
)
def test_invalid_argument_of_a_study_run_is_named(
    keywords: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        sweep(1).run(**{"out": tmp_path, **keywords})


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fp.Study(5), TypeError, "type int; expected a path or a name"),
        (lambda: fp.Study("buffer-sizes", runs="3"), TypeError, "runs is '3'; expected an integer from 1"),
        (lambda: fp.Study("buffer-sizes", seed=-1), ValueError, "seed is -1; expected an integer from 0"),
        (lambda: fp.Study("buffer-sizes", quick="no"), TypeError, "quick is 'no'; expected True or False"),
        (lambda: fp.Study("buffer-sizes", set=["a"]), TypeError, "expected a dict of parameters"),
        (lambda: fp.Study("buffer-sizes", set={1: 2}), TypeError, "the key 1; expected a dict"),
        (lambda: fp.Study("buffer-sizes", set={"scenario.duration": math.nan}), ValueError, "expected a finite number"),
        (lambda: fp.Study.sweep("quick-start", ["a"]), TypeError, "axes is .*; expected a dict of paths"),
        # A text is iterable, but it is one value.
        (lambda: fp.Study.sweep("quick-start", {"seed": "cubic"}), TypeError, "'cubic'; expected a list of values"),
        (lambda: fp.Study.sweep("quick-start", {"seed": [math.nan]}), ValueError, "expected a finite number"),
        (lambda: fp.Study.sweep("quick-start", {"seed": [1]}, ["x"]), TypeError, "expected a dict of names and"),
        (lambda: fp.Study.sweep("quick-start", {"seed": [1]}, {"x": 'goodpt_bps["a"]'}), fp.StudyError, "did you mean"),
        (lambda: fp.merge("abc", "out"), TypeError, "expected a list of the folders"),
        (lambda: fp.Scenario("quick-start").run(seed="x"), TypeError, "seed is 'x'; expected an integer"),
        (lambda: fp.Scenario("quick-start").run(set=[1]), TypeError, "expected a dict of paths"),
        (lambda: fp.Scenario("quick-start").run(controls=[1]), TypeError, "expected a dict of flows"),
    ],
)
def test_invalid_argument_is_named(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_unknown_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(fp.StudyError, match="one of: results, summary"):
        sweep(1).run(out=tmp_path).arrow("result")


def test_interrupt_of_a_study_on_threads_keeps_finished_runs(tmp_path: Path) -> None:
    def interrupt(number: int, total: int, label: str) -> None:
        if number == 4:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        sweep(500).run(out=tmp_path, jobs=1, progress=interrupt)
    assert 4 <= finished(tmp_path) < 2000
    assert sweep(2).run(out=tmp_path / "alone").made == 8


def test_interrupt_of_a_study_on_an_executor_keeps_finished_runs(
    tmp_path: Path, processes: concurrent.futures.Executor
) -> None:
    def interrupt(number: int, total: int, label: str) -> None:
        if number == 4:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        sweep(500).run(out=tmp_path, executor=processes, in_flight=2, progress=interrupt)
    assert 4 <= finished(tmp_path) < 2000


def test_interrupt_while_scenarios_are_resolved_ends_the_study(tmp_path: Path) -> None:
    rates = [f"{rate}kbit/s" for rate in range(1000, 11000)]
    study = fp.Study.sweep("quick-start", axes={"topology.bottleneck.rate": rates}, runs=1)
    threading.Timer(0.5, _thread.interrupt_main).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        study.run(out=tmp_path)
    # The plan of all points takes longer than the first of them.
    assert time.monotonic() - begun < 30
    assert not (tmp_path / "runs").exists()


def test_interrupt_of_all_processes_of_a_terminal_ends_the_study(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        """
import concurrent.futures, multiprocessing, os, signal, sys
from test_studies import sweep

def interrupt(finished, total, label):
    if finished == 4:
        os.killpg(os.getpgrp(), signal.SIGINT)

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        try:
            sweep(500).run(out=sys.argv[1], executor=executor, in_flight=2, progress=interrupt)
        except KeyboardInterrupt:
            print("interrupted")
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    arguments = [sys.executable, str(program), str(tmp_path / "out")]
    done = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, check=False, start_new_session=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert 4 <= finished(tmp_path / "out") < 2000


def test_executor_that_is_shut_down_fails_the_remaining_runs(tmp_path: Path) -> None:
    executor = concurrent.futures.ThreadPoolExecutor(1)

    def shut_down(number: int, total: int, label: str) -> None:
        if number == 2:
            executor.shutdown(wait=False, cancel_futures=True)

    with pytest.raises(fp.RunError, match="runs failed; the others are kept") as failed:
        sweep(10).run(out=tmp_path, executor=executor, in_flight=4, progress=shut_down)
    assert "cannot schedule new futures after shutdown" in str(failed.value)
    # The message lists ten runs, and the number of the others.
    assert str(failed.value).count("congestion=") == 10 and " others" in str(failed.value)
    results = sweep(10).run(out=tmp_path)
    assert results.reused >= 2 and results.made + results.reused == 40


def test_killed_worker_is_named(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:

        def kill(number: int, total: int, label: str) -> None:
            if number == 2:
                for pid in list(executor._processes):
                    os.kill(pid, signal.SIGKILL)

        with pytest.raises(fp.RunError, match="a worker process of the executor ended, .*BrokenProcessPool"):
            sweep(4).run(out=tmp_path, executor=executor, in_flight=1, progress=kill)
    assert sweep(4).run(out=tmp_path).reused >= 2


class Fixed(concurrent.futures.Executor):
    """Returns the same result for each run, or raises it."""

    def __init__(self, result: object):
        self.result = result

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if isinstance(self.result, BaseException):
            future.set_exception(self.result)
        else:
            future.set_result(self.result)
        return future


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "a value of type NoneType instead of records"),
        ({}, "has no"),
        ({"missing": ["abc"]}, "the worker cannot store the files"),
        ({"files": [], "attached": [], "run": b"{", "cpu_s": 1.0}, "run.json"),
        (MemoryError("too little"), "the worker raised MemoryError: too little"),
        (KeyboardInterrupt(), "the worker raised KeyboardInterrupt"),
        (concurrent.futures.CancelledError(), "the executor canceled the run"),
    ],
)
def test_executor_with_wrong_results_fails_the_runs(result: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(fp.RunError, match=message):
        sweep(1).run(out=tmp_path, executor=Fixed(result))


def test_worker_without_the_file_of_a_scenario_is_named(
    tmp_path: Path, processes: concurrent.futures.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLPIPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own.cvec").write_text(TRACE)
    (tmp_path / "scenario").mkdir()

    class Elsewhere(Fixed):
        def submit(self, function: Any, request: Any, /, *contents: Any) -> Any:  # type: ignore[override]
            files = [("/no-such-folder/own.cvec", digest) for _, digest in request["files"]]
            return processes.submit(function, {**request, "files": files}, *contents)

    # The file is not in the folder of the scenario, so it does not travel.
    study = study_with_file(tmp_path / "scenario", str(tmp_path / "own.cvec"))
    with pytest.raises(fp.RunError, match="has no file /no-such-folder/own.cvec .* must exist on every worker"):
        study.run(out=tmp_path / "out", executor=Elsewhere(None))


@pytest.mark.parametrize("on_workers", [False, True])
def test_file_of_a_scenario_that_changes_fails_the_remaining_runs(
    on_workers: bool, tmp_path: Path, processes: concurrent.futures.Executor
) -> None:
    file = tmp_path / "own.cvec"
    file.write_text(TRACE)
    (tmp_path / "scenario").mkdir()
    study = study_with_file(tmp_path / "scenario", str(file))

    def change(number: int, total: int, label: str) -> None:
        if number == 2:
            # The runs' keys have the hash of the earlier content.
            file.write_text(TRACE + TRACE.replace("S 0 ", "S 5 "))

    where: dict[str, Any] = {"executor": processes, "in_flight": 1} if on_workers else {"jobs": 1}
    with pytest.raises(fp.RunError, match="own.cvec changed after|has no file .*own.cvec"):
        study.run(out=tmp_path / "out", progress=change, **where)
    file.write_text(TRACE)
    results = study.run(out=tmp_path / "out")
    assert results.reused >= 2
    # The runs that were kept have the earlier content.
    again = study.run(out=tmp_path / "again")
    assert results.runs["rx_packets"].tolist() == again.runs["rx_packets"].tolist()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fp.Scenario("quick-start").resolve({"duration": "x"}), fp.ScenarioError, '^set: duration="x": '),
        (lambda: fp.Scenario("quick-start").run(set={"duration": "x"}), fp.ScenarioError, '^set: duration="x": '),
        (lambda: fp.Scenario("quick"), fp.ScenarioError, r"fullpipe.embedded_scenarios\(\)` lists"),
        (lambda: fp.Study("quick"), fp.StudyError, r"fullpipe.embedded_studies\(\)` lists"),
        (lambda: fp.Study("buffer-sizes", set={"scenario.durtion": "1s"}), fp.StudyError, "set: scenario.durtion"),
        (lambda: fp.Scenario("quick-start").run().arrow("x"), fp.FolderError, "one of: flows.csv, series.csv"),
        (
            lambda: fp.Scenario("quick-start").resolve({"probe.0.metrics": ["goodput_bps"]}),
            fp.ScenarioError,
            'did you mean "throughput_bps"',
        ),
    ],
)
def test_message_has_the_words_of_python(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        call()
    assert "--" not in str(raised.value)


def test_processes_that_cannot_import_the_script_are_explained(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        """
import concurrent.futures, multiprocessing
from test_studies import sweep

executor = concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
sweep(1).run(out="out", executor=executor)
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    arguments = [sys.executable, str(program)]
    done = subprocess.run(arguments, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    last = done.stderr.rpartition("RunError: ")[2]
    assert "a worker process of the executor ended" in last and 'under if __name__ == "__main__":' in last, done.stderr


def test_second_driver_of_a_folder_is_rejected(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    # The runs of the first driver wait, so it cannot end before the second one begins.
    class Waiting(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function: Any, *args: Any, **keywords: Any) -> concurrent.futures.Future[Any]:
            def wait() -> Any:
                begun.set()
                assert go_on.wait(60)
                return function(*args, **keywords)

            return super().submit(wait)

    with concurrent.futures.ThreadPoolExecutor(1) as thread, Waiting(1) as executor:
        first = thread.submit(sweep(4).run, out=tmp_path, executor=executor)
        try:
            assert begun.wait(30)
            with pytest.raises(fp.FolderError, match="another process is writing records"):
                sweep(4).run(out=tmp_path)
        finally:
            go_on.set()
        assert first.result().made == 16


def test_disk_that_is_full_ends_the_study_and_keeps_runs(tmp_path: Path) -> None:
    # /dev/full has no folders, so a limit of the size of files fails the write of the first long file.
    program = """
import resource, signal, sys
import fullpipe as fp
from test_studies import sweep
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def limit(finished, total, label):
    if finished == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

try:
    sweep().run(out=sys.argv[1], jobs=1, progress=limit)
except fp.SystemError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "cannot write" in done.stdout, (done.stdout, done.stderr)
    assert sweep().run(out=tmp_path).reused >= 2


def control(**members: object) -> type[fp.CongestionControl]:
    return type("Own", (fp.CongestionControl,), {"on_ack": lambda self, ack: None, **members})


def raising(error: BaseException) -> Callable[..., None]:
    def method(*arguments: object) -> None:
        raise error

    return method


def assigning(name: str, value: object) -> Callable[..., None]:
    return lambda self, ack: setattr(self, name, value)


@pytest.mark.parametrize(
    ("own", "kind", "message"),
    [
        (control(__init__=raising(ValueError("in init"))), ValueError, "in init"),
        (control(on_established=raising(ValueError("in established"))), ValueError, "in established"),
        (control(on_ack=raising(SystemExit(3))), SystemExit, "3"),
        (control(on_ack=raising(KeyboardInterrupt("mine"))), KeyboardInterrupt, "mine"),
        (control(on_ack=lambda self, ack: self.on_ack(ack)), RecursionError, "recursion"),
        (control(on_ack=5), TypeError, "not callable"),
        (control(on_ack=assigning("cwnd_bytes", "x")), TypeError, "cwnd_bytes: found a value of type str"),
        (control(on_ack=assigning("pacing_bps", math.nan)), ValueError, "pacing_bps is NaN"),
        (control(on_ack=assigning("ssthresh_bytes", 10**400)), ValueError, "ssthresh_bytes: the integer is too large"),
        (control(on_ack=assigning("mss_bytes", 5)), AttributeError, "mss_bytes"),
        (control(requirements="delivery_rate"), TypeError, "requirements: .* expected a tuple of signals"),
        (control(requirements=5), TypeError, "requirements: found 5; expected a tuple"),
        (control()(), TypeError, "expected a subclass of fullpipe.CongestionControl, not an instance"),
        (control(__new__=lambda cls: {}), TypeError, "found a control of type dict"),
        (None, TypeError, "found a control of type NoneType"),
    ],
)
def test_invalid_control_raises(own: Any, kind: type[BaseException], message: str) -> None:
    with pytest.raises(kind, match=message):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": own})


def test_interrupt_of_a_control_that_loops_ends_the_run() -> None:
    def loop(self: fp.CongestionControl, ack: fp.Ack) -> None:
        time.sleep(0.05)

    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        fp.Scenario(SCENARIO).run(controls={"data": control(on_ack=loop)})
