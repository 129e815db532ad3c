"""The report in a real browser with the network off, and its parts against formulas."""

import copy
import hashlib
import json
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics

from marginsieve import InputError, study
from marginsieve.cli import commands as cli
from marginsieve.data import make_cohort
from marginsieve.outcomes.class_effects import cramers_v, describe_feature, eta_squared, hedges_g, wilson
from marginsieve.report import SECTIONS, render, svg
from marginsieve.report.numbers import format_expected, format_score, format_share
from marginsieve.report.sections import Section
from marginsieve.studies.aggregate import _plot_of_class, without_rows
from marginsieve.studies.answer import answer

HOSTILE = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "</style><script>window.pwned=1</script>",
    "{{ 7 * 7 }}",
    "javascript:window.pwned=1",
    "' onmouseover='window.pwned=1",
)


@pytest.fixture(scope="module")
def found():
    """Hostile names everywhere: columns, classes, levels, target, row labels."""
    cohort = make_cohort(90, 40, n_relevant=6, effect=2.0, flip=0.04, prevalence=0.4, random_state=2)
    names = dict(zip(cohort.truth.relevant, HOSTILE, strict=False))
    X = cohort.X.rename(columns=names)
    X["<b>level</b>"] = np.where(cohort.y == "case", "<i>x</i>", np.tile(["<u>y</u>", "z"], 45))
    X.index = pd.Index([f"<script>window.pwned={k}</script>" for k in range(90)], name="<who>")
    y = pd.Series(np.where(cohort.y == "case", "<em>sick</em>", "well & fine"), name="<script>window.pwned=2</script>")
    return study(X, y, methods="clinical-rfe,su", n_features_to_select=8, keep=list(HOSTILE), cv=3, n_repeats=2)


