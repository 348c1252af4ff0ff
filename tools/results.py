# SPDX-License-Identifier: Apache-2.0
"""Counts test cases in what GoogleTest, ctest and pytest leave behind. A program that dies counts as one failure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def is_excused(reason: str) -> bool:
    """The one excuse for a skip: this machine has no GPU."""
    return "gpu" in reason.lower()


def count_cases(root: ET.Element) -> Counts:
    """GoogleTest's and pytest's files agree in this: a <testcase> holds <failure>, <error> or <skipped>, or is good."""
    counts = Counts()
    for case in root.iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
        elif skipped is not None and is_excused(skipped.get("message", "") + (skipped.text or "")):
            counts.skipped += 1
        elif skipped is not None:
            print(f"skipped without the excuse of a missing GPU: {case.get('classname')}.{case.get('name')}")
            counts.failed += 1
        elif case.get("status") != "notrun":
            counts.passed += 1
    return counts


def parse(path: Path) -> ET.Element | None:
    try:
        return ET.parse(path).getroot()
    except (OSError, ET.ParseError):
        return None


def of_pytest(junit: Path, exit_status: int) -> Counts:
    root = parse(junit)
    if root is None:
        return Counts(failed=1)
    counts = count_cases(root)
    if exit_status != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def of_ctest(junit: Path, gtest_folder: Path) -> Counts:
    """The cases of each program; one that failed without a failed case (a crash, a time-out) is one."""
    root = parse(junit)
    if root is None:
        return Counts(failed=1)
    total = Counts()
    for case in root.iter("testcase"):
        own = parse(gtest_folder / f"{case.get('name')}_test.xml")
        counts = count_cases(own) if own is not None else Counts()
        good = case.get("status") == "run"
        if not good and counts.failed == 0:
            counts.failed = 1
        elif good and own is None:
            counts.passed = 1  # a program without GoogleTest
        total += counts
    return total
