# Asks for a gibibyte in one go and touches all of it.
memory = bytearray(1 << 30)
print("hole memory:", len(memory))
