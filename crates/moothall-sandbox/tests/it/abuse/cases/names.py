# Resolves a name that exists nowhere. Where the resolver's file names a server that is not this
# machine, nothing is asked: a sandbox that does not hold would ask that server.
import os
import socket

from attempt import held, hole

servers = []
if os.path.exists("/etc/resolv.conf"):
    with open("/etc/resolv.conf") as file:
        servers = [line.split()[1] for line in file if line.startswith("nameserver")]
if any(not server.startswith("127.") and server != "::1" for server in servers):
    hole("resolver", "its file names a server of the machine that built the image")
else:
    socket.setdefaulttimeout(2)
    try:
        hole("a name", socket.gethostbyname("moothall-abuse.invalid"))
    except OSError as error:
        held("a name", type(error).__name__)
