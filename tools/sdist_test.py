"""The source archive: everything that is compiled, the viewer's page, and nothing of what only lies beside it."""

import shutil
from pathlib import Path

import pytest

import sdist


@pytest.fixture
def checkout(tmp_path):
    """A copy without what git ignores, but for a page and the headers of a virtual environment."""
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "dist", "node_modules", "shared", "*.so", "__pycache__")
    for name in (
        "src",
        "include",
        "python",
        "tools",
        "viewer",
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "pyproject.toml",
    ):
        source = sdist.ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copyfile(source, copy / name)
    shutil.copyfile(sdist.ROOT / ".gitignore", copy / ".gitignore")
    for page in ("viewer/dist/index.html", sdist.PAGE, "viewer/dist/assets/index.js"):
        (copy / page).parent.mkdir(parents=True, exist_ok=True)
        (copy / page).write_text("page")
    headers = copy / ".venv/lib/python3.11/site-packages/torch/include"
    headers.mkdir(parents=True)
    (headers / "torch.h").touch()
    return copy


def test_the_archive_has_the_page_and_everything_that_is_compiled(checkout, tmp_path):
    pytest.importorskip("scikit_build_core")
    found = set(sdist.members(sdist.build(checkout, tmp_path)))
    assert {"viewer/dist/index.html", sdist.PAGE, "viewer/dist/assets/index.js"} <= found
    compiled = [
        *(checkout / "src").rglob("*"),
        *(checkout / "include").rglob("*"),
        *(checkout / "tools/cmake").iterdir(),
    ]
    assert {str(file.relative_to(checkout)) for file in compiled if file.is_file()} <= found
    strange = [
        name for name in found if name.startswith((".venv", "tests/", "bench/", "build/")) or name.endswith(".so")
    ]
    assert not strange, strange[:5]  # headers of .venv were in it: the pattern "include" held in every folder


def test_without_the_page_there_is_no_archive_but_one_line(checkout, tmp_path):
    (checkout / sdist.PAGE).unlink()
    with pytest.raises(SystemExit, match=r"^sdist: viewer/dist/report\.html is not there.*make sdist$"):
        sdist.build(checkout, tmp_path)
    assert not [*Path(tmp_path).glob("*.tar.gz")]


def test_what_the_archive_lacks_is_named(checkout, tmp_path):
    pytest.importorskip("scikit_build_core")
    (checkout / "LICENSE").unlink()
    (checkout / "pyproject.toml").write_text(
        (checkout / "pyproject.toml").read_text().replace('license-files = ["LICENSE"]', "")
    )
    with pytest.raises(SystemExit, match="lacks LICENSE"):
        sdist.build(checkout, tmp_path)
    assert not [*Path(tmp_path).glob("*.tar.gz")]
