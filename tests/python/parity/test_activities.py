"""The surface of torch 2.15 under any torch: activities as dicts, errors, annotations of CUDA graphs, trace ids."""

import itertools
import json
import warnings
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, record_function

import firelane
import firelane.profiler
from firelane.profiler import CuspyConfig, PerformanceMetricsConfig, ProfilerActivityConfig, profile
from firelane.profiler._graph_annotations import annotate

CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA


def run():
    with record_function("range"):
        torch.ones(4).add(1)


def names(activities, **flags):
    with profile(activities=activities, **flags) as prof:
        run()
    return {event.name for event in prof.events()}, prof


def test_a_list_names_exactly_what_is_recorded():
    ops = {"aten::ones", "aten::add"}
    assert names([CPU])[0] >= ops | {"range"}
    only_ops = names([{CPU: ["CPU_OP"]}])[0]
    assert only_ops >= ops
    assert "range" not in only_ops
    assert names([{CPU: ["USER_ANNOTATION"]}])[0] == {"range"}
    assert names([{CPU: []}])[0] == set()
    assert names([{CPU: ProfilerActivityConfig()}])[0] >= ops | {"range"}
    assert names([{CPU: ProfilerActivityConfig(activity_types=["CPU_OP"])}])[0] == only_ops


def test_choices_of_one_recording_do_not_reach_the_next():
    assert names([{CPU: ["USER_ANNOTATION"]}])[0] == {"range"}
    assert "aten::add" in names([CPU])[0]


def test_stacks_and_memory_are_types_of_their_group():
    _, prof = names([{CPU: ["CPU_OP"]}], with_stack=True, profile_memory=True)
    assert not prof.trace.sql("select 1 from host_slices where kind = 'python'")
    assert len(prof.trace.memory_events) == 0
    _, prof = names([{CPU: ["CPU_OP", "PYTHON_FUNCTION", "CPU_INSTANT_EVENT"]}], with_stack=True, profile_memory=True)
    assert prof.trace.sql("select 1 from host_slices where kind = 'python'")
    assert len(prof.trace.memory_events) > 0


def test_errors_are_torchs():
    with pytest.raises(ValueError, match="specified more than once"):
        profile(activities=[CPU, {CPU: ["CPU_OP"]}])
    with pytest.raises(TypeError, match="Expected ProfilerActivity or dict, got <class 'str'>"):
        profile(activities=["cpu"])
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])
    with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'CONCURRENT_KERNEL'"):
        profile(activities=[{CPU: ["CONCURRENT_KERNEL"]}]).start()
    with pytest.raises(ValueError, match="Cuspy currently requires CPU activity"):
        profile(activities=[{CUDA: ProfilerActivityConfig(profiler_configs=[CuspyConfig()])}])


CASES = {
    "no group": [{"x": []}],
    "no group, with types": [{"x": ["CPU_OP"]}],
    "no group, of another type": [{1: None}],
    "no group beside one": [{"x": []}, CPU],
    "no device": [CUDA],
    "no device, nothing of it": [{CUDA: []}],
    "no device, types of another group": [{CUDA: ["CPU_OP"]}],
    "a type of no group": [{CPU: ["CPU_OP", "NO_SUCH_TYPE"]}],
    "a type of another group": [{CPU: ["CONCURRENT_KERNEL"]}],
    "a type that is no name": [{CPU: [3]}],
    "no list of types": [{CPU: 5}],
    "a name instead of a list": [{CPU: "CPU_OP"}],
    "an empty dict": [{}],
    "a name": "cpu",
    "a list of a name": ["cpu"],
    "no list": 5,
    "twice": [CPU, CPU],
    "twice in dicts": [{CPU: ["CPU_OP"]}, {CPU: []}],
}
NO_ACTIVITIES = (AssertionError, "No activities specified for the profiler")


def error_of(profile, activities):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profile(activities=activities):
                run()
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("case", [case for case in CASES if "device" not in case or not torch.cuda.is_available()])
def test_errors_are_torchs_own_where_torch_has_these_activities(case):
    ours = error_of(profile, CASES[case])
    assert ours is not None
    if case.startswith(("no group", "no device")) and "beside" not in case:
        assert ours == NO_ACTIVITIES
    if not hasattr(torch.profiler, "ProfilerActivityConfig"):
        return
    theirs = error_of(torch.profiler.profile, CASES[case])
    assert ours[0] is theirs[0]
    if "_prepare_profiler" not in theirs[1] and case != "a name instead of a list":  # of its letters, any may be first
        assert ours[1] == theirs[1]


