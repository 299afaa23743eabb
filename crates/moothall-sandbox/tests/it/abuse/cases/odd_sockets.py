# Kinds of sockets that no program needs. They are opened and closed; nothing is sent.
import socket

from attempt import attempt

NONE = ("EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL")


def opened(*kind):
    socket.socket(*kind).close()
    return "opened"


attempt("raw", lambda: opened(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), *NONE)
attempt("ping", lambda: opened(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), *NONE)
attempt("raw over IPv6", lambda: opened(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6), *NONE)
attempt("packet", lambda: opened(socket.AF_PACKET, socket.SOCK_RAW, 0), *NONE)
attempt("netlink", lambda: opened(socket.AF_NETLINK, socket.SOCK_RAW, 0), *NONE)
attempt("netlink of events", lambda: opened(socket.AF_NETLINK, socket.SOCK_RAW, 15), *NONE)
attempt("vsock", lambda: opened(40, socket.SOCK_STREAM, 0), *NONE)
attempt("crypto", lambda: opened(38, socket.SOCK_SEQPACKET, 0), *NONE)
attempt("bluetooth", lambda: opened(31, socket.SOCK_RAW, 0), *NONE)
attempt("tipc", lambda: opened(30, socket.SOCK_STREAM, 0), *NONE)
attempt("xdp", lambda: opened(44, socket.SOCK_RAW, 0), *NONE)
