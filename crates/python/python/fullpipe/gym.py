"""Environments for reinforcement learning of congestion controls, with the interface of Gymnasium.

An episode is a run of a scenario. A step is a monitor interval: the agent multiplies the pacing rate of a flow, the interval
runs, and the agent observes what happened in the last intervals. The window is two bandwidth-delay products of the rate.

>>> from fullpipe.gym import CongestionEnv
>>> env = CongestionEnv()
>>> observation, info = env.reset(seed=1)
>>> observation.shape
(30,)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample() * 0)
>>> sorted(info)[:3]
['delay_gradient', 'delay_ratio', 'delay_s']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import extra
from ._scenario import Scenario, Source

if TYPE_CHECKING:
    from ._native import NativeEnvironments

gymnasium = extra("gymnasium", "gym")
np = extra("numpy", "gym")

#: The values of an interval, in the order of the native part.
FIELDS = (
    "interval_s",
    "throughput_bps",
    "delay_s",
    "delay_gradient",
    "delay_ratio",
    "send_ratio",
    "loss_ratio",
    "rate_bps",
    "continues",
)

#: One bulk flow over 10 Mbit/s and a round trip of 40 ms, with a buffer of one bandwidth-delay product.
SCENARIO: dict[str, Any] = {
    "title": "A flow whose rate an agent sets",
    "duration": "60s",
    "topology": {"kind": "chain", "link": [{"rate": "10Mbit/s", "delay": "20ms", "queue": "50kB"}]},
    "flow": [{"name": "agent", "from": "source", "to": "sink", "start_jitter": "100ms"}],
}

#: The bytes of a full packet at the IP layer, by which Aurora's reward counts throughput.
PACKET_BYTES = 1500


def aurora_reward(interval: Mapping[str, Any]) -> Any:
    """The reward of Aurora (Jay et al., ICML 2019, section 5): 10 throughput (packets/s) - 1000 latency (s) - 2000 loss.

    The latency here is the mean one-way delay of the packets that arrived in the interval. The values of the dict are numbers,
    or arrays in a vector environment.
    """
    throughput = interval["throughput_bps"] / (8 * PACKET_BYTES)
    return 10 * throughput - 1000 * interval["delay_s"] - 2000 * interval["loss_ratio"]


def aurora_factor(action: float, alpha: float = 0.025) -> float:
    """The factor of the rate for an action of Aurora: 1 + alpha a, or 1 / (1 - alpha a) if a is negative."""
    return 1 + alpha * action if action >= 0 else 1 / (1 - alpha * action)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an environment. Their names are keyword arguments of the environments."""

    #: Overrides of the scenario's values by dotted paths.
    set: Mapping[str, Any] | None = None
    #: The number of intervals that an observation contains.
    history: int = 10
    #: The length of an interval in seconds; ``None`` for one smoothed round-trip time.
    interval_s: float | None = None
    #: The reward of a step: a function of its dict ``info``.
    reward: Callable[[Mapping[str, Any]], Any] = aurora_reward
    #: The largest absolute value of an action.
    highest_action: float = 20.0
    #: The pacing rate at the begin of an episode, in bit/s of payload.
    initial_rate_bps: float = 1e6
    #: The lowest and the highest pacing rate.
    rates_bps: tuple[float, float] = (1e5, 1e9)

    def __post_init__(self) -> None:
        if self.history < 1:
            raise ValueError(f"history is {self.history}; expected at least 1")
        if self.interval_s is not None and not 0 < self.interval_s < 1e6:
            raise ValueError(f"interval_s is {self.interval_s}; expected a time above 0")
        if not 0 < self.highest_action < 1e3:
            raise ValueError(f"highest_action is {self.highest_action}; expected a number from 0 to 1000")
        low, high = self.rates_bps
        if not 0 < low <= self.initial_rate_bps <= high < 1e13:
            raise ValueError(
                f"found rates {low}, {self.initial_rate_bps} and {high}; expected 0 < lowest <= initial <= highest"
            )

    def environments(self, scenario: Source, flow: str, count: int) -> NativeEnvironments:
        """Creates the native environments."""
        source = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
        table = None if self.set is None else dict(self.set)
        rates = (self.initial_rate_bps, *self.rates_bps)
        return source._native.environments(table, flow, count, self.interval_s, *rates)

    def observation_space(self) -> Any:
        """Returns the space of observations: three numbers of each interval."""
        return gymnasium.spaces.Box(-np.inf, np.inf, (3 * self.history,), np.float32)

    def action_space(self) -> Any:
        """Returns the space of actions: one number."""
        return gymnasium.spaces.Box(-self.highest_action, self.highest_action, (1,), np.float32)


