#!/usr/bin/env python3
"""Checks every #include and every namespace below src/ against src/LAYERS.

    tools/check_layers.py [ROOT]      prints one line per violation, exit code 1 if there is one

A line of LAYERS names a room, the rooms it may include, and in sections after it:

    | namespace: X    its code is in `firelane::X`; without this section, in `firelane` itself
    | third: ...      the libraries that it may include
    | tests: ...      rooms that only its tests (`*_test.*`, `testing.*`) may include
    | folders: ...    its folders; each may include only those named before it

A room may only name rooms listed above it, so there are no cycles. Two files that define a type of the same name
in the same namespace are rejected: linked into one program, one of them silently wins.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

# Which library a header belongs to, by the prefix of its path. The first match counts.
LIBRARY_OF_HEADER = {
    "simdjson.h": "simdjson",
    "toml++/": "tomlplusplus",
    "isa-l": "isal",
    "zstd": "zstd",
    "CLI/": "cli11",
    "fmt/": "fmt",
    "sqlite3": "sqlite",
    "protozero/": "protozero",
    "httplib.h": "httplib",
    "nanobind/": "nanobind",
    "torch/": "torch",
    "ATen/": "torch",
    "c10/": "torch",
    "Python.h": "python",
    "frameobject.h": "python",
    "pythread.h": "python",
    "internal/pycore_": "python",
    "cupti": "cupti",
    "cuda": "cupti",
    "generated_cuda": "cupti",
    "nvml": "nvml",
    "gtest/": "gtest",
    "gmock/": "gtest",
}
# Headers of C, POSIX, Linux and the compiler that do not look like C++'s own (which have no dot and no slash).
SYSTEM_HEADER = re.compile(
    r"(sys|linux|arpa|netinet|net|asm)/[\w/.-]+\.h"
    r"|(cxxabi|dirent|dlfcn|elf|errno|fcntl|fnmatch|glob|immintrin|x86intrin|arm_neon|cpuid|limits|link|math|netdb|poll"
    r"|pthread|pwd|sched|semaphore|setjmp|signal|spawn|stdbool|stddef|stdint|stdio|stdlib|string|syscall|termios|time"
    r"|ucontext|unistd)\.h"
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".hpp", ".inc"}


@dataclass
class Room:
    name: str
    rooms: set[str] = field(default_factory=set)
    third: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    folders: list[str] = field(default_factory=list)
    namespace: str = "firelane"


class LayersError(Exception):
    """LAYERS itself is invalid."""


def parse_layers(text: str) -> dict[str, Room]:
    rooms: dict[str, Room] = {}
    for number, written in enumerate(text.splitlines(), start=1):
        line = written.partition("#")[0].strip()
        if not line:
            continue
        name, colon, rest = line.partition(":")
        if not colon:
            raise LayersError(f"line {number}: expected 'room: rooms it may include', got {line!r}")
        room = Room(name.strip())
        if room.name in rooms:
            raise LayersError(f"line {number}: {room.name} is named twice")
        first, *sections = rest.split("|")
        room.rooms = set(first.split())
        for section in sections:
            kind, _, words = section.strip().partition(":")
            if kind == "third":
                room.third = set(words.split())
            elif kind == "tests":
                room.tests = set(words.split())
            elif kind == "folders":
                room.folders = words.split()
            elif kind == "namespace":
                room.namespace = f"firelane::{words.strip()}"
            else:
                raise LayersError(
                    f"line {number}: unknown section {kind!r}; known are namespace, third, tests, folders"
                )
        for below in sorted(room.rooms - rooms.keys()):
            raise LayersError(f"line {number}: {room.name} may include {below}, which is not listed above it")
        for library in sorted(room.third - set(LIBRARY_OF_HEADER.values())):
            raise LayersError(f"line {number}: library {library!r} is not in tools/check_layers.py")
        rooms[room.name] = room
    return rooms


def room_of(path: str, rooms: dict[str, Room]) -> Room | None:
    """The room whose folder holds `path`, the innermost if several do."""
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        room = rooms.get("/".join(parts[:length]))
        if room:
            return room
    return None


def library_of(header: str) -> str | None:
    for prefix, library in LIBRARY_OF_HEADER.items():
        if header.startswith(prefix):
            return library
    return None


def is_system(header: str) -> bool:
    return re.fullmatch(r"[a-z_0-9]+", header) is not None or SYSTEM_HEADER.fullmatch(header) is not None


def check_include(room: Room, header: str, quoted: bool, is_test: bool, rooms: dict[str, Room]) -> str | None:
    """What is wrong with this include, or None."""
    allowed_rooms = room.rooms | {room.name} | (room.tests if is_test else set())
    if quoted:
        target = room_of(header, rooms)
        if target is None:
            return f'"{header}" is not in a room of src/LAYERS (paths start at src/)'
        if target.name not in allowed_rooms:
            return f'room {room.name} may not include room {target.name} ("{header}")'
        return None
    library = library_of(header)
    if library == "gtest":
        return None if is_test else f"<{header}> belongs in files named *_test.cc or testing.h"
    if library is not None:
        return None if library in room.third else f"room {room.name} may not include {library} (<{header}>)"
    if header.startswith("firelane/") or is_system(header):
        return None
    return f"<{header}> is unknown; name its library in LIBRARY_OF_HEADER of tools/check_layers.py"


def folder_of(path: str, room: Room) -> str | None:
    """The folder of the room in which `path` lies, None for files of the room itself."""
    first, slash, _ = path.removeprefix(room.name + "/").partition("/")
    return first if slash else None


def check_folder(room: Room, path: str, header: str) -> str | None:
    """What is wrong with one folder of a room including another, or None."""
    inside, target = folder_of(path, room), folder_of(header, room)
    if not header.startswith(room.name + "/") or target is None or inside is None or target == inside:
        return None
    for folder in (inside, target):
        if folder not in room.folders:
            return f"folder {room.name}/{folder} is not named in src/LAYERS"
    if room.folders.index(target) > room.folders.index(inside):
        return f'folder {room.name}/{inside} may not include {room.name}/{target} ("{header}")'
    return None


# Comments, literals, and what matters to namespaces: their heads, braces, and heads of types.
TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    r"|(?P<namespace>^(?:inline )?namespace\b(?P<name>[ \w:]*)\{)"
    r"|(?P<type>^(?:enum class|enum|class|struct|union) (?P<type_name>\w+)\b(?!::)(?=[^;{}()=]*\{))"
    r"|(?P<brace>[{}])",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Definition:
    namespace: str
    name: str
    line: int


def scan_namespaces(text: str) -> tuple[list[tuple[str, int, str]], list[Definition]]:
    """The named namespaces that a file opens at the top (name, line, what is in them), and the types that it defines in
    them. Unnamed namespaces are the file's own business."""
    opened: list[tuple[str, int, int]] = []  # name, line, where its text begins
    found: list[tuple[str, int, str]] = []
    types: list[Definition] = []
    stack: list[str | None] = []  # a name per open brace; None: not a namespace; "": an unnamed one
    for match in TOKEN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["namespace"]:
            stack.append(match["name"].strip())
            if len(stack) == 1:
                opened.append((stack[0] or "", line, match.end()))
        elif match["type"] and all(stack):
            types.append(Definition("::".join(name for name in stack if name), match["type_name"], line))
        elif match["brace"] == "{":
            stack.append(None)
        elif match["brace"] == "}" and stack:
            stack.pop()
            if not stack and opened:
                name, start_line, start = opened.pop()
                found.append((name, start_line, text[start : match.start()]))
    return found, types