@pytest.fixture(scope="module")
def page_of(found, tmp_path_factory):
    """A page of the report in Chromium, the network off; what it complained about."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium on PATH")
    driving = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

    file = found.report(tmp_path_factory.mktemp("report") / "report.html")
    with driving.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])

        def opened(width=1280, scripts=True, **settings):
            context = running.new_context(
                offline=True, viewport={"width": width, "height": 900}, java_script_enabled=scripts, **settings
            )
            page, said = context.new_page(), []
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: said.append(request.url) if request.url[:5] != "file:" else None)
            page.goto(file.as_uri())
            return page, said

        yield opened
        running.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.long
def test_the_page_opens_offline_without_a_complaint_and_fits(width, page_of):
    page, said = page_of(width)
    assert said == []
    assert page.locator("h1").inner_text().startswith("8 of 41 features separate <em>sick</em> from well & fine: AUC")
    assert page.locator("svg.chart").count() == 6
    for part in ("sizes", "learning", "features", "predictions", "decision", "methods", "suspects", "data", "how"):
        assert page.locator(f"h2#{part}").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(wide) == 0


@pytest.mark.long
def test_hostile_names_stay_inert_and_show_as_text(page_of, found):
    page, said = page_of()
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, script[src], link, iframe, em, u").count() == 0
    text = page.locator("body").inner_text()
    for feature in found.result["features"]:
        assert feature["name"] in text
    assert "<em>sick</em>" in text
    assert "49" not in page.locator("td", has_text="7 * 7").first.inner_text()
    assert said == []


@pytest.mark.long
def test_tables_sort_and_filter_by_keyboard(page_of):
    page, said = page_of()
    names = page.locator("#features ~ .scroll table tbody").first.locator("tr td:nth-child(1)")
    ranks = lambda: [int(text) for text in names.all_inner_texts()]  # noqa: E731
    assert ranks() == list(range(1, 9))
    button = page.get_by_role("button", name="rank")
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.keyboard.press("Enter")
    assert ranks() == list(range(8, 0, -1))
    page.get_by_role("button", name="effect").first.click()
    cells = page.locator("#features ~ .scroll table tbody").first.locator("tr td:nth-child(5)")
    sizes = [float(cell.get_attribute("data-value")) for cell in cells.all()]
    assert sizes == sorted(sizes)
    page.get_by_label("Filter features").fill("level")
    assert page.locator("#features ~ .scroll table tbody").first.locator("tr:visible").count() == 1
    assert said == []


@pytest.mark.long
def test_it_is_complete_without_scripts_in_the_dark_and_in_print(page_of, found):
    page, _ = page_of(scripts=False, color_scheme="dark")
    assert page.locator("#features ~ .scroll table tbody").first.locator("tr:visible").count() == 8
    assert page.locator("input.filter").count() == 0
    assert page.get_by_text(found.result["answer"]["headline"]).is_visible()
    assert len(page.pdf()) > 10_000


@pytest.mark.long
def test_dark_and_light_have_enough_contrast(page_of):
    for scheme in ("light", "dark"):
        page, _ = page_of(color_scheme=scheme)
        body, dim = page.locator("body"), page.locator(".dim").first
        paper = colour(page, body, "backgroundColor")
        assert contrast(colour(page, body, "color"), paper) >= 7
        assert contrast(colour(page, dim, "color"), paper) >= 4.5


def colour(page, locator, name):
    text = locator.evaluate(f"node => getComputedStyle(node).{name}")
    return [float(part) / 255 for part in text[text.index("(") + 1 : -1].split(",")[:3]]


def contrast(one, other):
    """WCAG's ratio."""

    def light(rgb):
        return np.dot(
            [0.2126, 0.7152, 0.0722], [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        )

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


# -- data -> JSON -> page -------------------------------------------------------------------------------------------


def test_the_page_is_drawn_again_from_the_folder(found, tmp_path, monkeypatch, capsys):
    found.save(tmp_path)
    first = (tmp_path / "report.html").read_text()
    (tmp_path / "report.html").unlink()
    monkeypatch.setattr(sys, "argv", ["marginsieve", "report", str(tmp_path)])
    with pytest.raises(SystemExit):
        cli.main()
    assert "report.html" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text() == first
    for text, sentence in (
        ("{", "is not valid JSON"),
        ("[]", "is not the result of a study"),
        ('{"schema": 1}', "schema 1 and this marginsieve reads 6: run `marginsieve select` again"),
    ):
        (tmp_path / "result.json").write_text(text)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 2
        assert sentence in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr(sys, "argv", ["marginsieve", "report", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit):
        cli.main()
    assert "there is no result.json" in " ".join(capsys.readouterr().err.split())


def test_the_json_is_plain_and_holds_what_the_docs_say(found):
    assert json.loads(json.dumps(found.result, allow_nan=False)) == found.result
    with pytest.raises(InputError, match="lacks answer"):
        render({key: value for key, value in found.result.items() if key != "answer"})


# -- a page to be sent round ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows_named():
    """A study that names rows by their ids, and its table."""
    cohort = make_cohort(90, 12, n_relevant=4, effect=2.5, flip=0.08, prevalence=0.4, random_state=1)
    X = cohort.X.assign(level=np.where(np.arange(90) == 7, "rare level", np.tile(["p", "q"], 45)))
    X.insert(0, "patient_id", [f"PAT-{k * 7919 % 9973:05}" for k in range(90)])
    settings = {"labels": "fallible", "cv": 3, "n_repeats": 1, "keep": ["level"], "n_features_to_select": 6}
    return study(X, cohort.y, methods="clinical-rfe", ids=["patient_id"], **settings), X


def test_an_aggregated_page_has_no_rows_ids_or_values(rows_named):
    found, X = rows_named
    page, aggregated = found.html(), render(without_rows(found.result))
    named = [patient for patient in X["patient_id"] if patient in page]
    assert len(named) >= 2  # the whole page has them
    assert [patient for patient in X["patient_id"] if patient in aggregated] == []
    assert "This page is aggregated" in aggregated
    count = found.result["analyses"]["suspects"]["count"]
    assert f"{count} rows that the model cannot explain are not named here" in aggregated
    assert 'class="dots' not in aggregated.replace('class="dots s0" d=""', "").replace('class="dots s1" d=""', "")
    assert "rare level" in page
    assert "rare level" not in aggregated  # one row has it
    assert not re.search(r"\brows? \d", re.sub(r"<style>.*?</style>", "", aggregated, flags=re.S))
    assert [value for value in X.select_dtypes("number").to_numpy().ravel() if f"{abs(value):.4f}" in aggregated] == []
    assert found.result["answer"]["headline"] in aggregated.replace("&#39;", "'")


def test_what_is_not_known_to_hold_no_rows_is_left_out(rows_named):
    found, _ = rows_named
    result = copy.deepcopy(found.result)
    result["analyses"]["of-a-plugin"] = {"rows": ["SECRET"]}
    result["findings"].append({"code": "MS109", "kind": "text", "level": "alarm", "text": "SECRET", "columns": []})
    result["answer"]["sentences"].append("SECRET")
    result["methods"][0]["notes"] = ["SECRET"]
    SECTIONS["Rows"] = Section("rows", "Rows", 1.0, draw=lambda _: "SECRET")
    try:
        assert "SECRET" in render(result)
        assert "SECRET" not in render(without_rows(result))
    finally:
        del SECTIONS["Rows"]


def test_small_classes_have_no_quartiles_in_an_aggregated_page():
    plot = {"type": "numbers", "classes": [{"class": "a", "count": 9, "quartiles": [0, 1, 2, 3, 4], "points": [0.0]}]}
    assert _plot_of_class(plot) is None
    plot["classes"][0]["count"] = 10
    assert _plot_of_class(plot)["classes"][0] | {"points": []} == {
        **plot["classes"][0],
        "quartiles": [1, 1, 2, 3, 3],
        "points": [],
    }
    with pytest.raises(InputError, match="this result is not as a study leaves it"):
        without_rows({"analyses": 3})


def test_the_digest_of_the_model_is_that_of_its_file(rows_named, tmp_path):
    found, _ = rows_named
    found.save(tmp_path)
    (name,) = found.result["models"]
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert found.result["models"] == {name: digest}
    assert digest in (tmp_path / "report.html").read_text()


def test_a_thousand_features_stay_below_three_megabytes(found):
    result = copy.deepcopy(found.result)
    result["features"] = [{**result["features"][k % 8], "name": f"gene-{k:05}"} for k in range(100)]
    bare = {k: v for k, v in result["features"][0].items() if k not in ("plot", "effect", "direction")}
    result["features"] += [{**bare, "name": f"gene-{k:05}"} for k in range(900)]
    result["table"]["constant_columns"] = [f"flat-{k}" for k in range(20_000)]
    assert len(render(result).encode()) < 3e6


def test_a_null_result_says_so_first(found):
    result = copy.deepcopy(found.result)
    result["answer"] |= {"evidence": False, "headline": "No evidence that these features predict y."}
    assert "tables without any relation to the target" in render(result)
    assert "tables without any relation to the target" not in render(found.result)


# -- curves and evidence against formulas -----------------------------------------------------------------------------


def test_curves_agree_with_scikit_learn(found):
    nested = found.main.nested
    truth = nested.target.codes
    positive = truth == nested.target.positive
    pictures = nested.target.pictures(nested.predicted, nested.decision, nested.probability)
    drawn = pictures["curves"]
    area = np.mean([metrics.roc_auc_score(positive, row) for row in nested.decision])
    assert np.trapezoid(drawn["roc"]["y"], drawn["roc"]["x"]) == pytest.approx(area, abs=0.02)
    precise = np.mean([metrics.average_precision_score(positive, row) for row in nested.decision])
    assert np.mean(drawn["precision_recall"]["y"]) == pytest.approx(precise, abs=0.03)
    brier = np.mean([metrics.brier_score_loss(positive, row) for row in nested.probability])
    assert drawn["brier"] == pytest.approx(brier)
    table = np.mean([metrics.confusion_matrix(truth, row) for row in nested.predicted], axis=0)
    assert np.allclose(pictures["confusion"]["counts"], table)
    weights = [b["n"] for b in drawn["calibration"]]
    assert np.average([b["observed"] for b in drawn["calibration"]], weights=weights) == pytest.approx(positive.mean())


def test_wilson_is_that_of_scipy():
    for hits, count in ((0, 8), (3, 8), (40, 41)):
        told = stats.binomtest(hits, count).proportion_ci(method="wilson")
        assert wilson(hits / count, count) == pytest.approx((told.low, told.high), abs=1e-6)


def test_effect_sizes():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 30), rng.normal(0, 1, 20)
    t = stats.ttest_ind(a, b).statistic * np.sqrt(1 / 30 + 1 / 20)  # Cohen's d
    assert hedges_g(a, b) == pytest.approx(t * (1 - 3 / (4 * 50 - 9)))
    f = stats.f_oneway(a, b).statistic
    assert eta_squared([a, b]) == pytest.approx(f / (f + 48))
    table = np.array([[10.0, 5, 3], [2, 8, 9]])
    phi = stats.chi2_contingency(table).statistic / 37 - 1 * 2 / 36
    assert cramers_v(table) == pytest.approx(np.sqrt(phi / (2 - 1 / 36 - 1)))
    codes = rng.integers(0, 60, 100)
    noise = np.array([np.bincount(codes[rows], minlength=60) for rows in (slice(50), slice(50, None))], dtype=float)
    assert cramers_v(noise) < 0.3 < stats.contingency.association(noise[:, noise.sum(0) > 0].astype(int), "cramer")
    assert hedges_g(np.ones(4), np.zeros(4)) == np.inf
    assert cramers_v(np.array([[3.0], [4.0]])) == 0.0


def test_evidence_says_the_direction():
    codes = np.repeat([0, 1], 10)
    up = describe_feature(pd.Series(np.arange(20.0)), "real", codes, ["no", "yes"], 1)
    assert up["direction"] == "higher in yes"
    levels = pd.Series(np.repeat(["p", "q"], 10)).where(np.arange(20) != 3)
    told = describe_feature(levels, "nominal", codes, ["no", "yes"], 1)
    assert told["direction"] == "more often q in yes"
    assert told["effect"]["value"] == pytest.approx(1.0)
    assert [(part["class"], part["count"]) for part in told["plot"]["classes"]] == [("yes", 10), ("no", 9)]


def test_ticks_are_round_and_inside():
    for low, high in ((0.0, 1.0), (0.5, 1.0), (0.83, 0.97), (0.0, 7.0)):
        ticks = svg._ticks(low, high)
        assert 3 <= len(ticks) <= 8
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert svg._decades(1, 20_000) == [1, 10, 100, 1000, 10_000]


# -- no sentence contradicts a number -------------------------------------------------------------------------------


def drawn_score(rng, low, high):
    """A value with an interval around it, sometimes very close to an end, sometimes without an interval."""
    value = rng.uniform(low, high) if rng.random() < 0.8 else high - 10 ** rng.uniform(-5, -1) * (high - low)
    ends = np.clip(value + np.array([-1, 1]) * 10 ** rng.uniform(-4, -0.5), low, high)
    if rng.random() < 0.1:
        return {"value": float(value), "low": None, "high": None}
    return {"value": float(value), "low": float(ends[0]), "high": float(ends[1])}


def drawn_result(result, rng):
    """The result of a study with other numbers in it."""
    result = copy.deepcopy(result)
    for method in result["methods"]:
        method["scores"] = {name: drawn_score(rng, 0.0, 1.0) for name in method["scores"]}
        method["difference"] = {name: drawn_score(rng, -1.0, 1.0) for name in method["difference"]}
    result["scores"] = result["methods"][0]["scores"]
    p = float(rng.choice([0.01, 0.04, 0.05, 0.5, 1.0]))
    strength = "none" if p > 0.05 else "weak" if p > 0.01 else "clear"
    result["analyses"]["evidence"] |= {"p": p, "strength": strength}
    sizes = np.sort(rng.integers(1, 60, 3))
    usual = [int(sizes[0]), int(sizes[2])]
    result["n_features_over_folds"] = {
        "smallest": usual[0],
        "median": float(sizes[1]),
        "largest": usual[1],
        "usual": usual,
    }
    result["n_features"] = len(result["features"])
    result["stability"]["value"] = float(rng.uniform(-0.2, 1.0))
    for feature in result["features"]:
        feature["frequency"] = float(rng.choice([0.2, 0.9, 1.0]))
    result["n_always"] = sum(feature["frequency"] == 1 for feature in result["features"])
    return result


NUMBER = r"([+-]?\d+\.\d+)"


def numbers_agree(text, pattern, score):
    """Every place in a text that matches, with a value and two ends, has the numbers of the score."""
    for match in re.finditer(pattern, text):
        for written, key in zip(match.groups(), ("value", "low", "high"), strict=True):
            digits = len(written.split(".")[1])
            assert abs(float(written) - score[key]) <= 0.5 * 10.0**-digits + 1e-12
        assert not (score["value"] < 1 and float(match.group(1)) == 1 and len(match.group(1)) < 6)
        assert match.group(2) != match.group(3) or score["low"] == score["high"] or len(match.group(2)) >= 6


VERDICT = {
    "is better in": lambda score: score["low"] is not None and score["low"] > 0,
    "is worse in": lambda score: score["low"] is not None and score["high"] < 0,
    "may be better or worse (the data cannot tell) in": lambda score: (
        score["low"] is not None and score["low"] <= 0 <= score["high"]
    ),
    "differs by an amount without an interval in": lambda score: score["low"] is None,
}


def test_no_sentence_contradicts_a_number(found):
    rng = np.random.default_rng(0)
    for _ in range(400):
        result = drawn_result(found.result, rng)
        words = answer(result)
        headline, text = words["headline"], " ".join(words["sentences"])
        level = {"balanced_accuracy": 0.5, "auc": 0.5}
        above = all(result["scores"][k]["low"] is None or result["scores"][k]["low"] > v for k, v in level.items())
        evident = result["analyses"]["evidence"]["p"] <= 0.05
        assert headline.startswith("No evidence") == (not evident)
        assert ("the interval includes chance" in headline) == (evident and not above)
        span = rf"{NUMBER} \(95 % interval {NUMBER} to {NUMBER}\)"
        numbers_agree(headline, f"AUC {span}", result["scores"]["auc"])
        numbers_agree(text, f"\\(AUC {span}", result["scores"]["auc"])
        change = result["methods"][0]["difference"]
        price = next(one for one in words["sentences"] if one.startswith("Against all features"))
        named = {"balanced accuracy": "balanced_accuracy", "PR-AUC": "pr_auc", "accuracy": "accuracy", "AUC": "auc"}
        seen = []
        for part in price.removeprefix("Against all features the list ").removesuffix(".").split("; "):
            verdict = next(words_ for words_ in VERDICT if part.startswith(words_))
            for metric in re.findall(r"(balanced accuracy|PR-AUC|AUC|accuracy) \(", part):
                score = change[named[metric]]
                assert VERDICT[verdict](score), (part, score)
                numbers_agree(part, rf"(?<!balanced )(?<!PR-)\b{metric} \({NUMBER}, {NUMBER} to {NUMBER}\)", score)
                seen.append(metric)
        assert sorted(seen) == sorted(named)
        stability, value = (
            next(one for one in words["sentences"] if "list" in one and "where 0 is" in one),
            result["stability"],
        )
        always = sum(feature["frequency"] == 1 for feature in result["features"])
        if stability.startswith("The list is"):
            kind = "stable" if value["value"] >= 0.75 else "moderately" if value["value"] >= 0.4 else "unstable"
            assert stability.startswith(f"The list is {kind}")
            assert re.search(rf"\b{always} (was|were) selected in every outer fold", stability)


@pytest.mark.parametrize(
    ("score", "digits", "written"),
    [
        ({"value": 0.9994, "low": 0.9981, "high": 0.99996}, 2, ("0.999", "0.998 to 1.000")),
        ({"value": 0.9994, "low": 0.981, "high": 1.0}, 2, ("0.999", "0.981 to 1.000")),
        ({"value": 1.0, "low": 0.94, "high": 1.0}, 2, ("1.00", "0.94 to 1.00")),
        ({"value": 0.5, "low": None, "high": None}, 2, ("0.50", "no interval")),
        ({"value": 0.501, "low": 0.5001, "high": 0.5012}, 2, ("0.501", "0.500 to 0.501")),
        ({"value": 0.2, "low": 0.1, "high": 0.3}, 3, ("0.200", "0.100 to 0.300")),
        ({"value": -0.001, "low": -0.1, "high": 0.1}, 2, ("0.00", "-0.10 to 0.10")),
    ],
)
def test_numbers_have_enough_digits(score, digits, written):
    assert format_score(score, digits) == written


@pytest.mark.parametrize(
    ("score", "written"),
    [
        ({"value": -0.0019, "low": -0.01, "high": 0.01}, ("0.00", "-0.01 to +0.01")),
        ({"value": 0.02, "low": 0.0026, "high": 0.05}, ("+0.020", "+0.003 to +0.050")),
        ({"value": -0.3, "low": -0.5, "high": -0.00004}, ("-0.3000", "-0.5000 to 0.0000")),
    ],
)
def test_a_difference_keeps_the_side_of_its_interval(score, written):
    assert format_score(score, signed=True) == written


def test_shares_and_counts_that_are_not_zero_are_not_written_as_zero():
    assert [format_share(share) for share in (0.0, 0.0002, 0.01, 0.3)] == ["0%", "under 1%", "1%", "30%"]
    texts = [format_expected(share, 20) for share in (0.0, 0.02, 0.03, 0.11, 1.0)]
    assert texts == [
        *("fewer than 1 of them is", "fewer than 1 of them is", "about 1 of them is"),
        *("about 2 of them are", "all of them are"),
    ]
