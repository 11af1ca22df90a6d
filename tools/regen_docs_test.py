"""What regen_docs.py rewrites in a document, with fake commands."""

import pytest

from regen_docs import new_text

OUTPUTS = {"firelane info a": "one\ntwo  \n", "firelane ops a": "a\nb\nc\nd\n"}


def regenerated(text: str) -> str:
    return new_text(text, OUTPUTS.__getitem__)


def test_a_stale_output_is_replaced_and_the_rest_of_the_document_stays():
    before = "# T\n\n```cmdoutput\n$ firelane info a\nold\n```\n\n```\n$ firelane info a\nold\n```\n"
    assert (
        regenerated(before)
        == "# T\n\n```cmdoutput\n$ firelane info a\none\ntwo\n```\n\n```\n$ firelane info a\nold\n```\n"
    )


def test_a_current_document_does_not_change():
    text = "```cmdoutput\n$ firelane info a\none\ntwo\n$ firelane ops a\na\nb\nc\nd\n```\n"
    assert regenerated(text) == text


def test_three_dots_keep_the_number_of_lines():
    assert regenerated("```cmdoutput\n$ firelane ops a\nx\nb\n...\n```\n") == (
        "```cmdoutput\n$ firelane ops a\na\nb\n...\n```\n"
    )


def test_three_dots_disappear_when_there_is_no_more_output():
    assert regenerated("```cmdoutput\n$ firelane info a\n1\n2\n3\n...\n```\n") == (
        "```cmdoutput\n$ firelane info a\none\ntwo\n```\n"
    )


def test_a_block_without_a_command_is_an_error():
    with pytest.raises(ValueError, match="must begin with"):
        regenerated("```cmdoutput\nhello\n```\n")
