"""Makes `python -m pegboard` the same as `pegboard`."""

from pegboard.apps.cli import main

if __name__ == "__main__":
    main()
