"""Tests of simulations in steps and of the environments."""

from __future__ import annotations

import numpy as np
import pytest

import fullpipe as fp
from fullpipe.gym import CongestionEnv, CongestionVectorEnv, aurora_factor, aurora_reward


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


def test_environment_passes_the_check_of_gymnasium() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(CongestionEnv(), skip_render_check=True)


def test_seed_determines_the_episode() -> None:
    def episode(seed: int) -> list[float]:
        env = CongestionEnv()
        env.reset(seed=seed)
        actions = np.random.default_rng(1).uniform(-5, 10, 200)
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


def test_rate_above_the_link_fills_the_queue_and_loses_packets() -> None:
    env = CongestionEnv(initial_rate_bps=20e6, interval_s=0.2)
    env.reset(seed=1)
    for _ in range(20):
        *_, info = env.step([0.0])
    assert info["loss_ratio"] > 0.1 and info["delay_ratio"] > 1.5


def test_episode_is_truncated_at_the_end_of_the_scenario() -> None:
    env = CongestionEnv(set={"duration": "2s"}, interval_s=0.1)
    env.reset(seed=1)
    ends = [env.step([0.0])[3] for _ in range(20)]
    assert ends.index(True) in (17, 18, 19)


def test_vector_environment_has_the_episodes_of_single_ones() -> None:
    vector = CongestionVectorEnv(8, threads=2)
    observations, _ = vector.reset(seed=5)
    seeds = np.random.default_rng(5)
    again = CongestionVectorEnv(8, threads=1)
    assert (again.reset(seed=5)[0] == observations).all()
    for _ in range(50):
        actions = seeds.uniform(-5, 10, (8, 1))
        one, other = vector.step(actions), again.step(actions)
        assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(one[:4], other[:4]))
    assert len({tuple(row) for row in one[0]}) == 8


def test_ended_environment_is_reset_by_the_next_step() -> None:
    vector = CongestionVectorEnv(2, set={"duration": "1s"}, interval_s=0.2)
    vector.reset(seed=1)
    ended = [vector.step([[0.0], [0.0]])[3].any() for _ in range(20)]
    assert sum(ended) >= 3


def test_factor_of_aurora() -> None:
    assert aurora_factor(2.0) == 1.05
    assert aurora_factor(-2.0) == 1 / 1.05


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
