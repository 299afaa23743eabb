# The folder is a file.
import os

os.rmdir("out")
with open("out", "w") as file:
    file.write("not a folder")
