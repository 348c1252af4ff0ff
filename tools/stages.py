# SPDX-License-Identifier: Apache-2.0
"""The stages of scripts/test. Each is timed; the first broken one ends the run. The last line counts all test cases.

Needs the standard library only: it starts before the environment is made (its first stage makes it).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import results
from results import Counts

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build/results"
VENV = ROOT / ".venv/bin"


@dataclass(frozen=True)
class Options:
    long: bool


@dataclass
class Outcome:
    ok: bool
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True)
class Stage:
    name: str
    what: str
    run: Callable[[Options], Outcome]
    needs_root: bool = False


class Ending:
    """A signal that ends this process first ends the command that it runs. While a command is being started the signal
    is kept: what is not known yet cannot be ended."""

    running = False
    signal = 0

    @classmethod
    def on_signal(cls, number: int, _: object) -> None:
        cls.signal = number
        cls.end_if_asked()

    @classmethod
    def end_if_asked(cls) -> None:
        if cls.running and cls.signal:
            sys.exit(128 + cls.signal)

    @classmethod
    def watch(cls) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, cls.on_signal)


def run(command: list[str], minutes: float, env: dict[str, str] | None = None) -> int:
    """The exit status; a command that takes longer than that is ended with all its children, and counts as 124."""
    print("+", " ".join(map(str, command)), flush=True)
    child = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        Ending.running = True
        Ending.end_if_asked()
        return child.wait(minutes * 60)
    except subprocess.TimeoutExpired:
        print(f"stages: ended after {minutes:g} minutes: {command[0]}", flush=True)
        return 124
    finally:
        Ending.running = False
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def setup(_: Options) -> Outcome:
    return Outcome(run(["scripts/setup"], 40) == 0)


def c_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.hpp", "*.c", "*.cc"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split() if (ROOT / name).exists()]


def checks(_: Options) -> Outcome:
    ruff = str(VENV / "ruff")
    commands = [
        [sys.executable, "tools/check_layers.py"],
        [sys.executable, "tools/check_style.py"],
        [ruff, "check", "--quiet", "."],
        [ruff, "format", "--check", "--quiet", "."],
        [str(VENV / "python"), "tools/check_settings_page.py"],
    ]
    codes = [run(command, 5) for command in commands]
    print("+ clang-format --dry-run -Werror", flush=True)
    codes.append(subprocess.run(["clang-format", "--dry-run", "-Werror", *c_files()], cwd=ROOT, check=False).returncode)
    failed = sum(code != 0 for code in codes)
    return Outcome(failed == 0, Counts(passed=len(codes) - failed, failed=failed))


def cpp(preset: str, target: str = "all") -> Callable[[Options], Outcome]:
    def stage(options: Options) -> Outcome:
        folder = fresh_folder(preset)
        build = ["cmake", "--build", "--preset", preset, "--target", target]
        if run(["cmake", "--preset", preset, "--log-level=WARNING"], 5) != 0 or run(build, 45) != 0:
            return Outcome(False, Counts(failed=1))
        env = {"GTEST_OUTPUT": f"xml:{folder}/", **long_env(options)}
        if options.long:  # sanitizers make it twenty times slower
            env["RONDE_SIM_SEEDS"] = "20000" if preset == "release" else "1000"
        junit = folder / "ctest.junit"
        status = run(["ctest", "--preset", preset, "--no-tests=error", "--output-junit", str(junit)], 30, env)
        counts = results.of_ctest(junit, folder)
        return Outcome(status == 0 and counts.failed == 0, counts)

    return stage


def pytest(name: str, *folders: str) -> Callable[[Options], Outcome]:
    def stage(options: Options) -> Outcome:
        junit = fresh_folder(name) / "pytest.xml"
        env = {"PATH": f"{VENV}:{os.environ['PATH']}", **long_env(options)}
        chosen = [] if options.long else ["-m", "not long"]
        command = [
            str(VENV / "python"),
            "-m",
            "pytest",
            "-q",
            "--durations=5",
            f"--junitxml={junit}",
            *chosen,
            *folders,
        ]
        status = run(command, 90 if options.long else 30, env)
        counts = results.of_pytest(junit, status)
        return Outcome(status == 0 and counts.failed == 0, counts)

    return stage


def long_env(options: Options) -> dict[str, str]:
    return {"RONDE_TEST_LONG": "1"} if options.long else {}


def fresh_folder(name: str) -> Path:
    folder = RESULTS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


STAGES = [
    Stage("setup", "scripts/setup", setup),
    Stage("checks", "layers, style, formatting, generated pages", checks),
    Stage("tools", "the tests of the tools themselves", pytest("tools", "tools")),
    Stage("dev", "C++ with ASan and UBSan", cpp("dev")),
    Stage("release", "C++ as it is shipped", cpp("release")),
    Stage("tsan", "C++ suites with threads, under TSan", cpp("tsan", "threaded_tests")),
    Stage("python", "the Python package", pytest("python", "tests/python")),
    Stage("process", "several processes on this machine", pytest("process", "tests/process")),
    Stage("fault", "killed and stopped processes", pytest("fault", "tests/fault")),
    Stage("netns", "several pretended hosts", pytest("netns", "tests/netns"), needs_root=True),
]


def chosen_stages(only: list[str]) -> list[Stage]:
    """Set-up always comes first: the others need what it makes."""
    return [stage for stage in STAGES if not only or stage.name in only or stage.name == "setup"]


def missing_rights(stages: list[Stage]) -> str:
    names = [stage.name for stage in stages if stage.needs_root]
    if not names or os.geteuid() == 0:
        return ""
    others = " ".join(f"--only {stage.name}" for stage in STAGES if not stage.needs_root and stage.name != "setup")
    told = f"these stages need root (they make network namespaces): {', '.join(names)}"
    return f"{told}. Without root: scripts/test {others}"


def run_stages(stages: list[Stage], options: Options) -> tuple[list[tuple[str, float, Outcome]], bool]:
    done: list[tuple[str, float, Outcome]] = []
    for stage in stages:
        print(f"\n=== {stage.name}: {stage.what}", flush=True)
        begin = time.monotonic()
        outcome = stage.run(options)
        if not outcome.ok and outcome.counts.failed == 0:
            outcome.counts.failed = 1  # the stage itself
        done.append((stage.name, time.monotonic() - begin, outcome))
        if not outcome.ok:
            return done, False
    return done, True


def table(done: list[tuple[str, float, Outcome]], stages: list[Stage]) -> str:
    lines = [f"{'stage':<10}{'seconds':>9}{'passed':>9}{'failed':>9}{'skipped':>9}"]
    for name, seconds, outcome in done:
        counts = outcome.counts
        lines.append(f"{name:<10}{seconds:>9.1f}{counts.passed:>9}{counts.failed:>9}{counts.skipped:>9}")
    lines += [f"{stage.name:<10}   not run" for stage in stages[len(done) :]]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__.split("\n")[0])
    parser.add_argument("--long", action="store_true", help="also the tests that take minutes")
    parser.add_argument(
        "--only", action="append", default=[], choices=[stage.name for stage in STAGES], metavar="STAGE"
    )
    parser.add_argument("--list", action="store_true", help="name the stages and end")
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(f"{stage.name:<10}{stage.what}{' (root)' * stage.needs_root}" for stage in STAGES))
        return 0
    stages = chosen_stages(args.only)
    if complaint := missing_rights(stages):
        print(f"scripts/test: {complaint}\n{Counts(failed=1).line()}")
        return 2
    done, ok = run_stages(stages, Options(long=args.long))
    total = sum((outcome.counts for _, _, outcome in done), Counts())
    print(f"\n{table(done, stages)}\n\n{total.line()}", flush=True)
    return 0 if ok and total.failed == 0 else 1


if __name__ == "__main__":
    Ending.watch()
    sys.exit(main(sys.argv[1:]))
