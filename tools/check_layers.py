# SPDX-License-Identifier: Apache-2.0
"""Holds the core to its layers: tools/layers.toml against the #includes and the CMake DEPS of src/."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {".h", ".hpp", ".c", ".cc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
OS_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/", "net/", "asm/")
OS_HEADERS = frozenset(
    {
        *(
            "dirent.h",
            "dlfcn.h",
            "execinfo.h",
            "fcntl.h",
            "glob.h",
            "grp.h",
            "ifaddrs.h",
            "netdb.h",
            "poll.h",
        ),
        *("pthread.h", "pty.h", "pwd.h", "sched.h", "signal.h", "spawn.h", "syscall.h", "termios.h", "ucontext.h"),
        *("unistd.h", "utime.h", "wait.h"),
    }
)


@dataclass(frozen=True)
class Include:
    line: int
    name: str
    quoted: bool


def includes_of(text: str) -> list[Include]:
    return [
        Include(text.count("\n", 0, match.start(1)) + 1, match[2], match[1] == '"') for match in INCLUDE.finditer(text)
    ]


def folder_of(name: str, folders: set[str]) -> str | None:
    """The folder of the table that a path below src/ lies in; the longest wins."""
    parts = name.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        candidate = "/".join(parts[:length])
        if candidate in folders:
            return candidate
    return None


def is_os_header(include: Include) -> bool:
    return not include.quoted and (include.name in OS_HEADERS or include.name.startswith(OS_FOLDERS))


def may_see_os(table: dict, home: str, path: str, header: str) -> bool:
    rule = table["os_headers"]
    return home in rule["folders"] or header in rule["exceptions"].get(path, [])


def test_files(texts: dict[str, str]) -> set[str]:
    """Tests and benchmarks, and the headers that only they include."""
    tests = {path for path in texts if Path(path).stem.endswith(("_test", "_bench"))}
    includers: dict[str, set[str]] = {}
    for path, text in texts.items():
        for include in includes_of(text):
            includers.setdefault(f"src/{include.name}", set()).add(path)
    grown = True
    while grown:
        found = {path for path in texts if path.endswith(".h") and includers.get(path, {""}) <= tests}
        grown = not found <= tests
        tests |= found
    return tests


def reach_of(graph: dict[str, list[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for folder in graph.get(todo.pop(), []):
            if folder not in seen:
                seen.add(folder)
                todo.append(folder)
    return seen


def check_graph(table: dict) -> list[str]:
    graph = table["folders"]
    errors = []
    for folder, allowed in graph.items():
        errors += [
            f"layers.toml: {folder} may include {name}, which is no folder" for name in allowed if name not in graph
        ]
        if folder in reach_of(graph, folder):
            errors.append(f"layers.toml: {folder} is part of a cycle")
    for one, other in table["apart"]["pairs"]:
        for a, b in ((one, other), (other, one)):
            if b in reach_of(graph, a):
                errors.append(f"layers.toml: {a} reaches {b}; the two are to stay apart")
    return errors


def check_file(table: dict, path: str, text: str, is_test: bool) -> list[str]:
    """`path` is relative to the root, below src/."""
    folders = set(table["folders"])
    inner = path.removeprefix("src/")
    home = folder_of(inner, folders)
    if home is None:
        return [f"{path}: its folder is not in tools/layers.toml"]
    allowed = {home, *table["folders"][home]}
    if is_test:
        allowed.update(table["tests"].get(home, []))
    errors = []
    for include in includes_of(text):
        where = f"{path}:{include.line}"
        single = table["single_files"].get(include.name.split("/")[0].removesuffix(".h"))
        if single is not None:
            if path not in single:
                errors.append(f"{where}: {include.name} belongs into {', '.join(single)} alone")
        elif include.name.startswith("ronde/"):
            if home not in table["c_interface"]["folders"]:
                errors.append(f"{where}: {home} may not see the C interface ({include.name})")
        elif include.quoted and include.name not in table["generated"]["headers"]:
            errors += check_quoted(where, include.name, home, allowed, folders)
        elif is_os_header(include) and not is_test and not may_see_os(table, home, path, include.name):
            errors.append(f"{where}: <{include.name}> belongs into src/os")
    return errors


def check_quoted(where: str, name: str, home: str, allowed: set[str], folders: set[str]) -> list[str]:
    target = folder_of(name, folders)
    if target is None:
        return [f'{where}: "{name}" does not begin with a folder of src/']
    if target not in allowed:
        return [f"{where}: {home} may not include {target} ({name})"]
    return []


def check_exceptions(table: dict, texts: dict[str, str]) -> list[str]:
    """An exception that is not used is an error: the list only shrinks."""
    errors = []
    for path, headers in table["os_headers"]["exceptions"].items():
        used = {include.name for include in includes_of(texts.get(path, ""))}
        errors += [
            f"layers.toml: the exception <{header}> of {path} is not needed" for header in headers if header not in used
        ]
    return errors


CALL = re.compile(r"ronde_folder\s*\(([^)]*)\)")
KEYWORDS = {"DEPS", "LIBS", "LABELS", "TEST_DEPS"}


def parse_call(text: str) -> tuple[str, dict[str, list[str]]] | None:
    """The name and the lists of a ronde_folder(...) call."""
    match = CALL.search(re.sub(r"#.*", "", text))
    if match is None:
        return None
    words = match[1].split()
    lists: dict[str, list[str]] = {keyword: [] for keyword in KEYWORDS}
    current: list[str] = []
    for word in words[1:]:
        if word in KEYWORDS:
            current = lists[word]
        else:
            current.append(word)
    return words[0], lists


def check_cmake(table: dict, folder: str, text: str) -> list[str]:
    where = f"src/{folder}/CMakeLists.txt"
    call = parse_call(text)
    if call is None:
        return []
    name, lists = call
    errors = []
    if name != library_of(folder):
        errors.append(f"{where}: the library is called {name}, not {library_of(folder)}")
    for keyword, allowed in (("DEPS", table["folders"][folder]), ("TEST_DEPS", table["tests"].get(folder, []))):
        wanted = {library_of(name) for name in allowed}
        for dep in sorted(set(lists[keyword]) ^ wanted):
            fault = "lacks" if dep in wanted else "has"
            errors.append(f"{where}: {keyword} {fault} {dep}; tools/layers.toml says otherwise")
    return errors


def library_of(folder: str) -> str:
    return folder.replace("/", "_")


def check(root: Path) -> list[str]:
    table = tomllib.loads((root / "tools/layers.toml").read_text())
    texts = {
        str(path.relative_to(root)): path.read_text()
        for path in sorted((root / "src").rglob("*"))
        if path.suffix in SOURCES
    }
    tests = test_files(texts)
    errors = check_graph(table)
    for path, text in texts.items():
        errors += check_file(table, path, text, path in tests)
    errors += check_exceptions(table, texts)
    for folder in table["folders"]:
        cmake = root / "src" / folder / "CMakeLists.txt"
        if cmake.exists():
            errors += check_cmake(table, folder, cmake.read_text())
        elif (root / "src" / folder).exists():
            errors.append(f"src/{folder} has no CMakeLists.txt")
    return errors


def main() -> int:
    errors = check(ROOT)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
