# Never ends.
print("looping", flush=True)
while True:
    pass
