# Takes memory piece by piece, 1.2 GiB at most.
kept = []
for _ in range(300):
    kept.append(bytearray(b"x") * (4 << 20))
print("hole memory: 1.2 GiB")
