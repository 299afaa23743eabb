import sys


def total(path):
    with open(path) as lines:
        return sum(float(line) for line in lines)


def main():
    print(total(sys.argv[1]))


if __name__ == "__main__":
    main()
