# Connections to what the test listens on: loopback and the host's own address, and nowhere else.
import errno
import socket

from attempt import aims, attempt, refused

NOWHERE = ("ECONNREFUSED", "ENETUNREACH", "ENETDOWN", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EPROTONOSUPPORT",
           "ESOCKTNOSUPPORT", "EINVAL", "ETIMEDOUT", "EAGAIN")
aim = aims()


def connects(family, kind, address):
    with socket.socket(family, kind) as there:
        there.settimeout(2)
        try:
            there.connect(address)
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "")
        there.send(b"abuse")
    return "connected"


def sends(family, address):
    # That a datagram could be sent says nothing: the test sees whether it arrived.
    with socket.socket(family, socket.SOCK_DGRAM) as there:
        there.sendto(b"abuse", address)
    refused()


for kind, action in (("TCP", lambda there: connects(socket.AF_INET, socket.SOCK_STREAM, there)),
                     ("UDP", lambda there: sends(socket.AF_INET, there))):
    for address, port in aim[kind.lower()]:
        name = "loopback" if address.startswith("127.") else "the host"
        attempt(f"{kind} to {name}", lambda: action((address, port)), *NOWHERE)
if aim["tcp6"]:
    attempt("TCP to loopback over IPv6", lambda: connects(socket.AF_INET6, socket.SOCK_STREAM, ("::1", aim["tcp6"])), *NOWHERE)
attempt("an abstract socket of the host", lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + aim["abstract"]), *NOWHERE)
attempt("a socket in a folder of the host", lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, aim["socket"]), *NOWHERE)
