# Becomes a shell that starts 2,000 processes and waits for none.
import os

loop = 'i=0; while [ "$i" -lt 2000 ]; do sleep 60 & i=$((i+1)); done; wait'
os.execvp("sh", ["sh", "-c", loop])
