"""What check_layers.py accepts and rejects, on trees of a few lines."""

from pathlib import Path

import pytest

from check_layers import LayersError, check_tree, parse_layers

LAYERS = """
# comment
base:
model: base
import: base model | third: simdjson | namespace: importer
analyze: base model | tests: import | namespace: analyze | folders: common steps
record/core: base | namespace: record
record/torch: base record/core | third: torch | namespace: torch_hooks
"""


def problems(root: Path, **files: str) -> list[str]:
    (root / "src").mkdir()
    (root / "src/LAYERS").write_text(LAYERS)
    for name, text in files.items():
        path = root / "src" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_tree(root)


def test_allowed_includes_pass(tmp_path):
    assert (
        problems(
            tmp_path,
            model__a_DOT_cc='#include "model/a.h"\n#include <vector>\n#include <sys/mman.h>\n#include "base/x.h"\n',
            import__b_DOT_cc="#include <simdjson.h>\n",
            record__torch__c_DOT_cc='#include <ATen/record_function.h>\n#include "record/core/session.h"\n',
        )
        == []
    )


def test_an_include_of_a_higher_layer_is_rejected_with_its_location(tmp_path):
    assert problems(tmp_path, model__a_DOT_cc='\n\n#include "import/load.h"\n') == [
        'src/model/a.cc:3: room model may not include room import ("import/load.h")'
    ]


def test_a_third_party_header_is_rejected_outside_its_rooms(tmp_path):
    assert problems(tmp_path, model__a_DOT_h="#include <simdjson.h>\n") == [
        "src/model/a.h:1: room model may not include simdjson (<simdjson.h>)"
    ]


def test_the_innermost_room_counts(tmp_path):
    assert problems(tmp_path, record__core__a_DOT_cc="#include <torch/torch.h>\n") == [
        "src/record/core/a.cc:1: room record/core may not include torch (<torch/torch.h>)"
    ]


def test_only_tests_may_include_gtest_and_their_extra_rooms(tmp_path):
    text = '#include <gtest/gtest.h>\n#include "import/load.h"\n'
    assert problems(tmp_path, analyze__a_test_DOT_cc=text, analyze__testing_DOT_h=text, analyze__a_DOT_cc=text) == [
        "src/analyze/a.cc:1: <gtest/gtest.h> belongs in files named *_test.cc or testing.h",
        'src/analyze/a.cc:2: room analyze may not include room import ("import/load.h")',
    ]


def test_unknown_headers_and_homeless_files_are_reported(tmp_path):
    assert problems(
        tmp_path,
        model__a_DOT_cc='#include <boost/any.hpp>\n#include "x.h"\n',
        attic__b_DOT_cc="\n",
    ) == [
        "src/attic/b.cc:1: is in no room of src/LAYERS",
        "src/model/a.cc:1: <boost/any.hpp> is unknown; name its library in LIBRARY_OF_HEADER of tools/check_layers.py",
        'src/model/a.cc:2: "x.h" is not in a room of src/LAYERS (paths start at src/)',
    ]


def test_a_folder_may_include_only_those_named_before_it(tmp_path):
    assert problems(
        tmp_path,
        analyze__common__a_DOT_cc='#include "analyze/steps/s.h"\n#include "analyze/common/a.h"\n',
        analyze__common__a_test_DOT_cc='#include "analyze/steps/s.h"\n',
        analyze__steps__s_DOT_cc='#include "analyze/common/a.h"\n#include "analyze/attic/b.h"\n',
    ) == [
        'src/analyze/common/a.cc:1: folder analyze/common may not include analyze/steps ("analyze/steps/s.h")',
        "src/analyze/steps/s.cc:2: folder analyze/attic is not named in src/LAYERS",
    ]


def test_code_lies_in_the_namespace_of_its_room(tmp_path):
    assert problems(
        tmp_path,
        model__a_DOT_cc="namespace firelane {\nnamespace {\nint x;\n}\n}\n",
        analyze__b_DOT_cc="namespace firelane::analyze::test {\n}\nnamespace firelane {\nint y;\n}\n",
        analyze__c_DOT_h="namespace firelane::importer {\nstruct Loaded;\n}\n",
        record__torch__d_DOT_h="namespace firelane::record {\nclass Session;\n}\nnamespace c10 {\nstruct E;\n}\n",
        record__torch__e_DOT_cc="#include <firelane/profiler.h>\nnamespace firelane {\nint z;\n}\n",
        record__torch__f_DOT_cc="namespace firelane::record {\nclass Session {};\n}\n",
    ) == [
        "src/analyze/b.cc:3: room analyze opens namespace firelane; its own is firelane::analyze",
        "src/analyze/c.h:1: room analyze opens namespace firelane::importer; its own is firelane::analyze",
        "src/record/torch/f.cc:1: room record/torch opens namespace firelane::record; its own is firelane::torch_hooks",
    ]


