"""Gives programs the host's tools, asyncio and json by their plain names. None of them
is loaded before it is used."""


def _names():
    import builtins
    import sys

    class Plain:
        def __init__(self, name):
            self.__dict__["_name"] = name

        def _real(self):
            import tools

            real = getattr(tools, self._name)
            setattr(builtins, self._name, real)
            return real

        def __call__(self, *args, **kwargs):
            return self._real()(*args, **kwargs)

        def __getattr__(self, name):
            return getattr(self._real(), name)

        def __repr__(self):
            return repr(self._real())

        __doc__ = property(lambda self: self._real().__doc__)

        @property
        def __signature__(self):
            import inspect

            return inspect.signature(self._real())

    class Module(type(sys)):
        def __getattr__(self, name):
            return getattr(__import__(self.__name__), name)

    for name in @NAMES@:
        if not hasattr(builtins, name):
            setattr(builtins, name, Plain(name))
    for name in ("asyncio", "json"):
        if not hasattr(builtins, name):
            setattr(builtins, name, Module(name))


def _others():
    """Runs the image's own file of this name, which this one stands before."""
    import sys

    for finder in sys.meta_path:
        if getattr(finder, "__name__", "") == "PathFinder":
            spec = finder.find_spec("sitecustomize", [p for p in sys.path if p.startswith((sys.prefix, sys.base_prefix))])
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(type(sys)("sitecustomize"))


_names()
_others()
