"""``make bench``: every benchmark that compares us with a peer."""

from benchmarks import broker

if __name__ == "__main__":
    broker.main()
