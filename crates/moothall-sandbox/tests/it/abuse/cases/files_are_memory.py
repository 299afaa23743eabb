# Files in memory count as memory: 60 MiB in each folder and the rest on the heap, 400 MiB at most.
piece = b"x" * (1 << 20)
for place in ("/workspace/filled", "/tmp/filled"):
    with open(place, "wb") as file:
        for _ in range(60):
            file.write(piece)
kept = []
for _ in range(70):
    kept.append(bytearray(b"x") * (4 << 20))
print("hole memory: 400 MiB")
