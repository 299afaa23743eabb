print(sum(range(1000)))
