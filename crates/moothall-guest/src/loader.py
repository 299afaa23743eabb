# Parks a Python interpreter: imports what programs usually import, stops itself, and when it is
# continued runs a script as `python3 script arguments...` would. Arguments: the descriptor from
# which the launch is read, then the modules. Everything happens inside one function, because the
# script gets this very `__main__`.


def _moothall_loader():
    import sys

    # Nothing of the program is imported before it runs.
    del sys.path[0]
    import importlib
    import importlib.machinery
    import json
    import os
    import random
    import resource
    import signal

    launch_fd = int(sys.argv[1])
    before = set(sys.modules)
    for name in sys.argv[2:]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    early = {name.partition(".")[0] for name in set(sys.modules) - before}
    early |= {"importlib", "json", "os", "random", "resource", "signal"}

    # What is here stays: the collector need not look at it again, and does not touch its pages.
    import gc

    gc.collect()
    gc.freeze()
    early.add("gc")
    os.kill(os.getpid(), signal.SIGSTOP)

    pieces = []
    while piece := os.read(launch_fd, 65536):
        pieces.append(piece)
    os.close(launch_fd)
    launch = json.loads(b"".join(pieces))
    for kind, soft, hard in launch["limits"]:
        resource.setrlimit(kind, (soft, hard))
    argv = launch["argv"]
    script = argv[1]
    os.environ.update(launch["env"])

    # Whatever would go differently is done from the start: a file beside the script that bears the
    # name of a module that is there already; a script that cannot be read or compiled, about which
    # the interpreter has words of its own; a path that not every version makes absolute alike.
    path = script if script.startswith("/") else f"{os.getcwd()}/{script}"
    folder = os.path.dirname(os.path.realpath(path))
    try:
        if any(name.partition(".")[0] in early for name in os.listdir(folder)):
            raise ImportError
        if script.startswith("."):
            raise ValueError
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except BaseException:
        os.execvp(argv[0], argv)

    # A clone of this process draws the same numbers and believes that it is still then.
    random.seed()
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()
    if logging := sys.modules.get("logging"):
        import time

        whole = isinstance(logging._startTime, int)
        logging._startTime = time.time_ns() if whole else time.time()

    sys.argv = argv[1:]
    sys.orig_argv = argv
    sys.path.insert(0, folder)
    main = sys.modules["__main__"].__dict__
    del main["_moothall_loader"]
    main["__file__"] = path
    main["__cached__"] = None
    main["__loader__"] = importlib.machinery.SourceFileLoader("__main__", path)
    try:
        exec(code, main)
    except SystemExit:
        raise
    except BaseException:
        hook = sys.excepthook

        def without_loader(kind, value, trace):
            # Whatever holds this function holds the script's objects.
            sys.excepthook = hook
            while trace and trace.tb_frame.f_code.co_filename == "<string>":
                trace = trace.tb_next
            hook(kind, value.with_traceback(trace), trace)

        sys.excepthook = without_loader
        raise
    finally:
        # What the program leaves is collected at the end as it would be.
        gc.unfreeze()


_moothall_loader()
