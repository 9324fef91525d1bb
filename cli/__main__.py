"""``python -m cli``: the ``fedfreeze`` command where its console script is not on the path."""

from cli.main import main

if __name__ == "__main__":
    main()
