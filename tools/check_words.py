#!/usr/bin/env python3
"""Checks that texts for users do not contain the odd phrases that docs/style.md lists.

    tools/check_words.py [ROOT]      prints one line per place, exit code 1 if there is one

The phrases are in the section "Phrases that stay out" of docs/style.md, in the first column of its table, each in
backticks. They are searched for, as whole words in any case, in string literals of C++ and Python (adjacent literals of
C++ are one text), in TypeScript without its comments, and in the documents. Comments and tests are not checked.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

SECTION = re.compile(r"^## Phrases that stay out\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CPP_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\\n])+\'|"(?:\\.|[^"\\\n])*"', re.DOTALL)
TS_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
PLACES = ("src/**/*.cc", "src/**/*.h", "python/**/*.py", "viewer/src/**/*.ts", "viewer/src/**/*.tsx", "docs/**/*.md")
EXEMPT = "docs/style.md"  # it lists them

Text = tuple[int, str]  # the line where it begins, and its words


def phrases(style: str) -> list[str]:
    section = SECTION.search(style)
    rows = [line.split("|")[1] for line in section["body"].splitlines() if line.startswith("|")] if section else []
    return [phrase for row in rows for phrase in re.findall(r"`([^`]+)`", row)]


def cpp_texts(source: str) -> Iterator[Text]:
    text, begin, end = "", 0, -1
    for token in CPP_TOKEN.finditer(source):
        if not token[0].startswith('"'):
            continue
        if end < 0 or source[end : token.start()].strip():
            yield begin, text
            text, begin = "", source.count("\n", 0, token.start()) + 1
        text += token[0][1:-1].replace("\\n", " ")
        end = token.end()
    yield begin, text


def python_texts(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], token.string


def texts(path: Path) -> Iterator[Text]:
    source = path.read_text()
    if path.suffix in (".cc", ".h"):
        yield from cpp_texts(source)
    elif path.suffix == ".py":
        yield from python_texts(source)
    elif path.suffix == ".md":
        yield 1, source
    else:
        yield 1, TS_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), source)


def is_test(path: Path) -> bool:
    return bool(re.search(r"(_test|\.test)\.\w+$", path.name))


def odd_phrases(root: Path) -> list[str]:
    banned = phrases((root / EXEMPT).read_text())
    if not banned:
        return [f"{EXEMPT}: no section 'Phrases that stay out' with a table"]
    pattern = re.compile(
        "|".join(rf"\b{re.escape(phrase)}\b".replace(r"\ ", r"\s+") for phrase in banned), re.IGNORECASE
    )
    files = [path for place in PLACES for path in sorted(root.glob(place)) if not is_test(path)]
    found = []
    for path in [*files, root / "README.md"]:
        name = path.relative_to(root).as_posix()
        if name == EXEMPT or not path.exists():
            continue
        for begin, text in texts(path):
            for match in pattern.finditer(text):
                line = begin + text.count("\n", 0, match.start())
                found.append(f"{name}:{line}: '{' '.join(match[0].split())}'; docs/style.md has better words")
    return found


def main() -> int:
    problems = odd_phrases(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
