"""The papers' tables by one command: printed figures as the papers have them, ours beside them, a verdict for each."""

import ast
import importlib
import inspect
import io
import json
import os
import re
import sys
import tokenize
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.svm import SVC

from marginsieve import describe, recipes
from marginsieve.bench.results import SuiteResult
from marginsieve.bench.suite import Suite, run_suite
from marginsieve.data import NamedTable
from marginsieve.data.table import Schema, filled_with_means, one_hot
from marginsieve.engine.store import changed_files
from marginsieve.errors import InputError
from marginsieve.solvers import l1_start, ramp_programs, smo
from marginsieve.solvers.execution import Clock
from marginsieve.solvers.programs import Limits
from reproduction import everything, named_problems, work
from reproduction import reproduce as reproducing
from reproduction.__main__ import run as command
from reproduction.catalogue import PAPERS, paper_of
from reproduction.claims import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    LEVEL,
    NO_DATA,
    NOT_RUN,
    ONLY_PRINTED,
    OURS,
    VERDICTS,
    Claim,
    Experiment,
    is_ahead,
    is_best,
    undecidable_claim,
)
from reproduction.daks_printed import PrintedDaks
from reproduction.evidence import AS_PRINTED, HONEST, REPAIRED, Evidence, Finding, NotRun
from reproduction.exact_and_daks import ExactAndDaks
from reproduction.halves import HALF, LEARNED, OWN_WIDTH, RAW, SelectionOnHalf
from reproduction.kp_by_hand import choose_path, count_right, data_slope, gaussian_kernel, learn_factors
from reproduction.kp_imbalanced import C2_PRINTED, POWERS, _best_penalty, _spread_of_penalties
from reproduction.markdown import grid
from reproduction.mixed import FinalClassifiers, naive_bayes
from reproduction.paper import FULL, KEPT, QUICK, HasAnswers
from reproduction.parameters import ConvergenceStudy, ParameterStudy, vary
from reproduction.pins import pin, read_pins
from reproduction.record import RUNS, begin_run, describe_hours, hours_by_commit
from reproduction.reproduce import _entries, _times, _verdict, reproduce
from reproduction.symon import (
    _best_sizes,
    _plainly,
    _wilcoxon,
)
from reproduction.work import Effort
from reproduction.workplace import Call, Workplace
from test_ramp import instance
from test_ramp import value as objective


@pytest.mark.parametrize("name", list(PAPERS))
def test_printed_figures_are_well_formed(name):
    printed = PAPERS[name].figures()
    assert list(printed.columns) == ["table", "dataset", "method", "quantity", "size", "value", "note"]
    assert np.isfinite(printed["value"]).all()
    assert (printed["quantity"] != "").all()
    assert (printed["table"] != "").all()


@pytest.mark.parametrize(
    ("paper", "table", "dataset", "method", "quantity", "value"),
    [  # read off the papers by eye
        ("kp-imbalanced", "1", "BULL", "", "gfr", 0.041),
        ("kp-imbalanced", "2", "GLIOMA", "cs_svm_linear", "balanced_accuracy", 83.7),
        ("kp-imbalanced", "4", "GLIOMA", "kp_cssvm", "balanced_accuracy_max", 87.2),
        ("kp-imbalanced", "4", "SRBCT", "fisher", "balanced_accuracy_mean", 84.6),
        ("kp-svm", "2", "COLON", "svm_gaussian", "effectiveness_percent", 85.70),
        ("symon", "4", "OLIVETTI", "symon_r1", "g_mean", 0.982),
        ("ramp-loss", "text 4.3", "COLON", "fisher", "accuracy_percent", 88.75),
    ],
)
def test_printed_figures_are_those_of_the_papers(paper, table, dataset, method, quantity, value):
    printed = PAPERS[paper].figures()
    keys = {"table": table, "dataset": dataset, "method": method, "quantity": quantity}
    found = printed[np.all([printed[key] == wanted for key, wanted in keys.items()], axis=0)]
    assert value in found["value"].tolist()


def test_every_job_asks_for_something_that_was_printed():
    for paper in PAPERS.values():
        printed = paper.figures()
        for job in jobs_of(paper):
            if job.tables != ("figures",):
                part = printed[printed["table"].isin(job.tables) & printed["method"].isin(list(job.methods))]
                assert set(part["dataset"]) & set(job.data), job.name
                assert set(part["quantity"]) & set(job.quantities), job.name


def jobs_of(paper):
    """Its jobs, and what parts compare with the print as jobs do."""
    return [*paper.jobs, *(part.job for part in paper.studies if isinstance(part, HasAnswers))]


def entries_of(paper):
    """Every method that a paper's jobs and suites run, with the settings that it is given."""
    for job in jobs_of(paper):
        for column in job.columns:
            for label, (recipe, settings) in job.methods.items():
                for entry in _entries(job, label, recipe, settings, column):
                    yield (
                        recipe,
                        {name: value for name, value in entry.items() if name not in ("name", "label", "grid")},
                    )
    for part in paper.studies:
        if isinstance(part, work.HasSuite) and named_problems.present(part.data):
            for method in part.suite().methods:
                yield method.recipe, dict(method.settings)


def values_of(recipe, settings):
    params = recipes.configure(recipes.get(recipe), settings).get_params()
    plain = {name: value for name, value in params.items() if not hasattr(value, "get_params")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.name)
def test_pins_say_what_the_library_does(paper):
    """As long as no default has changed, a pinned method is the method itself."""
    for job in jobs_of(paper):
        for recipe, settings in job.methods.values():
            assert values_of(recipe, pin(recipe, settings)) == values_of(recipe, settings), recipe


@pytest.fixture
def other_defaults(monkeypatch):
    """Every default of recipes, selectors and parts that is pinned is another number, word or truth value."""

    def other(value):
        if isinstance(value, bool):
            return not value
        return 0.37 * value if isinstance(value, float) else value + 1 if isinstance(value, int) else "auto"

    functions = [recipes.get(name) for name in read_pins()["recipes"]]
    parts = {type(part) for function in functions for part in function().get_params().values()}
    inits = [part.__init__ for part in parts if hasattr(part, "get_params") and inspect.isfunction(part.__init__)]
    assert len(inits) > 10
    for function in (*functions, *inits):
        if (old := function.__defaults__) is not None:
            numbers = tuple(other(value) if isinstance(value, (bool, int, float)) else value for value in old)
            monkeypatch.setattr(function, "__defaults__", numbers)
        if (named := function.__kwdefaults__) is not None:
            changed = {k: other(v) if isinstance(v, (bool, int, float)) else v for k, v in named.items()}
            monkeypatch.setattr(function, "__kwdefaults__", changed)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.name)
