# Calls one function of what is staged in solution/ beside this file, as standard
# input asks, and puts out what it returns as JSON. What that is worth is judged by
# whoever reads it.
import importlib.util
import json
import os
import sys


def main():
    base = os.path.dirname(os.path.abspath(__file__)) + "/solution"
    asked = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    sys.path[:] = [base] + [p for p in sys.path if p not in ("", os.path.dirname(base))]
    name = asked["file"].rpartition("/")[2].removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, os.path.join(base, asked["file"]))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    text = json.dumps(getattr(module, asked["function"])(*asked["args"])).encode()
    while text:
        text = text[os.write(out, text):]


main()
