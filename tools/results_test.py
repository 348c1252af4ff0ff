# SPDX-License-Identifier: Apache-2.0
import results
from results import Counts

GTEST = """<testsuites><testsuite name="A">
<testcase name="one" status="run" classname="A"/>
<testcase name="two" status="run" classname="A"><failure message="m"/><failure message="n"/></testcase>
<testcase name="three" status="run" classname="A"><skipped message="there is no GPU"/></testcase>
<testcase name="off" status="notrun" classname="A"/>
</testsuite></testsuites>"""

PYTEST = """<testsuites><testsuite>
<testcase classname="t" name="a"/>
<testcase classname="t" name="b"><error message="at setup"/></testcase>
<testcase classname="t" name="c"><skipped type="pytest.skip" message="no GPU here"/></testcase>
<testcase classname="t" name="d"><skipped type="pytest.skip" message="not today"/></testcase>
</testsuite></testsuites>"""


def ctest(*rows):
    cases = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in rows)
    return f"<testsuite>{cases}</testsuite>"


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_googletest_cases_are_counted(tmp_path):
    write(tmp_path, "base_test.xml", GTEST)
    junit = write(tmp_path, "ctest.junit", ctest(("base", "fail")))
    assert results.of_ctest(junit, tmp_path) == Counts(passed=1, failed=1, skipped=1)


def test_a_program_that_dies_is_one_failure(tmp_path):
    junit = write(tmp_path, "ctest.junit", ctest(("base", "fail"), ("os", "fail")))
    write(tmp_path, "os_test.xml", GTEST.replace("<failure", "<properties"))
    assert results.of_ctest(junit, tmp_path) == Counts(passed=0 + 2, failed=2, skipped=1)


def test_a_program_without_googletest_counts_as_one_case(tmp_path):
    junit = write(tmp_path, "ctest.junit", ctest(("exports", "run")))
    assert results.of_ctest(junit, tmp_path) == Counts(passed=1)


def test_a_ctest_that_left_nothing_is_a_failure(tmp_path):
    assert results.of_ctest(tmp_path / "none", tmp_path) == Counts(failed=1)


def test_pytest_cases_are_counted_and_only_a_missing_gpu_excuses_a_skip(tmp_path):
    junit = write(tmp_path, "pytest.xml", PYTEST)
    assert results.of_pytest(junit, 1) == Counts(passed=1, failed=2, skipped=1)


def test_a_pytest_that_died_is_a_failure(tmp_path):
    assert results.of_pytest(tmp_path / "none", 2) == Counts(failed=1)
    good = write(tmp_path, "pytest.xml", '<testsuite><testcase name="a"/></testsuite>')
    assert results.of_pytest(good, 3) == Counts(passed=1, failed=1)


def test_the_last_line():
    assert (Counts(1, 2, 3) + Counts(1, 0, 0)).line() == "2 passed, 2 failed, 3 skipped"
