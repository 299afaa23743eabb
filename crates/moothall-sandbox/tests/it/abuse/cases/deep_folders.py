# Folders in folders, 300 deep, with a file at every level.
import os

os.makedirs("out", exist_ok=True)
os.chdir("out")
for level in range(300):
    with open("file", "w") as file:
        file.write(str(level))
    os.mkdir("f")
    os.chdir("f")
