#!/usr/bin/env python3
"""Checks every #include and every namespace below src/ against src/LAYERS.

    tools/check_layers.py [ROOT]      prints one line per violation, exit code 1 if there is one

A line of LAYERS names a room, the rooms it may include, and in sections after it:

    | namespace: X    its code is in `firelane::X`; without this section, in `firelane` itself
    | third: ...      the libraries that it may include
    | tests: ...      rooms that only its tests (`*_test.*`, `testing.*`) may include
    | folders: ...    its folders; each may include only those named before it

A room may only name rooms listed above it, so there are no cycles. Two files that define a type of the same name
in the same namespace are rejected, and two rooms that define the same function there: linked into one program, one of
them silently wins, or the link fails in a program that nobody has linked yet. The public headers below include/ count
as a room of their own, which includes nothing of src/.

An analysis that somebody asks a trace for, `trace.get<analyze::NAME>()`, is called by its name in no room above
analyze: that would compute it again.
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
    r"|(?P<type>^(?:enum class|enum|class|struct|union) (?:(?:alignas\s*\((?:[^()]|\([^()]*\))*\)|\[\[[^\]]*\]\])\s*)*"
    r"(?P<type_name>\w+)\b(?!::|\s*<)(?=[^;{}()=]*\{))"
    r"|(?P<function>^(?!(?:inline|static|constexpr|consteval|template|using|typedef|extern|namespace|return|else)\b)"
    r"[A-Za-z_][\w:<>,&*\[\] ]*[ &*>](?P<function_name>\w+)"
    r"\((?P<parameters>[^;{}]*)\)\s*(?:noexcept\s*)?(?:->[^;{}()]*)?(?=\{))"
    r"|(?P<brace>[{}])",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Definition:
    namespace: str
    name: str  # of a function with the types of its parameters
    line: int
    is_function: bool = False


TEMPLATE_HEAD = re.compile(r"template\s*<[^;{}]*>\s*(requires[^;{}]*)?\Z")


def signature(name: str, parameters: str) -> str:
    """The function as an overload is told apart: without the names and defaults of its parameters."""
    types: list[str] = []
    depth = 0
    for part in re.split(r"([<>(),])", re.sub(r"//[^\n]*|/\*.*?\*/", " ", parameters, flags=re.DOTALL)):
        depth += (part in "<(") - (part in ">)") if part else 0
        if part == "," and depth == 0:
            types.append("")
        else:
            types[-1:] = [(types[-1] if types else "") + part]
    plain = []
    for each in types:
        text = " ".join(each.partition("=")[0].split())
        text = re.sub(r"(?<=[\w>&*]) ?\b(?<!:)(?<=[ &*>])[a-z_]\w*$", "", text) if re.search(r"[ &*>]", text) else text
        plain.append(text.strip())
    return f"{name}({', '.join(plain)})"


def scan_namespaces(text: str) -> tuple[list[tuple[str, int, str]], list[Definition]]:
    """The named namespaces that a file opens at the top (name, line, what is in them), and the types and the functions
    that it defines in them: neither inline nor static, no templates. Unnamed namespaces are the file's own business."""
    opened: list[tuple[str, int, int]] = []  # name, line, where its text begins
    found: list[tuple[str, int, str]] = []
    definitions: list[Definition] = []
    stack: list[str | None] = []  # a name per open brace; None: not a namespace; "": an unnamed one
    for match in TOKEN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["namespace"]:
            stack.append(match["name"].strip())
            if len(stack) == 1:
                opened.append((stack[0] or "", line, match.end()))
        elif match["type"] and all(stack):
            definitions.append(Definition(inside(stack), match["type_name"], line))
        elif match["function"]:
            if stack and all(stack) and not TEMPLATE_HEAD.search(text[max(0, match.start() - 400) : match.start()]):
                called = signature(match["function_name"], match["parameters"])
                definitions.append(Definition(inside(stack), called, line, is_function=True))
        elif match["brace"] == "{":
            stack.append(None)
        elif match["brace"] == "}" and stack:
            stack.pop()
            if not stack and opened:
                name, start_line, start = opened.pop()
                found.append((name, start_line, text[start : match.start()]))
    return found, definitions


def inside(stack: list[str | None]) -> str:
    return "::".join(name for name in stack if name)


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


@dataclass
class Place:
    room: str
    path: str
    line: int


def check_definitions(definitions: dict[tuple[str, str], list[Place]], functions: set[tuple[str, str]]) -> list[str]:
    """A type may be defined once; a function once in a room: the linker finds the second one there."""
    problems = []
    for key, places in sorted(definitions.items()):
        first = places[0]
        others = [each for each in places[1:] if key not in functions or each.room != first.room]
        if others:
            again = f"{others[0].path}:{others[0].line}"
            problems.append(f"{first.path}:{first.line}: {'::'.join(key)} is defined again at {again}")
    return problems


REMEMBERED = re.compile(r"\bget<analyze::(\w+)>")
CALLED = re.compile(r"\banalyze::(\w+)\((?!const )")


def check_remembered(calls: list[tuple[str, str]], remembered: set[str]) -> list[str]:
    """`calls`: where a function of analyze is called, and which."""
    return [
        f"{place}: analyze::{name} is remembered: ask for trace.get<analyze::{name}>()"
        for place, name in calls
        if name in remembered
    ]


def source_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in SOURCE_SUFFIXES and path.is_file()]


def check_public(relative: str, text: str) -> list[str]:
    """What is wrong with a public header: programs that include it have neither src/ nor our libraries."""
    problems = []
    for match in INCLUDE.finditer(text):
        if match[1] == '"' or not (match[2].startswith("firelane/") or is_system(match[2])):
            line = text.count("\n", 0, match.start(2)) + 1
            problems.append(f"{relative}:{line}: a public header may include std and <firelane/...> only ({match[2]})")
    for namespace, line, _ in scan_namespaces(text)[0]:
        if namespace != "firelane" and not namespace.startswith("firelane::"):
            problems.append(f"{relative}:{line}: opens namespace {namespace}; its own is firelane")
    return problems


def check_tree(root: Path) -> list[str]:
    source_root = root / "src"
    rooms = parse_layers((source_root / "LAYERS").read_text())
    problems = []
    definitions: dict[tuple[str, str], list[Place]] = {}
    functions: set[tuple[str, str]] = set()
    remembered: set[str] = set()
    calls: list[tuple[str, str]] = []

    def define(room: str, path: str, found: list[Definition]) -> None:
        for each in found:
            key = (each.namespace, each.name)
            definitions.setdefault(key, []).append(Place(room, path, each.line))
            if each.is_function:
                functions.add(key)

    for path in source_files(root / "include"):
        relative = path.relative_to(root).as_posix()
        text = path.read_text(errors="replace")
        problems += check_public(relative, text)
        define("include", relative, scan_namespaces(text)[1])
    for path in source_files(source_root):
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
        remembered.update(REMEMBERED.findall(text))
        if not is_test:
            calls += [
                (f"src/{relative}:{text.count(chr(10), 0, match.start()) + 1}", match[1])
                for match in CALLED.finditer(text)
            ]
        opened, found = scan_namespaces(text)
        for namespace, line, inside in opened:
            problem = check_namespace(room, namespace, inside, text, rooms)
            if problem:
                problems.append(f"src/{relative}:{line}: {problem}")
        define(room.name, f"src/{relative}", found)
    return problems + check_definitions(definitions, functions) + check_remembered(calls, remembered)


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