class CongestionEnv(gymnasium.Env):  # type: ignore[misc, name-defined]
    """An environment whose agent sets the pacing rate of a flow.

    The preset is that of Aurora. **Action**: one number, which :func:`aurora_factor` converts to a factor of the rate.
    **Observation**: for each of the last intervals the gradient of the delay (s/s), the ratio of the delay to its smallest
    value so far, and packets sent over packets received. **Reward**: by default :func:`aurora_reward`. An episode is truncated
    at the end of the scenario. The other keyword arguments are those of :class:`Settings`.

    The seed of :meth:`reset` determines the episode. Without a seed, each episode has another one.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, scenario: Source = SCENARIO, flow: str = "agent", **settings: Any):
        self._settings = Settings(**settings)
        self._native = self._settings.environments(scenario, flow, 1)
        self._history = np.zeros((self._settings.history, 3), dtype=np.float32)
        self.observation_space = self._settings.observation_space()
        self.action_space = self._settings.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, and runs it until the first packet has arrived."""
        super().reset(seed=seed)
        values = self._native.reset(0, int(self.np_random.integers(2**63)))
        self._history[:] = (0, 1, 1)
        return self._observe(values), _info(values)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Multiplies the rate, and runs one interval."""
        values = self._native.step(0, aurora_factor(_number(action)))
        info = _info(values)
        return self._observe(values), float(self._settings.reward(info)), False, not values[8], info

    def _observe(self, values: list[float]) -> Any:
        history = self._history
        history[:-1] = history[1:]
        history[-1] = values[3:6]
        return history.flatten()


class CongestionVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc, name-defined]
    """Environments like :class:`CongestionEnv` that run on threads of one process, without the interpreter lock.

    An environment whose episode has ended is reset by the next step. ``reward`` is called with arrays.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        num_envs: int,
        scenario: Source = SCENARIO,
        flow: str = "agent",
        *,
        threads: int | None = None,
        **settings: Any,
    ):
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self._settings = Settings(**settings)
        self._native = self._settings.environments(scenario, flow, num_envs)
        self._threads = threads or os.cpu_count() or 1
        self._history = np.zeros((num_envs, self._settings.history, 3), dtype=np.float32)
        self._ended = np.zeros(num_envs, dtype=bool)
        self.num_envs = num_envs
        self.metadata = {**self.metadata, "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}
        self.single_observation_space = self._settings.observation_space()
        self.single_action_space = self._settings.action_space()
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in each environment."""
        super().reset(seed=seed)
        self._ended[:] = True
        return self._advance(np.zeros(self.num_envs))[::4]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Runs one interval in each environment."""
        actions = np.asarray(actions, dtype=np.float64).reshape(-1)
        if actions.shape != (self.num_envs,) or not np.isfinite(actions).all():
            raise ValueError(f"found {actions!r}; expected {self.num_envs} finite actions")
        return self._advance(actions)

    def _advance(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        begins = self._ended.copy()
        seeds: list[int | None] = [None] * self.num_envs
        for index in np.flatnonzero(begins):
            seeds[index] = int(self.np_random.integers(2**63))
        factors = list(map(aurora_factor, actions.tolist()))
        values = np.frombuffer(self._native.step_all(factors, seeds, self._threads)).reshape(self.num_envs, len(FIELDS))
        self._history[begins] = (0, 1, 1)
        self._history[:, :-1] = self._history[:, 1:]
        self._history[:, -1] = values[:, 3:6]
        info = {name: values[:, index] for index, name in enumerate(FIELDS[:-1])}
        rewards = np.where(begins, 0.0, self._settings.reward(info))
        self._ended = values[:, 8] == 0
        observations = self._history.reshape(self.num_envs, -1).copy()
        return observations, rewards, np.zeros(self.num_envs, dtype=bool), self._ended.copy(), info


def _info(values: list[float]) -> dict[str, float]:
    return dict(zip(FIELDS[:-1], values))


def _number(action: Any) -> float:
    number = float(action[0]) if hasattr(action, "__len__") else float(action)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"the action is {number}; expected a finite number")
    return number
