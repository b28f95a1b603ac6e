def balanced(text):
    return sum(text.count(c) for c in "([{") == sum(text.count(c) for c in ")]}")
