"""Environments for reinforcement learning of congestion controls, with the interface of Gymnasium.

An episode is a run of a scenario. A step is a monitor interval: the agent multiplies the pacing rate or the window of a flow,
the interval runs, and the agent observes what happened in the last intervals. The preset determines the observations, the
actions, the interval and the reward: ``aurora`` (Jay et al., ICML 2019) or ``orca`` (Abbasloo et al., SIGCOMM 2020).

>>> from fullpipe.gym import CongestionEnv
>>> env = CongestionEnv()
>>> observation, info = env.reset(seed=1)
>>> observation.shape
(30,)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample() * 0)
>>> sorted(info)[:3]
['acked_ratio', 'cwnd_bytes', 'delay_gradient']
>>> CongestionEnv(preset="orca").observation_space.shape
(70,)
"""

from __future__ import annotations

import difflib
import math
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ._check import integer, mapping, number
from ._errors import extra
from ._native import NativeEnvironments
from ._scenario import Scenario, Source

gymnasium = extra("gymnasium", "gym")
np = extra("numpy", "gym")

#: The names of the values of an interval, in their order.
FIELDS = tuple(NativeEnvironments.FIELDS)

#: The value ``end`` of an interval, if the scenario has ended and if the flow has completed. Otherwise it is 0.
_TRUNCATED, _TERMINATED = 1.0, 2.0

#: One bulk flow over a link of 10 Mbit/s with a round-trip time of 40 ms and a buffer of one bandwidth-delay product.
SCENARIO: dict[str, Any] = {
    "title": "A flow whose rate an agent sets",
    "duration": "60s",
    "topology": {"kind": "chain", "link": [{"rate": "10Mbit/s", "delay": "20ms", "queue": "50kB"}]},
    "flow": [{"name": "agent", "from": "source", "to": "sink", "start_jitter": "100ms"}],
}

#: The size of a full packet at the IP layer, in bytes. Aurora's reward counts throughput in these packets.
PACKET_BYTES = 1500


def aurora_reward(interval: Mapping[str, Any]) -> Any:
    """Returns the reward of Aurora (Jay et al., ICML 2019, section 5): 10 throughput (packets/s) - 1000 latency (s) - 2000 loss.

    The latency here is the mean one-way delay of the packets that arrived in the interval. The values of the dict are numbers,
    or arrays in a vector environment.
    """
    throughput = interval["throughput_bps"] / (8 * PACKET_BYTES)
    return 10 * throughput - 1000 * interval["delay_s"] - 2000 * interval["loss_ratio"]


def orca_reward(interval: Mapping[str, Any]) -> Any:
    """Returns the reward of Orca (Abbasloo et al., SIGCOMM 2020), at most 1.

    The reward is (r - 5 l) / r_max, times the smaller of 1 and 1.25 d_min / d. r is the rate of delivered bytes, r_max its
    largest value in this episode, l the rate of lost bytes, d the smoothed round-trip time, and d_min the smallest round-trip
    time. The constants are those of the authors' code.
    """
    return (interval["delivery_ratio"] - interval["loss_penalty"]) * interval["delay_metric"]


@dataclass(frozen=True)
class Preset:
    """The observations, actions and defaults of an agent."""

    #: What an action multiplies: ``"rate"`` or ``"window"``.
    action: str
    #: The largest absolute value of an action.
    highest_action: float
    #: The values of an interval in an observation, by their names in ``info``.
    observed: tuple[str, ...]
    #: Their values before the first interval.
    before: tuple[float, ...]
    #: The length of an interval in seconds; ``None`` for one smoothed round-trip time.
    interval_s: float | None
    #: The reward of a step: a function of its dict ``info``.
    reward: Callable[[Mapping[str, Any]], Any]


