"""The command, the server and Python know the same reports, with the same parameters, limits and defaults."""

import ast
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

import firelane

BINARY = Path(__file__).resolve().parents[2] / "build" / "release" / "firelane"
pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="build/release/firelane is not built")

# A name that a table of the trace already has gets another one.
METHOD_OF = {"steps": "steps_summary", "lanes": "lanes_summary", "critical-path": "critical_path"}
# Of every report: where it is written and how it looks.
OF_OUTPUT = {"help", "json", "csv", "markdown", "output", "force", "color", "wide"}
# Of the trace that is opened, whatever is asked of it: arguments of firelane.open.
OF_TRACE = {"execution_trace", "snapshot"}
# How people see the answer, which is the page's own matter.
TEXT_ONLY = {"diagnose": {"short"}, "ops": {"flops", "time_unit"}}
# Of the server's answer, whatever the report: how many rows are sent.
OF_ANSWER = {"rows"}
NUMBERS = [-1, 0, 0.5, 1, 10, 11, 100, 101, 10**6, 10**6 + 1, 10**9, 10**9 + 1, 2**50, 2**50 + 1]
# Verbs with the forms of a report that are not the report of one trace.
NOT_OF_ONE_TRACE = {"sql", "compare", "gate", "baseline", "bench", "sweep", "tune", "ranks", "hangs"}
OTHER_METHODS = {"args", "diagnosis", "export", "report", "sql", "view"}


def command(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, check=False)


def report_verbs():
    verbs = re.findall(r"^  ([a-z-]+) ", command("--help").stdout.split("Verbs:")[1], re.MULTILINE)
    forms = {"--json", "--csv", "--markdown"}
    return [verb for verb in verbs if verb not in NOT_OF_ONE_TRACE and forms <= set(flags_of_help(verb))]


def flags_of_help(verb):
    return re.findall(r"^  (?:-\w,)?(--[a-z-]+)", command(verb, "--help").stdout, re.MULTILINE)


def command_parameters(verb):
    names = {flag[2:].replace("-", "_") for flag in flags_of_help(verb)}
    return names - OF_OUTPUT


def method_name(verb):
    return METHOD_OF.get(verb, verb)


def python_parameters(verb):
    """Name to (type, default) of the keyword arguments, as the stub has them."""
    attribute = getattr(firelane.Trace, method_name(verb))
    return {} if isinstance(attribute, property) else keyword_arguments(attribute)


def keyword_arguments(function):
    signature = function.__nb_signature__[0][0]
    arguments = ast.parse(signature + ": ...").body[0].args
    return {
        name.arg: (ast.unparse(name.annotation), ast.literal_eval(default))
        for name, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if name.arg != "table"
    }


def flag_for(name, value):
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [f"{flag}={value}"]


def python_accepts(trace, verb, name, value):
    try:
        getattr(trace, method_name(verb))(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def server_status(viewer, verb, name, value):
    return viewer.answer("GET", f"/api/t/0/report/{verb}?{name}={quote(str(value))}")[0]


VERBS = report_verbs() if BINARY.exists() else []


@pytest.fixture
def viewer(trace):
    viewer = firelane._trace.Viewer(trace)
    viewer.wait()
    return viewer


def test_every_report_is_a_verb_a_route_and_a_method(viewer):
    assert len(VERBS) >= 19
    methods = {name for name in dir(firelane.Trace) if not name.startswith("_")}
    tables = {name for name in methods if isinstance(getattr(firelane.Trace, name), property)}
    assert {method_name(verb) for verb in VERBS} == (methods - tables - OTHER_METHODS) | {"info"}
    for verb in VERBS:
        status, _, body = viewer.answer("GET", f"/api/t/0/report/{verb}")
        assert status == 200, body
        assert json.loads(body)["title"]


@pytest.mark.parametrize("verb", VERBS)
def test_parameters_are_the_same(verb, viewer):
    names = command_parameters(verb)
    assert names >= OF_TRACE
    names -= OF_TRACE
    assert names == set(python_parameters(verb))
    for name in names - OF_ANSWER:
        refusal = viewer.answer("GET", f"/api/t/0/report/{verb}?{name}=")[2]
        is_known = b"has no parameter" not in refusal
        assert is_known == (name not in TEXT_ONLY.get(verb, set())), (name, refusal)


def test_what_a_verb_opens_a_trace_with_is_what_open_takes():
    assert keyword_arguments(firelane.open).keys() >= OF_TRACE


def numeric_parameters():
    return [
        (verb, name, kind)
        for verb in VERBS
        for name, (kind, _) in python_parameters(verb).items()
        if kind.split(" | ")[0] in ("int", "float")
    ]


@pytest.mark.parametrize("verb, name, kind", numeric_parameters())
def test_limits_are_the_same(verb, name, kind, trace, trace_file, viewer):
    for value in NUMBERS:
        if isinstance(value, float) and kind.startswith("int"):
            continue
        accepted = python_accepts(trace, verb, name, value)
        assert (command(verb, trace_file, *flag_for(name, value)).returncode == 0) == accepted, value
        if name not in OF_ANSWER:
            assert (server_status(viewer, verb, name, value) == 200) == accepted, value


def choices():
    found = []
    for verb in VERBS:
        for name, (kind, _) in python_parameters(verb).items():
            literals = re.search(r"Literal\[(.*?)\]", kind)
            if literals:
                found.append((verb, name, ast.literal_eval(f"[{literals[1]}]")))
    return found


@pytest.mark.parametrize("verb, name, values", choices())
def test_choices_are_the_same(verb, name, values, trace, trace_file, viewer):
    for value in [*values, "moon"]:
        is_choice = value != "moon"
        assert python_accepts(trace, verb, name, value) == is_choice
        assert (command(verb, trace_file, *flag_for(name, value)).returncode == 0) == is_choice
        if name not in TEXT_ONLY.get(verb, set()):
            assert (server_status(viewer, verb, name, value) == 200) == is_choice


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_are_the_same(verb, gpt_full):
    viewer = firelane._trace.Viewer(gpt_full)
    viewer.wait()
    plain = command(verb, gpt_full, "--json").stdout
    route = f"/api/t/0/report/{verb}"
    for name, (_, default) in python_parameters(verb).items():
        if default is None or default is False or default == ():
            continue
        assert command(verb, gpt_full, "--json", *flag_for(name, default)).stdout == plain, name
        assert viewer.answer("GET", f"{route}?{name}={default}")[2] == viewer.answer("GET", route)[2], name
