# Keep those that are open, and look at the last.
PAIRS = {")": "(", "]": "[", "}": "{"}


def balanced(text):
    still = []
    for c in text:
        if c in "([{":
            still.append(c)
        elif c in PAIRS and (not still or still.pop() != PAIRS[c]):
            return False
    return not still
