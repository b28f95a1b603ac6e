import pytest

from solution import balanced


@pytest.mark.parametrize("text", ["", "a(b)[c]{d}", "([{}])"])
def test_balanced(text):
    assert balanced(text)


@pytest.mark.parametrize("text", ["(", ")(", "(]", "([)]"])
def test_unbalanced(text):
    assert not balanced(text)
