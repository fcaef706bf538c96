"""Makes `python -m pegboard` the same as `pegboard`."""

from pegboard.apps import main

if __name__ == "__main__":
    main()
