"""The reduced grid holds every choice of values in all lists but one."""

import itertools

import pytest

from tests.grids import thinned


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (4, 4), (2, 2, 4), (3, 3, 3), (7, 10, 17)])
def test_quick_cases_cover_every_choice_except_from_one_list(sizes):
    axes = [[f"{name}{i}" for i in range(size)] for name, size in zip("abc", sizes, strict=False)]
    parameters = thinned(*axes, every=True)
    assert {p.values for p in parameters} == set(itertools.product(*axes))
    quick = [p.values for p in parameters if not p.marks]
    assert len(quick) * sizes[0] == len(parameters)
    assert_hold_every_choice(quick, axes)


def assert_hold_every_choice(chosen, axes):
    for some in itertools.combinations(range(len(axes)), len(axes) - 1):
        choices = {tuple(values[i] for i in some) for values in chosen}
        assert choices == set(itertools.product(*(axes[i] for i in some)))


@pytest.mark.parametrize("sizes", [(2, 3), (4, 4), (1, 2, 2), (2, 2, 4), (7, 10, 17)])
def test_the_slow_ones_that_always_run_hold_every_choice_once_more(sizes):
    axes = [range(size) for size in sizes]
    parameters = thinned(*axes, every=False)
    quick, slow = ([p.values for p in parameters if bool(p.marks) is x] for x in (False, True))
    assert quick == [p.values for p in thinned(*axes, every=True) if not p.marks]
    assert not set(quick) & set(slow)
    if len(axes) == 2:
        assert {*quick, *slow} == set(itertools.product(*axes))
    elif sizes[0] > 1:
        assert len(quick) == len(slow)
        assert_hold_every_choice(slow, axes)


def test_the_shortest_is_the_first():
    with pytest.raises(ValueError, match=r"thinned\(abc, ab\): name the shortest"):
        thinned("abc", "ab")
