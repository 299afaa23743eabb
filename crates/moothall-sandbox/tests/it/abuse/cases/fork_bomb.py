# Every process forks, eleven times: 2,048 processes where nobody stops it, and never more.
import os
import time

for _ in range(11):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(60)