def test_other_defaults_of_the_library_change_no_method_of_a_paper(paper, request):
    entries = list(entries_of(paper))
    before = [values_of(*entry) for entry in entries]
    plain = values_of("kp_svm", {})
    request.getfixturevalue("other_defaults")
    assert values_of("kp_svm", {}) != plain
    free = ("cache", "device", "n_jobs", "positive", "random_state")
    for entry, old in zip(entries_of(paper), before, strict=True):
        new = values_of(*entry)
        assert {k: v for k, v in new.items() if k.split("__")[-1] not in free} == {
            k: v for k, v in old.items() if k.split("__")[-1] not in free
        }, entry


@pytest.fixture
def tables(monkeypatch, tmp_path):
    """Small stand-ins for GLIOMA and SRBCT."""
    rng = np.random.default_rng(0)
    for file, positive in (("glioma", "classic_oligodendroglioma"), ("srbct", "BL")):
        X = pd.DataFrame(rng.normal(size=(15, 60)), columns=[f"f{j}" for j in range(60)])
        X.iloc[:5, :5] += 2.5
        X.assign(target=[positive] * 5 + ["other"] * 10).to_parquet(tmp_path / f"{file}.parquet")
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.long
def test_a_paper_is_reproduced_as_far_as_it_goes(tables):
    out = tables / "out"
    report = reproduce("kp-imbalanced", out, scope=QUICK)
    text = report.read_text()
    assert "## Claims" in text
    assert "| KP-CSSVM has the highest average of the maxima over the sizes | section 5.3, tables 4 to 6 | " in text
    assert "missing" not in text
    assert "![GLIOMA](selection-glioma.svg)" not in text  # two sizes make no curve
    table = pd.read_csv(out / "selection.csv")
    row = table[(table.dataset == "GLIOMA") & (table.method == "fisher") & (table.quantity == "balanced_accuracy_max")]
    assert row["printed"].item() == 81.4
    assert row["as_printed"].item() > 85
    assert row["verdict"].item() == "better"
    for method in ("svm_bfe", "l1_cssvm"):
        ours = table[(table.dataset == "SRBCT") & (table.method == method)]
        assert set(ours["quantity"]) == {"balanced_accuracy_mean", "balanced_accuracy_max"}
        assert (ours["as_printed"] > 80).all()
    times = pd.read_csv(out / "table-7.csv").set_index(["dataset", "method"])
    assert times.loc[("GLIOMA", "svm_bfe"), "printed"] == 1.0
    assert (times["ours"] > 0).all()
    assert set(times.loc["SRBCT"].index) >= {"fisher", "svm_rfe", "svm_bfe", "l1_cssvm", "kp_cssvm", "kp_svdd"}
    assert "## table-7: seconds of one step" in text
    assert "Variants, mean / maximum over the sizes" in text
    assert "kept width" in (out / "widths.csv").read_text()
    assert "own width" in (out / "widths.csv").read_text()
    assert row["repaired"].notna().item()
    kp = table[(table.dataset == "SRBCT") & (table.method == "kp_cssvm") & (table.quantity == "balanced_accuracy_max")]
    assert kp["repaired"].item() == kp["as_printed"].item()  # it has a width of its own in both, and is run once
    assert kp["as_printed"].item() > 85
    assert (
        table[(table.dataset == "BULL") & (table.method == "fisher")]["verdict"].str.startswith("not comparable")
    ).all()
    assert (table[(table.dataset == "GORDON") & (table.method == "fisher")]["verdict"] == "not run").all()
    assert "\\begin{tabular}" in (out / "selection.tex").read_text()
    assert "GLIOMA" in (out / "table-1.csv").read_text()
    assert "| p against kp_cssvm | Holm's threshold | Holm's p |" in text
    assert (out / "selection-ranks.svg").exists()
    assert "Our seconds for one split" in text
    calls = []
    reproduce("kp-imbalanced", out, scope=QUICK, resume=True, progress=lambda *state: calls.append(state))
    assert all(done == total for _, done, total, _ in calls)  # nothing is run again
    assert changed_files(out) == []
    (out / "selection.csv").unlink()
    os.symlink(tables / "victim", out / "selection.csv")
    with pytest.raises(InputError, match="is a link, which marginsieve did not make"):
        reproduce("kp-imbalanced", out, scope=QUICK)
    assert not (tables / "victim").exists()
    with pytest.raises(InputError, match="nothing to resume"):
        reproduce("kp-imbalanced", tables / "elsewhere", scope=QUICK, resume=True)


@pytest.mark.parametrize("run", [partial(reproduce, "kp-imbalanced"), everything.reproduce_all])
def test_without_matplotlib_nothing_is_run(tables, monkeypatch, run):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"drawing needs matplotlib: pip install 'marginsieve\[plot\]'"):
        run(tables / "out", scope=QUICK)
    assert list((tables / "out").rglob("*.sqlite")) == []


def test_files_of_others_are_refused_before_anything_is_run(tables):
    for name in ("report.md", "table-1.csv", "selection.csv", "table-7.csv"):
        out = tables / f"of-{name}"
        out.mkdir()
        (out / name).write_text("mine")
        with pytest.raises(InputError, match=f"holds {name!r}, which marginsieve did not write"):
            reproduce("kp-imbalanced", out, scope=QUICK)
        assert [path.name for path in out.iterdir()] == [name]
        assert (out / name).read_text() == "mine"


