"""``python -m partiscope`` is ``partiscope``."""

from partiscope.cli.app import main

if __name__ == "__main__":
    main()
