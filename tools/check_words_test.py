"""What check_words.py finds, and where it does not look."""

from pathlib import Path

from check_words import odd_phrases

STYLE = """# Words

## Phrases that stay out

| odd | better |
|---|---|
| `anew`, `found are` | again |

## More

| `dear` | |
"""


def tree(root: Path, name: str, text: str) -> Path:
    for file, content in (("docs/style.md", STYLE), (name, text)):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(content)
    return root


def test_a_phrase_across_adjacent_literals_is_found(tmp_path):
    source = 'const char* text =\n    "The first.\\n"\n    "Found "\n    "are loops.";\n'
    assert odd_phrases(tree(tmp_path, "src/a.cc", source)) == [
        "src/a.cc:2: 'Found are'; docs/style.md has better words"
    ]


def test_comments_identifiers_and_other_words_pass(tmp_path):
    source = '// anew\nint anew_count = 0;  // "anew\nchar quote = \'"\';\ncall("canew", "found", "are");\n'
    assert odd_phrases(tree(tmp_path, "src/a.h", source)) == []


def test_python_strings_are_read_and_its_comments_are_not(tmp_path):
    source = 'x = 1  # anew\n\ndef f():\n    """Starts\n    anew."""\n'
    assert odd_phrases(tree(tmp_path, "python/a.py", source)) == [
        "python/a.py:5: 'anew'; docs/style.md has better words"
    ]


def test_viewer_texts_and_documents_are_read(tmp_path):
    tree(tmp_path, "docs/a.md", "One.\n\nOnce more, found\nare two.\n")
    tree(tmp_path, "viewer/src/a.tsx", "// anew\nconst a = <p>loaded anew</p>\n")
    assert odd_phrases(tmp_path) == [
        "viewer/src/a.tsx:2: 'anew'; docs/style.md has better words",
        "docs/a.md:3: 'found are'; docs/style.md has better words",
    ]


def test_tests_are_not_read(tmp_path):
    assert odd_phrases(tree(tmp_path, "src/a_test.cc", 'call("anew");\n')) == []


def test_a_guide_without_the_list_is_reported(tmp_path):
    tree(tmp_path, "README.md", "").joinpath("docs/style.md").write_text("# Words\n")
    assert odd_phrases(tmp_path) == ["docs/style.md: no section 'Phrases that stay out' with a table"]
