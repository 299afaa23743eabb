# Ends with a code that looks like something else.
import os
import sys

os._exit(int(sys.argv[2]))