#: The presets by name.
PRESETS = {
    "aurora": Preset(
        action="rate",
        highest_action=20.0,
        observed=("delay_gradient", "delay_ratio", "send_ratio"),
        before=(0.0, 1.0, 1.0),
        interval_s=None,
        reward=aurora_reward,
    ),
    "orca": Preset(
        action="window",
        highest_action=1.0,
        observed=(
            "delivery_ratio",
            "rate_ratio",
            "loss_penalty",
            "acked_ratio",
            "interval_s",
            "rtt_ratio",
            "delay_metric",
        ),
        before=(0.0,) * 7,
        interval_s=0.02,
        reward=orca_reward,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an environment. Their names are keyword arguments of the environments."""

    #: The observations, the actions and the defaults of ``interval_s``, ``reward`` and ``highest_action``: a name in
    #: :data:`PRESETS`.
    preset: str = "aurora"
    #: Overrides of the scenario's values by dotted paths.
    set: Mapping[str, Any] | None = None
    #: The number of intervals that an observation contains.
    history: int = 10
    #: The length of an interval in seconds. The default is that of the preset: one smoothed round-trip time, or 20 ms.
    interval_s: float | None = None
    #: The reward of a step: a function of its dict ``info``. The default is that of the preset.
    reward: Callable[[Mapping[str, Any]], Any] | None = None
    #: The largest absolute value of an action. The default is that of the preset: 20, or 1.
    highest_action: float | None = None
    #: The pacing rate at the start of an episode, in bit/s of payload. Orca's preset has no pacing rate and ignores it.
    initial_rate_bps: float = 1e6
    #: The lowest and the highest pacing rate, in bit/s of payload. An action that exceeds them sets the lowest or highest
    #: rate. Orca's preset has no pacing rate and ignores them.
    rates_bps: tuple[float, float] = (1e5, 1e9)

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str):
            raise TypeError(f"preset is {reprlib.repr(self.preset)}; expected one of: {', '.join(PRESETS)}")
        if self.preset not in PRESETS:
            near = difflib.get_close_matches(self.preset, PRESETS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"unknown preset {self.preset!r}{hint} (one of: {', '.join(PRESETS)})")
        if self.set is not None:
            mapping("set", self.set, "paths of the scenario, and values")
        integer("history", self.history, 1, 10_000)
        if self.interval_s is not None:
            expected = "a number above 0 and below 1e6, in seconds"
            if not 0 < number("interval_s", self.interval_s, expected) < 1e6:
                raise ValueError(f"interval_s is {self.interval_s}; expected {expected}")
        if self.reward is not None and not callable(self.reward):
            raise TypeError(f"reward is {reprlib.repr(self.reward)}; expected a function of the dict `info` of a step")
        if self.highest_action is not None:
            expected = "a number above 0 and below 1000"
            if not 0 < number("highest_action", self.highest_action, expected) < 1000:
                raise ValueError(f"highest_action is {self.highest_action}; expected {expected}")
        initial = number("initial_rate_bps", self.initial_rate_bps, "a number in bit/s, such as 1e6")
        try:
            low, high = (number("rates_bps", rate, "") for rate in self.rates_bps)
        except (TypeError, ValueError):
            expected = "a lowest and a highest rate in bit/s, such as (1e5, 1e9)"
            raise TypeError(f"rates_bps is {reprlib.repr(self.rates_bps)}; expected {expected}") from None
        if not 0 < low <= initial <= high < 1e13:
            raise ValueError(
                f"rates_bps is {self.rates_bps} and initial_rate_bps is {self.initial_rate_bps}; "
                "expected 0 < lowest <= initial <= highest < 1e13 bit/s"
            )


def _settings(keywords: dict[str, Any]) -> Settings:
    """Returns the settings from keyword arguments."""
    known = [field.name for field in fields(Settings)]
    for name in keywords:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"unknown keyword argument {name!r}{hint} (one of: {', '.join(known)})")
    return Settings(**keywords)


class _Common:
    """The parts that single and vector environments share."""

    def __init__(self, scenario: Source, flow: str, count: int, threads: int, settings: Settings):
        if not isinstance(flow, str):
            raise TypeError(f"flow is {reprlib.repr(flow)}; expected the name of a flow of the scenario")
        preset = PRESETS[settings.preset]
        source = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
        table = None if settings.set is None else dict(settings.set)
        interval_s = preset.interval_s if settings.interval_s is None else settings.interval_s
        lowest_bps, highest_bps = settings.rates_bps
        rates_bps = (settings.initial_rate_bps, lowest_bps, highest_bps)
        highest = float(settings.highest_action or preset.highest_action)
        # The numbers of the action space have 32 bits.
        self.native: NativeEnvironments = source._native.environments(
            table,
            flow,
            count,
            preset.action,
            interval_s,
            rates_bps,
            float(np.float32(highest)),
            list(zip(preset.observed, preset.before)),
            settings.history,
            threads,
        )
        self.preset = preset
        self.reward = settings.reward or preset.reward
        size = len(preset.observed) * settings.history
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-highest, highest, (1,), np.float32)


class CongestionEnv(gymnasium.Env):  # type: ignore[misc, name-defined]
    """An environment whose agent sets the pacing rate or the window of a flow.

    **Aurora** (``preset="aurora"``). Action: one number a. The pacing rate is multiplied by 1 + 0.025 a, or divided by
    1 - 0.025 a if a is negative. The window is two bandwidth-delay products of the rate. Observation: for each of the last
    intervals the gradient of the delay (s/s), the ratio of the delay to its smallest value so far, and packets sent over packets
    received. Reward: :func:`aurora_reward`. Interval: one smoothed round-trip time.

    **Orca** (``preset="orca"``). Action: one number a from -1 to 1. The window is multiplied by 4 to the power of a, and
    CUBIC continues from that window. Observation: for each of the last intervals the delivery rate, the pacing rate and five
    times the rate of lost bytes, all over the largest delivery rate so far; acknowledged bytes over the window; the length of the
    interval in seconds; the smallest round-trip time over the smoothed one; and the smaller of 1 and 1.25 times this ratio.
    Reward: :func:`orca_reward`. Interval: 20 ms.

    An action outside the action space is replaced by the nearest one in it. An episode is truncated at the end of the
    scenario. If the flow completes before, because it has a ``size``, the episode is terminated. The other keyword arguments
    are those of :class:`Settings`.

    The seed of :meth:`reset` determines the episode. Without a seed, each episode has a different one.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, scenario: Source = SCENARIO, flow: str = "agent", **settings: Any):
        self._common = _Common(scenario, flow, 1, 1, _settings(settings))
        self._native = self._common.native
        self.observation_space = self._common.observation_space
        self.action_space = self._common.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode, and runs it until the first payload has arrived. There are no ``options``.

        Raises :class:`RunError` if the flow receives nothing until the end of the scenario.
        """
        _check_options(options)
        super().reset(seed=_seed(seed))
        values, observation = self._native.reset(0, int(self.np_random.integers(2**63)))
        return np.frombuffer(observation, np.float32), _info(values)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Multiplies the rate or the window, and runs one interval.

        The action is a number, or an array of one. Raises :class:`RunError` after the end of an episode.
        """
        values, observation = self._native.step(0, _action(action))
        info = _info(values)
        reward, end = _reward(self._common.reward(info)), values[-1]
        return np.frombuffer(observation, np.float32), reward, end == _TERMINATED, end == _TRUNCATED, info


class CongestionVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc, name-defined]
    """Environments like :class:`CongestionEnv` that run on threads of one process, without the interpreter lock.

    The next step resets an environment whose episode has ended. ``reward`` is called with arrays. The vector environment owns
    its threads; by default, it has one for each processor.
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
        num_envs = integer("num_envs", num_envs, 1, 1_000_000)
        if threads is not None:
            threads = integer("threads", threads, 1, 10_000)
        common = _Common(scenario, flow, num_envs, threads or os.cpu_count() or 1, _settings(settings))
        self._common = common
        self._native = common.native
        #: The environments whose episodes have ended.
        self._ended: list[int] = []
        #: The generators of the episodes' seeds, if each environment has its own.
        self._generators: list[Any] | None = None
        self.num_envs = num_envs
        self.metadata = {**self.metadata, "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}
        self.single_observation_space = common.observation_space
        self.single_action_space = common.action_space
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in each environment. There are no ``options``.

        With a list of seeds, each environment has the episodes of a :class:`CongestionEnv` with its seed. One seed
        determines the episodes of all environments, which differ.
        """
        _check_options(options)
        if isinstance(seed, (list, tuple, np.ndarray)) and np.ndim(seed) == 1:
            if len(seed) != self.num_envs:
                raise ValueError(f"seed has {len(seed)} seeds; expected one seed, or {self.num_envs} seeds")
            self._generators = [gymnasium.utils.seeding.np_random(_seed(one))[0] for one in seed]
        else:
            one = _seed(seed)
            super().reset(seed=one)
            if one is not None:
                self._generators = None
        self._ended = list(range(self.num_envs))
        return self._advance([0.0] * self.num_envs)[::4]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Runs one interval in each environment. An environment whose episode has ended begins the next one instead.

        ``actions`` has one row for each environment, with one number.
        """
        found = _array("actions", actions, f"an array of shape ({self.num_envs}, 1)")
        if found.shape not in ((self.num_envs, 1), (self.num_envs,)):
            raise ValueError(f"actions has the shape {found.shape}; expected ({self.num_envs}, 1)")
        numbers = found.ravel().tolist()
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"actions is {reprlib.repr(numbers)}; expected finite numbers")
        return self._advance(numbers)

    # With 64 environments of one flow, threads wait for this function a tenth of the time. It therefore does little in Python.
    def _advance(self, actions: list[float]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        begun, generators = self._ended, self._generators
        seeds = [
            (index, int((generators[index] if generators else self.np_random).integers(2**63))) for index in begun
        ]
        (content, observed), self._ended = self._native.step_all(actions, seeds)
        values = np.frombuffer(content).reshape(len(FIELDS), self.num_envs)
        observations = np.frombuffer(observed, np.float32).reshape(self.num_envs, -1)
        info = dict(zip(FIELDS, values[:-1]))
        rewards = _rewards(self._common.reward(info), begun, self.num_envs)
        ends = values[-1]
        return observations, rewards, ends == _TERMINATED, ends == _TRUNCATED, info


def _info(values: list[float]) -> dict[str, float]:
    return dict(zip(FIELDS[:-1], values))


def _array(name: str, value: Any, expected: str) -> Any:
    """Returns numbers as an array."""
    try:
        array = np.asarray(value)
    except ValueError:  # The rows have different lengths.
        raise ValueError(f"{name} is {reprlib.repr(value)}; expected {expected}") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected {expected}")
    return array


def _action(action: Any) -> float:
    """Returns the number of an action of one environment."""
    # The first case is the usual one. The checks of the second one take a tenth of the time of a short step.
    if type(action) is np.ndarray and action.shape == (1,) and action.dtype == np.float32:
        action = action.item()
    elif not isinstance(action, (int, float)) or isinstance(action, bool):
        array = _array("the action", action, "a number or an array of shape (1,)")
        if array.shape not in ((1,), ()):
            raise ValueError(f"the action has the shape {array.shape}; expected (1,)")
        action = array.item()
    if not math.isfinite(action):
        raise ValueError(f"the action is {action}; expected a finite number")
    return float(action)


def _reward(reward: Any) -> float:
    """Returns the reward of one environment."""
    if type(reward) is float and math.isfinite(reward):  # The usual case.
        return reward
    return number("the value of `reward`", reward, "a finite number")


def _rewards(rewards: Any, begun: list[int], count: int) -> Any:
    """Returns the rewards of environments. They are 0 for those whose episode begins."""
    expected = f"an array of {count} finite numbers"
    array = _array("the value of `reward`", rewards, expected)
    if array.shape != (count,):
        raise ValueError(f"the value of `reward` has the shape {array.shape}; expected {expected}")
    if begun:
        array = array.astype(np.float64)
        array[begun] = 0.0
    if not np.isfinite(array).all():
        raise ValueError(f"the value of `reward` is {reprlib.repr(array.tolist())}; expected {expected}")
    return array


def _seed(seed: Any) -> int | None:
    """Returns a seed. Integers of numpy are accepted, which Gymnasium rejects."""
    return None if seed is None else integer("seed", seed, 0, 2**64 - 1)


def _check_options(options: dict[str, Any] | None) -> None:
    """Raises an error if there are options."""
    if options:
        raise ValueError(
            f"options is {reprlib.repr(options)}; reset has no options. To change the scenario, create an environment with "
            "the keyword argument `set`"
        )
