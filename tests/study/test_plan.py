"""What a study file asks for, and how far a study has come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eipo
from eipo import cli
from eipo.errors import EipoError
from eipo.study.plan import chosen, parse, plan, progress, read_study, ready, refuse_another, status_text

STUDY = """
doc = "a small one"
seeds = [3, 5]
methods = ["eo", { method = "eipo", name = "bold", settings = { method.alpha = 0.9 }, grid = false }, "rnd"]

[settings]
ppo.gamma = 0.9
"net.dense" = 16

[grid]
method.lam = [0.5, 2]

[[tasks]]
env = "CartPole-v1"
steps = 4e4
settings = { net.dense = 8 }

[[tasks]]
env = "eipo/DeepSea-v0"
name = "deep"
steps = 20_000
settings = { envs.options.size = 6 }
methods = { bold = { method.lam = 7 } }
"""
TINY = {"net.dense": 4, "envs.num": 2, "envs.steps": 8, "ppo.minibatches": 1, "ppo.epochs": 1, "bonus.features": 4}


def test_seeds_are_the_outer_loop_then_tasks_then_methods_at_each_point_of_the_grid() -> None:
    runs = plan(parse(STUDY, "s", "s.toml"), Path("r"))
    names = ["eo-lam=0.5", "eo-lam=2", "bold", "rnd-lam=0.5", "rnd-lam=2"]
    expected = [f"r/{task}/{name}-{seed}" for seed in (3, 5) for task in ("CartPole", "deep") for name in names]
    assert [run.out.as_posix() for run in runs] == expected
    assert len({run.out for run in runs}) == 20


def test_the_nearest_setting_wins() -> None:
    """One method in one task; a method; a task; all."""
    runs = {run.name: run.config for run in plan(parse(STUDY, "s", "s.toml"), Path("r"))}
    bold = runs["deep/bold-5"]
    assert (bold.env, bold.steps, bold.seed, bold.method_name) == ("eipo/DeepSea-v0", 20_000, 5, "eipo")
    assert (bold.method.lam, bold.method.alpha, bold.net.dense, bold.ppo.gamma) == (7.0, 0.9, 16, 0.9)
    assert bold.envs.options == {"size": 6}
    other = runs["CartPole/rnd-lam=2-3"]
    assert (other.steps, other.method.lam, other.method.alpha, other.net.dense) == (40_000, 2.0, 0.5, 8)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = [3, 5]", "seeds = []", "seeds are whole numbers"),
        ("seeds = [3, 5]", "sedes = [3, 5]", "unknown key 'sedes'; did you mean 'seeds'"),
        ("seeds = [3, 5]", "", "seeds is missing"),
        ("steps = 20_000", 'steps = "many"', "task 2: steps = 'many'; expected a whole number"),
        ("steps = 4e4", "steps = 0.5", "task 1: steps = 0.5; expected a whole number"),
        ("steps = 4e4", "steps = 4", "s, CartPole, eo-lam=0.5: steps=4 is below one iteration"),
        ("grid = false", 'grid = "no"', "method 2: grid = 'no'; expected true or false"),
        ("[0.5, 2]", "0.5", "grid lists the values"),
        ('name = "deep"', 'name = "CartPole"', "two tasks are called 'CartPole'"),
        ('name = "bold"', 'name = "rnd-lam=2"', "two methods are called 'rnd-lam=2'"),
        ("bold = { m", "bald = { m", "unknown method 'bald'; did you mean 'bold'"),
        ('"eo", {', '"eoo", {', "unknown method 'eoo'"),
        ("method.alpha", "method.alfa", "unknown setting 'method.alfa'"),
        ("doc =", "doc", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, said: str) -> None:
    assert STUDY.count(old) == 1
    with pytest.raises(EipoError) as caught:
        plan(parse(STUDY.replace(old, new), "s", "s.toml"), Path("r"))
    assert said in str(caught.value)


def test_a_part_can_be_chosen() -> None:
    study = parse(STUDY, "s", "s.toml")
    part = plan(chosen(study, ["deep"], ["bold"], [9]), Path("r"))
    assert [run.name for run in part] == ["deep/bold-9"]
    assert chosen(study, [], [], []) == study
    with pytest.raises(EipoError, match="unknown task of s 'dep'; did you mean 'deep'"):
        chosen(study, ["dep"], [], [])


def test_every_ready_study_can_be_planned() -> None:
    assert {"cpu-suite", "maze"} <= set(ready())
    for name, doc in ready().items():
        study = read_study(name)
        runs = plan(study, Path("r"))
        assert doc
        assert len(runs) == len(study.tasks) * len(study.variants) * len(study.seeds)


def test_the_cpu_suite_has_both_sides() -> None:
    study = read_study("cpu-suite")
    assert len(study.tasks) >= 12
    assert [v.name for v in study.variants] == ["eo", "rnd", "en", "dy", "dc", "eipo"]
    assert len(study.seeds) >= 3
    runs = plan(study, Path("r"))
    for task in study.tasks:  # the methods of a task differ in nothing but what makes them methods
        configs = [run.config for run in runs if run.task == task.name]
        assert len({(c.steps, c.ppo, c.net, c.preset, repr(c.envs)) for c in configs}) == 1


def test_a_study_that_is_not_there() -> None:
    with pytest.raises(EipoError, match="unknown study 'cpu-siute'; did you mean 'cpu-suite'"):
        read_study("cpu-siute")
    with pytest.raises(EipoError, match=r"no\.toml cannot be read"):
        read_study("no.toml")


def test_progress_and_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.toml"
    settings = "\n".join(f'"{k}" = {v}' for k, v in TINY.items())
    tasks = '[[tasks]]\nenv = "CartPole-v1"\nsteps = 160\n[[tasks]]\nenv = "Acrobot-v1"\nsteps = 160\n'
    file.write_text(f'methods = ["eo", "en"]\nseeds = [0, 1]\n[settings]\n{settings}\n{tasks}')
    study = read_study(str(file))
    runs = {run.name: run for run in plan(study, tmp_path / "out")}
    complete, begun = runs["CartPole/en-1"], runs["Acrobot/eo-0"]
    eipo.train_config(complete.config, complete.out)
    eipo.train_config(begun.config, begun.out)
    (begun.out / "agent.json").unlink()
    lines = (begun.out / "metrics.jsonl").read_text().splitlines(keepends=True)
    (begun.out / "metrics.jsonl").write_text("".join(lines[:4]) + '{"iter')
    assert [progress(run) for run in (complete, begun, runs["CartPole/eo-0"])] == [1.0, 0.4, 0.0]
    text = status_text(study, list(runs.values()))
    assert text.splitlines()[1].split() == ["CartPole", "0/2", "1/2"]
    assert text.splitlines()[2].split() == ["Acrobot", "0/2", "0/2"]
    assert "1 of 8 runs complete, 1 begun; 0.00106 M steps left" in text  # 6.6 runs of 160 steps
    assert "Acrobot/eo-0 40%" in text
    assert cli.main(["sweep", str(file), "--out", str(tmp_path / "out"), "--status"]) == 0
    assert capsys.readouterr().out == text + "\n"

    refuse_another(complete)
    refuse_another(runs["CartPole/eo-0"])
    config = json.loads((complete.out / "config.json").read_text())
    config["config"]["compute"]["threads"] = 7  # how, not what
    del config["config"]["envs"]["stack"]  # as by a version that had no such setting
    (complete.out / "config.json").write_text(json.dumps(config))
    refuse_another(complete)
    config["config"]["ppo"]["lr"] = 0.5
    (complete.out / "config.json").write_text(json.dumps(config))
    with pytest.raises(EipoError, match=r"was made with another ppo\.lr"):
        refuse_another(complete)


def test_something_else_in_a_runs_place_is_left_alone(tmp_path: Path) -> None:
    run = plan(chosen(parse(STUDY, "s", "s.toml"), ["deep"], ["bold"], [3]), tmp_path)[0]
    run.out.mkdir(parents=True)
    refuse_another(run)  # an empty directory is no run
    (run.out / "notes.txt").write_text("mine")
    with pytest.raises(EipoError, match="is in the way"):
        refuse_another(run)


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == sorted(ready())
