"""`firelane record -- COMMAND` with programs that know nothing about it."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import firelane
from firelane._output_files import files_of_children

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
TORCHRUN = Path(sys.executable).parent / "torchrun"

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

LOOP = """
import quick_torch, sys, torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def firelane_command(folder, *words, **options):
    """Runs `firelane WORDS` in `folder`."""
    return subprocess.run(
        [FIRELANE, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False, **options
    )


def record(folder, program, *arguments, flags=(), stdin="", module=False):
    """Runs `firelane record FLAGS -- python program.py ARGUMENTS`."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = ["-m", "program"] if module else ["program.py"]
    flags = [*flags, "-o", "run.lane"]
    return firelane_command(folder, "record", *flags, "--", sys.executable, *command, *arguments, input=stdin)


def step_numbers(path):
    return [row["number"] for row in firelane.open(path).steps]


def test_steps_are_detected_from_the_optimizer_and_the_next_command_is_printed(folder):
    program = LOOP.replace("quick_torch, ", "")  # once with all of torch
    done = record(folder, program, "12", flags=["--steps", "2", "--shapes"])
    assert done.returncode == 0 and done.stdout == ""
    assert "ProfilerStep*" in done.stderr  # the table
    assert "next: firelane diagnose run.lane, firelane view run.lane" in done.stderr
    trace = firelane.open(folder / "run.lane")
    assert step_numbers(folder / "run.lane") == [4, 5]
    names = {row["name"] for row in trace.host_slices}
    assert {"ProfilerStep#4", "Optimizer.step#SGD.step", "aten::addmm"} <= names


def test_light_steps_have_no_ops_and_stand_apart_from_full_ones(folder):
    program = """
    import gc, quick_torch, torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(torch.ones(32, 4), batch_size=2):
        net(batch).sum().backward()
        gc.collect()
        optimizer.step()
    """
    assert record(folder, program, flags=["--light", "2", "--steps", "2", "--modules", "--memory"]).returncode == 0
    assert step_numbers(folder / "run.lane") == [6, 7]
    assert step_numbers(f"{folder / 'run.lane'}@light") == [4, 5]
    full, light = firelane.open(folder / "run.lane"), firelane.open(f"{folder / 'run.lane'}@light")
    assert "aten::addmm" in {row["name"] for row in full.host_slices} and len(full.memory_events) > 0
    names = {row["name"] for row in light.host_slices}
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert names == {"ProfilerStep#4", "ProfilerStep#5", loader, "gc: generation 2"} and len(light.memory_events) == 0
    assert (light.info["light_step_count"], full.info["recorded_step_count"]) == (2, 2)


def test_sampled_stacks_are_in_the_trace_on_its_time_axis(folder):
    program = """
    import quick_torch, torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(16):
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    """
    assert record(folder, program, flags=["--sample", "--sample-rate", "1000"]).returncode == 0
    trace = firelane.open(folder / "run.lane")
    samples = [row for row in trace.stack_samples if "program.py(" in row["stack"]]
    hour = 3600 * 1_000_000_000  # ticks of a clock or times of day would lie further off
    assert samples and all(abs(row["time_ns"]) < hour and row["weight_ns"] >= 0 for row in samples)
    assert all(frame.rpartition("): ")[2] for row in samples for frame in row["stack"].split(";"))


def test_steps_are_detected_from_a_data_loader_if_nothing_is_trained(folder):
    program = """
    import quick_torch, torch
    for batch in torch.utils.data.DataLoader(torch.arange(20), batch_size=2):
        batch + 1
    """
    assert record(folder, program, flags=["--steps", "2"]).returncode == 0
    assert step_numbers(folder / "run.lane") == [4, 5]


def test_steps_are_calls_of_the_model_if_there_is_neither_optimizer_nor_loader(folder):
    program = """
    import quick_torch, torch
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    with torch.no_grad():
        for step in range(14):
            net(torch.ones(2, 4))
    print(torch.nn.Module.__call__.__name__, hasattr(torch.nn.Module.__call__, "__wrapped__"))
    """
    done = record(folder, program, flags=["--steps", "2"])
    assert done.stdout == "_wrapped_call_impl False\n", done.stderr
    trace = firelane.open(folder / "run.lane")
    notes = {row["key"]: row["json"] for row in trace.sql("select * from metadata")}
    assert notes["step_source"] == '"model"' and len(trace.steps) == 2


def test_zero_steps_records_the_whole_program(folder):
    done = record(folder, "import quick_torch, torch\ntorch.ones(3).exp()", flags=["--steps", "0"])
    assert done.returncode == 0, done.stderr
    assert any(row["name"] == "aten::exp" for row in firelane.open(folder / "run.lane").host_slices)


def test_arguments_stdin_stdout_module_form_and_exit_status_pass_through(folder):
    program = """
    import quick_torch, sys, torch
    print(sys.argv[1:], sys.stdin.read())
    sys.exit(5)
    """
    for module in (False, True):
        done = record(folder, program, "--lr", "-o", stdin="hello", module=module)
        assert (done.returncode, done.stdout) == (5, "['--lr', '-o'] hello\n")
        assert "found no steps (of an optimizer, a DataLoader, a model or a profiler); --steps 0" in done.stderr


def test_too_few_steps_print_what_to_do(folder):
    done = record(folder, LOOP, "2")
    assert done.returncode == 0 and "took 2 steps (optimizer)" in done.stderr and "--wait 0 --steps 2" in done.stderr
    assert not (folder / "run.lane").exists()


def test_a_program_that_exits_while_recording_leaves_a_trace(folder):
    done = record(folder, LOOP, "6", flags=["--steps", "100"])
    assert done.returncode == 0 and step_numbers(folder / "run.lane")[:2] == [4, 5]


def test_signals_end_the_program_as_they_would(folder):
    program = "import os, quick_torch, signal, torch\nos.kill(os.getpid(), signal.SIGTERM)"
    assert record(folder, program).returncode == -signal.SIGTERM


def test_a_program_that_is_terminated_while_recording_leaves_its_trace_and_the_verdict(folder):
    program = LOOP + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nprint('not reached')"
    done = record(folder, program, "6", flags=["--steps", "100"])
    assert done.returncode == -signal.SIGTERM and "not reached" not in done.stdout
    assert "firelane diagnose run.lane" in done.stderr and step_numbers(folder / "run.lane")[:2] == [4, 5]


def test_a_program_without_torch_runs_normally_and_is_reported_as_unrecorded(folder):
    done = record(
        folder, "import subprocess, sys\nprint('hi', flush=True)\nsubprocess.run([sys.executable, '-c', '0'])"
    )
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert done.stderr == "firelane: nothing recorded in this process: torch was not imported\n"


def test_a_program_that_is_not_python_is_reported_as_unrecorded(folder):
    done = firelane_command(folder, "record", "--", "true")
    assert (done.returncode, done.stdout) == (0, "") and "true: only Python programs that import torch" in done.stderr
    assert firelane_command(folder, "record", "--", "sh", "-c", ":").stderr == ""


def test_an_older_file_survives_a_failed_recording(folder):
    (folder / "run.lane").write_text("precious")
    assert firelane_command(folder, "record", "--force", "-o", "run.lane", "--", "no-such-program").returncode == 1
    assert record(folder, LOOP, "1", flags=["--force"]).returncode == 0  # too few steps
    killed = LOOP + "    if step == 5: import os; print(open('run.lane').read()); os._exit(3)\n"
    done = record(folder, killed, "9", flags=["--force"])  # in the middle of recording
    assert (done.returncode, done.stdout) == (3, "precious\n")
    assert (folder / "run.lane").read_text() == "precious"


def test_an_unfinished_step_does_not_count(folder):
    broken = LOOP + "    if step == 6: raise RuntimeError('broken')\n"
    done = record(folder, broken, "20", flags=["--steps", "9"])
    assert done.returncode == 1 and step_numbers(folder / "run.lane") == [4, 5, 6]
    assert "3 steps recorded" in done.stderr


def test_735_steps_were_told_of_a_trace_of_11996(folder):
    """The summary counts each step that was recorded, and so does the trace."""
    done = record(folder, LOOP, "3004", flags=["--steps", "3000", "--no-shapes", "--no-memory", "--no-lines"])
    assert done.returncode == 0, done.stderr
    assert step_numbers(folder / "run.lane") == list(range(4, 3004))
    assert re.search(r"\b3000 steps recorded", done.stderr), done.stderr


def test_a_summary_at_exit_is_not_lost_where_no_thread_starts_any_more(folder):
    """As from Python 3.12 on."""
    refused = """
import atexit, threading
def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")
atexit.register(lambda: setattr(threading.Thread, "start", refuse))
"""
    done = record(folder, LOOP + refused, "6", flags=["--steps", "9"])
    assert done.returncode == 0 and "steps recorded" in done.stderr and "recording stopped" not in done.stderr


def test_the_recording_ends_with_the_verdict_and_the_first_findings(folder):
    # However the machine keeps it waiting elsewhere, most of each step is spent on input.
    slow_data = """
    import quick_torch, time, torch
    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 100_000
        def __getitem__(self, i):
            time.sleep(0.02)
            return torch.ones(4)
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=4))
    for _ in range(12):
        began, waited, is_computed = time.perf_counter(), 0, False
        while waited < 5 * (time.perf_counter() - began - waited):
            fetched = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - fetched
            if not is_computed:
                net(batch).sum().backward()
                is_computed = True
        optimizer.step()
        optimizer.zero_grad()
    """
    done = record(folder, slow_data, flags=["--steps", "4"])
    verdict = done.stderr.split("Self CPU time total")[1].splitlines()[2:]
    assert verdict[0].startswith("input-bound") and re.search(r"a step takes \d+\.\d m?s", verdict[0])
    assert "for its next batch: the DataLoader has no workers" in verdict[1]
    assert re.search(r"per step, likely .*; try: load batches in worker processes", verdict[2])
    assert len(verdict) <= 10


def test_a_huge_recording_is_not_diagnosed_at_exit(folder):
    program = LOOP.replace("sys, torch", "sys, torch; sys.modules['firelane._auto']._MAX_DIAGNOSED = 3")
    done = record(folder, program, "20")
    assert done.returncode == 0 and "events take a while to diagnose; run firelane diagnose" in done.stderr


def test_cold_and_warm_up_steps_are_not_in_the_true_step(folder):
    done = record(folder, LOOP, "40", flags=["--steps", "2", "--wait", "3", "--warmup", "2", "--after", "3"])
    assert "2 steps recorded, 4 timed without recording" in done.stderr, done.stderr  # step 2, and the last three
    done = record(folder, LOOP, "40", flags=["--force", "--steps", "2", "--after", "1"])
    assert "timed without recording" not in done.stderr and "2 steps recorded" in done.stderr


def test_what_findings_need_is_recorded_unless_left_out_and_the_rest_is_shown_as_off(folder):
    record(folder, LOOP, "12", flags=["--no-memory"])
    info = firelane_command(folder, "info", "run.lane").stdout
    options = dict(line.split()[:2] for line in info.splitlines() if line.startswith(("with_", "record_", "profile_")))
    assert "unknown" not in info and options["with_stack"] == "off"
    assert (options["record_shapes"], options["profile_memory"]) == ("on", "off")


def test_the_programs_own_sitecustomize_still_runs(folder):
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("print('mine')")
    (folder / "program.py").write_text("import sitecustomize; print(sitecustomize.__file__)")
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    done = firelane_command(folder, "record", "--", sys.executable, "program.py", env=environment)
    assert done.stdout == f"mine\n{folder}/site/sitecustomize.py\n", done.stderr


def test_a_programs_own_firelane_profiler_takes_precedence(folder):
    program = f"""
    import sys; sys.path.append({str(ROOT / "python")!r})
    import quick_torch, torch
    from firelane.profiler import profile
    with profile() as prof:
        torch.ones(3).exp()
    print(any(r.key == "aten::exp" for r in prof.key_averages()))
    """
    done = record(folder, program, flags=["--steps", "0"])
    assert (done.returncode, done.stdout) == (0, "True\n") and "its own recording takes precedence" in done.stderr
    done = record(folder, program, flags=["--force"])
    assert "its own recording takes precedence" in done.stderr and "nothing recorded" not in done.stderr


def test_an_existing_file_is_only_replaced_with_force(folder):
    (folder / "run.lane").write_text("precious")
    done = record(folder, LOOP, "12")
    assert done.returncode == 1 and "run.lane exists; add --force" in done.stderr
    assert record(folder, LOOP, "12", flags=["--force", "--quiet"]).stderr == ""
    assert step_numbers(folder / "run.lane")


def test_wrong_usage(folder):
    assert firelane_command(folder, "record").returncode == 2
    missing = firelane_command(folder, "record", "--", "no-such-program")
    assert missing.returncode == 1 and "no-such-program: No such file" in missing.stderr
    assert "no such folder" in firelane_command(folder, "record", "-o", "none/run.lane", "--", "true").stderr


@pytest.mark.skipif(not TORCHRUN.exists(), reason="no torchrun")
def test_torchrun_writes_a_file_per_rank(folder):
    setup = (
        "import quick_torch, torch, torch.distributed as d\nd.init_process_group('gloo')\nd.all_reduce(torch.ones(1))\n"
    )
    loop = LOOP.replace("optimizer.step()", "d.all_reduce(net.weight.grad)\n    optimizer.step()")
    # A program that ends without destroying its group is aborted by torch now and then.
    (folder / "program.py").write_text(setup + loop + "\nd.barrier()\nd.destroy_process_group()\n")
    flags = ["--steps", "2", "-o", "run.lane"]
    # --standalone takes a free port: several checkouts may run their tests at once.
    command = [TORCHRUN, "--standalone", "--nproc-per-node", "2", "program.py", "12"]
    done = firelane_command(folder, "record", *flags, "--", *command)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in folder.glob("*.lane")) == ["run.rank0.lane", "run.rank1.lane"]
    assert step_numbers(folder / "run.rank1.lane") == [4, 5]
    # What joins the files: ranks, groups, and the collectives that each group had before.
    first, second = (firelane.open(folder / f"run.rank{rank}.lane") for rank in (0, 1))
    for rank, trace in enumerate((first, second)):
        info = trace.info
        assert (info["rank"], info["world_size"], info["local_rank"], info["local_world_size"]) == (rank, 2, rank, 2)
        assert info["backend"] == "gloo" and info["launcher"] == "torchrun" and info["host_name"]
        (group,) = info["process_groups"]
        assert group["ranks"] == "0, 1" and group["size"] == 2
        assert {row["backend"] for row in trace.comm_details} == {"gloo"} and len(trace.comm_details) == 2
    assert first.info["process_groups"][0]["first_sequence"] == second.info["process_groups"][0]["first_sequence"] > 4


def test_forked_trainers_are_each_recorded(folder):
    program = """
    import multiprocessing, quick_torch, torch

    def train():
        weight = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight])
        for _ in range(14):
            (weight * 2).sum().backward()
            optimizer.step()

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=train) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
    """
    done = record(folder, program, flags=["--steps", "2"])
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n")
    first, second = sorted(folder.glob("run*.lane"))
    assert first.name == "run.lane" and re.fullmatch(r"run\.pid\d+\.lane", second.name)
    assert step_numbers(first) == step_numbers(second) == [4, 5]
    assert done.stderr.count("2 steps recorded") == 2 and "nothing recorded" not in done.stderr


def test_the_file_of_a_forked_trainer_that_ends_at_once_is_named(folder):
    """os._exit() does not wait for what the child would print."""
    program = """
    import os, quick_torch, torch

    child = os.fork()
    if child == 0:
        weight = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight])
        for _ in range(14):
            (weight * 2).sum().backward()
            optimizer.step()
        os._exit(0)
    os.waitpid(child, 0)
    """
    done = record(folder, program, flags=["--steps", "2"])
    assert step_numbers(folder / "run.lane") == [4, 5]
    assert "the recording of a process that the program started is in run.lane; next: firelane diagnose" in done.stderr


def test_files_of_processes_are_found_beside_an_output_with_brackets_and_not_older_ones(tmp_path):
    old, new = tmp_path / "run[1].pid7.lane", tmp_path / "run[1].pid8.lane"
    for file in (old, new, tmp_path / "run1.pid9.lane"):
        file.touch()
    os.utime(old, (1000, 1000))
    assert files_of_children(str(tmp_path / "run[1].lane"), since_s=2000) == [str(new)]


def test_the_verdict_is_printed_when_the_trace_is_ready(folder):
    program = LOOP + "\nimport time\nwhile True: time.sleep(1)"
    (folder / "program.py").write_text(textwrap.dedent(program))
    command = [FIRELANE, "record", "--steps", "2", "-o", "a file.lane", "--", sys.executable, "program.py", "12"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as running:
        printed = ""
        while "next:" not in printed:
            line = running.stderr.readline()
            assert line, printed  # else the program ended without it
            printed += line
        running.kill()
    assert "2 steps recorded" in printed and "firelane diagnose 'a file.lane'" in printed


@pytest.mark.parametrize("flags", [["-I"], ["-uE"], ["-X", "utf8", "-I"]])
def test_a_python_that_ignores_the_environment_is_said_to_go_unrecorded(folder, flags):
    done = firelane_command(folder, "record", "--", sys.executable, *flags, "-c", "print(1)")
    assert done.stdout == "1\n" and "nothing will be recorded" in done.stderr


def test_arguments_of_the_program_are_not_taken_for_pythons(folder):
    done = firelane_command(folder, "record", "--", sys.executable, "-u", "-c", "print(1)", "-I", "-E")
    assert done.stdout == "1\n" and "nothing will be recorded" not in done.stderr


def test_slow_steps_are_told_with_what_coincides_and_compiled_code_with_its_breaks(folder):
    program = """
    import io, sys, torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    def left_alone(x):
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    compiled, not_compiled = (torch.compile(each, backend="eager") for each in (broken, left_alone))
    for step in range(20):
        not_compiled(compiled(net(torch.ones(2, 4)))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 4:
            torch.save(net.state_dict(), io.BytesIO())
        if step == 7:
            net.eval()
    """
    assert record(folder, program, flags=["--steps", "2", "--after", "9"]).returncode == 0
    trace = firelane.open(folder / "run.lane")
    notes = {row["key"]: row["json"] for row in trace.sql("select * from metadata")}
    assert notes["steps_with_checkpoint"] == "[5, 10]"  # the recording ends with step 15
    # In a recorded step it is a range, so that ranks that wait for who writes it can be told why.
    assert len(trace.sql("select * from host_slices where name = 'torch.save'")) == 1
    assert notes["steps_with_evaluation"] == "[8]"
    assert notes["compile_graph_breaks"] == "1" and notes["compile_frames"] == "2"
    if torch.__version__ >= (2, 10):  # 2.9 and older give up without a reason
        assert notes["compile_failed"] == "1" and "left_alone" in notes["compile_failed_at"]


def test_nothing_is_hooked_any_more_when_the_recording_is_over(folder):
    program = """
    import gc, quick_torch, torch
    save, evaluate, callbacks = torch.save, torch.nn.Module.eval, len(gc.callbacks)
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    print(torch.save is save, torch.save.__module__, hasattr(torch.save, "__wrapped__"), len(gc.callbacks))
    """
    done = record(folder, program, flags=["--steps", "2"])
    assert done.stdout == "False torch.serialization False 0\n", done.stderr
