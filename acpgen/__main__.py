"""`python -m acpgen`."""

from acpgen.cli import main

if __name__ == "__main__":
    main()