def test_without_data_nothing_is_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="none of the data sets of symon is here"):
        reproduce("symon", tmp_path / "out", scope=QUICK)
    with pytest.raises(InputError, match="there is no paper 'kp'; the papers are 'kp-imbalanced'"):
        paper_of("kp")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            ((-0.0018, -0.0038, -0.0004), (0.0002, 0.0001, 0.0004)),
            "behind by 0.0018 in G-mean and ahead by 0.0002 in AUC:",
        ),
        (((0.02, 0.01, 0.03), (0.001, -0.001, 0.002)), "ahead by 0.0200 in G-mean and level in AUC"),
    ],
)
def test_the_word_on_harmony_search_tells_both_directions(changes, told):
    text = _plainly(changes)
    assert told in text
    assert text.endswith("notice") == (abs(changes[0][0]) < 0.01)


def test_printed_figures_stand_beside_ours_in_symons_tables():
    rows = [(d, m, size) for d in ("COLON", "SRBCT") for m in ("symon_r1", "svm_rfe", "su") for size in (0.2, 0.8)]
    frame = pd.DataFrame(rows, columns=["data", "method", "d"]).assign(split="0", auc=lambda t: t["d"], g_mean=0.5)
    cells = next(line for line in _best_sizes(frame) if line.startswith("| COLON")).split(" | ")
    assert cells[1:] == ["0.720 (0.8) / 0.800 (0.8)", "0.613 (0.2) / 0.800 (0.8)", "- / 0.800 (0.8) |"]
    assert "| symon_r1 | 0.00049 / 1 / 1 (+0.000) | - / 1 / 1 (+0.000) |" in _wilcoxon(frame)


def test_describe_is_its_definition():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.repeat([0, 1], [10, 20])
    m, centres = X.mean(axis=0), [X[y == k].mean(axis=0) for k in (0, 1)]
    between = sum(np.sum(y == k) * np.linalg.norm(m - centres[k]) for k in (0, 1))
    within = sum(np.linalg.norm(x - centres[k]) for x, k in zip(X, y, strict=True))
    found = describe(X, y)
    assert found["gfr"] == pytest.approx(between / within)
    assert (found["features"], found["samples"], found["imbalance_ratio"]) == (4, 30, 2.0)
    assert found["minority_percent"] == pytest.approx(100 / 3)


@pytest.mark.data
@pytest.mark.parametrize(("name", "gfr"), [("GLIOMA", 0.234), ("SRBCT", 0.169), ("CAR1", 0.086), ("BHAT4", 0.046)])
def test_generalised_fisher_ratio_is_the_printed_one(name, gfr):
    from reproduction import named_problems

    if not named_problems.present([name]):
        pytest.skip("the papers' data sets are not here (MARGINSIEVE_DATA)")
    data = named_problems.load(name)
    assert describe(data.X, data.y)["gfr"] == pytest.approx(gfr, abs=6e-4)


