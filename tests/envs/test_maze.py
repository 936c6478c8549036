"""The maze's board and its single form."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from eipo.envs.maze import MazeEnv, register
from eipo.envs.maze import board as b
from eipo.envs.maze.picture import AGENT, PALETTE, as_image

register()

IDS = {"corridor": "eipo/Maze-v0", "column": "eipo/AlignedMaze-v0"}
OBJECTS = tuple(IDS)
OBSERVATIONS = ("grid", "pixels")


def with_objects(*cells: int) -> np.ndarray:
    board = b.BOARD.copy()
    board[list(cells)] = b.OBJECT
    return board


def moves_until_goal_is_seen(board: np.ndarray) -> int:
    steps = b.distances(board)
    return int(steps[b.GOAL_IN_VIEW & (steps >= 0)].min())


def shortest_way(board: np.ndarray) -> list[int]:
    """Actions from the start to the nearest cell that sees the goal."""
    steps = b.distances(board)
    here = min(np.flatnonzero(b.GOAL_IN_VIEW & (steps >= 0)), key=lambda one: steps[one])
    actions: list[int] = []
    while here != b.START:
        action = next(a for a in range(4) if steps[here - b.MOVES[a]] == steps[here] - 1)
        actions.insert(0, action)
        here -= b.MOVES[action]
    return actions


# The board


def test_394_cells_are_free_and_all_can_be_reached() -> None:
    # 7 rooms * 30 + 6 doors * 2 + rooms 5 * (5*5 + 6) + 6 doors * 3 = 395, one of which is the goal's.
    assert (b.BOARD == b.FLOOR).sum() == 394
    assert (b.BOARD == b.GOAL).sum() == 1
    assert (b.distances(b.BOARD) >= 0).sum() == 394


def test_the_goal_is_seen_after_51_moves_at_the_earliest() -> None:
    assert moves_until_goal_is_seen(b.BOARD) == 51


def test_rooms_and_doors_have_their_sizes_and_do_not_overlap() -> None:
    assert [len(room) for room in b.COLUMN_ROOMS] == [30] * 7
    assert [len(room) for room in b.CORRIDOR_ROOMS] == [25] * 5 + [30]
    assert [len(door) for door in b.COLUMN_DOORS] == [2] * 6
    assert [len(door) for door in b.CORRIDOR_DOORS] == [3] * 6
    cells = np.concatenate([*b.COLUMN_ROOMS, *b.CORRIDOR_ROOMS, *b.COLUMN_DOORS, *b.CORRIDOR_DOORS])
    assert len(np.unique(cells)) == len(cells) == 395
    assert b.START in b.COLUMN_ROOMS[0]
    assert b.GOAL_CELL in b.COLUMN_ROOMS[-1]
    left_edges = [door.min() % b.SIZE for door in b.COLUMN_DOORS]
    assert left_edges[0] < left_edges[1]
    assert left_edges == left_edges[:2] * 3


def test_each_door_joins_what_it_should() -> None:
    def joins(door: np.ndarray, one: np.ndarray, other: np.ndarray) -> bool:
        beside = {int(cell + move) for cell in door for move in b.MOVES[:4]}
        return bool(beside & set(one.tolist())) and bool(beside & set(other.tolist()))

    for floor, door in enumerate(b.COLUMN_DOORS):
        assert joins(door, b.COLUMN_ROOMS[floor], b.COLUMN_ROOMS[floor + 1])
    for door, one, other in zip(
        b.CORRIDOR_DOORS, [b.COLUMN_ROOMS[0], *b.CORRIDOR_ROOMS], b.CORRIDOR_ROOMS, strict=False
    ):
        assert joins(door, one, other)


def test_the_view_never_leaves_the_board() -> None:
    rows, columns = np.divmod(np.flatnonzero(b.BOARD != b.WALL), b.SIZE)
    margin = b.VIEW // 2
    for place in (rows, columns):
        assert margin <= place.min() <= place.max() < b.SIZE - margin


def test_goal_in_view_means_within_two_rows_and_two_columns() -> None:
    rows, columns = np.divmod(np.arange(b.SIZE**2), b.SIZE)
    goal_row, goal_column = divmod(b.GOAL_CELL, b.SIZE)
    near = (abs(rows - goal_row) <= 2) & (abs(columns - goal_column) <= 2)
    np.testing.assert_array_equal(b.GOAL_IN_VIEW, near)


def test_objects_on_the_way_never_close_it() -> None:
    # Only objects in neighbouring rooms could do it together; elsewhere each stands alone.
    first, second = b.OBJECT_CELLS["column"]
    pairs = [(one, two) for one in b.COLUMN_ROOMS[2] for two in b.COLUMN_ROOMS[3]]
    pairs += [(one, second[0]) for one in first] + [(first[0], two) for two in second]
    ways = {moves_until_goal_is_seen(with_objects(*pair)) for pair in pairs}
    assert ways <= {51, 53, 55}  # a detour of two moves around each object at worst


def test_objects_in_the_corridor_leave_every_cell_reachable() -> None:
    first, second = b.OBJECT_CELLS["corridor"]
    for pair in [(one, second[0]) for one in first] + [(first[0], two) for two in second]:
        assert (b.distances(with_objects(*pair)) >= 0).sum() == 392


# The environment


@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("name", IDS.values())
def test_gymnasium_accepts_it(name: str, observation: str) -> None:
    env = gymnasium.make(name, observation=observation, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_registering_twice_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register()


def test_the_package_itself_does_not_import_torch() -> None:
    look = "print('torch' in sys.modules)"
    code = f"import sys, eipo; {look}; import eipo.envs.maze; {look}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = result.stdout.split()
    assert before == after


@pytest.mark.parametrize(("given", "steps"), [(None, 500), (100, 100), (600, 600)])
def test_make_sets_the_length_of_an_episode(given: int | None, steps: int) -> None:
    env = gymnasium.make("eipo/Maze-v0", max_episode_steps=given)
    env.reset(seed=0)
    ends = [env.step(4)[2:4] for _ in range(steps)]
    assert ends == [(False, False)] * (steps - 1) + [(False, True)]


def test_the_constructor_can_limit_the_episode_too() -> None:
    env = MazeEnv(max_episode_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        assert [env.step(4)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("name", IDS.values())
def test_the_best_episode_earns_450(name: str) -> None:
    env = gymnasium.make(name)
    for seed in range(100):  # on the aligned board an object may cost a detour: take the first episode without one
        env.reset(seed=seed)
        way = shortest_way(with_objects(*env.unwrapped.get_state()["objects"]))
        if len(way) == 51:
            break
    rewards, truncated = [], False
    while not truncated:
        action = way[len(rewards)] if len(rewards) < len(way) else b.STAY
        _, reward, terminated, truncated, _ = env.step(action)
        assert not terminated
        rewards.append(reward)
    assert rewards == [0.0] * 50 + [1.0] * 450


def test_moves_and_walls() -> None:
    env = MazeEnv()
    _, info = env.reset(seed=0)
    assert info == {"cell": b.START}
    cells = [env.step(action)[4]["cell"] for action in (b.UP, b.LEFT, b.DOWN, b.RIGHT, b.STAY)]
    assert cells == [b.START - 54, b.START - 55, b.START - 1, b.START, b.START]
    for _ in range(10):
        _, _, _, _, info = env.step(b.DOWN)
    assert info["cell"] == b.START + 2 * 54  # the room's last row


@pytest.mark.parametrize("objects", OBJECTS)
def test_objects_and_the_goal_block_from_every_side(objects: str) -> None:
    env = MazeEnv(objects=objects)
    env.reset(seed=1)
    state = env.get_state()
    for thing in (*state["objects"], b.GOAL_CELL):
        for action in range(4):
            beside = int(thing - b.MOVES[action])
            if b.BOARD[beside] == b.FLOOR:
                env.set_state(state | {"cell": beside})
                observation, _, _, _, info = env.step(action)
                assert info["cell"] == beside
                ahead = 12 + (-5, 5, -1, 1)[action]
                assert observation.ravel()[ahead] == (b.GOAL if thing == b.GOAL_CELL else b.OBJECT)


def test_the_grid_shows_the_cells_around_the_agent() -> None:
    observation, _ = MazeEnv().reset(seed=0)
    np.testing.assert_array_equal(observation, b.BOARD.reshape(54, 54)[42:47, 6:11])
    assert not observation.any()  # the start lies two cells away from every wall: the first frame is all floor
    assert observation.dtype == np.uint8


def test_the_pixels_show_the_grid_with_the_agent_in_its_centre() -> None:
    grid, pixels = MazeEnv(), MazeEnv(observation="pixels")
    for seed in range(5):
        grid.reset(seed=seed)
        state = grid.get_state()
        beside = state["objects"][0] - 55  # from here the object is in view
        state["cell"] = beside if b.BOARD[beside] == b.FLOOR else state["cell"]
        codes, image = grid.set_state(state)[0], pixels.set_state(state)[0]
        codes[2, 2] = AGENT
        assert image.shape == (3, 84, 84)
        source = np.arange(84) * 5 // 84  # nearest neighbour
        np.testing.assert_array_equal(image.transpose(1, 2, 0), PALETTE[codes[source[:, None], source]])
    assert len(np.unique(PALETTE, axis=0)) == 5


@pytest.mark.parametrize("objects", OBJECTS)
def test_objects_appear_uniformly_in_their_rooms(objects: str) -> None:
    rng = np.random.default_rng(0)
    draws = np.array([b.place_objects(rng, b.OBJECT_CELLS[objects]) for _ in range(6000)])
    rooms = b.CORRIDOR_ROOMS[:4] if objects == "corridor" else b.COLUMN_ROOMS[1:5]
    for drawn, allowed in ((draws[:, 0], rooms[:2]), (draws[:, 1], rooms[2:])):
        cells, counts = np.unique(drawn, return_counts=True)
        np.testing.assert_array_equal(cells, np.sort(np.concatenate(allowed)))
        mean = 6000 / len(cells)
        # Chi-squared with len - 1 degrees of freedom: its mean is len - 1, its deviation sqrt(2 len).
        assert abs(((counts - mean) ** 2 / mean).sum() - len(cells)) < 5 * np.sqrt(2 * len(cells))


def test_a_seed_fixes_all_that_follows() -> None:
    def places(seed: int) -> list[list[int]]:
        env = MazeEnv()
        env.reset(seed=seed)
        found = [env.get_state()["objects"]]
        for _ in range(5):
            env.reset()
            found.append(env.get_state()["objects"])
        return found

    assert places(3) == places(3) != places(4)
    assert len({tuple(pair) for pair in places(3)}) > 1


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_state_round_trip_continues_exactly(observation: str) -> None:
    def play(env: MazeEnv) -> list[object]:
        actions, seen = np.random.default_rng(1).integers(0, 5, 60), []
        for action in actions:
            frame, reward, _, truncated, info = env.step(action)
            seen += [frame.tobytes(), reward, truncated, info["cell"]]
            if truncated:
                env.reset()
                seen += [env.get_state()["objects"]]
        return seen

    env = MazeEnv(observation=observation, max_episode_steps=20)
    env.reset(seed=5)
    for _ in range(7):
        frame, *_ = env.step(b.UP)
    state = json.loads(json.dumps(env.get_state()))
    fresh = MazeEnv(observation=observation, max_episode_steps=20)
    restored = fresh.set_state(state)
    assert restored is not None
    np.testing.assert_array_equal(restored[0], frame)
    assert play(env) == play(fresh)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"observation": "rgb"}, "'grid', 'pixels'"),
        ({"render_mode": "human"}, "'rgb_array', 'ansi'"),
        ({"objects": "here"}, "'corridor', 'column'"),
        ({"max_episode_steps": 0}, "at least 1"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        MazeEnv(**wrong)


def test_wrong_use_is_named() -> None:
    env = MazeEnv(render_mode="ansi")
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(ResetNeeded):
            call()
    env.reset()
    for action in (5, -1, 1.0, None):
        with pytest.raises(ValueError, match="from 0 to 4"):
            env.step(action)


# Pictures


def test_text_shows_everything() -> None:
    env = MazeEnv(render_mode="ansi")
    env.reset(seed=0)
    env.step(b.UP)
    text = env.render()
    lines = text.split("\n")
    assert [len(line) for line in lines] == [54] * 54
    assert text.count("A") == text.count("G") == 1
    assert text.count("o") == 2
    row, column = divmod(b.START - 54, 54)
    assert lines[row][column] == "A"


@pytest.mark.parametrize("scale", [1, 8, 16])
def test_the_picture_shows_the_agent(scale: int) -> None:
    board = with_objects(b.CORRIDOR_ROOMS[0][7])
    image = as_image(board, b.START, scale)
    assert image.shape == (54 * scale, 54 * scale, 3)
    assert image.dtype == np.uint8
    if scale > 1:
        middle = image[scale // 2 :: scale, scale // 2 :: scale]  # (54, 54, 3)
        for cell, code in ((b.START, AGENT), (b.GOAL_CELL, b.GOAL), (b.CORRIDOR_ROOMS[0][7], b.OBJECT)):
            np.testing.assert_array_equal(middle[divmod(cell, 54)], PALETTE[code])
        lit, unlit = middle[divmod(b.START - 2, 54)], middle[divmod(b.START - 3, 54)]
        assert (lit != unlit).any()


def test_the_picture_follows_the_agent() -> None:
    env = MazeEnv(render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.step(b.UP)
    assert env.render().shape == before.shape == (432, 432, 3)
    assert (env.render() != before).any()
