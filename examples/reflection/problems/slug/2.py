# Words are letters and digits alone.
import re


def slug(title):
    return "-".join(re.findall(r"[^\W_]+", title.lower()))
