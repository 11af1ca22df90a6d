"""The option `lines`: which line of the program called each operator, without recording stacks."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import firelane

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build/release/firelane"))
HERE = "test_lines.py"


def stacks_of(run: Callable[[], object], **options) -> list[tuple[str, str | None]]:
    """Name and noted lines of each op, in the order of their begin."""
    with firelane.profile(lines=True, **options) as prof:
        run()
    assert prof.trace is not None
    found = prof.trace.sql(
        "select h.name, o.stack from host_slices h join op_details o on o.slice = h.id order by h.start_ns, h.id"
    )
    return [(row["name"], row["stack"]) for row in found]


def line_of(function: Callable, text: str) -> str:
    """Where `text` stands in a function of this file: "test_lines.py(41): forward"."""
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if text in line)
    name = function.__qualname__ if sys.version_info >= (3, 11) else function.__name__
    return f"{HERE}({first + at}): {name}"


def short(stack: str | None) -> str | None:
    """The first frame, without folders."""
    if stack is None:
        return None
    frame = stack.split(";")[0]
    return frame[frame.rfind("/", 0, frame.find(".py(")) + 1 :]


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        y = self.inner(x)
        return torch.sigmoid(y) * x


def test_an_operator_has_the_line_outside_torch_that_called_it():
    model, x = Gated(), torch.randn(4, 8)
    found = {name: short(stack) for name, stack in stacks_of(lambda: model(x)) if stack}
    assert found["aten::linear"] == line_of(Gated.forward, "self.inner(x)")
    assert found["aten::sigmoid"] == found["aten::mul"] == line_of(Gated.forward, "torch.sigmoid(y)")
    assert "aten::addmm" not in found, "what an operator calls has its line"


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient + gradient


def test_python_code_inside_an_operator_has_lines_of_its_own():
    x = torch.randn(4, requires_grad=True)

    def run():
        Doubled.apply(x).sum().backward()

    found = stacks_of(run)
    lines = [(name, short(stack)) for name, stack in found if stack]
    assert ("Doubled", line_of(run, "Doubled.apply")) in lines
    assert ("aten::mul", line_of(Doubled.forward, "x * 2")) in lines
    assert ("aten::add", line_of(Doubled.backward, "gradient + gradient")) in lines


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, gradient):
        for _ in range(3):
            gradient = gradient * 0.5
        return gradient.expand(4)


def test_a_loop_inside_an_operator_had_its_line_in_the_first_round_only():
    """An operator at the place of the one before it was taken for one that this one calls."""
    x = torch.randn(4, requires_grad=True)
    found = [
        short(stack) for name, stack in stacks_of(lambda: Summed.apply(x).backward()) if name == "aten::mul" and stack
    ]
    assert found == [line_of(Summed.backward, "gradient * 0.5")] * 3


def test_code_that_is_compiled_again_under_the_same_name_had_the_lines_of_the_code_before():
    x = torch.randn(8)

    def run():
        for i in range(50):
            exec(compile("\n" * i + "x.exp()", "same.py", "exec"), {"x": x})

    found = [short(stack) for name, stack in stacks_of(run) if name == "aten::exp"]
    assert found == [f"same.py({i + 1}): <module>" for i in range(50)]


def test_threads_have_their_own_lines_and_threads_without_python_none():
    x = torch.randn(64)

    def work():
        x.cumsum(0)

    def run():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert [short(stack) for name, stack in stacks_of(run) if name == "aten::cumsum"] == [line_of(work, "x.cumsum")]


def test_a_generator_and_a_comprehension_have_the_line_that_runs():
    x = torch.randn(8)

    def parts():
        for i in range(2):
            yield x[i].exp()

    def run():
        for part in parts():
            part.cos()

    found = stacks_of(run)
    assert {short(stack) for name, stack in found if name == "aten::exp"} == {line_of(parts, "yield x[i].exp()")}
    assert {short(stack) for name, stack in found if name == "aten::cos"} == {line_of(run, "part.cos()")}


def test_a_line_of_an_installed_package_comes_with_the_line_of_the_program(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "mypackage.py"
    package.parent.mkdir()
    package.write_text("def reduce(x):\n    return inner(x)\n\ndef inner(x):\n    return x.amax()\n")
    monkeypatch.syspath_prepend(str(package.parent))
    mypackage = importlib.import_module("mypackage")

    def run():
        mypackage.reduce(torch.randn(8))

    (stack,) = {stack for name, stack in stacks_of(run) if name == "aten::amax"}
    package, program, _caller = stack.split(";")
    assert package == "site-packages/mypackage.py(5): inner"
    assert short(program) == line_of(run, "mypackage.reduce")


def test_a_function_that_two_lines_call_says_which(tmp_path):
    model, x = Gated(), torch.randn(4, 8)

    def train():
        model(x)

    def log():
        model(x)

    def run():
        train()
        log()

    found = [stack.split(";") for name, stack in stacks_of(run) if name == "aten::sigmoid"]
    assert [short(frames[0]) for frames in found] == [line_of(Gated.forward, "torch.sigmoid(y)")] * 2
    assert [short(frames[1]) for frames in found] == [line_of(train, "model(x)"), line_of(log, "model(x)")]


def test_names_that_are_not_ascii_are_kept(tmp_path, monkeypatch):
    (tmp_path / "größe_模型.py").write_text("def berechne_größe(x):\n    return x.amin()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("größe_模型")
    found = [stack for name, stack in stacks_of(lambda: module.berechne_größe(torch.randn(8))) if name == "aten::amin"]
    assert [stack.split(";")[0] for stack in found] == ["größe_模型.py(2): berechne_größe"]


def test_code_that_comes_and_goes_at_the_same_address_keeps_its_own_lines():
    """Code objects of `exec` are freed and their memory is used again: an address means nothing."""
    x = torch.randn(8)

    def run():
        for i in range(50):
            scope = {"x": x}
            exec(compile("\n" * i + f"x.{'exp' if i % 2 else 'sin'}()", f"made_{i}.py", "exec"), scope)

    found = [(name, short(stack)) for name, stack in stacks_of(run) if name in ("aten::exp", "aten::sin")]
    assert found == [("aten::exp" if i % 2 else "aten::sin", f"made_{i}.py({i + 1}): <module>") for i in range(50)]


def test_more_lines_than_a_thread_remembers_are_all_told():
    x = torch.randn(8)
    count = 5000  # slots: record/core/text_slots.h
    source = "def run(x):\n" + "    x.neg()\n" * count
    scope: dict = {}
    exec(compile(source, "many_lines.py", "exec"), scope)
    found = [short(stack) for name, stack in stacks_of(lambda: scope["run"](x)) if name == "aten::neg"]
    assert found == [f"many_lines.py({i + 2}): run" for i in range(count)]


def test_stacks_say_more_so_lines_are_left_out_beside_them():
    found = stacks_of(lambda: torch.randn(8).exp(), stacks=True)
    assert {stack for name, stack in found} == {None}


def test_ranges_of_the_program_and_of_optimizers_have_lines():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run():
        with torch.profiler.record_function("part"):
            model(torch.randn(2, 4)).sum().backward()
        optimizer.step()

    found = {name: short(stack) for name, stack in stacks_of(run) if stack}
    assert found["part"] == line_of(run, "record_function")
    assert found["Optimizer.step#SGD.step"] == line_of(run, "optimizer.step()")


def test_what_lines_cost_is_measured():
    with firelane.profile(lines=True):
        torch.randn(8).exp()
    assert firelane._record.costs()["line"] > 0


PROGRAM = """
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def penalty(x):
        total = 0
        for i in range(200):
            total = total + x[i % 32].square().sum()
        return total

    for step in range(40):
        optimizer.zero_grad()
        x = torch.randn(32, 64)
        loss = model(x).square().mean() + 1e-6 * penalty(x)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
def test_record_notes_lines_without_being_asked(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    command = [FIRELANE, "record", "--steps", "4", "--wait", "4", "-o", "t.lane", "--", sys.executable, "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    answer = subprocess.run(
        [FIRELANE, "lines", "t.lane", "--json"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    calls = {row["line"]: row["calls"] for row in json.loads(answer.stdout)["lines"]}
    numbers = {text.strip(): i for i, text in enumerate((tmp_path / "train.py").read_text().splitlines(), 1)}
    loop = numbers["total = total + x[i % 32].square().sum()"]
    assert calls[f"train.py({loop}): penalty"] == 4 * 200, "select, square, sum and add"
    assert calls[f"train.py({numbers['optimizer.step()']}): <module>"] == 4, "an update of each parameter"

    command[2:2] = ["--no-lines", "--force"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    without = subprocess.run([FIRELANE, "lines", "t.lane"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "no lines in this trace: record with --lines" in without.stdout + without.stderr