@pytest.fixture
def colon(monkeypatch, tmp_path):
    """A small stand-in for COLON."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(40, 50)), columns=[f"g{j}" for j in range(50)])
    X.iloc[:15, :4] += 2.0
    X.assign(target=["normal"] * 15 + ["tumor"] * 25).to_parquet(tmp_path / "colon.parquet")
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    return tmp_path


def test_a_parameter_study_tells_error_and_number_of_features(colon):
    study = ParameterStudy("figure-x", "C2", vary("C2", (0.5, 8.0)), "more C2, fewer features.", draws=10)
    text = "\n".join(study.run(Workplace(colon, colon)))
    assert "The paper: more C2, fewer features." in text
    table = pd.read_csv(colon / "figure-x.csv")
    assert list(table["C2"]) == [0.5, 8.0]
    assert table["deviation"].between(0, 10).all()
    draws = SuiteResult(colon / "figure-x").to_pandas()
    means = draws[draws["method"] == "0.5"].groupby("repeat")["accuracy"].mean()
    assert len(means) == 10
    assert table["deviation"][0] == pytest.approx(100 * means.std() / 10**0.5)
    assert len(study.quick_form().suite().units(study.suite().tables())) == 2 * 1 * 10  # values, draws, folds
    assert table["features"][0] > table["features"][1] >= 1
    assert table["error"].between(0, 50).all()
    assert (colon / "figure-x.svg").exists()


def test_a_convergence_study_shows_every_move(colon):
    text = "\n".join(ConvergenceStudy("figure-y", "it ends.").run(Workplace(colon, colon)))
    assert "| COLON |" in text
    assert "| yes |" in text
    assert (colon / "figure-y.svg").exists()


def test_missing_numbers_become_the_means_of_the_training_part():
    training, rows = np.array([[1.0, np.nan], [3.0, 4.0]]), np.array([[np.nan, np.nan]])
    np.testing.assert_array_equal(filled_with_means(rows, training), [[2.0, 4.0]])
    np.testing.assert_array_equal(filled_with_means(training, training), [[1.0, 4.0], [3.0, 4.0]])
    mixed = pd.DataFrame({"number": [1.0, np.nan, 3.0], "word": ["x", None, "y"]})
    schema = Schema.from_table(mixed)
    Z = schema.encode(mixed)
    np.testing.assert_array_equal(filled_with_means(Z[[1]], Z, schema.kind), [[2.0, np.nan]])


def test_families_are_compared_by_score_and_by_stability(tmp_path):
    from reproduction.mixed import FamilyComparison, scores_and_stability

    cohort = {"n_samples": 40, "n_features": 12, "n_relevant": 4, "n_categorical": 3, "n_categorical_relevant": 1}
    data = [{"name": f"C{k}", "cohort": {**cohort, "random_state": k}} for k in range(2)]
    methods = [{"name": name, "label": name, "class_weight": "balanced"} for name in ("clinical_rfe", "hfs_nb")]
    protocol = {"name": "mixed", "repeats": 4, "sizes": [1, 3, 6]}
    suite = Suite.read({"name": "curves", "protocol": protocol, "data": data, "method": methods})
    study = run_suite(suite, tmp_path / "curves-as-printed")
    both = scores_and_stability(study)
    assert sorted(both["size"].unique()) == [1, 3, 6]
    told = FamilyComparison("curves", ("C0",), ("clinical_rfe",), ("hfs_nb",))
    text = "\n".join(told.run(Workplace(tmp_path, tmp_path)))
    for side in ("balanced_accuracy", "stability"):
        means = both.pivot_table(index="data", columns="method", values=side)
        for ahead in (means["clinical_rfe"] - means["hfs_nb"]).tolist():
            assert f"{ahead:+.3f} |" in text
    assert "blocks are data sets (2)" in text
    assert "blocks are data sets and sizes (6)" in text
    assert (tmp_path / "curves-stability-data-sets-and-sizes.svg").exists()
    assert (tmp_path / "curves-c0-stability.svg").exists()
    assert FamilyComparison("other", (), (), ()).run(Workplace(tmp_path, tmp_path)) == []


def test_rules_are_decided_by_means(tmp_path):
    values = {"a": 3.0, "b": 2.0, "c": 1.0}
    table = pd.DataFrame(
        [{"dataset": "A", "method": name, "quantity": "q", "as_printed": one} for name, one in values.items()]
    )
    evidence = Evidence(table.assign(job="j", honest=2.0), tmp_path)
    ahead, best = is_ahead(("a", "b"), ("c",), "q", "j"), is_best("a", tuple(values), "q")
    assert str(ahead(evidence)) == "yes: b 2.0, c 1.0; ahead on 1 of 1"
    assert str(is_ahead(("a", "c"), ("b",), "q")(evidence)) == "no: c 1.0, b 2.0; ahead on 0 of 1"
    assert str(best(evidence)) == "yes: a 3.0, b 2.0; best or level on 1 of 1"
    assert str(is_best("b", tuple(values), "q")(evidence)) == "no: b 2.0, a 3.0; best or level on 0 of 1"
    assert str(best(evidence.read("honest"))).startswith("level: a 2.0")
    assert str(ahead(evidence.read("honest"))) == "level: a 2.0, c 2.0; ahead on 0 of 1"
    with pytest.raises(NotRun, match="d of q were not run"):
        is_ahead(("a",), ("d",), "q")(evidence)


@pytest.mark.parametrize(
    ("printed", "repaired", "honest", "verdict"),
    [
        ("yes", None, None, HOLDS),
        ("yes", "yes", "yes", HOLDS),
        ("no", None, "yes", HOLDS),
        ("yes", "no", "yes", ONLY_PRINTED),
        ("yes", None, "level", ONLY_PRINTED),
        ("level", "yes", "level", LEVEL),
        ("no", "level", "no", OURS),  # without an experiment
        (None, "yes", "yes", NOT_RUN),
    ],
)
def test_a_verdict_is_made_of_the_columns(tmp_path, printed, repaired, honest, verdict):
    answers = {AS_PRINTED: printed, REPAIRED: repaired, HONEST: honest}

    def decide(evidence):
        if (answer := answers[evidence.column]) is None:
            raise NotRun("it")
        return Finding(answer, f"of {evidence.column}")

    columns = tuple(name for name, answer in answers.items() if answer or name == AS_PRINTED)
    row = Claim("text", "where", decide, None, columns).row(Evidence(pd.DataFrame(), tmp_path))
    assert row["verdict"] == verdict
    assert row["honest"] == (f"{honest}: of honest" if honest else "")


def test_what_does_not_hold_needs_an_experiment(tmp_path):
    evidence = Evidence(pd.DataFrame(), tmp_path)
    experiment = Experiment(lambda one: f"{len(one.table('tries'))} tries.", "tries.svg")
    claim = Claim("text", "where", lambda _: Finding("no", "1 of 2"), experiment)
    assert replace(claim, experiment=None).row(evidence)["verdict"] == OURS
    assert claim.row(evidence)["verdict"] == NOT_RUN
    assert claim.row(evidence)["why"] == "The experiment is missing: tries was not run."
    pd.DataFrame({"try": [1, 2, 3]}).to_csv(tmp_path / "tries.csv", index=False)
    row = claim.row(evidence)
    assert (row["verdict"], row["why"], row["figure"]) == (FAILS, "3 tries.", "tries.svg")
    held = replace(claim, decide=lambda _: Finding("yes", "2 of 2")).row(evidence)
    assert (held["verdict"], held["why"], held["figure"]) == (HOLDS, "", "")
    settled = undecidable_claim("", "", "nobody knows").row(evidence)
    assert (settled["verdict"], settled["why"]) == (NO_DATA, "nobody knows")


@pytest.mark.parametrize("name", list(PAPERS))
def test_claims_without_a_run_have_no_verdict(name, tmp_path):
    """No claim ends in a traceback where nothing, or only a part, was run."""
    columns = ["job", "dataset", "method", "quantity", "printed", "as_printed", "repaired", "honest"]
    rows = [claim.row(Evidence(pd.DataFrame(columns=columns), tmp_path)) for claim in PAPERS[name].claims]
    assert {row["verdict"] for row in rows} <= {NOT_RUN, NO_DATA, CONTRADICTED}
    assert len({row["claim"] for row in rows}) == len(rows)


@pytest.mark.parametrize("name", list(PAPERS))
def test_every_scope_is_a_study_and_the_full_one_is_the_largest(name):
    paper = PAPERS[name]
    assert set(paper.full) <= {*(job.name for job in paper.jobs), *(part.name for part in paper.studies)}
    assert paper.with_scope(KEPT) is paper
    assert paper.with_scope(FULL) != paper
    quick = paper.with_scope(QUICK)
    assert set(quick.data) < set(paper.data)
    assert not any(getattr(part, "long", False) for part in quick.studies)
    with pytest.raises(InputError, match="scope is 'half'; it must be 'quick', 'kept' or 'full'"):
        paper.with_scope("half")


def test_categories_become_columns_of_the_training_parts_levels():
    training = pd.DataFrame({"a": ["x", "y", "z", None], "b": [1.0, 2.0, 3.0, 4.0], "c": [True, False, True, True]})
    training["d"] = pd.Categorical(["no", "yes", "no", "no"])
    schema = Schema.from_table(training)
    Z = schema.encode(training)
    table, owner = one_hot(Z, Z, schema.kind)
    assert owner.tolist() == [0, 0, 0, 1, 2, 3]
    np.testing.assert_array_equal(table[:, :3], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(table[:, 3:], [[1, 1, 0], [2, 0, 1], [3, 1, 0], [4, 1, 0]])
    new = pd.DataFrame({"a": ["w", "z"], "b": [5.0, 6.0], "c": [False, True], "d": ["yes", "no"]})
    np.testing.assert_array_equal(
        one_hot(schema.encode(new), Z, schema.kind)[0], [[0, 0, 0, 5, 0, 1], [0, 0, 1, 6, 1, 0]]
    )


def test_methods_for_numbers_take_part_on_mixed_tables(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 30)
    X = pd.DataFrame({f"n{j}": rng.normal(size=60) for j in range(3)})
    X["mark"] = pd.Categorical(np.where(y == "yes", rng.choice(["p", "q"], 60), rng.choice(["r", "s"], 60)))
    X.assign(target=y).to_csv(tmp_path / "T.csv", index=False)
    spec = {
        "protocol": {"name": "nested", "repeats": 1, "tuned": "", "impute": True},
        "data": [{"file": str(tmp_path / "T.csv"), "target": "target"}],
        "method": [
            {"name": name, "label": name, "n_features_to_select": 3, "grid": {}}
            for name in ("fisher", "svm_rfe", "svm_l1")
        ],
    }
    study = run_suite(Suite.read(spec), tmp_path / "out")
    assert study.failures().empty
    assert (study.scores("accuracy")["accuracy"] > 0.9).all()
    assert study.stability().set_index("method")["stability"]["fisher"] == 1.0  # levels of one column


@pytest.mark.parametrize(
    ("quantity", "ours", "told"),
    [
        ("accuracy_percent", 92.0, "better"),
        ("accuracy_percent", 88.0, "worse"),
        ("accuracy_percent", 89.5, "reproduced"),
        ("n_features_selected", 92.0, "more"),
        ("n_features_selected", 88.0, "fewer"),
        ("n_features_selected", 91.0, "reproduced"),
    ],
)
def test_a_higher_score_is_better_and_a_higher_number_of_features_is_just_more(quantity, ours, told):
    (job,) = (job for job in jobs_of(paper_of("ramp-loss")) if job.name == "label-noise")
    row = {"dataset": "SONAR", "method": "ramp_fs", "quantity": quantity, "printed": 90.0, "as_printed": ours}
    assert _verdict(job, row) == told


def test_long_numbers_in_a_report_are_written_out():
    table = pd.DataFrame({"s": [25012.4, 187.2, 99.6, 99.4, 1.26, 0.0312, np.nan], "t": list("abcdefg")})
    rows = grid("Seconds:", table, digits=2)[4:-1]
    assert [row.split(" | ")[1] for row in rows] == ["25012", "187", "100", "99", "1.3", "0.031", "-"]


def test_fits_that_a_limit_ended_are_counted(tmp_path):
    common = {"name": "ramp_fs", "budget": 2, "solver": "fast", "shakes": 0}
    methods = [{**common, "label": "cut", "time_limit": 1e-9}, {**common, "label": "whole"}, {"name": "fisher"}]
    cohort = {"n_samples": 40, "n_features": 8, "n_relevant": 2}
    spec = {"protocol": {"name": "nested", "folds": 2, "repeats": 1}, "data": [{"cohort": cohort}], "method": methods}
    study = run_suite(Suite.read(spec), tmp_path)
    assert study.to_pandas().groupby("method")["limited"].mean().to_dict() == {"cut": 1.0, "fisher": 0.0, "whole": 0.0}
    job = next(iter(jobs_of(paper_of("ramp-loss"))))
    lines = _times(job, study, paper_of("ramp-loss").figures())
    assert "A limit ended 2 of the 6 fits" in "\n".join(lines)


def test_the_slope_by_hand_is_that_of_the_machines_optimum():
    """Equation 16: twice the derivative of the machine's optimum in each factor."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 6)), np.where(rng.random(25) < 0.5, 1.0, -1.0)

    def optimum(v):
        Z = X * v
        K = np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
        return smo.svc(K, y, np.full(25, 2.0), np.zeros(25), 1e-10, 10**6)[2]

    v = np.linspace(0.2, 0.6, 6)
    slopes = [2.0 * (optimum(v + h) - optimum(v - h)) / 2e-5 for h in 1e-5 * np.eye(6)]
    np.testing.assert_allclose(data_slope(X, y, 2.0, v), slopes, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("raw", [False, True])
def test_a_move_by_hand_follows_the_slope_and_the_penalty(raw):
    """One iteration without a threshold: the raw move is gamma F', the measured one in units of the start."""
    rng = np.random.default_rng(0)
    X, y, start, C2, gamma = rng.normal(size=(25, 6)), np.where(np.arange(25) % 2, 1.0, -1.0), 0.4, 0.3, 1e-3
    pull = data_slope(X, y, 2.0, np.full(6, start))
    slope = pull + C2 * np.quantile(np.abs(pull), 0.95) * np.exp(-5.0 * start)
    expected = gamma * (slope if raw else start * np.clip(slope / np.quantile(np.abs(slope), 0.95), -1, 1))
    path = learn_factors(X, y, 2.0, C2, start, raw=raw, gamma=gamma, eps=0.0, max_iter=1)
    np.testing.assert_allclose(path.factors[0] - path.factors[1], expected, rtol=1e-9)


def test_features_fall_for_good_and_come_back_to_fill_a_size():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), np.where(np.arange(40) % 2, 1.0, -1.0)
    X[:, :2] += y[:, None]
    path = learn_factors(X, y, 10.0, 0.8, 1 / 30**0.5)
    assert (np.diff(path.counts) <= 0).all()
    assert path.counts[-1] < 30
    is_gone = path.factors[:-1] == 0
    assert (path.factors[1:][is_gone] == 0).all()
    for size in range(1, 31):
        v = path.at_size(size)
        assert (v > 0).sum() == min(size, 30)
        assert {0, 1} <= set(np.argsort(-v)[:size]) or size < 3
    larger = set(np.flatnonzero(path.at_size(5)))
    assert set(np.flatnonzero(path.at_size(3))) <= larger


