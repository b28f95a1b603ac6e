from solution import slug


def test_words():
    assert slug("Hello World") == "hello-world"


def test_punctuation():
    assert slug(" What's new, in Zürich? ") == "what-s-new-in-zürich"
