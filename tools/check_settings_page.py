# SPDX-License-Identifier: Apache-2.0
"""Compares docs/settings.md with what the `ronde` program says; with --write, writes it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/settings.md"
COMMAND = [str(ROOT / ".venv/bin/ronde"), "settings", "--markdown"]


def main(arguments: list[str]) -> int:
    made = subprocess.run(COMMAND, capture_output=True, text=True, check=True, timeout=60).stdout
    if "--write" in arguments:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        print(f"{PAGE} is not what `ronde settings --markdown` prints; run tools/check_settings_page.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
