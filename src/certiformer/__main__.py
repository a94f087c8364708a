"""`python -m certiformer`: the short demonstration; with arguments, the same as `certiformer`."""

import sys

from certiformer.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["demo"]))