def test_a_kernel_by_hand_is_scikit_learns_and_folds_choose_what_tells_the_classes():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 20)), np.where(np.arange(40) % 2, 1.0, -1.0)
    X[:, 0] += 2.0 * y
    np.testing.assert_allclose(gaussian_kernel(X / 3), rbf_kernel(X, gamma=1 / 18))
    splits = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    expected = [SVC(C=3.0, gamma=1 / 18).fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits]
    np.testing.assert_allclose(count_right(gaussian_kernel(X / 3), y, 3.0, splits), expected)
    path, _, end = choose_path(X, y, 1.0, 1 / 20**0.5, folds=4, max_iter=15)
    assert np.argmax(path.factors[end]) == 0


def test_selection_on_a_half_is_judged_on_the_other(colon):
    study = SelectionOnHalf("halves", {"COLON": (2, 4, 10)}, {"COLON": 4}, repeats=5, folds=3, halvings=1)
    text = "\n".join(study.run(Workplace(colon, colon)))
    table = pd.read_csv(colon / "halves.csv")
    curve = table[(table["at"] > 0) & (table["method"] != RAW)]
    assert set(curve["method"]) == {"fisher", "svm_rfe", "fsv", "kp_svm", "kp_svm by hand"}
    assert sorted(curve["size"].unique()) == [2, 4, 10]
    known = curve.set_index(["selected", "method", "kernel", "size"])["accuracy"]
    assert known[HALF, "fisher", OWN_WIDTH, 4] > 0.8
    assert known[HALF, "kp_svm", LEARNED, 4] > 0.8
    assert known[HALF, "kp_svm by hand", LEARNED, 4] > 0.8
    assert "COLON, halved by seed 0: all rows: C = " in text
    assert "| fisher, own width | 87.5 / " in text
    assert (colon / "halves-colon-honest.svg").exists()
    kept = (colon / "halves" / "COLON-0.json").read_bytes()
    assert "\n".join(study.run(Workplace(colon, colon))) == text
    assert (colon / "halves" / "COLON-0.json").read_bytes() == kept
    assert replace(study, repeats=6).calls()[0].key != study.calls()[0].key  # other settings are other results


