# The folder is a file.
with open("out", "w") as file:
    file.write("not a folder")
