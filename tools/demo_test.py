# SPDX-License-Identifier: Apache-2.0
import demo
from demo import Outcome

OUTPUT = """\
greatest difference between the weights of the ranks: 0
RESULT example=torch_digits ranks=2 accuracy=0.9861 samples_per_s=5321
"""


def test_the_output_of_the_example_is_understood():
    assert demo.parse(OUTPUT) == Outcome(2, 0.9861, 5321, 0)
    assert demo.parse(OUTPUT.replace("RESULT", "result")) is None
    assert demo.parse(OUTPUT.split("\n")[1]) is None


def test_speeds_are_told_against_the_first():
    rows = demo.table([Outcome(1, 0.98, 1000, 0), Outcome(2, 0.97, 1900, 0)]).split("\n")
    assert rows[1].split() == ["1", "98.00", "%", "1000", "1.00", "x", "0"]
    assert rows[2].split() == ["2", "97.00", "%", "1900", "1.90", "x", "0"]


def test_good_outcomes_have_no_fault():
    assert demo.faults([Outcome(1, 0.97, 1, 0)]) == []


def test_bad_outcomes_are_told():
    found = demo.faults([Outcome(1, 0.9699, 1, 0), Outcome(2, 0.98, 1, 1e-9), Outcome(4, 0.98, 1, float("nan"))])
    assert len(found) == 3
    assert "only 96.99%" in found[0]
    assert "2 ranks differ" in found[1]
    assert "4 ranks differ" in found[2]