def test_other_classifiers_are_asked_about_the_same_features(monkeypatch, tmp_path):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(60, 5)), columns=[f"n{j}" for j in range(5)])
    sick = np.arange(60) % 3 == 0
    X.loc[sick, "n1"] += 3.0
    X["mark"] = pd.Categorical(np.where(sick, rng.choice(["p", "q"], 60), rng.choice(["q", "r"], 60)))
    X.loc[4, "n2"] = np.nan
    X.assign(target=np.where(sick, "DIE", "LIVE")).to_parquet(tmp_path / "hepatitis.parquet")
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    study = FinalClassifiers("classifiers", ("HEPATITIS",), ("clinical_rfe", "hfs_nb"), sizes=(1, 3), repeats=3)
    text = "\n".join(study.run(Workplace(tmp_path, tmp_path)))
    table = pd.read_csv(tmp_path / "classifiers.csv")
    assert len(table) == 2 * 4 * 2
    assert (table["bcr"] > 0.6).all()
    assert "| HEPATITIS, naive Bayes |" in text
    assert "- random forest: " in text


def test_naive_bayes_of_numbers_and_of_categories_is_scikit_learns():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    Z, new = rng.normal(size=(80, 3)) + y[:, None], rng.normal(size=(40, 3)) + 0.5
    expected = GaussianNB(var_smoothing=0.0).fit(Z, y).predict(new)
    assert np.mean(naive_bayes(Z, y, new, ("real",) * 3) == expected) > 0.95  # it has no smoothing by the column
    codes, rows = (rng.integers(3, size=(count, 2)).astype(float) for count in (80, 40))
    expected = CategoricalNB(alpha=1.0).fit(codes, y).predict(rows)
    np.testing.assert_array_equal(naive_bayes(codes, y, rows, ("nominal",) * 2), expected)


def test_the_exact_program_and_daks_are_compared_instance_by_instance(monkeypatch, tmp_path):
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(24, 5)), columns=[f"f{j}" for j in range(5)])
    mine = np.arange(24) % 2 == 0
    X.loc[mine, "f1"] += 2.0
    X.loc[3, "f4"] = np.nan
    X.assign(target=np.where(mine, "Mine", "Rock")).to_parquet(tmp_path / "sonar.parquet")
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    limits = {"plain_seconds": 20.0, "printed_seconds": 20.0, "seconds": 20.0}
    study = ExactAndDaks("table-4", {"SONAR": 2}, prices=(0.1, 1.0), shakes=4, daks_shakes=2, **limits)
    text = "\n".join(study.run(Workplace(tmp_path, tmp_path)))
    table = pd.read_csv(tmp_path / "table-4.csv")
    assert (table["status"] == "optimal").all()
    assert (table["plain_status"] == "optimal").all()
    assert (table["bound"] <= table["best"] * (1 + 1e-9)).all()
    for solver in ("path", "plain", "printed", "exact", "daks"):
        assert (table[solver] >= table["best"] * (1 - 1e-9)).all()
    np.testing.assert_allclose(table["plain"], table["best"], rtol=1e-5)
    assert table["best"].is_monotonic_increasing  # in C
    assert "proved optimal from the pool: 2 of 2" in text
    assert "break the laws of C and budget in 0 cases" in text
    assert (tmp_path / "table-4.svg").is_file()
    seen = []
    study.run(Workplace(tmp_path, tmp_path, progress=lambda *state: seen.append(state)))
    assert [state[1:] for state in seen] == [(5, 5, 0), (4, 4, 0)]
    assert len(study.calls()) == 9


