from solution import steps


def test_one():
    assert steps(1) == 0


def test_six():
    assert steps(6) == 8
