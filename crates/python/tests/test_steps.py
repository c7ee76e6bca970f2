"""Tests of simulations in steps and of the environments."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fullpipe as fp
from fullpipe.gym import (
    FIELDS,
    PRESETS,
    CongestionEnv,
    CongestionVectorEnv,
    Settings,
    aurora_reward,
    orca_reward,
)


def test_steps_without_changes_give_the_tables_of_a_run() -> None:
    scenario = fp.Scenario("quick-start")
    whole = scenario.run(seed=3)
    simulation = scenario.start(seed=3)
    while simulation.run_until(simulation.now + 0.0137):
        pass
    assert simulation.finish().files == whole.files


def test_window_of_a_controlled_flow_is_set_from_outside() -> None:
    link = {"rate": "10Mbit/s", "delay": "20ms"}
    scenario = fp.Scenario(
        {
            "duration": "20s",
            "topology": {"kind": "chain", "link": [link]},
            "flow": [{"name": "data", "from": "source", "to": "sink"}],
        }
    )
    simulation = scenario.start(controlled_flows=["data"])
    simulation.run_until(1.0)
    before = simulation.flow("data")
    simulation.set_window("data", 4 * 1448)
    simulation.run_until(11.0)
    after = simulation.flow("data")
    assert after["cwnd_bytes"] == 4 * 1448
    # Four segments in a round trip of 40 ms and, because every second segment is acknowledged, two transmissions of 1.2 ms.
    assert 0.92 < (after["received_bytes"] - before["received_bytes"]) / (10.0 * 4 * 1448 / 0.040) < 0.96
    simulation.stop()
    with pytest.raises(fp.RunError, match="has been finished"):
        simulation.flow("data")


def test_wrong_names_and_times_raise() -> None:
    simulation = fp.Scenario("quick-start").start()
    with pytest.raises(KeyError, match="did you mean"):
        simulation.flow("downlod")
    with pytest.raises(KeyError, match="not controlled"):
        simulation.set_window("download", 1000)
    with pytest.raises(fp.RunError, match="not adjustable"):
        simulation.set_link_rate("bottleneck", 1e6)
    with pytest.raises(ValueError, match="NaN"):
        simulation.run_until(float("nan"))
    simulation.run_until(1.0)
    with pytest.raises(fp.RunError, match="cannot run until"):
        simulation.run_until(0.5)


@pytest.mark.parametrize("preset", PRESETS)
def test_environment_passes_the_check_of_gymnasium(preset: str) -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(CongestionEnv(preset=preset), skip_render_check=True)


@pytest.mark.parametrize("preset", PRESETS)
def test_seed_determines_the_episode(preset: str) -> None:
    def episode(seed: int) -> list[float]:
        env = CongestionEnv(preset=preset)
        env.reset(seed=seed)
        actions = np.random.default_rng(1).uniform(-0.25, 0.5, 200) * env.action_space.high
        return [env.step([action])[1] for action in actions]

    assert episode(1) == episode(1)
    assert episode(1) != episode(2)


def test_constant_rate_has_its_throughput_and_delay() -> None:
    env = CongestionEnv(initial_rate_bps=5e6, interval_s=0.2)
    env.reset(seed=1)
    for _ in range(20):
        *_, info = env.step([0.0])
    # Payload of 1448 bytes is paced at 5 Mbit/s; packets have 1500 bytes. Bursts of up to ten packets are sent at once.
    assert abs(info["throughput_bps"] / (5e6 * 1500 / 1448) - 1) < 0.06
    # Propagation of 20 ms, and a packet of 1518 bytes at 10 Mbit/s in 1.2 ms.
    assert 0.0212 <= info["delay_s"] < 0.035
    assert info["loss_ratio"] == 0
    assert aurora_reward(info) == 10 * info["throughput_bps"] / 12000 - 1000 * info["delay_s"]


def test_delay_without_a_queue_is_the_smallest_delay() -> None:
    # At 5 Mbit/s, a packet takes 2.4 ms of transmission, and the SYN much less. Pacing of 0.5 Mbit/s sends a packet or two per
    # interval, two of them at once at most.
    link = {"rate": "5Mbit/s", "delay": "10ms", "queue": "50kB"}
    flow = {"name": "agent", "from": "source", "to": "sink"}
    scenario = {"duration": "20s", "topology": {"kind": "chain", "link": [link]}, "flow": [flow]}
    env = CongestionEnv(scenario, initial_rate_bps=0.5e6, interval_s=0.1)
    env.reset(seed=1)
    ratios = [env.step([0.0])[4]["delay_ratio"] for _ in range(50)]
    assert ratios[0] == 1.0 and max(ratios) <= (10 + 2 * 2.43) / (10 + 2.43)


def test_rate_above_the_link_fills_the_queue_and_loses_packets() -> None:
    env = CongestionEnv(initial_rate_bps=6e6, interval_s=0.2)
    env.reset(seed=1)
    # From 6 Mbit/s, which has no queue, to 6 * 1.5 ** 3 = 20.25 Mbit/s.
    for action in [0.0] * 3 + [20.0] * 3 + [0.0] * 20:
        *_, info = env.step([action])
    assert info["rate_bps"] == pytest.approx(20.25e6)
    assert info["loss_ratio"] > 0.1 and info["delay_ratio"] > 1.5


def test_episode_is_truncated_at_the_end_of_the_scenario() -> None:
    env = CongestionEnv(set={"duration": "2s"}, interval_s=0.1)
    env.reset(seed=1)
    steps = 1
    while not env.step([0.0])[3]:
        steps += 1
    # The first payload arrives 61 ms after the start, which is in the first 100 ms: the first step begins at 0.1 s or 0.2 s.
    assert steps in (18, 19)


@pytest.mark.parametrize("preset", PRESETS)
def test_number_of_threads_does_not_change_the_episodes(preset: str) -> None:
    vector = CongestionVectorEnv(8, threads=3, preset=preset)
    observations, _ = vector.reset(seed=5)
    seeds = np.random.default_rng(5)
    again = CongestionVectorEnv(8, threads=1, preset=preset)
    assert (again.reset(seed=5)[0] == observations).all()
    for _ in range(50):
        actions = seeds.uniform(-0.25, 0.5, (8, 1)) * vector.single_action_space.high
        one, other = vector.step(actions), again.step(actions)
        assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(one[:4], other[:4]))
        assert all((one[4][name] == other[4][name]).all() for name in one[4])
    assert len({tuple(row) for row in one[0]}) == 8


@pytest.mark.parametrize("preset", PRESETS)
def test_vector_environment_has_the_episodes_of_a_single_one(preset: str) -> None:
    single, vector = CongestionEnv(preset=preset), CongestionVectorEnv(1, preset=preset)
    assert (single.reset(seed=5)[0] == vector.reset(seed=5)[0][0]).all()
    for action in np.random.default_rng(5).uniform(-0.25, 0.5, 50) * single.action_space.high:
        observation, reward, _, truncated, _ = single.step([action])
        observations, rewards, _, truncations, _ = vector.step([[action]])
        assert (observation == observations[0]).all() and reward == rewards[0]
        assert truncated == truncations[0]


def test_step_in_a_forked_process_raises() -> None:
    vector = CongestionVectorEnv(2, threads=2)
    vector.reset(seed=1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            vector.step([[0.0], [0.0]])
        except fp.RunError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert "another process" in pipe.read()
    os.waitpid(child, 0)


def test_threads_end_with_the_environment() -> None:
    def threads() -> int:
        return sum(name.read_text() == "fullpipe-env\n" for name in Path("/proc/self/task").glob("*/comm"))

    gc.collect()
    before = threads()
    vector = CongestionVectorEnv(8, threads=3)
    vector.reset(seed=1)
    assert threads() == before + 2
    del vector
    gc.collect()
    assert threads() == before


def test_ended_environment_is_reset_by_the_next_step() -> None:
    vector = CongestionVectorEnv(2, set={"duration": "1s"}, interval_s=0.2)
    vector.reset(seed=1)
    ended = [vector.step([[0.0], [0.0]])[3].any() for _ in range(20)]
    assert sum(ended) >= 3


@pytest.mark.parametrize(("action", "factor"), [(0.0, 1.0), (2.0, 1.05), (-2.0, 1 / 1.05), (20.0, 1.5), (-20.0, 1 / 1.5)])
def test_aurora_multiplies_the_rate(action: float, factor: float) -> None:
    env = CongestionEnv()
    env.reset(seed=1)
    assert env.step([action])[4]["rate_bps"] == pytest.approx(1e6 * factor, rel=1e-12)


@pytest.mark.parametrize(("action", "factor"), [(-1.0, 0.25), (-0.5, 0.5), (0.0, 1.0), (0.5, 2.0), (1.0, 4.0)])
def test_orca_multiplies_the_window(action: float, factor: float) -> None:
    # Packets arrive each 1.2 ms, so in most intervals of 1 us no acknowledgment changes the window.
    env = CongestionEnv(preset="orca", interval_s=1e-6, set={"flow.agent.start_jitter": "0s", "duration": "200ms"})
    env.reset(seed=1)
    before = env.step([0.0])[4]["cwnd_bytes"]
    assert before > 0
    # The simulation applies a new window with the next packet or acknowledgment.
    while (after := env.step([action])[4]["cwnd_bytes"]) == before and action != 0.0:
        action = 0.0
    assert after == max(4 * 1448, round(before * factor))


@pytest.mark.parametrize("threads", [1, 2])
def test_observation_is_a_window_of_the_last_intervals(threads: int) -> None:
    vector = CongestionVectorEnv(3, history=4, threads=threads, set={"duration": "3s"}, interval_s=0.2)
    actual, info = vector.reset(seed=1)
    expected = np.zeros((3, 4, 3), np.float32)
    begins, ended = np.ones(3, bool), np.zeros(3, bool)
    for step in range(40):
        # Before the first interval: no gradient, and ratios of 1.
        expected[begins] = (0.0, 1.0, 1.0)
        newest = np.stack([info[name] for name in PRESETS["aurora"].observed], axis=1)
        expected = np.concatenate([expected[:, 1:], newest[:, None].astype(np.float32)], axis=1)
        assert (actual == expected.reshape(3, -1)).all()
        begins = ended
        earlier, kept = actual, actual.copy()
        actual, _, _, ended, info = vector.step(np.full((3, 1), step % 5 - 2.0))
        # A step does not change the arrays of earlier steps.
        assert (earlier == kept).all()


def test_orca_changes_the_window_and_cubic_continues() -> None:
    env = CongestionEnv(preset="orca")
    env.reset(seed=1)
    for _ in range(200):
        *_, before = env.step([0.0])
    # The halved window is below the slow-start threshold, so it grows by the acknowledged bytes: in 20 ms at most 25 kB at
    # 10 Mbit/s.
    *_, halved = env.step([-0.5])
    assert before["cwnd_bytes"] / 2 <= halved["cwnd_bytes"] <= before["cwnd_bytes"] / 2 + 25_000
    for _ in range(150):
        *_, later = env.step([0.0])
    assert later["cwnd_bytes"] > halved["cwnd_bytes"]
    for _ in range(10):
        *_, least = env.step([-1.0])
    # At least four segments, and the acknowledged bytes as before.
    assert 4 * 1448 <= least["cwnd_bytes"] <= 4 * 1448 + 25_000


def test_reward_of_orca() -> None:
    # 8 Mbit/s of 10 delivered, and 0.1 lost; the round-trip time is twice the smallest: (0.8 - 0.05) * 1.25 / 2.
    interval = {"delivery_ratio": 0.8, "loss_penalty": 5 * 0.1 / 10, "delay_metric": 1.25 / 2}
    assert orca_reward(interval) == pytest.approx(0.46875)


def test_state_of_orca() -> None:
    env = CongestionEnv(preset="orca", interval_s=0.2, initial_rate_bps=5e6)
    env.reset(seed=1)
    largest = 0.0
    for _ in range(100):
        observation, reward, *_, info = env.step([0.0])
        largest = max(largest, info["delivery_bps"])
    # A link of 10 Mbit/s delivers 1448 of 1518 bytes as payload.
    assert info["delivery_bps"] == pytest.approx(10e6 * 1448 / 1518, rel=0.05)
    assert info["delivery_ratio"] == pytest.approx(info["delivery_bps"] / largest)
    assert info["acked_ratio"] == pytest.approx(info["delivery_bps"] * 0.2 / 8 / info["cwnd_bytes"])
    # The smallest sample is that of the handshake: propagation of 40 ms and two small packets.
    assert info["rtt_ratio"] == pytest.approx(0.0401 / info["srtt_s"], rel=0.005)
    assert info["delay_metric"] == min(1.0, 1.25 * info["rtt_ratio"])
    assert reward == pytest.approx((info["delivery_ratio"] - info["loss_penalty"]) * info["delay_metric"])
    newest = [info[name] for name in PRESETS["orca"].observed]
    assert observation[-7:] == pytest.approx(newest, rel=1e-6) and len(observation) == 70


def test_wrong_actions_and_settings_raise() -> None:
    env = CongestionEnv()
    with pytest.raises(fp.RunError, match="reset"):
        env.step([0.0])
    env.reset(seed=1)
    with pytest.raises(ValueError, match="finite"):
        env.step([float("nan")])
    with pytest.raises(ValueError, match="lowest"):
        CongestionEnv(initial_rate_bps=1.0)
    with pytest.raises(fp.Error, match="did you mean"):
        CongestionEnv(flow="agnt")
    with pytest.raises(ValueError, match="did you mean 'aurora'"):
        CongestionEnv(preset="aurore")
    with pytest.raises(ValueError, match="threads"):
        CongestionVectorEnv(2, threads=0)


@pytest.mark.parametrize(("preset", "highest"), [("aurora", 20.0), ("orca", 1.0)])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_action_outside_the_space_is_clipped(preset: str, highest: float, sign: float) -> None:
    for outside in (1000.0 * sign, np.array([3.0 * highest * sign])):
        single, limited = CongestionEnv(preset=preset), CongestionEnv(preset=preset)
        single.reset(seed=1), limited.reset(seed=1)
        value = float(np.asarray(outside).reshape(-1)[0])
        expected = limited.step([highest * sign])[4]
        assert single.step(outside)[4] == expected
        vector = CongestionVectorEnv(2, preset=preset)
        vector.reset(seed=[1, 1])
        info = vector.step([[value], [highest * sign]])[4]
        assert info["cwnd_bytes"][0] == info["cwnd_bytes"][1] == expected["cwnd_bytes"]
        assert info["rate_bps"][0] == info["rate_bps"][1] == expected["rate_bps"]


def test_clipped_action_of_aurora_multiplies_the_rate_by_one_and_a_half() -> None:
    env = CongestionEnv()
    env.reset(seed=1)
    assert env.step([1000.0])[4]["rate_bps"] == pytest.approx(1.5e6)


@pytest.mark.parametrize("action", [0.0, 0, np.array(0.0), np.zeros(1), np.zeros(1, np.float32), np.float32(0), [0.0], np.int64(0)])
def test_number_or_array_of_one_is_an_action(action: object) -> None:
    env = CongestionEnv()
    env.reset(seed=1)
    assert env.step(action)[4]["rate_bps"] == 1e6


@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (np.zeros(2), ValueError, r"shape \(2,\); expected \(1,\)"),
        (np.zeros((1, 1)), ValueError, r"shape \(1, 1\); expected \(1,\)"),
        (np.zeros(0), ValueError, r"shape \(0,\); expected \(1,\)"),
        (None, TypeError, "the action is None; expected a number or an array"),
        ("0", TypeError, "the action is '0'; expected a number or an array"),
        (True, TypeError, "the action is True; expected a number or an array"),
        ([float("nan")], ValueError, "the action is nan; expected a finite number"),
        (float("inf"), ValueError, "the action is inf; expected a finite number"),
    ],
)
def test_wrong_action_raises(action: object, kind: type[Exception], message: str) -> None:
    env = CongestionEnv()
    env.reset(seed=1)
    with pytest.raises(kind, match=message):
        env.step(action)


@pytest.mark.parametrize(
    ("actions", "kind", "message"),
    [
        (np.zeros((1, 3)), ValueError, r"shape \(1, 3\); expected \(3, 1\)"),
        (np.zeros((2, 1)), ValueError, r"shape \(2, 1\); expected \(3, 1\)"),
        (np.zeros((3, 2)), ValueError, r"shape \(3, 2\); expected \(3, 1\)"),
        (0.0, ValueError, r"shape \(\); expected \(3, 1\)"),
        (None, TypeError, r"actions is None; expected an array of shape \(3, 1\)"),
        ([[0.0], [0.0, 1.0], [0.0]], ValueError, r"expected an array of shape \(3, 1\)"),
        ([[0.0], [float("nan")], [0.0]], ValueError, "expected finite numbers"),
    ],
)
def test_wrong_actions_of_a_vector_environment_raise(actions: object, kind: type[Exception], message: str) -> None:
    vector = CongestionVectorEnv(3)
    vector.reset(seed=1)
    with pytest.raises(kind, match=message):
        vector.step(actions)


def test_step_after_the_end_of_an_episode_raises() -> None:
    env = CongestionEnv(set={"duration": "1s"}, interval_s=0.2)
    env.reset(seed=1)
    while not env.step([0.0])[3]:
        pass
    with pytest.raises(fp.RunError, match="the episode has ended; call reset"):
        env.step([0.0])
    env.reset()
    env.step([0.0])


def test_reset_raises_if_the_flow_receives_nothing() -> None:
    settings = {"set": {"flow.agent.start": "2s", "duration": "1s"}, "interval_s": 0.2}
    with pytest.raises(fp.RunError, match='flow "agent" received nothing until the end of the scenario at 1 s'):
        CongestionEnv(**settings).reset(seed=1)
    with pytest.raises(fp.RunError, match="received nothing until the end"):
        CongestionVectorEnv(2, **settings).reset(seed=1)


def test_reset_raises_if_the_flow_completes_in_the_first_interval() -> None:
    env = CongestionEnv(set={"flow.agent.size": "1kB"}, interval_s=1.0)
    with pytest.raises(fp.RunError, match="completed in the first interval"):
        env.reset(seed=1)


def test_episode_is_terminated_when_the_flow_completes() -> None:
    settings = {"set": {"flow.agent.size": "100kB"}, "interval_s": 0.05}
    env = CongestionEnv(**settings)
    env.reset(seed=1)
    steps = 0
    while True:
        *_, terminated, truncated, _ = env.step([0.0])
        steps += 1
        if terminated or truncated:
            break
    # 100 kB at 1 Mbit/s take 0.8 s, without the first burst.
    assert terminated and not truncated and 10 <= steps <= 17
    with pytest.raises(fp.RunError, match="call reset"):
        env.step([0.0])
    vector = CongestionVectorEnv(2, **settings)
    vector.reset(seed=[1, 2])
    ends = [vector.step([[0.0], [0.0]])[2:4] for _ in range(2 * steps + 2)]
    assert ends[steps - 1][0][0] and not any(truncated.any() for _, truncated in ends)
    # The next step begins an episode.
    assert not ends[steps][0][0] and sum(terminated[0] for terminated, _ in ends) == 2


def test_completed_flow_ends_the_episode_while_another_flow_continues() -> None:
    link = {"rate": "10Mbit/s", "delay": "20ms", "queue": "50kB"}
    flow = {"name": "agent", "from": "source", "to": "sink", "size": "100kB"}
    other = {"name": "other", "from": "source", "to": "sink"}
    env = CongestionEnv({"duration": "60s", "topology": {"kind": "chain", "link": [link]}, "flow": [flow, other]})
    env.reset(seed=1)
    ends = (env.step([0.0])[2:4] for _ in range(200))
    assert next(end for end in ends if any(end)) == (True, False)


def test_each_environment_may_have_its_seed() -> None:
    seeds = [3, np.int64(1), 2]
    vector = CongestionVectorEnv(3, set={"duration": "2s"}, interval_s=0.2)
    observations, _ = vector.reset(seed=seeds)
    singles = [CongestionEnv(set={"duration": "2s"}, interval_s=0.2) for _ in seeds]
    for row, single, seed in zip(observations, singles, seeds):
        assert (row == single.reset(seed=seed)[0]).all()
    ended = [False] * 3
    # Two episodes: later episodes also are those of the single environments.
    for _ in range(18):
        rows, _, _, truncations, _ = vector.step([[2.0]] * 3)
        for index, single in enumerate(singles):
            row, truncated = (single.reset()[0], False) if ended[index] else single.step([2.0])[::3][:2]
            assert (rows[index] == row).all() and truncated == truncations[index]
            ended[index] = truncated
    with pytest.raises(ValueError, match="seed has 2 seeds; expected one seed, or 3 seeds"):
        vector.reset(seed=[1, 2])


@pytest.mark.parametrize("env", [CongestionEnv, lambda: CongestionVectorEnv(2)])
def test_seeds_and_options_of_reset(env: Callable[[], Any]) -> None:
    env = env()
    assert (env.reset(seed=np.int64(7))[0] == env.reset(seed=7, options={})[0]).all()
    with pytest.raises(ValueError, match="reset has no options"):
        env.reset(options={"set": {"duration": "1s"}})
    with pytest.raises(TypeError, match="seed is 1.5; expected an integer"):
        env.reset(seed=1.5)
    with pytest.raises(ValueError, match="seed is -1; expected an integer"):
        env.reset(seed=-1)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"histroy": 5}, TypeError, "unknown keyword argument 'histroy'; did you mean 'history'"),
        ({"preset": None}, TypeError, "preset is None; expected one of: aurora, orca"),
        ({"history": 1.5}, TypeError, "history is 1.5; expected an integer from 1"),
        ({"history": 0}, ValueError, "history is 0; expected an integer from 1"),
        ({"interval_s": "20ms"}, TypeError, "interval_s is '20ms'; expected a number above 0 and below 1e6, in seconds"),
        ({"interval_s": 0}, ValueError, "interval_s is 0; expected a number above 0"),
        ({"rates_bps": 1e7}, TypeError, r"rates_bps is 10000000.0; expected a lowest and a highest rate"),
        ({"rates_bps": (1e5, 1e6, 1e7)}, TypeError, "expected a lowest and a highest rate"),
        ({"rates_bps": (1e7, 1e6)}, ValueError, "expected 0 < lowest <= initial <= highest"),
        ({"initial_rate_bps": "1Mbit/s"}, TypeError, "initial_rate_bps is '1Mbit/s'; expected a number in bit/s"),
        ({"reward": 5}, TypeError, "reward is 5; expected a function"),
        ({"highest_action": 1000}, ValueError, "highest_action is 1000; expected a number above 0 and below 1000"),
        ({"highest_action": 0}, ValueError, "highest_action is 0; expected a number above 0 and below 1000"),
        ({"set": 5}, TypeError, "set is 5; expected a dict"),
        ({"flow": "agnt"}, fp.ScenarioError, r'unknown flow "agnt"; did you mean "agent"\? \(one of: "agent"\)'),
        ({"flow": "x"}, fp.ScenarioError, r'unknown flow "x" \(one of: "agent"\)'),
        ({"flow": None}, TypeError, "flow is None; expected the name of a flow"),
    ],
)
def test_wrong_setting_raises(keywords: dict[str, Any], kind: type[Exception], message: str) -> None:
    for create in (CongestionEnv, lambda **keywords: CongestionVectorEnv(2, **keywords)):
        with pytest.raises(kind, match=message):
            create(**keywords)


@pytest.mark.parametrize(
    ("value", "kind"), [(float("nan"), ValueError), (float("-inf"), ValueError), (None, TypeError), ("1", TypeError)]
)
def test_reward_that_is_no_finite_number_raises(value: object, kind: type[Exception]) -> None:
    env = CongestionEnv(reward=lambda info: value)
    env.reset(seed=1)
    with pytest.raises(kind, match="the value of `reward` is"):
        env.step([0.0])
    vector = CongestionVectorEnv(2, reward=lambda info: np.array([0.0, value]))
    # The rewards of environments that begin are not used.
    with pytest.raises(kind, match="the value of `reward` is"):
        vector.reset(seed=1)
        vector.step([[0.0], [0.0]])
    vector = CongestionVectorEnv(2, reward=lambda info: 0.0)
    with pytest.raises(ValueError, match=r"the value of `reward` has the shape \(\); expected an array of 2"):
        vector.reset(seed=1)


@pytest.mark.parametrize(
    ("window", "pacing_bps", "kind", "message"),
    [
        (-1, None, ValueError, "window_bytes is -1; expected an integer of at least 0"),
        (2**64, None, ValueError, "window_bytes is 18446744073709551616; expected"),
        (20000.5, None, ValueError, "window_bytes is 20000.5; expected an integer"),
        (float("nan"), None, ValueError, "window_bytes is nan; expected an integer"),
        ("20kB", None, TypeError, "window_bytes is '20kB'; expected an integer"),
        (None, None, TypeError, "window_bytes is None; expected an integer"),
        (20000, 0.4, ValueError, "pacing_bps is 0.4; expected a rate from 1 to 1e15 bit/s"),
        (20000, -1, ValueError, "pacing_bps is -1; expected a rate from 1"),
        (20000, "1Mbit/s", TypeError, "pacing_bps is '1Mbit/s'; expected a rate from 1"),
    ],
)
def test_wrong_window_raises(window: Any, pacing_bps: Any, kind: type[Exception], message: str) -> None:
    simulation = fp.Scenario("quick-start").start(controlled_flows=["download"])
    with pytest.raises(kind, match=message):
        simulation.set_window("download", window, pacing_bps=pacing_bps)


def test_integers_of_numpy_and_whole_floats_are_windows() -> None:
    simulation = fp.Scenario("quick-start").start(controlled_flows=["download"])
    simulation.run_until(1.0)
    for window in (np.int64(20_000), 20_000.0, np.float64(20_000)):
        simulation.set_window("download", 10_000)
        simulation.run_until(simulation.now + 0.001)
        simulation.set_window("download", window)
        simulation.run_until(simulation.now + 0.001)
        assert simulation.flow("download")["cwnd_bytes"] == 20_000


@pytest.mark.parametrize("keyword", ["controlled_flows", "adjustable_links"])
def test_string_instead_of_a_list_of_names_raises(keyword: str) -> None:
    with pytest.raises(TypeError, match=rf"{keyword} is 'download'; expected a list of .*, such as \['download'\]"):
        fp.Scenario("quick-start").start(**{keyword: "download"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{keyword} contains 5; expected a list of"):
        fp.Scenario("quick-start").start(**{keyword: [5]})  # type: ignore[arg-type]


def test_messages_name_the_keyword_of_start() -> None:
    simulation = fp.Scenario("quick-start").start()
    with pytest.raises(KeyError, match=r'start the simulation with controlled_flows=\["download"\]') as error:
        simulation.set_window("download", 1000)
    assert "(one of: )" not in str(error.value)
    for change in (simulation.set_link_rate, simulation.set_link_delay):
        with pytest.raises(fp.RunError, match=r'start the simulation with adjustable_links=\["bottleneck"\]'):
            change("bottleneck", 1.0)
    simulation = fp.Scenario("quick-start").start(controlled_flows=["download"])
    with pytest.raises(KeyError, match=r'did you mean "download"\? \(controlled: "download"\)'):
        simulation.set_window("downlod", 1000)


def test_code_of_the_page_runs() -> None:
    page = Path(os.environ["FULLPIPE_CHECKOUT"], "docs", "reinforcement-learning.md").read_text()
    mark = r"<!-- no-run: needs the package; crates/python/tests/test_steps.py runs it -->\n\n```python\n(.*?)```"
    blocks = re.findall(mark, page, re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})


def test_page_has_every_value_of_an_interval() -> None:
    page = Path(os.environ["FULLPIPE_CHECKOUT"], "docs", "reinforcement-learning.md").read_text()
    section = page.split("## Values of an interval")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(FIELDS[:-1])


def test_page_has_every_setting() -> None:
    page = Path(os.environ["FULLPIPE_CHECKOUT"], "docs", "reinforcement-learning.md").read_text()
    section = page.split("## Presets")[1].split("\n## ")[0]
    names = {field.name for field in dataclasses.fields(Settings)}
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.M)) | {"preset"} == names


def test_evaluation_of_the_notebook_ends_with_the_episode_and_counts_packets() -> None:
    class Environments:
        """Two environments of 59.8 s and 59.9 s. Lost are 50 of 100 packets in one interval, and 0 of 10 in the next one."""

        def __init__(self, *args: object, **keywords: object) -> None:
            self.steps = 0

        def reset(self, seed: list[int]) -> tuple[Any, dict[str, Any]]:
            return np.zeros((2, 30)), {"interval_s": np.full(2, 0.1)}

        def step(self, actions: Any) -> tuple[Any, ...]:
            self.steps += 1
            ends = np.array([596, 597])
            # Values of the next episode.
            later = self.steps > ends
            received, sent, lost = [(50, 100, 50), (10, 10, 0)][self.steps % 2]
            info = {
                "interval_s": np.full(2, 0.1),
                "throughput_bps": np.where(later, 1e12, received * 12000 / 0.1),
                "delay_s": np.where(later, 100.0, 0.02),
                "send_ratio": np.full(2, sent / received),
                "loss_ratio": np.where(later, 1.0, lost / sent),
            }
            return np.zeros((2, 30)), np.zeros(2), np.zeros(2, bool), self.steps == ends, info

    notebook = Path(os.environ["FULLPIPE_CHECKOUT"], "notebooks", "07-reinforcement-learning.ipynb")
    cells = ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]]
    names: dict[str, Any] = {"np": np, "quick": False, "reward": None, "RATES_BPS": None, "CongestionVectorEnv": Environments}
    names["policies"] = np.zeros((2, 7))
    exec(next(cell for cell in cells if "def act(" in cell), names)
    names["EVALUATION_SEEDS"] = [1]
    exec(next(cell for cell in cells if "def of_policies(" in cell).split("\nseeds = list")[0], names)
    scenario = {"topology": {"link": [{"rate": "10Mbit/s", "delay": "20ms"}]}}
    for measures in names["of_policies"](scenario):
        assert measures["loss"] == pytest.approx(50 / 110, rel=0.01)
        assert measures["utilization"] == pytest.approx(30 * 12000 / 0.1 / 10e6, rel=0.01)
        assert measures["delay"] == pytest.approx(0.02 / (0.02 + 1518 * 8 / 10e6))
