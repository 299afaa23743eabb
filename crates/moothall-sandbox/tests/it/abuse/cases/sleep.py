# Sleeps past every limit.
import time

print("sleeping", flush=True)
time.sleep(600)
