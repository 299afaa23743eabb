"""Print the first 20 primes, and try what a sandbox must prevent."""

import os
import socket
import sys

primes = [n for n in range(2, 72) if all(n % d for d in range(2, n))]
print("primes:", *primes)

allowed = []


def attempt(name, action):
    try:
        action()
    except OSError as error:
        print(f"{name}: refused ({error.strerror or error})")
    else:
        print(f"{name}: allowed")
        allowed.append(name)


attempt("connect to the network", lambda: socket.create_connection(("192.0.2.1", 80), 2))
attempt("change a system file", lambda: open("/etc/hostname", "a"))
print("user id:", os.getuid())
sys.exit(1 if allowed or os.getuid() == 0 else 0)
