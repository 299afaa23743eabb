# Ignores every signal that can be ignored and goes on.
import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
print("deaf", flush=True)
while True:
    time.sleep(60)
