# SPDX-License-Identifier: Apache-2.0
"""The demonstration of scripts/demo: the digits on 1, 2 and 4 processes with the same global batch, and a table.

Fails if a run fails, if a model is worse than 97 %, or if the ranks' weights differ at all.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RONDE = str(Path(sys.executable).with_name("ronde"))
EXAMPLE = "examples/torch_digits.py"
LEAST_ACCURACY = 0.97
LONGEST_SECONDS = 900

RESULT = re.compile(r"RESULT example=\S+ ranks=(\d+) accuracy=([0-9.]+) samples_per_s=([0-9.]+)")
DIFFERENCE = re.compile(r"greatest difference between the weights of the ranks: (\S+)")


@dataclass(frozen=True)
class Outcome:
    ranks: int
    accuracy: float
    images_per_second: float
    difference: float


def parse(output: str) -> Outcome | None:
    result, difference = RESULT.search(output), DIFFERENCE.search(output)
    if result is None or difference is None:
        return None
    return Outcome(int(result[1]), float(result[2]), float(result[3]), float(difference[1]))


def train(ranks: int, arguments: list[str]) -> Outcome:
    # One thread for one process is the yardstick; the launcher chooses for more.
    env = {**os.environ, "OMP_NUM_THREADS": "1"} if ranks == 1 else dict(os.environ)
    command = [RONDE, "run", "-np", str(ranks), "--no-prefix", "--", sys.executable, EXAMPLE, "--check", *arguments]
    print(f"\n{ranks} {'process' if ranks == 1 else 'processes'}: ronde {' '.join(command[1:])}", flush=True)
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=LONGEST_SECONDS
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        sys.exit(f"demo: the run with {ranks} processes ended with status {done.returncode}")
    outcome = parse(done.stdout)
    if outcome is None or outcome.ranks != ranks:
        sys.exit(f"demo: the run with {ranks} processes did not say its result")
    return outcome


def table(outcomes: list[Outcome]) -> str:
    """The first outcome is the yardstick of the speeds."""
    yardstick = outcomes[0].images_per_second
    lines = [f"{'processes':>9}{'accuracy':>11}{'images/s':>11}{'against one':>13}{'weights differ by':>19}"]
    for outcome in outcomes:
        ratio = f"{outcome.images_per_second / yardstick:.2f} x"
        speed = f"{outcome.images_per_second:.0f}"
        lines.append(
            f"{outcome.ranks:>9}{outcome.accuracy * 100:>9.2f} %{speed:>11}{ratio:>13}{outcome.difference:>19g}"
        )
    return "\n".join(lines)


def faults(outcomes: list[Outcome]) -> list[str]:
    found = []
    for outcome in outcomes:
        if outcome.accuracy < LEAST_ACCURACY:
            found.append(
                f"with {outcome.ranks} processes only {outcome.accuracy:.2%} of the test images are named rightly"
            )
        if outcome.difference != 0:  # also what is not a number
            found.append(f"the weights of the {outcome.ranks} ranks differ by {outcome.difference:g}")
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", default="8")
    options = parser.parse_args(arguments)
    outcomes = [train(ranks, ["--epochs", options.epochs]) for ranks in (1, 2, 4)]
    print(f"\nThe same training on {os.cpu_count()} cores; speeds against one process with one thread:\n")
    print(table(outcomes))
    found = faults(outcomes)
    for fault in found:
        print(f"demo: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
