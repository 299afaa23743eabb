# Is given 8 MB and reads none of it.
import time

print("not reading", flush=True)
time.sleep(0.5)
