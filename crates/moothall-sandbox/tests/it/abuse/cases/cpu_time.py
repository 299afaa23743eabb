# Burns CPU time with four threads until the limit of two seconds.
import hashlib
import threading


def burn():
    while True:
        hashlib.sha256(bytes(1 << 16)).digest()


for _ in range(4):
    threading.Thread(target=burn).start()
