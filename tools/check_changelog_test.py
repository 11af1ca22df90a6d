"""What check_changelog.py accepts and reports."""

from pathlib import Path

from check_changelog import gaps


def tree(root: Path, changelog: str) -> Path:
    (root / "src/cli").mkdir(parents=True)
    (root / "src/cli/verb_ops.cc").write_text("")
    (root / "CMakeLists.txt").write_text("project(firelane VERSION 0.2.0 LANGUAGES CXX)\n")
    (root / "CHANGELOG.md").write_text(changelog)
    return root


def test_a_documented_verb_passes(tmp_path):
    assert gaps(tree(tmp_path, "## [0.2.0]\n- `firelane ops FILE`: the table\n")) == []


def test_an_undocumented_verb_is_reported(tmp_path):
    assert gaps(tree(tmp_path, "## [Unreleased]\n- `firelane opsx`\n")) == [
        "CHANGELOG.md: `firelane ops` is not mentioned (src/cli/verb_ops.cc)"
    ]


def test_a_version_without_a_section_is_reported(tmp_path):
    assert gaps(tree(tmp_path, "## [0.1.0]\n- `firelane ops`\n")) == [
        "CHANGELOG.md: neither a section [0.2.0] nor [Unreleased]"
    ]
