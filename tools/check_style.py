# SPDX-License-Identifier: Apache-2.0
"""House rules that a formatter does not know: licence line, names, sizes of files and functions, words.

Sizes over the limit stand in tools/style_exceptions.toml with their present size, which may only shrink.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE = {".h", ".hpp", ".c", ".cc", ".py", ".cmake", ".sh"}
C_CODE = {".h", ".hpp", ".c", ".cc"}
# Also read for words, though the licence line has no place in them.
PROSE = {".md", ".toml", ".json", ".yaml", ".yml", ".txt"}

OWN_TEST = "tools/check_style_test.py"  # holds what it forbids

FILE_LINES = 500
TEST_FILE_LINES = 600
FUNCTION_LINES = 80

BAD_NAME = re.compile(r"^(utils?|common|helpers?|manager|impl|misc|v2)$")
BAD_TYPE = re.compile(
    r"\b(?:class|struct|namespace|enum class)\s+(\w*(?:[Uu]tils?|[Cc]ommon|[Hh]elpers?|Manager|Impl|V2))\b"
)
# The project speaks of itself alone: a reference to a tracker says nothing to who reads the code later.
TRACKER = re.compile(r"\b(?:issue|pull request|PR)s?\s+#?\d+\b|\b(?:fix(?:es)?|closes|see)\s+#\d+\b", re.IGNORECASE)
# Words that do not belong here, as digests so that this file does not hold them either.
BAD_WORDS = frozenset(
    {
        "c857d09db23e6822",
        "60965168ce762e94",
        "7d3194f79e645c42",
        "c70eca6b0f88f44d",
        "3ea125d0bff386e6",
        "487b91042c7cf27a",
    }
)


def is_test(path: str) -> bool:
    name = Path(path)
    return name.stem.endswith(("_test", "_bench")) or name.stem.startswith("test_") or name.parts[0] == "tests"


def digest(word: str) -> str:
    return hashlib.sha256(word.lower().encode()).hexdigest()[:16]


def check_licence(path: str, text: str) -> list[str]:
    lines = text.split("\n", 2)[:2]
    first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    return [] if SPDX in first else [f"{path}:1: the first line must say {SPDX}"]


def check_path(path: str) -> list[str]:
    words = [word for part in Path(path).parts for word in re.split(r"[_.\-]", part)]
    return [
        f"{path}: the name '{word}' says nothing; name it for what is in it" for word in words if BAD_NAME.match(word)
    ]


def check_words(path: str, text: str) -> list[str]:
    errors = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := TRACKER.search(line):
            errors.append(f"{path}:{number}: '{match[0]}' refers to a tracker")
        if match := BAD_TYPE.search(line):
            errors.append(f"{path}:{number}: the name '{match[1]}' says nothing; name it for what it does")
        bad = [word for word in re.findall(r"[A-Za-z]+", line) if digest(word) in BAD_WORDS]
        errors += [f"{path}:{number}: the word '{word}' has no place here" for word in bad]
    return errors


def blank_out(text: str) -> str:
    """C++ without comments and literals, each replaced by as many spaces, so that lines and columns stay."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL,
    )

    def spaces(match: re.Match) -> str:
        before = text[match.start() - 1] if match.start() else " "
        if match[0].startswith("'") and before.isalnum():  # 1'000'000
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return pattern.sub(spaces, text)


OPENS_NO_FUNCTION = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()]*$|=\s*$")


def c_functions(text: str) -> list[tuple[str, int, int]]:
    """(name, first line, lines) of each outermost function; by counting braces, good enough for sizes."""
    code = re.sub(
        r"^\s*#.*?(?<!\\)$", lambda m: re.sub(r"[^\n]", " ", m[0]), blank_out(text), flags=re.MULTILINE | re.DOTALL
    )
    found = []
    inside: list[tuple[str, int] | None] = []  # what each open brace belongs to: a function, or something else
    start = 0
    for match in re.finditer(r"[{};]", code):
        if match[0] == "{":
            header = code[start : match.start()]
            in_function = any(inside)
            name = re.search(r"([~\w:]+|operator\S+)\s*\(", header)
            is_function = not in_function and name is not None and not OPENS_NO_FUNCTION.search(header)
            first = code.count("\n", 0, start + len(header) - len(header.lstrip())) + 1
            inside.append((name[1], first) if is_function and name else None)
        elif match[0] == "}" and inside:
            opened = inside.pop()
            if opened:
                found.append((opened[0], opened[1], code.count("\n", 0, match.start()) + 2 - opened[1]))
        start = match.end()
    return found


def py_functions(text: str) -> list[tuple[str, int, int]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return [(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]


def sizes_of(path: str, text: str) -> dict[str, tuple[int, int]]:
    """What is measured in a file: key -> (size, limit)."""
    sizes = {path: (text.count("\n"), TEST_FILE_LINES if is_test(path) else FILE_LINES)}
    functions = c_functions(text) if Path(path).suffix in C_CODE else py_functions(text) if path.endswith(".py") else []
    for name, _, lines in functions:
        key = f"{path}:{name}"
        sizes[key] = (max(lines, sizes.get(key, (0, 0))[0]), FUNCTION_LINES)
    return sizes


def check_sizes(sizes: dict[str, tuple[int, int]], exceptions: dict[str, int]) -> list[str]:
    errors = []
    for key, (size, limit) in sizes.items():
        allowed = exceptions.get(key)
        if allowed is None and size > limit:
            errors.append(f"{key}: {size} lines, the limit is {limit}")
        elif allowed is not None and size <= limit:
            errors.append(f"style_exceptions.toml: {key} is no longer over the limit; take it off the list")
        elif allowed is not None and size != allowed:
            change = "has grown" if size > allowed else "has shrunk: note the new size,"
            errors.append(f"style_exceptions.toml: {key} {change} from {allowed} to {size} lines")
    errors += [f"style_exceptions.toml: there is no {key}" for key in exceptions if key not in sizes]
    return errors


def is_script(text: str) -> bool:
    return text.startswith("#!")


def project_files(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    return sorted(name for name in names if name and (root / name).is_file())


def check(root: Path) -> list[str]:
    exceptions = tomllib.loads((root / "tools/style_exceptions.toml").read_text())["lines"]
    errors: list[str] = []
    sizes: dict[str, tuple[int, int]] = {}
    for path in project_files(root):
        errors += check_path(path)
        suffix = Path(path).suffix
        if suffix and suffix not in CODE | PROSE:
            continue
        text = (root / path).read_text()
        if path != OWN_TEST:
            errors += check_words(path, text)
        if suffix in CODE or is_script(text) or path.endswith("CMakeLists.txt"):
            errors += check_licence(path, text)
            sizes |= sizes_of(path, text)
    return errors + check_sizes(sizes, exceptions)


def main() -> int:
    errors = check(ROOT)
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
