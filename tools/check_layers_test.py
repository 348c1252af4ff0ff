# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_layers.py, broken once."""

import copy

import check_layers
import pytest

TABLE = {
    "folders": {
        "base": [],
        "os": ["base"],
        "coord": ["base"],
        "plan/inner": ["base"],
        "backend": ["base", "os"],
        "capi": ["base"],
    },
    "tests": {"coord": ["os"]},
    "apart": {"pairs": [["coord", "backend"]]},
    "os_headers": {"folders": ["os"], "exceptions": {"src/base/check.cc": ["unistd.h"]}},
    "single_files": {"spdlog": ["src/base/log.cc"]},
    "generated": {"headers": ["made.h"]},
    "c_interface": {"folders": ["capi"]},
}


@pytest.fixture
def table():
    return copy.deepcopy(TABLE)


def test_a_good_table_has_no_errors(table):
    assert check_layers.check_graph(table) == []


def test_a_cycle_is_found(table):
    table["folders"]["base"] = ["backend"]
    errors = "\n".join(check_layers.check_graph(table))
    assert "base is part of a cycle" in errors
    assert "backend is part of a cycle" in errors


def test_an_unknown_folder_in_the_table_is_found(table):
    table["folders"]["coord"] = ["bsae"]
    assert check_layers.check_graph(table) == ["layers.toml: coord may include bsae, which is no folder"]


@pytest.mark.parametrize("between", [[], ["os"]], ids=["directly", "through another"])
def test_folders_that_stay_apart_may_not_reach_each_other(table, between):
    chain = ["coord", *between, "backend"]
    table["folders"]["backend"] = ["base"]
    for one, other in zip(chain, chain[1:], strict=False):
        table["folders"][one] = [*table["folders"][one], other]
    assert check_layers.check_graph(table) == ["layers.toml: coord reaches backend; the two are to stay apart"]


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("src/coord/a.h", '#include "os/fd.h"', "coord may not include os"),
        ("src/base/a.h", '#include "plan/inner/x.h"', "base may not include plan/inner"),
        ("src/base/a.h", '#include "fd.h"', "does not begin with a folder"),
        ("src/coord/a.h", "#include <unistd.h>", "<unistd.h> belongs into src/os"),
        ("src/coord/a.h", "#include <sys/mman.h>", "<sys/mman.h> belongs into src/os"),
        ("src/coord/a.h", "  #  include <signal.h>", "<signal.h> belongs into src/os"),
        ("src/base/status.h", "#include <spdlog/spdlog.h>", "belongs into src/base/log.cc alone"),
        ("src/coord/a.h", '#include "ronde/ronde.h"', "may not see the C interface"),
        ("src/strange/a.h", "", "not in tools/layers.toml"),
    ],
)
def test_a_forbidden_include_is_found(table, path, text, fault):
    errors = check_layers.check_file(table, path, text, path.endswith("_test.cc"))
    assert len(errors) == 1
    assert fault in errors[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/os/a.cc", "#include <unistd.h>"),
        ("src/os/a.cc", '#include "os/fd.h"\n#include "base/status.h"'),
        ("src/base/check.cc", "#include <unistd.h>"),
        ("src/base/log.cc", "#include <spdlog/spdlog.h>"),
        ("src/coord/a_test.cc", '#include "os/fd.h"\n#include <sys/wait.h>'),
        ("src/capi/a.cc", '#include "ronde/ronde.h"'),
        ("src/plan/inner/a.cc", '#include "plan/inner/b.h"'),
        ("src/coord/a.cc", '#include <vector>\n#include "made.h"'),
    ],
)
def test_a_permitted_include_passes(table, path, text):
    assert check_layers.check_file(table, path, text, path.endswith("_test.cc")) == []


def test_the_line_of_an_include_is_told(table):
    assert check_layers.check_file(table, "src/coord/a.h", '\n\n#include "os/fd.h"', False)[0].startswith(
        "src/coord/a.h:3"
    )


def test_a_header_that_only_tests_include_is_a_test():
    texts = {
        "src/a/a_test.cc": '#include "a/cluster.h"\n#include "a/a.h"',
        "src/a/cluster.h": '#include "a/inner.h"',
        "src/a/inner.h": "",
        "src/a/a.h": "",
        "src/a/a.cc": '#include "a/a.h"',
        "src/a/nobody.h": "",
    }
    assert check_layers.test_files(texts) == {"src/a/a_test.cc", "src/a/cluster.h", "src/a/inner.h"}


def test_an_exception_that_nobody_needs_is_an_error(table):
    assert check_layers.check_exceptions(table, {"src/base/check.cc": "#include <unistd.h>"}) == []
    assert len(check_layers.check_exceptions(table, {"src/base/check.cc": ""})) == 1
    assert len(check_layers.check_exceptions(table, {})) == 1


def test_cmake_agrees_with_the_table(table):
    good = "# a comment\nronde_folder(coord DEPS base LIBS x::y TEST_DEPS os LABELS threads)"
    assert check_layers.check_cmake(table, "coord", good) == []
    assert check_layers.check_cmake(table, "plan/inner", "ronde_folder(plan_inner DEPS base)") == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ronde_folder(coord TEST_DEPS os)", "DEPS lacks base"),
        ("ronde_folder(coord DEPS base os TEST_DEPS os)", "DEPS has os"),
        ("ronde_folder(coord DEPS base)", "TEST_DEPS lacks os"),
        ("ronde_folder(cord DEPS base TEST_DEPS os)", "is called cord"),
    ],
)
def test_cmake_that_disagrees_is_found(table, text, fault):
    errors = check_layers.check_cmake(table, "coord", text)
    assert len(errors) == 1
    assert fault in errors[0]