@pytest.mark.skipif(not hasattr(torch.profiler, "ProfilerActivityConfig"), reason="torch 2.15 has these activities")
@pytest.mark.parametrize(
    "types",
    [
        None,
        *([], ["CPU_OP"], ["USER_ANNOTATION"], ["PYTHON_FUNCTION"], ["CPU_INSTANT_EVENT"], ["EXTERNAL_CORRELATION"]),
        *(["CPU_OP", "USER_ANNOTATION"], ["CPU_OP", "PYTHON_FUNCTION", "CPU_INSTANT_EVENT"], ["CUDA_RUNTIME"]),
    ],
    ids=str,
)
def test_chrome_traces_have_what_torchs_have(tmp_path, types):
    def categories(profile):
        with profile(activities=[{CPU: types}], with_stack=True, profile_memory=True) as prof:
            run()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        ops = {e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
        return {e["cat"] for e in events if "cat" in e}, ops

    assert categories(profile) == categories(torch.profiler.profile)


def test_the_activities_are_attributes_as_in_torch():
    config = ProfilerActivityConfig(activity_types=["GPU_MEMCPY"], profiler_configs=[CuspyConfig()])
    prof = profile(activities=[CPU, {CUDA: config}])
    assert prof.activities == {CPU, CUDA}
    assert prof.activity_configs == {CUDA: config}
    assert profile().activity_configs == {}


def test_what_the_recorder_leaves_out():
    from firelane.profiler._activities import parse_activities, wanted_of

    def wanted(*activities):
        return wanted_of(*parse_activities(activities), {})

    assert wanted(CPU, CUDA).without == ()
    assert wanted(CPU, {CUDA: ["GPU_MEMCPY"]}).without == ("kernels", "memsets", "overhead")
    assert wanted({CPU: ["CPU_OP"]}, {CUDA: ["CONCURRENT_KERNEL"]}).without == (
        *("ranges", "copies", "memsets", "calls", "overhead"),
    )
    assert not wanted(CPU, {CUDA: []}).device
    assert wanted(CPU, {CUDA: ["CUDA_SYNC"]}).cuda_sync
    sync = ProfilerActivityConfig(profiler_configs=[CuspyConfig(enable_cuda_sync_events=True)])
    assert wanted(CPU, {CUDA: sync}).cuda_sync


def test_hardware_metrics_are_the_recorders_by_torchs_names():
    from firelane.profiler._activities import parse_activities, wanted_of

    def wanted(config, types=None):
        configs = ProfilerActivityConfig(activity_types=types, profiler_configs=[config])
        return wanted_of(*parse_activities([CPU, {CUDA: configs}]), {})

    names = ["sm__cycles_active.avg", "dram__bytes_read.sum"]
    asked = {"metrics": True, "metric_names": ",".join(names)}
    assert wanted(PerformanceMetricsConfig(names)).metrics == {**asked, "metric_interval_ms": 1.0}
    fast = PerformanceMetricsConfig(names, sampling_interval_ms=0.1, lookback_window_ms=5.0)
    assert wanted(fast).metrics == {**asked, "metric_interval_ms": 0.1}
    assert wanted(fast, types=[]).device  # metrics alone need the device, too
    assert wanted(PerformanceMetricsConfig([])).metrics == {}  # as in torch
    with pytest.raises(ValueError, match="'sm active' is not one of CUPTI's names"):
        config = ProfilerActivityConfig(profiler_configs=[PerformanceMetricsConfig(["sm active"])])
        profile(activities=[CPU, {CUDA: config}])


def test_what_is_asked_for_and_not_recorded_is_said():
    metrics = ProfilerActivityConfig(profiler_configs=[PerformanceMetricsConfig(["GpuTime"])])
    with pytest.warns(UserWarning, match="firelane does not record hardware metrics of XPU"):
        profile(activities=[CPU, {ProfilerActivity.XPU: metrics}])


@pytest.mark.parametrize(
    "option, words",
    [
        ("enable_graph_dependencies", "dependencies between the nodes of CUDA graphs"),
        ("enable_event_node_ids", "nodes of CUDA events in graphs"),
    ],
)
@pytest.mark.parametrize("by_name", [False, True], ids=["CuspyConfig", "custom_profiler_config"])
def test_options_of_cuspy_that_are_not_recorded_are_said(option, words, by_name):
    activities, config = [CPU, {CUDA: ProfilerActivityConfig(profiler_configs=[CuspyConfig(**{option: True})])}], None
    if by_name:
        if not hasattr(torch._C._profiler._ExperimentalConfig(), "custom_profiler_config"):
            pytest.skip("this torch does not say what custom_profiler_config is")
        text = json.dumps({"backend": "cuspy", option: True})
        activities, config = [CPU, CUDA], torch._C._profiler._ExperimentalConfig(custom_profiler_config=text)
    with pytest.warns(UserWarning, match=f"firelane does not record {words}; the rest is recorded"):
        prof = profile(activities=activities, experimental_config=config)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "CUDA is not available")
        with prof:
            run()
    assert "aten::add" in {event.name for event in prof.events()}


def test_with_modules_is_deprecated_in_torchs_words_and_records_eager_modules():
    model = torch.nn.Linear(2, 2)
    with pytest.warns(FutureWarning, match="with_modules is deprecated"), profile(with_modules=True) as prof:
        model(torch.ones(1, 2))
    assert prof.trace.sql("select 1 from host_slices where category = 'module'")