def test_a_type_that_two_files_define_in_one_namespace_is_rejected(tmp_path):
    assert problems(
        tmp_path,
        base__a_DOT_h="namespace firelane {\nclass Sink {\n  struct State;\n};\nstruct Sink::State {\n};\n}\n",
        model__b_DOT_h="namespace firelane {\n// } struct Row {\nstruct Sink final : Base {\n};\nclass Other;\n}\n",
        model__c_DOT_cc="namespace firelane {\nnamespace {\nstruct Sink {};\n}\n"
        'const char* t = "{";\nstruct Other {\n};\n}\n',
        import__d_DOT_h="namespace firelane::importer {\nenum class Sink : int { kA };\n}\n",
    ) == ["src/base/a.h:2: firelane::Sink is defined again at src/model/b.h:3"]


def test_a_type_with_an_alignment_or_an_attribute_counts_and_a_specialisation_does_not(tmp_path):
    assert problems(
        tmp_path,
        base__a_DOT_h="namespace firelane {\nclass alignas(std::max(64, 8)) Lock {\n};\n"
        "template <typename T>\nclass [[nodiscard]] Box {\n};\ntemplate <>\nclass [[nodiscard]] Box<void> {\n};\n}\n",
        model__b_DOT_h="namespace firelane {\nstruct alignas(16) Lock {\n};\n}\n",
    ) == ["src/base/a.h:2: firelane::Lock is defined again at src/model/b.h:2"]


def test_a_function_that_two_rooms_define_in_one_namespace_is_rejected(tmp_path):
    assert problems(
        tmp_path,
        base__a_DOT_cc="namespace firelane {\nint64_t sum(const std::map<int, int>& of,\n       int64_t at) noexcept "
        "{\n  return 0;\n}\n}\n",
        model__b_DOT_cc="namespace firelane {\nint64_t sum(const std::map<int, int>& all, int64_t from) {\n"
        "  return 1;\n}\n}\n",
    ) == [
        "src/base/a.cc:2: firelane::sum(const std::map<int, int>&, int64_t) is defined again at src/model/b.cc:2",
    ]


def test_functions_that_cannot_clash_may_have_one_name(tmp_path):
    again = "namespace firelane {\nvoid go(int a) {\n}\n}\n"
    assert (
        problems(
            tmp_path,
            base__a_DOT_cc=again,
            base__b_DOT_cc=again,  # one room: its linker says so
            model__overload_DOT_cc="namespace firelane {\nvoid go(double a) {\n}\n}\n",
            model__unnamed_DOT_cc="namespace firelane {\nnamespace {\nvoid go(int a) {\n}\n}\n}\n",
            model__inline_DOT_h="namespace firelane {\ninline void go(int a) {\n}\nstatic void go(int) {\n}\n}\n",
            model__template_DOT_h="namespace firelane {\ntemplate <typename T>\nvoid go(int a) {\n}\n}\n",
            model__member_DOT_cc="namespace firelane {\nvoid Car::go(int a) {\n}\nvoid go(int a);\n}\n",
            import__c_DOT_cc="namespace firelane::importer {\nvoid go(int a) {\n}\n}\n",
        )
        == []
    )


def test_an_analysis_that_a_trace_remembers_is_not_called_past_it(tmp_path):
    assert problems(
        tmp_path,
        model__a_DOT_cc="auto a = trace.get<analyze::find_phases>();\nauto b = analyze::find_phases(trace.model());\n"
        "auto c = analyze::time_of(model);\nint analyze::find_phases(const Model& model) {\n}\n",
        model__a_test_DOT_cc="auto a = analyze::find_phases(model);\n",
    ) == ["src/model/a.cc:2: analyze::find_phases is remembered: ask for trace.get<analyze::find_phases>()"]


def test_public_headers_are_a_room_of_their_own(tmp_path):
    (tmp_path / "include/firelane").mkdir(parents=True)
    (tmp_path / "include/firelane/a.h").write_text(
        '#include <vector>\n#include "base/x.h"\n#include <zstd.h>\nnamespace firelane {\nstruct Row {\n};\n}\n'
        "namespace other {\n}\n"
    )
    assert problems(tmp_path, model__b_DOT_h="namespace firelane {\nstruct Row {\n};\n}\n") == [
        "include/firelane/a.h:2: a public header may include std and <firelane/...> only (base/x.h)",
        "include/firelane/a.h:3: a public header may include std and <firelane/...> only (zstd.h)",
        "include/firelane/a.h:8: opens namespace other; its own is firelane",
        "include/firelane/a.h:5: firelane::Row is defined again at src/model/b.h:2",
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("model: base\nbase:\n", "which is not listed above it"),
        ("base:\nbase:\n", "named twice"),
        ("base: | third: boost\n", "'boost' is not in"),
        ("base\n", "expected 'room: rooms"),
        ("base: | fourth: x\n", "unknown section 'fourth'"),
    ],
)
def test_an_invalid_layers_file_is_an_error(text, message):
    with pytest.raises(LayersError, match=message):
        parse_layers(text)


def test_this_repository_respects_its_layers():
    assert check_tree(Path(__file__).resolve().parent.parent) == []
