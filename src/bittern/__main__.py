"""``python -m bittern`` is the command ``bittern``."""

from bittern.cli import main

if __name__ == "__main__":
    main()
