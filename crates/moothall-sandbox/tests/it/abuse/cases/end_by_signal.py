# Ends itself with a signal.
import os
import sys

os.kill(os.getpid(), int(sys.argv[2]))