def test_all_papers_are_run_by_one_command_and_every_claim_has_a_line(tables, monkeypatch):
    """With the data of one paper alone: the others are named as not run."""
    small = {name: replace(paper, studies=()) for name, paper in PAPERS.items() if name in ("kp-imbalanced", "mixed")}
    job = small["kp-imbalanced"].jobs[-1]
    plain = {label: method for label, method in job.methods.items() if "sampler" not in method[1]}
    small["kp-imbalanced"] = replace(small["kp-imbalanced"], jobs=(replace(job, methods=plain),))
    monkeypatch.setattr(everything, "PAPERS", small)
    monkeypatch.setattr(reproducing, "paper_of", small.__getitem__)
    seen = []
    page = everything.reproduce_all(tables / "all", scope=QUICK, progress=lambda *state: seen.append(state[0]))
    text, table = page.read_text(), pd.read_csv(tables / "all" / "verdicts.csv")
    assert len(table) == len(small["kp-imbalanced"].claims)
    assert set(table["verdict"]) <= {*VERDICTS, NOT_RUN}
    for row in table.to_dict("records"):
        assert f"| {row['claim']} | {row['where']} | **{row['verdict']}** |" in text
    counts = table["verdict"].value_counts()
    assert "| all | " + " | ".join(str(counts.get(verdict, 0)) for verdict in VERDICTS) + " |" in text
    assert "mixed was not run: none of the data sets of mixed is here" in text
    assert "hours of one core" in text
    assert any(what.startswith("kp-imbalanced: no-selection") for what in seen)
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tables / "nothing"))
    with pytest.raises(InputError, match="none of the data sets of kp-imbalanced is here"):
        everything.reproduce_all(tables / "none", scope=QUICK)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_daks_by_the_printed_rules_never_rises_and_is_never_below_the_optimum(seed, C):
    ramp = instance(seed, 14, 6, C, 2.0)
    start = l1_start(ramp)
    search = PrintedDaks(ramp, Clock(30.0), 5.0)
    found = search.run()
    assert search.programs > 1 or not len(found.features)  # at a low C the constants alone prove that no weight is best
    assert pytest.approx(objective(ramp, found), rel=1e-9) == found.F
    assert ramp.fits(found.features)
    assert found.F <= start.F * (1 + 1e-12)
    optimum = ramp_programs.solve(ramp, found, limits=Limits(gap=1e-6))
    assert optimum.status == "optimal"
    assert optimum.bound * (1 - 1e-6) <= found.F


def _shifted(problem, by):
    return {"rows": len(problem.X), "by": by}


def test_calls_are_kept_and_run_again_where_their_settings_change(tables):
    seen = []
    place = Workplace(tables, tables, progress=lambda *state: seen.append(state))
    calls = [Call(f"SRBCT-{by}", "SRBCT", by, partial(_shifted, by=by)) for by in (1, 2)]
    assert place.run_calls("calls", calls) == [{"rows": 15, "by": 1}, {"rows": 15, "by": 2}]
    assert seen == [("calls", done, 2, 0) for done in (0, 1, 2)]
    entry = json.loads((tables / "calls" / "SRBCT-1.json").read_text())
    assert entry["data"] == "SRBCT"
    assert entry["seconds"] >= 0
    other = [replace(calls[0], compute=partial(_shifted, by=7)), replace(calls[1], settings=3)]
    assert place.run_calls("calls", [other[0]]) == [{"rows": 15, "by": 1}]  # the same settings: what is kept
    assert place.run_calls("calls", [replace(other[1], compute=partial(_shifted, by=7))]) == [{"rows": 15, "by": 7}]
    assert replace(place, fresh=True).run_calls("calls", [other[0]]) == [{"rows": 15, "by": 7}]


def test_calls_run_on_a_cluster(tables):
    from distributed import LocalCluster

    calls = [Call(f"SRBCT-{by}", "SRBCT", by, partial(_shifted, by=by)) for by in (1, 2, 3)]
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False) as cluster:
        place = Workplace(tables, tables, cluster=cluster.scheduler_address)
        assert [row["by"] for row in place.run_calls("calls", calls)] == [1, 2, 3]
    assert len(list((tables / "calls").glob("*.json"))) == 3


def test_what_a_run_takes_is_counted_and_grows_with_the_scope(tables, monkeypatch):
    work.rates.cache_clear()
    rates = [("kp-imbalanced", "no-selection-as-printed", "SRBCT", "svdd", kind, 2, 3.6) for kind in ("fit", "tuning")]
    frame = pd.DataFrame(rates, columns=list(work.COLUMNS))
    monkeypatch.setattr(work, "read_rates", lambda: frame)
    counts = {scope: work.estimate_effort("kp-imbalanced", scope) for scope in (QUICK, KEPT, FULL)}
    work.rates.cache_clear()
    assert 0 < counts[QUICK].count < counts[KEPT].count < counts[FULL].count
    assert counts[QUICK].hours < counts[KEPT].hours < counts[FULL].hours
    job = next(one for one in PAPERS["kp-imbalanced"].jobs if one.name == "no-selection")
    fits = 2 * 15 * len(job.methods)  # leave-one-out of two tables of 15 rows
    points = sum(np.prod([len(one) for one in grid.values()]) for grid in job_grids(job))
    assert counts[KEPT].hours == pytest.approx(3.6 * (fits + 2 * points) / 3600)
    assert "no rate is known for" in counts[KEPT].sentence(2)
    assert Effort(100, 3.0).sentence(2) == (
        "100 fits: about 3.0 hours of one core by the rates of the run that is kept, 1.5 hours with 2 processes"
    )


def job_grids(job):
    return [job.grids.get(label, job.protocol["grid"]) for label in job.methods]


@pytest.mark.long
def test_rates_are_read_off_the_stores(tables, monkeypatch):
    """Seconds by job, table and method; of tuning for one point of its grid; of calls for one unit of work."""
    paper = replace(PAPERS["kp-imbalanced"], jobs=PAPERS["kp-imbalanced"].jobs[-1:], studies=())
    monkeypatch.setattr(work, "PAPERS", {paper.name: paper.with_scope(QUICK)})
    monkeypatch.setattr(reproducing, "paper_of", lambda _: paper)
    reproduce(paper.name, tables / "all" / paper.name, scope=QUICK)
    table = work.rates_of(tables / "all")
    fits = table[(table["folder"] == "no-selection-as-printed") & (table["kind"] == "fit")]
    assert set(fits["method"]) == set(paper.jobs[0].methods)
    assert (fits["count"] == 15).all()
    assert (table["seconds"] > 0).all()


class _Scores:
    """Scores by data set, method and size."""

    def __init__(self, rows, metric):
        self.frame = pd.DataFrame(rows, columns=["data", "method", "size", metric])

    def scores(self, metric):
        return self.frame[["data", "method", "size", metric]]


