# A colon was missing.
def slug(title):
    return title.lower().replace(" ", "-")
