from solution import roman


def test_ones():
    assert roman(3) == "III"


def test_large():
    assert roman(2016) == "MMXVI"


def test_takes_away():
    assert roman(1994) == "MCMXCIV"
