"""The checks of a study: what raises each code, how it is muted, its section in docs/checks.md."""

import copy
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import marginsieve
from marginsieve import InputError
from marginsieve.cli.arguments import study_options
from marginsieve.data.ledger import Ledger
from marginsieve.data.reading import read_table
from marginsieve.errors import SolverError
from marginsieve.studies import running, summary
from marginsieve.studies.analyses import suspect_labels
from marginsieve.studies.analysis import ANALYSES
from marginsieve.studies.answer import answer
from marginsieve.studies.checks import ALARM, CHECKS, NOTE, Finding
from marginsieve.studies.options import StudyOptions
from marginsieve.studies.study_data import from_frame
from marginsieve.studies.target_column import find_positive, resolve_outcome

ROWS = 120
CODES = {check.code: kind for kind, check in CHECKS.items()}
OTHERS = ("suspects", "references", "substitutes", "other-lists", "false-share", "effects")
QUICK = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": OTHERS}
PAGE = (Path(__file__).parents[1] / "docs" / "checks.md").read_text(encoding="utf-8")


def draw_table():
    """120 rows of three columns, of which the first says something of the class; nothing to remark."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(ROWS) % 3 == 0, "case", "control")
    table = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=list("abc"))
    table["a"] += 2.0 * (y == "case")
    return table.assign(y=y)


def raise_codes(findings):
    """(code, level) of what was raised."""
    return [(finding.code, finding.level) for finding in findings]


@pytest.fixture
def table():
    return draw_table()


@pytest.fixture(scope="module")
def clean_study():
    """The study of the clean table."""
    table = draw_table()
    return marginsieve.study(table.drop(columns="y"), table["y"], **QUICK)


# -- the table --------------------------------------------------------------------------------------------------------


def repeat_first_row(table, classes):
    """The table with its first row once more, among rows of the same or of another class."""
    table.loc[{"same": 3, "other": 1}[classes], list("abc")] = table.loc[0, list("abc")].to_numpy()
    return table


def write_numbers(cells):
    """Different numbers as text."""
    return [f"{value:.3f}" for value in np.random.default_rng(1).uniform(1, 9, cells)]


ORDER = np.random.default_rng(2).permutation(ROWS)
TABLES = {  # a change of the clean table, and what it raises
    "copy": (lambda t: t.assign(x=np.where(t["y"] == "case", "ill", "well")), [("MS101", ALARM)]),
    "copy, by gaps": (lambda t: t.assign(x=t["a"].where(t["y"] == "case")), [("MS101", ALARM), ("MS108", NOTE)]),
    "leak": (lambda t: t.assign(x=t["b"] + 20.0 * (t["y"] == "case")), [("MS102", ALARM)]),
    "before, by name": (lambda t: t.assign(length_of_stay=t["b"] ** 2), [("MS103", ALARM)]),
    "before, by AUC": (lambda t: t.assign(a=t["b"] ** 2, x=t["c"] + 3.0 * (t["y"] == "case")), [("MS103", ALARM)]),
    "groups": (lambda t: t.assign(patient=np.arange(ROWS) // 3), [("MS104", ALARM)]),
    "equal rows": (lambda t: repeat_first_row(t, "same"), [("MS105", NOTE)]),
    "torn rows": (lambda t: repeat_first_row(t, "other"), [("MS105", ALARM), ("MS106", ALARM)]),
    "few": (lambda t: t.iloc[:24], [("MS107", ALARM)]),
    "gaps": (lambda t: t.assign(b=t["b"].where(np.arange(ROWS) != 7)), [("MS108", NOTE)]),
    "text": (lambda t: t.assign(x=[*map(str, np.arange(ROWS - 30) % 7), *30 * ["low"]]), [("MS109", ALARM)]),
    "separated": (lambda t: t.assign(x=[f"1,{value:03d}" for value in ORDER]), [("MS110", ALARM)]),
    "numbers": (lambda t: t.assign(x=write_numbers(ROWS)), [("MS111", NOTE)]),
    "numbers, limits": (lambda t: t.assign(x=["<0.1", *write_numbers(ROWS - 1)]), [("MS111", ALARM)]),
    "dates": (lambda t: t.assign(x=pd.date_range("2020-01-01", periods=ROWS)), [("MS112", NOTE)]),
    "levels": (lambda t: t.assign(x=[f"town {place // 3}" for place in ORDER]), [("MS113", ALARM)]),
    "prose": (lambda t: t.assign(x=[f"the town of {place} or so" for place in ORDER]), [("MS126", ALARM)]),
    "id": (lambda t: t.assign(x=[f"S{place}" for place in ORDER]), [("MS114", NOTE)]),
    "counts": (lambda t: t.assign(x=ORDER), [("MS117", NOTE)]),
    "empty": (lambda t: t.assign(x=None), [("MS121", NOTE)]),
    "site": (lambda t: t.assign(hospital=ORDER % 4), [("MS123", NOTE)]),
    "site, with the outcome": (
        lambda t: t.assign(scan_batch=np.where(ORDER % 4 == 0, ORDER % 2, 2 + (t["y"] == "case"))),
        [("MS123", ALARM)],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_raises_its_code_once(name, table):
    change, expected = TABLES[name]
    raised = from_frame(change(table), "y").findings
    assert raise_codes(raised) == expected
    assert CHECKS[name.split(",")[0]].code in dict(expected)
    assert all(finding.text and not finding.text.endswith(".") for finding in raised)


def test_a_clean_table_raises_nothing(table, clean_study):
    assert from_frame(table, "y").findings == ()
    assert clean_study.result["findings"] == []
    assert clean_study.result["answer"]["doubts"] == []
    assert clean_study.result["answer"]["evidence"]


def raise_from_file(path, **how):
    """What a study says of a file."""
    ledger = Ledger()
    return from_frame(read_table(path, target="y", ledger=ledger, **how), "y", ledger=ledger).findings


def test_a_file_raises_its_encoding_and_its_labels(tmp_path, table):
    path = tmp_path / "table.csv"
    table["town"] = np.where(np.arange(ROWS) % 2, "Köln", "Bonn")
    path.write_bytes(table.to_csv(index=False).encode("cp1252"))
    assert raise_codes(raise_from_file(path)) == [("MS115", NOTE)]
    table.loc[0, "y"] = "Case "
    path.write_bytes(table.to_csv(index=False).encode())
    (finding,) = raise_from_file(path)
    assert (finding.code, finding.level) == ("MS116", ALARM)
    assert finding.text.endswith(": 'Case ' as 'case'")


def test_a_file_raises_what_it_lacks(tmp_path, table):
    path = tmp_path / "table.csv"
    table.rename(columns={"b": ""}).to_csv(path, index=False)
    assert raise_codes(raise_from_file(path)) == [("MS119", NOTE)]
    lines = table.to_csv(index=False).splitlines()
    path.write_text("\n".join([*lines[:5], lines[5] + ",more", *lines[6:]]))
    assert raise_codes(raise_from_file(path, ragged="fill")) == [("MS120", ALARM)]
    table.assign(town=np.where(np.arange(ROWS) % 2, "NA", "DE")).to_csv(path, index=False)
    assert raise_codes(raise_from_file(path)) == [("MS122", NOTE), ("MS108", NOTE)]


def test_the_class_of_interest_is_remarked_where_it_is_not_the_rarer():
    label, (finding,) = find_positive(pd.Series(["no", "yes", "yes"]), "ill")
    assert (label, finding.code, finding.level) == ("yes", "MS118", NOTE)
    assert find_positive(pd.Series(["no", "no", "yes"]), "ill") == ("yes", [])


def test_sentences_name_one_column_or_each_of_several(table):
    case = table["y"] == "case"
    two = table.assign(p=np.where(case, 1, 0), q=np.where(case, "s", "t"))
    (finding,) = from_frame(two, "y").findings
    assert finding.text.startswith("'p', 'q': each says the same as the target")
    named = table.assign(a=table["b"] ** 2, survival=table["c"] + 9.0 * case, x=table["c"] + 3.0 * case)
    named.loc[0, "survival"] = -9.0  # no leak, and an AUC above that of x
    by_name, by_area = from_frame(named, "y").findings
    assert by_name.columns == ("survival",)
    assert by_area.columns == ("x",)
    area = float(re.search(r"AUC (\d\.\d\d);", by_area.text)[1])
    assert area == pytest.approx(roc_auc_score(case, named["x"]), abs=0.006)  # its own, not that of the other
    gaps = table.assign(b=table["b"].where(np.arange(ROWS) > 4), c=table["c"].where(np.arange(ROWS) > 0))
    (finding,) = from_frame(gaps, "y").findings
    assert finding.text == "2 of 3 columns have empty cells (1.7% of all cells): 'b' the most, in 5 of 120 rows"


# -- the answer -------------------------------------------------------------------------------------------------------


def set_score(result, number, **values):
    """Change the main score of a method."""
    result["methods"][number]["scores"][result["main_score"]] |= values


def widen(result):
    result["scores"][result["main_score"]] |= {"low": 0.7, "high": 0.95}


def be_unstable(result):
    result["stability"] = {"value": 0.3, "low": None, "high": None, "sets": 3}
    result["n_always"] = 0


def lengthen(result):
    result["n_features_over_folds"] |= {"largest": result["n_features"] - 1, "usual": [1, result["n_features"] - 1]}


def shorten(result):
    result["n_features_over_folds"] |= {"largest": 9, "usual": [result["n_features"] + 1, 9]}


def add_better_method(result):
    """And all features score higher still, which is no reason to be silent."""
    main, baseline = result["methods"][0], result["methods"][-1]
    result["methods"] = [main, copy.deepcopy(main) | {"title": "other"}, baseline]
    value = result["scores"][result["main_score"]]["value"]
    set_score(result, 1, value=value + 0.03)
    set_score(result, 2, value=value + 0.04)


def doubt_features(result):
    result["analyses"]["false-share"] = {
        **{"share": 0.6, "share_long": None, "asked": None, "marginal": 0, "below_a_tenth": 0},
        **{"listed_below_a_tenth": 0, "best_supported": [], "either": 0, "pairs": 10, "shuffles": 20, "sizes": [1]},
    }


def prefer_the_long_list(result):
    long = {"n_features": 3, "scores": result["scores"], "chance_share": None, "features": list("abc")}
    result["lists"] = {
        "long": long,
        "difference": {name: {"value": 0.05, "low": 0.01, "high": 0.09} for name in result["scores"]},
    }


def miss_a_column(result):
    result["often_outside"] = [{"name": "T4U", "frequency": 0.6}]


ANSWERS = {
    "MS201": be_unstable,
    "MS202": widen,
    "MS203": lengthen,
    "MS204": shorten,
    "MS205": add_better_method,
    "MS206": doubt_features,
    "MS207": prefer_the_long_list,
    "MS212": miss_a_column,
}


@pytest.fixture
def result(clean_study):
    """What the clean study says, to be changed."""
    changed = copy.deepcopy(clean_study.result)
    changed["lists"] = {"chance_share": None, "long": None, "difference": None}
    return changed


@pytest.mark.parametrize("code", ANSWERS)
def test_an_answer_raises_its_code_once(code, result):
    assert answer(result)["doubts"] == []
    ANSWERS[code](result)
    assert raise_codes(answer(result)["doubts"]) == [(code, ALARM)]


@pytest.mark.parametrize("code", ANSWERS)
def test_without_evidence_only_the_interval_is_doubted(code, result):
    result["analyses"]["evidence"]["strength"] = "none"
    ANSWERS[code](result)
    assert raise_codes(answer(result)["doubts"]) == [("MS202", ALARM)] * (code == "MS202")


def test_a_method_that_is_a_little_better_raises_nothing(result):
    add_better_method(result)
    set_score(result, 1, value=result["scores"][result["main_score"]]["value"] + 0.01)
    assert answer(result)["doubts"] == []


def test_a_doubt_of_an_analysis_is_an_alarm(result, monkeypatch):
    monkeypatch.setattr(ANALYSES["evidence"], "doubt", lambda _: "the rows were few")
    assert [asdict(doubt) for doubt in answer(result)["doubts"]] == [
        {"kind": "analysis", "level": ALARM, "text": "the rows were few", "columns": ()}
    ]


def test_labels_that_cannot_be_judged_are_a_note(clean_study, monkeypatch):
    def refuse(*_, **__):
        raise InputError("no machine is left")

    monkeypatch.setattr(suspect_labels, "judge_labels", refuse)
    (finding,) = ANALYSES["suspects"].run(clean_study.run).findings
    assert (finding.code, finding.level, finding.text) == ("MS209", NOTE, "labels were not judged: no machine is left")


def test_methods_that_fail_and_their_remarks_are_raised(table, monkeypatch):
    run_method = running.run_method

    def fail_on_relieff(method, *arguments):
        if method.recipe == "relieff":
            raise SolverError("no neighbours")
        return run_method(method, *arguments)

    monkeypatch.setattr(running, "run_method", fail_on_relieff)
    X = table.drop(columns="y").assign(same=1.0)
    done = marginsieve.study(X, table["y"], **QUICK | {"methods": "fisher,relieff", "keep": ["same"]})
    raised = [(finding["code"], finding["level"]) for finding in done.result["findings"]]
    assert raised == [("MS208", ALARM), ("MS210", ALARM)]
    failure, remark = (finding["text"] for finding in done.result["findings"])
    assert failure == "relieff failed: no neighbours"
    assert remark.startswith("keep names 'same', which does not vary")
    assert done.result["answer"]["doubts"] == [failure, remark]


def test_a_target_of_numbers_is_said(table):
    """Unless somebody said so: whole numbers of which most are rare, and numbers that are not whole."""
    rng = np.random.default_rng(0)
    y = pd.Series(rng.integers(0, 50, len(table)), name="level")
    for values in (y, y / 3):
        outcome, findings = resolve_outcome(values, "auto")
        assert (outcome, [finding.code for finding in findings]) == ("numbers", ["MS124"])
        assert "different numbers from 0 to" in findings[0].text
        assert resolve_outcome(values, "numbers") == ("numbers", [])
    for values in (y.astype(str), y % 10, y > 20):
        assert resolve_outcome(values, "auto") == ("classes", [])


# -- all of them ------------------------------------------------------------------------------------------------------


def test_every_code_is_raised_here():
    by_table = {code for _, expected in TABLES.values() for code, _ in expected}
    elsewhere = (
        115,
        116,
        118,
        119,
        120,
        122,
        124,
        125,
        127,
        208,
        209,
        210,
        211,
        213,
        214,
        215,
    )  # by tests of their own
    others = {f"MS{number}" for number in elsewhere}
    assert by_table | set(ANSWERS) | others == set(CODES)
    assert len(CODES) == len(CHECKS)


@pytest.fixture(scope="module")
def full_run(clean_study):
    """The clean study with a finding of each check that does not come with the answer."""
    kinds = [kind for code, kind in CODES.items() if code not in ANSWERS]
    findings = tuple(Finding(kind, ALARM if k % 2 else NOTE, f"{kind}: look") for k, kind in enumerate(kinds))
    return replace(clean_study.run, data=replace(clean_study.run.data, findings=findings))


def mute(run, *codes):
    """What the study says where these codes are muted."""
    return summary.summarize(replace(run, options=replace(run.options, mute=codes)))


@pytest.mark.parametrize("code", sorted(set(CODES) - set(ANSWERS)))
def test_a_muted_code_is_not_shown_and_nothing_else_changes(code, full_run):
    loud, quiet = mute(full_run), mute(full_run, code)
    assert [finding["code"] for finding in loud["findings"]].count(code) == 1
    texts = [finding["text"] for finding in loud["findings"] if finding["code"] == code]
    loud["findings"] = [finding for finding in loud["findings"] if finding["code"] != code]
    loud["answer"]["doubts"] = [text for text in loud["answer"]["doubts"] if text not in texts]
    loud["options"]["mute"], loud["protocol"]["muted"] = [code], [code]
    assert quiet == loud


@pytest.mark.parametrize("code", ANSWERS)
def test_a_muted_doubt_of_the_answer_is_not_shown(code, clean_study, monkeypatch):
    def answer_with_doubt(result):
        return answer(result) | {"doubts": [Finding(CODES[code], ALARM, "look")]}

    monkeypatch.setattr(summary, "answer", answer_with_doubt)
    assert mute(clean_study.run)["answer"]["doubts"] == ["look"]
    quiet = mute(clean_study.run, code)
    assert quiet["answer"]["doubts"] == quiet["findings"] == []
    assert quiet["protocol"]["muted"] == [code]


def test_the_headline_warns_of_a_leak_unless_it_is_muted(clean_study, full_run):
    warning = "Perhaps too good to be true"
    assert warning in mute(full_run, "MS101")["answer"]["headline"]
    assert mute(full_run, "MS101", "MS102")["answer"]["headline"] == clean_study.result["answer"]["headline"]
    assert warning not in clean_study.result["answer"]["headline"]


def test_a_code_that_was_not_raised_is_not_called_muted(clean_study):
    assert mute(clean_study.run, "MS101")["protocol"]["muted"] == []


def test_the_json_has_code_and_level(full_run):
    written = json.loads(json.dumps(mute(full_run)))["findings"]
    assert all(set(finding) == {"code", "kind", "level", "text", "columns"} for finding in written)
    assert all(CODES[finding["code"]] == finding["kind"] for finding in written)
    assert {finding["level"] for finding in written} == {ALARM, NOTE}


@pytest.mark.parametrize(
    ("muted", "shown"), [("MS999", "'MS999'"), (("MS101", "ms102"), "'ms102'"), (7, "7"), (([],), r"\[\]")]
)
def test_what_is_no_code_cannot_be_muted(muted, shown, table):
    with pytest.raises(InputError, match=rf"mute is {shown}; it must hold codes of checks, such as MS107$"):
        marginsieve.study(table.drop(columns="y"), table["y"], mute=muted)


def test_muting_is_spelled_alike_and_computes_nothing_else():
    assert study_options({"mute": ["MS101,MS108", "MS114"]}, None).mute == ("MS101", "MS108", "MS114")
    assert StudyOptions(mute="MS101").mute == ("MS101",)
    assert StudyOptions(mute="MS101").key() == StudyOptions().key()


# -- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_has_a_section_and_a_row_for_each_code():
    assert re.findall(r"(?m)^## (MS\d+): (.*)$", PAGE) == [(check.code, check.title) for check in CHECKS.values()]
    rows = re.findall(r"(?m)^\| (MS\d+) \| (.*?) \| .* \|$", PAGE)
    assert rows == [(check.code, check.title) for check in CHECKS.values()]


@pytest.mark.parametrize("code", CODES)
def test_a_section_says_why_what_to_do_and_how_to_mute(code):
    section = re.search(rf"(?ms)^## {code}: .*?(?=^## |\Z)", PAGE)[0]
    for part in ("**Raised**", "**Why**", "**What to do**", f'**Mute**: `--mute {code}`, in Python `mute=("{code}",)`'):
        assert section.count(part) == 1, part
    level = re.search(r"\*\*Level\*\*: (note|alarm)", section)[1]
    assert re.search(rf"(?m)^\| {code} \| .* \| {level}( or alarm)? \|$", PAGE)


def test_the_levels_on_the_page_are_those_that_are_raised():
    levels = dict(re.findall(r"(?m)^\| (MS\d+) \| .*? \| (.*) \|$", PAGE))
    raised = {pair for _, expected in TABLES.values() for pair in expected} | {(code, ALARM) for code in ANSWERS}
    for code in {code for code, _ in raised}:
        assert set(levels[code].split(" or ")) == {level for other, level in raised if other == code}, code
