"""The package's tests: `python3 -m unittest` in sdk/python, with an engine and caisson built."""
