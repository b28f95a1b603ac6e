def _boot(modules, places, link, paths, shown, argv0, main, program, awaiting):
    import sys
    import _frozen_importlib as lib
    import _frozen_importlib_external as ext

    folders = set()
    for name in modules:
        while len(name) > 10:
            name = name.rpartition("/")[0]
            folders.add(name)

    class Loader(ext.SourceLoader):
        def __init__(self, name, path):
            self.name, self.path = name, path

        def get_filename(self, name):
            return self.path

        def get_data(self, path):
            with open(modules.get(path, path), "rb") as f:
                return f.read()

        def path_stats(self, path):
            raise OSError("no bytecode")

    class Finder:
        def __init__(self, folder):
            self.folder = folder

        def find_spec(self, name, target=None):
            base = self.folder + "/" + name.rpartition(".")[2]
            init = base + "/__init__.py"
            if init in modules:
                return make(name, init, [base])
            if base + ".py" in modules:
                return make(name, base + ".py", None)
            if base in folders:
                spec = lib.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [base]
                return spec
            return None

        def invalidate_caches(self):
            pass

    def make(name, path, inside):
        spec = lib.ModuleSpec(name, Loader(name, path), origin=path, is_package=inside is not None)
        if inside is not None:
            spec.submodule_search_locations = inside
        spec.has_location = True
        return spec

    def writable(path):
        return any(path == place or path.startswith(place + "/") for place in places)

    def followed(path):
        return "/workspace" + path[len(link):] if link and (path == link or path.startswith(link + "/")) else path

    def hook(path):
        if not path.startswith("/"):
            import os
            path = os.path.join(os.getcwd(), path)
        import posixpath
        path = followed(posixpath.normpath(path))
        if writable(path):
            return Finder(path)
        raise ImportError(path)

    class Last:
        @staticmethod
        def find_spec(name, path=None, target=None):
            import os
            tail = name.rpartition(".")[2]
            for folder in path if path is not None else sys.path:
                folder = followed(folder or os.getcwd())
                if writable(folder) and (os.path.exists(folder + "/" + tail + ".py") or os.path.exists(folder + "/" + tail + "/__init__.py")):
                    raise ModuleNotFoundError(
                        "No module named %r: %s/%s was not judged with this program; name it in an import statement" % (name, folder, tail), name=name)
            return None

    def excepthook(kind, value, trace):
        def ours(trace):
            name = trace.tb_frame.f_code.co_filename
            return name in boot or awaits and name != shown

        begun = trace  # below it, where this was not started but forked, is the server
        while begun is not None and begun.tb_frame.f_code.co_filename not in boot:
            begun = begun.tb_next
        whole = trace = begun or trace
        while trace is not None and ours(trace):
            trace = trace.tb_next
        if awaits and trace is None:
            trace = whole
        sys.__excepthook__(kind, value.with_traceback(trace), trace)

    boot, awaits = (__file__, sys._getframe().f_code.co_filename), False
    sys.path_hooks.insert(0, hook)
    sys.meta_path.append(Last)
    sys.path[0:1] = paths
    for path in list(sys.path_importer_cache):
        if writable(path):
            del sys.path_importer_cache[path]
    sys.excepthook = excepthook
    sys.argv[0] = argv0
    with open(main, "rb") as f:
        code = f.read()
    space = sys.modules["__main__"].__dict__
    del space["_boot"]
    space["__file__"] = shown
    space["__cached__"] = None
    if program:
        import caisson_program

        caisson_program.run(code, shown, space)
        return "", space
    compiled = getattr(sys.modules.get("_caisson_values"), "compiled", {})  # by a warm interpreter
    if awaiting or code not in compiled:
        code = compile(code, shown, "exec", 0x2000 if awaiting else 0, dont_inherit=True)
    else:
        code = compiled[code]
    awaits = bool(code.co_flags & 0x80)
    if not awaits:
        return code, space
    import asyncio
    import types

    asyncio.run(types.FunctionType(code, space)())
    return "", space


