# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_style.py, broken once, and the measuring of functions."""

import check_style
import pytest

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


@pytest.mark.parametrize(
    "text",
    [LICENCE, "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n", "/* SPDX-License-Identifier: Apache-2.0 */"],
)
def test_a_licence_line_is_seen(text):
    assert check_style.check_licence("a", text) == []


@pytest.mark.parametrize("text", ["", "int x;\n" + LICENCE, "#!/bin/bash\n\n# SPDX-License-Identifier: Apache-2.0\n"])
def test_a_missing_licence_line_is_found(text):
    assert len(check_style.check_licence("a", text)) == 1


@pytest.mark.parametrize(
    "path",
    ["src/utils/a.cc", "src/base/string_utils.h", "python/helpers.py", "a/ring_v2.cc", "a/manager.h", "a/x_impl.cc"],
)
def test_a_name_that_says_nothing_is_found(path):
    assert len(check_style.check_path(path)) == 1


def test_a_good_name_passes():
    assert check_style.check_path("src/member/store_client.cc") == []


@pytest.mark.parametrize(
    "line",
    [
        "// see issue 12",
        "// fixes #7",
        "# PR 3 did this",
        "class LinkManager {",
        "struct FooImpl;",
        "namespace ring_utils {",
    ],
)
def test_a_bad_word_is_found(line):
    assert len(check_style.check_words("a.cc", "good\n" + line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "// the issue is that rank 3 waits",
        "color: &#12;",
        "batch #3",
        "#include <a>",
        "struct Implied {",
        "#!/bin/bash",
    ],
)
def test_a_good_line_passes(line):
    assert check_style.check_words("a.cc", line) == []


FUNCTIONS = """\
namespace a {
class B {
 public:
  B() : x_{1} {}
  int one() const { return x_; }

 private:
  int x_ = 0;
  static constexpr int kTable[] = {1, 2};
};
struct C final : Base<int(int)> {
  void run();
};
// void commented() { {{{
int two(
    int a) {
  const char* text = "}}} // not a comment";
  auto f = [&] { return '{'; };
  for (;;) {
    if (a > 1'000) { break; }
  }
  return a;
}
#define NOT_A_FUNCTION(x) \\
  do { \\
    x; \\
  } while (0)
TEST(Name, it_works) {
  EXPECT_EQ(1, 1);
}
}  // namespace a
"""


def test_functions_are_measured():
    found = {name: (first, lines) for name, first, lines in check_style.c_functions(FUNCTIONS)}
    assert found["one"] == (5, 1)
    assert found["two"] == (15, 9)
    assert found["TEST"] == (28, 3)
    assert "f" not in found
    assert "NOT_A_FUNCTION" not in found


def test_python_functions_are_measured():
    assert check_style.py_functions("def f():\n    return 1\n\n\nasync def g():\n    pass\n") == [
        ("f", 1, 2),
        ("g", 5, 2),
    ]


def test_a_long_function_is_found():
    text = LICENCE + "int f() {\n" + "  g();\n" * 79 + "}\n"
    sizes = check_style.sizes_of("a.cc", text)
    assert check_style.check_sizes(sizes, {}) == ["a.cc:f: 81 lines, the limit is 80"]


def test_a_long_file_is_found_and_tests_may_be_longer():
    text = "int x;\n" * 550
    assert check_style.check_sizes(check_style.sizes_of("a.cc", text), {}) == ["a.cc: 550 lines, the limit is 500"]
    assert check_style.check_sizes(check_style.sizes_of("a_test.cc", text), {}) == []


def test_an_exception_may_only_shrink():
    def errors(size, listed):
        return check_style.check_sizes({"a.cc": (size, 500)}, {"a.cc": listed})

    assert errors(600, 600) == []
    assert "has grown" in errors(601, 600)[0]
    assert "note the new size" in errors(599, 600)[0]
    assert "take it off" in errors(400, 600)[0]
    assert "there is no b.cc" in check_style.check_sizes({}, {"b.cc": 600})[0]
