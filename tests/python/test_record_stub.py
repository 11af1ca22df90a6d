"""_record.pyi is written by hand, because it documents the recorder; this test compares it with the compiled module.

Both must declare the same names, parameters and defaults. The stub may be more specific than C++ can be: a Literal
where the module takes any string, a path where it takes any object.
"""

import ast
from pathlib import Path

import pytest

_record = pytest.importorskip("firelane._record")
stubgen = pytest.importorskip("nanobind.stubgen")

STUB = Path(__file__).resolve().parents[2] / "python" / "firelane" / "_record.pyi"


def source(node):
    return None if node is None else ast.unparse(node)


def signature(function):
    """(what it is, type) for each parameter and the result."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    parts = [(f"{a.arg} = {source(d)}", source(a.annotation)) for a, d in zip(positional, defaults, strict=True)]
    if arguments.vararg is not None:
        parts.append(("*", None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append((f"keyword {argument.arg} = {source(default)}", source(argument.annotation)))
    return [*parts, ("result", source(function.returns))]


def declarations(body, prefix=""):
    """Qualified name -> its parts, each with its type. A property with a setter is an attribute."""
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[prefix + node.name] = []
            found |= declarations(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign):
            found[prefix + node.target.id] = [("attribute", source(node.annotation))]
        elif isinstance(node, ast.FunctionDef) and node.name != "__repr__":
            decorators = [source(decorator) for decorator in node.decorator_list]
            if decorators == [f"{node.name}.setter"]:
                found[prefix + node.name] = [("attribute", found[prefix + node.name][0][1])]
            elif decorators == ["property"]:
                found[prefix + node.name] = [("property", source(node.returns))]
            else:
                found[prefix + node.name] = signature(node)
    return found


def is_specific_enough(said, native):
    if native in (None, "object", "object | None"):
        return True
    return said == native or said.startswith(f"{native}[") or (native == "str" and "Literal" in said)


def test_the_recorder_stub_declares_what_the_module_has():
    generator = stubgen.StubGen(_record._native, quiet=True)
    generator.put(_record._native)
    stub, native = (declarations(ast.parse(text).body) for text in (STUB.read_text(), generator.get()))
    assert stub.keys() == native.keys()
    for name, parts in stub.items():
        assert [part for part, _ in parts] == [part for part, _ in native[name]], name
        for (part, said), (_, compiled) in zip(parts, native[name], strict=True):
            assert is_specific_enough(said, compiled), f"{name}, {part}: {said} is not {compiled}"
