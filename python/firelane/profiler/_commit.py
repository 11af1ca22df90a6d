"""Which commit of the user's program was recorded, read from .git without running git."""

from __future__ import annotations

import os


def commit_of(folder: str = "") -> str:
    """The commit checked out in `folder` (default: the working folder) or a folder above it; "" if there is none."""
    try:
        return _head(_git_folder(folder or os.getcwd()))
    except (OSError, UnicodeDecodeError):
        return ""


def _git_folder(folder: str) -> str:
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return git
        if os.path.isfile(git):  # a worktree or a submodule: "gitdir: PATH"
            return os.path.join(folder, _text(git).removeprefix("gitdir: "))
        parent = os.path.dirname(folder)
        if parent == folder:
            raise FileNotFoundError(git)
        folder = parent


def _head(git: str) -> str:
    head = _text(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head
    ref = head.removeprefix("ref: ")
    common = os.path.join(git, "commondir")
    shared = os.path.join(git, _text(common)) if os.path.exists(common) else git
    path = os.path.join(shared, ref)
    if os.path.exists(path):
        return _text(path)
    with open(os.path.join(shared, "packed-refs")) as file:
        for line in file:
            commit, _, name = line.strip().partition(" ")
            if name == ref:
                return commit
    return ""


def _text(path: str) -> str:
    with open(path) as file:
        return file.read(4096).strip()
