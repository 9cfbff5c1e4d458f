import itertools

import pytest

from tests.grids import thinned


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (4, 4), (2, 2, 4), (3, 3, 3), (7, 10, 17)])
def test_what_is_not_slow_holds_every_choice_from_all_lists_but_one(sizes):
    axes = [[f"{name}{i}" for i in range(size)] for name, size in zip("abc", sizes, strict=False)]
    parameters = thinned(*axes)
    assert {p.values for p in parameters} == set(itertools.product(*axes))
    quick = [p.values for p in parameters if not p.marks]
    assert len(quick) * sizes[0] == len(parameters)
    for some in itertools.combinations(range(len(axes)), len(axes) - 1):
        chosen = {tuple(values[i] for i in some) for values in quick}
        assert chosen == set(itertools.product(*(axes[i] for i in some)))


def test_the_shortest_is_the_first():
    with pytest.raises(ValueError, match=r"thinned\(abc, ab\): name the shortest"):
        thinned("abc", "ab")
