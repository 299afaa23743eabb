# Threads until it is refused, 2,000 at most.
import threading
import time

from attempt import hole, saw

threading.stack_size(64 << 10)
count = 0
try:
    while count < 2000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError:
    saw("threads below the limit", count < 64)
else:
    hole("threads", count)
import os

os._exit(0)
