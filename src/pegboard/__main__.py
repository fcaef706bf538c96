"""`python -m pegboard` is `pegboard`."""

from pegboard.apps.cli import main

if __name__ == "__main__":
    main()
