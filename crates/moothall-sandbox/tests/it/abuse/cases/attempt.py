# What the programs of the abuse suite share. A program tries something and says what came of it, one
# line each: `held NAME: WHY` where it was stopped, `hole NAME: WHAT` where it was not, `saw NAME: WHAT`
# for what the host compares.
import ctypes
import errno
import json
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)

# The answers that mean "no". Others, such as "invalid argument", mean that somebody looked closer.
NO = {"EPERM", "EACCES", "ENOSYS", "EROFS", "ENOENT", "ENXIO", "ENODEV", "ENOTDIR"}


def held(what, why):
    print(f"held {what}: {why}", flush=True)


def hole(what, got):
    print(f"hole {what}: {str(got)[:200]!r}", flush=True)


def saw(what, value):
    print(f"saw {what}: {value}", flush=True)


def attempt(what, action, *also, no=NO):
    """Held where the action is refused with one of the answers, a hole in every other case."""
    try:
        got = action()
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error.errno))
        if name in no or name in also:
            held(what, name)
        else:
            hole(what, f"answered with {name}")
    else:
        hole(what, got)


def syscall(number, *arguments):
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def opens(path, flags):
    """Opens and closes; never reads or writes."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    device = os.fstat(descriptor).st_rdev
    os.close(descriptor)
    # A file that is hidden has /dev/null in its place.
    return refused() if device == os.makedev(1, 3) else "opened"


def lists(path):
    """What is in a folder; an empty one shows nothing."""
    return os.listdir(path) or refused()


def refused():
    raise PermissionError(errno.EPERM, "")


def aims():
    """Where the test waits for what must not arrive."""
    return json.loads(sys.argv[1])
