"""Whether score_all.py sees that a diagnosis names the place of a fault, by hand-made answers."""

import pytest

from score_all import fault_table, place_named, words_in

ENTRY = {"where": ("aten::cdist", "Memcpy DtoH")}


def finding(*texts):
    evidence = {"event_count": 2, "events": [{"table": "host_slices", "row": 3, "name": text} for text in texts]}
    return {"id": "some-rule", "title": "a title", "evidence": evidence, "try": {"text": "do less", "code": ""}}


def answer(*findings, notes=()):
    said = {"verdict": "a verdict", "findings": list(findings), "notes": list(notes)}
    return {"findings": [{**each, "words": words_in(each)} for each in findings], "words": words_in(said)}


def test_texts_are_values_at_any_depth_and_names_of_fields_are_none():
    words = words_in({"aten::cdist": [{"name": "aten::mm"}, {"name": "aten::mm"}], "row": 3, "healthy": False})
    assert words == "aten::mm"


@pytest.mark.parametrize(
    "said, where",
    [
        (answer(finding("aten::_cdist"), finding("aten::cdist")), "in the first three"),
        (answer(finding("aten::mm", "aten::cdist"), finding()), "first"),
        (answer(finding("memcpy dtoh (Device -> Pageable)")), "first"),
        (answer(finding(), finding(), finding("aten::cdist")), "in the first three"),
        (answer(finding(), finding(), finding(), finding("aten::cdist")), "anywhere"),
        (answer(finding(), notes=["largest operator: aten::cdist takes 40% of a step"]), "anywhere"),
        (answer(notes=["largest operator: aten::cdist takes 40% of a step"]), "anywhere"),
        (answer(finding("aten::mm"), notes=["largest operator: aten::mm"]), ""),
        (answer(), ""),
    ],
)
def test_the_place_is_named_where_one_of_its_names_is_said(said, where):
    assert place_named(ENTRY, said) == where


def test_a_program_without_names_of_the_place_has_it_named_nowhere():
    assert place_named({"where": ()}, answer(finding("aten::cdist"))) == ""
    assert place_named({}, answer(finding("aten::cdist"))) == ""


def test_answers_that_were_stored_without_texts_are_judged_by_their_titles():
    assert place_named(ENTRY, {"findings": [{"id": "x", "title": "aten::cdist takes 40%"}]}) == "first"


def truth(**more):
    entry = {"faulty_ns": [10e6, 10e6], "fixed_ns": [5e6, 5e6], "findings": ["a-rule"], "near": [], "saves_time": True}
    return {**entry, "says": "", **more}


def lane(*findings, notes=()):
    gain = {"low_ns": 1e6, "high_ns": 9e6, "likely_ns": 5e6}
    return answer(*({**each, "gain": gain} for each in findings), notes=notes)


def test_places_are_counted_of_faults_that_cost_something(capsys):
    truths = {
        "one": truth(where=["aten::cdist"]),
        "two": truth(where=["aten::cdist"]),
        "three": truth(where=["aten::cdist"]),
        "four": truth(where=["aten::cdist"]),
        "cheap": truth(where=["aten::cdist"], fixed_ns=[10e6, 10e6]),
    }
    answers = {f"{name}.fixed.lane": lane() for name in truths}
    answers |= {
        "one.faulty.lane": lane(finding("aten::cdist")),
        "two.faulty.lane": lane(finding(), finding("aten::cdist")),
        "three.faulty.lane": lane(finding(), notes=["largest operator: aten::cdist"]),
        "four.faulty.lane": lane(finding("aten::mm")),
        "cheap.faulty.lane": lane(finding("aten::cdist")),
    }
    fault_table(truths, answers, "lane")
    said = capsys.readouterr().out
    assert "The place is named in the first finding of 1, in the first three of 2, anywhere of 3." in said
    rows = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in said.splitlines() if line[:1] == "|"}
    assert rows["planted fault"] == "place named"
    assert [rows[name] for name in truths] == ["first", "in the first three", "anywhere", "no", "first"]


def test_programs_without_names_of_the_place_keep_their_table(capsys):
    fault_table({"one": truth()}, {"one.faulty.lane": lane(finding()), "one.fixed.lane": lane()}, "lane")
    said = capsys.readouterr().out
    assert "place" not in said.replace("at any place", "") and "| when mended |\n" in said
