"""Tests of studies on clusters: Dask, whose workers and driver are killed, and MPI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from test_scenarios import records
from test_studies import sweep

# CI runs 200 runs; FULLPIPE_CLUSTER_RUNS=500 gives 2000.
RUNS = int(os.environ.get("FULLPIPE_CLUSTER_RUNS", "50"))

DRIVER = """
import os, signal, sys
from pathlib import Path
from distributed import Client, LocalCluster
from test_studies import sweep

if __name__ == "__main__":
    out, runs, kill_self = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        total = 4 * runs

        def progress(finished, total, label):
            if finished in (total // 8, total // 4) and pids:
                os.kill(pids.pop(), signal.SIGKILL)
            if kill_self and finished == total // 2:
                os.kill(os.getpid(), signal.SIGKILL)

        results = sweep(runs).run(out=out, executor=client.get_executor(pure=False), progress=progress)
        print(results.made, results.reused)
"""


def drive(folder: Path, out: Path, kill_self: bool) -> subprocess.CompletedProcess[str]:
    program = folder / "driver.py"
    program.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0"}
    arguments = [sys.executable, str(program), str(out), str(RUNS), str(int(kill_self))]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)


def test_killed_workers_and_driver_do_not_change_the_result(tmp_path: Path) -> None:
    out = tmp_path / "cluster"
    assert drive(tmp_path, out, kill_self=True).returncode == -signal.SIGKILL
    again = drive(tmp_path, out, kill_self=False)
    assert again.returncode == 0, again.stderr
    made, reused = map(int, again.stdout.split())
    assert made + reused == 4 * RUNS and reused >= 4 * RUNS // 2
    sweep(RUNS).run(out=tmp_path / "alone", jobs=2)
    assert records(out) == records(tmp_path / "alone")


MPI_DRIVER = """
import sys
from mpi4py.futures import MPIPoolExecutor
from test_studies import sweep

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        results = sweep().run(out=sys.argv[1], executor=executor)
        print(executor.num_workers, results.made)
"""


def test_study_on_two_ranks_of_mpi_has_the_records_of_one_process(tmp_path: Path) -> None:
    # The wheel of MPICH on PyPI installs the launcher next to the interpreter.
    launcher = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert launcher is not None, "no mpiexec: pip install mpi4py mpich"
    program = tmp_path / "driver.py"
    program.write_text(MPI_DRIVER)
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        # Both ranks are on this machine, so MPICH needs no ssh.
        "HYDRA_LAUNCHER": "fork",
        # Open MPI rejects root, which is the user of containers in CI.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    # One rank is the driver, and the other makes the runs.
    arguments = [launcher, "-n", "2", sys.executable, "-m", "mpi4py.futures", str(program), str(tmp_path / "mpi")]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "8"]
    sweep().run(out=tmp_path / "alone", jobs=2)
    assert records(tmp_path / "mpi") == records(tmp_path / "alone")
