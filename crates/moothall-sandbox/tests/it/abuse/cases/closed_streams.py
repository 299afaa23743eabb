# Closes its streams and goes on for a while.
import os
import time

os.write(1, b"before")
for stream in (0, 1, 2):
    os.close(stream)
time.sleep(0.3)
os._exit(5)