def test_the_option_modules_of_our_own_profile_warned_of_torchs_argument(recwarn):
    with firelane.profile(modules=True) as prof:
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
    assert prof.trace.sql("select 1 from host_slices where category = 'module'")
    assert [str(w.message) for w in recwarn if "with_modules" in str(w.message)] == []


def test_trace_ids_are_asked_for_once_a_cycle():
    asked = []

    def new_id():
        asked.append(f"id {len(asked)}")
        return asked[-1]

    ids = []
    steps = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(
        activities=[CPU],
        schedule=steps,
        custom_trace_id_callback=new_id,
        on_trace_ready=lambda prof: ids.append(prof.get_trace_id()),
    ) as prof:
        for _ in range(4):
            run()
            prof.step()
    assert ids == asked == ["id 0", "id 1"]


TRACE = {
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "ts": 0, "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
        *(
            {
                "ph": "X",
                "cat": "kernel",
                "name": "k",
                "pid": 0,
                "tid": 20 + node,
                "ts": node,
                "dur": 1,
                "args": {"stream": 20 + node, "graph node id": node},
            }
            for node in (1, 2, 3)
        ),
        {"ph": "X", "cat": "kernel", "name": "eager", "pid": 0, "tid": 7, "ts": 9, "dur": 1, "args": {"stream": 7}},
    ]
}
ANNOTATIONS = {1: {"name": "phase_A"}, 2: [{"name": "phase_B", "stream": 60, "Process Group Description": "dp"}]}


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_annotations_of_cuda_graphs_join_the_args(tmp_path, suffix):
    path = tmp_path / f"trace{suffix}"
    opened = firelane.profiler._graph_annotations.gzip.open if suffix.endswith("gz") else open
    with opened(path, "wt") as file:
        json.dump(TRACE, file)
    annotate(str(path), ANNOTATIONS, "none", 7)
    with opened(path, "rt") as file:
        trace = json.load(file)
    assert trace["cudaGraphInlineAnnotated"]
    args = {e["args"].get("graph node id"): e["args"] for e in trace["traceEvents"] if e.get("cat") == "kernel"}
    assert args[1]["name"] == "phase_A"
    assert (args[2]["name"], args[2]["annotated_stream"], args[2]["stream"]) == ("phase_B", 60, 22)
    assert "name" not in args[3]


def test_graph_lanes_move_graphed_work(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    annotate(str(path), ANNOTATIONS, "all", 7)
    events = json.loads(path.read_text())["traceEvents"]
    work = [e for e in events if e.get("cat") == "kernel"]
    assert [(e["tid"], e["args"]["stream"], e["args"].get("original_stream")) for e in work] == [
        *((7, 7, 21), (60, 60, 22), (7, 7, 23), (7, 7, None)),
    ]
    assert {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"} == {7: "stream 7 ", 60: "dp"}


def test_graph_lanes_are_refused_as_torch_does(tmp_path):
    _, prof = names([CPU])
    with pytest.raises(ValueError, match="graph_lanes must be 'all' or 'none', got 'some'"):
        prof.export_chrome_trace(str(tmp_path / "trace.json"), graph_lanes="some")
    with pytest.raises(ValueError, match="graph_lanes='all' needs cuda_graph_annotations"):
        prof.export_chrome_trace(str(tmp_path / "trace.json"), graph_lanes="all")


FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


@pytest.mark.parametrize("steps", [None, torch.profiler.schedule(wait=1, warmup=1, active=2)], ids=["all", "schedule"])
def test_exports_pass_torchs_own_validator(tmp_path, steps):
    """With every set of flags. torch.profiler._trace_validator came with torch 2.15."""
    validator = pytest.importorskip("torch.profiler._trace_validator", reason="torch 2.15 has it")
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    for chosen in itertools.product([False, True], repeat=len(FLAGS)):
        flags = dict(zip(FLAGS, chosen, strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profile(activities=[CPU], schedule=steps, **flags) as prof:
                for _ in range(5):
                    model(torch.ones(4, 8)).sum().backward()
                    prof.step()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        passed, violations = validator.validate_trace(str(tmp_path / "trace.json"))
        assert passed, (flags, "\n".join(map(str, violations)))


# Each op of theirs launches its first kernel by cudaLaunchKernel, or all by other calls: the validator pairs the first
# cudaLaunchKernel of an op with the op's first kernel, whoever launched that.
@pytest.mark.parametrize("name", ["h200_gpt_all", "h200_pairs/vit-none", "h200_pairs/unet-none"])
def test_exports_of_gpu_recordings_pass_torchs_own_validator(tmp_path, name):
    validator = pytest.importorskip("torch.profiler._trace_validator", reason="torch 2.15 has it")
    path = str(tmp_path / "trace.json")
    firelane.open(Path(__file__).resolve().parents[2] / "data" / f"{name}.lane").export(path, to="chrome")
    passed, violations = validator.validate_trace(path)
    assert passed, "\n".join(map(str, violations))
