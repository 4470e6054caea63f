"""``python -m jali`` is the command ``jali``."""

from jali.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
