"""Tests of simulations in steps and of the environments."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import fullpipe as fp
from fullpipe.gym import (
    FIELDS,
    PRESETS,
    CongestionEnv,
    CongestionVectorEnv,
    aurora_factor,
    aurora_reward,
    orca_factor,
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
    ends = [env.step([0.0])[3] for _ in range(20)]
    # The first payload arrives 61 ms after the start, which is in the first 100 ms: the first step begins at 0.1 s or 0.2 s.
    assert ends.index(True) in (17, 18)


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
        # The logarithms and powers of numpy may differ from those of Python in the last digit.
        assert observation == pytest.approx(observations[0], rel=1e-5) and reward == pytest.approx(rewards[0])
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


def test_ended_environment_is_reset_by_the_next_step() -> None:
    vector = CongestionVectorEnv(2, set={"duration": "1s"}, interval_s=0.2)
    vector.reset(seed=1)
    ended = [vector.step([[0.0], [0.0]])[3].any() for _ in range(20)]
    assert sum(ended) >= 3


def test_factor_of_aurora() -> None:
    assert aurora_factor(2.0) == 1.05
    assert aurora_factor(-2.0) == 1 / 1.05


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


def test_factor_and_reward_of_orca() -> None:
    assert [orca_factor(action) for action in (-1.0, -0.5, 0.0, 1.0)] == [0.25, 0.5, 1.0, 4.0]
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
    orca = CongestionVectorEnv(1, preset="orca")
    orca.reset(seed=1)
    # The largest window, and not an overflow.
    with np.errstate(over="ignore"):
        assert orca.step([[1e6]])[4]["cwnd_bytes"][0] >= 1 << 30


def test_code_of_the_page_runs() -> None:
    page = Path(os.environ["FULLPIPE_CHECKOUT"], "docs", "reinforcement-learning.md").read_text()
    mark = r"<!-- no-run: needs the package; crates/python/tests/test_steps.py runs it -->\n\n```python\n(.*?)```"
    blocks = re.findall(mark, page, re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})


def test_page_has_every_value_of_an_interval() -> None:
    page = Path(os.environ["FULLPIPE_CHECKOUT"], "docs", "reinforcement-learning.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(FIELDS[:-1])