FORWARD_DECLARATIONS = re.compile(r"\s*((class|struct) \w+;\s*)+")


def check_namespace(room: Room, namespace: str, inside: str, text: str, rooms: dict[str, Room]) -> str | None:
    """What is wrong with a namespace that a file of the room opens, or None."""
    if namespace == room.namespace or (namespace.startswith(room.namespace + "::") and room.namespace != "firelane"):
        return None
    if not namespace.startswith("firelane"):
        return None  # an unnamed one, or of a library: forward declarations, specialisations
    if namespace == "firelane" and "#include <firelane/" in text:
        return None  # the public header is its own room, in the namespace that users see
    others = {other.namespace for other in rooms.values() if other.name in room.rooms}
    if namespace in others and FORWARD_DECLARATIONS.fullmatch(inside):
        return None
    return f"room {room.name} opens namespace {namespace}; its own is {room.namespace}"


def check_definitions(definitions: dict[tuple[str, str], list[str]]) -> list[str]:
    return [
        f"{places[0]}: {namespace}::{name} is defined again at {places[1]}"
        for (namespace, name), places in sorted(definitions.items())
        if len(places) > 1
    ]


def check_tree(root: Path) -> list[str]:
    source_root = root / "src"
    rooms = parse_layers((source_root / "LAYERS").read_text())
    problems = []
    definitions: dict[tuple[str, str], list[str]] = {}
    for path in sorted(source_root.rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
            continue
        relative = path.relative_to(source_root).as_posix()
        text = path.read_text(errors="replace")
        room = room_of(relative, rooms)
        if room is None:
            problems.append(f"src/{relative}:1: is in no room of src/LAYERS")
            continue
        is_test = path.stem.endswith("_test") or path.stem == "testing"
        for match in INCLUDE.finditer(text):
            problem = check_include(room, match[2], match[1] == '"', is_test, rooms)
            if not problem and not is_test:
                problem = check_folder(room, relative, match[2])
            if problem:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"src/{relative}:{line}: {problem}")
        opened, types = scan_namespaces(text)
        for namespace, line, inside in opened:
            problem = check_namespace(room, namespace, inside, text, rooms)
            if problem:
                problems.append(f"src/{relative}:{line}: {problem}")
        for each in types:
            definitions.setdefault((each.namespace, each.name), []).append(f"src/{relative}:{each.line}")
    return problems + check_definitions(definitions)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    try:
        problems = check_tree(root)
    except LayersError as error:
        print(f"src/LAYERS: {error}")
        return 1
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
