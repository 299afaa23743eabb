# Two of these run at once, in two sandboxes. The first leaves things about and waits for a visitor;
# the second looks for them.
import os
import socket
import sys

from attempt import attempt, opens, saw

PORT, NAME, FILES = 40404, "\0moothall-neighbour", ("/tmp/neighbour", "/dev/shm/neighbour", "/workspace/neighbour")


def connects(family, address):
    with socket.socket(family) as there:
        there.settimeout(2)
        there.connect(address)
    return "connected"


def waits():
    for file in FILES:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o666))
    doors = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET)]
    doors[0].bind(NAME)
    doors[1].bind(("0.0.0.0", PORT))
    for door in doors:
        door.listen()
    print("ready", flush=True)
    # There is one visitor at most, and it knocks at the first door first.
    doors[0].settimeout(5)
    for door in doors:
        try:
            door.accept()
        except (BlockingIOError, TimeoutError):
            pass
        else:
            saw("nobody came", False)
        doors[1].setblocking(False)
    saw("nobody came", True)


def looks():
    nowhere = ("ECONNREFUSED", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL")
    attempt("its hidden socket", lambda: connects(socket.AF_UNIX, NAME), *nowhere)
    attempt("its port", lambda: connects(socket.AF_INET, ("127.0.0.1", PORT)), *nowhere)
    for file in FILES:
        attempt(f"its file {file}", lambda: opens(file, os.O_RDONLY))


{"waits": waits, "looks": looks}[sys.argv[1]]()
