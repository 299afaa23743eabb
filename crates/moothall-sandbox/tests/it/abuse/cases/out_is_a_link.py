# The folder itself is a link.
import os

os.rmdir("out")
os.symlink("/etc", "out")
