"""`python -m thund` is the `thund` command."""

from thund.cli import main

if __name__ == "__main__":
    main()