def test_the_best_penalty_is_that_of_the_largest_mean_of_maxima(monkeypatch, tmp_path):
    at_others = [
        ("GLIOMA", f"kp_cssvm[C2={C2:g}]", size, 0.8 + 0.1 * (C2 == 2.0)) for C2 in (2.0, 4.0) for size in (20, 50)
    ]
    own = [
        ("GLIOMA", "kp_cssvm", 20, 0.8),
        ("GLIOMA", "kp_cssvm[kernel=linear]", 20, 1.0),
        ("GLIOMA", "fisher", 20, 1.0),
    ]
    ours = pd.DataFrame({"dataset": ["GLIOMA"], "as_printed": [1.0]})
    rows = {"selection": own, "penalties": at_others}
    studies = {(job, AS_PRINTED): _Scores(some, "balanced_accuracy") for job, some in rows.items()}
    evidence = Evidence(ours, tmp_path, studies)
    assert str(_best_penalty(evidence)).startswith("no: C2 = 0.125 80.0; the best is 2 with 90.0, the lowest 80.0")
    table = NamedTable("GLIOMA", pd.DataFrame(), pd.Series(["a", "a", "b"]), "a")
    monkeypatch.setattr("reproduction.kp_imbalanced.load", lambda _: table)
    monkeypatch.setattr("reproduction.kp_imbalanced.present", lambda names: names[:1])
    text = _spread_of_penalties(evidence)
    assert "GLIOMA 10.0. C2 = 0.125 is best or level on 0 of 1 problems, 2 on 1" in text
    assert "one sample of the rarer class is 25.0 to 25.0 points" in text
    assert C2_PRINTED in POWERS


def test_hours_are_put_down_to_the_commit_of_the_run_that_they_ended_in(tables):
    """What was stored at one commit stays that commit's when another one goes on, replaces it or writes the page."""
    calls = tables / "calls"
    calls.mkdir()

    def stored(name, finished, hours):
        entry = {"key": "", "data": "SRBCT", "amount": 1, "seconds": 3600.0 * hours, "finished": finished, "result": {}}
        (calls / f"{name}.json").write_text(json.dumps(entry))

    assert hours_by_commit(tables) == {}
    (tables / RUNS).write_text(json.dumps([["2026-01-01T10:00:00+00:00", "one"], ["2026-01-02T10:00:00+00:00", "two"]]))
    stored("first", "2026-01-01T12:00:00+00:00", 1.0)
    assert describe_hours(hours_by_commit(tables), "one") == "one, 1.0 hours of one core"
    assert describe_hours(hours_by_commit(tables), "two") == "one, 1.0 hours of one core; the page was written at two"
    stored("second", "2026-01-02T12:00:00+00:00", 2.0)
    stored("before any run", "2025-01-01T12:00:00+00:00", 4.0)
    assert hours_by_commit(tables) == pytest.approx({"one": 5.0, "two": 2.0})
    stored("first", "2026-01-02T13:00:00+00:00", 0.5)  # replaced
    assert hours_by_commit(tables) == pytest.approx({"one": 4.0, "two": 2.5})
    begin_run(tables, "three")
    Workplace(tables, tables).run_calls("calls", [Call("third", "SRBCT", 1, partial(_shifted, by=1))])
    assert "three" in hours_by_commit(tables)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["reproduction", *map(str, words)])
        code = command()
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def test_the_command_takes_one_scope(run, tmp_path):
    code, _, err = run("mixed", "--quick", "--full", "--out", tmp_path / "r")
    assert code == 2
    assert "--quick and --full were both given" in " ".join(err.split())
    assert not (tmp_path / "r").exists()


def test_the_command_says_which_data_are_missing(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    code, out, err = run("kp-imbalanced", "--quick", "--out", tmp_path / "r")
    assert code == 2
    assert "none of the data sets of kp-imbalanced is here" in " ".join(err.split())
    assert not out


MODULES = {path: path.read_text(encoding="utf-8") for path in sorted(Path(reproducing.__file__).parent.glob("*.py"))}
ROOMS = {"bench", "cli", "data", "engine", "estimators", "kernels", "machines", "outcomes", "recipes"}
ROOMS |= {"report", "searches", "solvers"}


def test_reproductions_use_public_names_only():
    """`marginsieve` itself and what its rooms list in `__all__`; no module inside a room, nothing private."""
    count = 0
    for path, text in MODULES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "marginsieve" for alias in node.names), path.name
            if not isinstance(node, ast.ImportFrom) or node.level or node.module.split(".")[0] != "marginsieve":
                continue
            room = node.module.removeprefix("marginsieve").lstrip(".")
            assert room in {"", "contracts", "errors", *ROOMS}, f"{path.name}:{node.lineno} imports {node.module}"
            module = importlib.import_module(node.module)
            for alias in node.names:
                public = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
                assert alias.name in public, f"{path.name}:{node.lineno} imports {node.module}.{alias.name}"
                count += 1
    assert count > 50


#: a lone participle or preposition; what these words are about needs a noun beside them
ODD = re.compile(
    r"_*(?!(?:embed|feed|need|seed|speed|proceed|exceed)$)(?:[a-z]{2,}ed|beside|apart|within|among|along|of|at|on|by|in"
    r"|into|as|above|below|chosen|taken|given|drawn|hidden|frozen|kept|held|left|put|made|found|told|said|known|shown"
    r"|seen|together)"
)
DIALECT = {"one", "made", "told", "came", "given", "said", "found", "wanted", "asked", "own"}


def test_reproductions_have_ordinary_names_and_short_functions():
    for path, text in MODULES.items():
        for node in ast.walk(ast.parse(text)):
            where = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                assert not ODD.fullmatch(node.name), f"{where} {node.name}"
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{where} {node.name}"
                assert len(node.args.args) + len(node.args.kwonlyargs) <= 12, f"{where} {node.name}"
            names = [node.arg] if isinstance(node, ast.arg) else [getattr(node, "id", "")]
            assert not DIALECT & set(names), f"{where} {names}"


def code_lines(text):
    """Lines without blanks, comments and docstrings."""
    documented, lines = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_reproductions_are_short():
    assert sum(code_lines(text) for text in MODULES.values()) <= 5400
