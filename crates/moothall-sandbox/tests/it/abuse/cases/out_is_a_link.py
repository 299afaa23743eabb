# The folder itself is a link.
import os

os.symlink("/etc", "out")
