"""A laboratory for transport protocols.

A scenario describes a network and its traffic. Fullpipe runs TCP, QUIC and MASQUE over it in virtual time.

>>> import fullpipe as fp
>>> result = fp.Scenario("quick-start").run(seed=1)
>>> result.flows["flow"].tolist()
['download', 'download.reverse']
"""

from ._control import Ack, CongestionControl, CongestionEvent, Timeout
from ._errors import (
    Error,
    FolderError,
    MissingExtraError,
    RunError,
    ScenarioError,
    StudyError,
    SystemError,
)
from ._native import BUILD as build
from ._native import embedded_scenarios, embedded_studies
from ._result import Result, SeriesTable
from ._scenario import Scenario
from ._steps import Simulation
from ._study import Results, Study, merge

__all__ = [
    "Ack",
    "CongestionControl",
    "CongestionEvent",
    "Error",
    "FolderError",
    "MissingExtraError",
    "Result",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SeriesTable",
    "Simulation",
    "Study",
    "StudyError",
    "SystemError",
    "Timeout",
    "build",
    "embedded_scenarios",
    "embedded_studies",
    "merge",
]
__version__ = build.partition("+")[0]
