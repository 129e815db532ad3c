"""The papers' tables by one command: printed figures as the papers have them, ours beside them, a verdict for each."""

import numpy as np
import pandas as pd
import pytest

from marginsieve import describe
from marginsieve.errors import InputError
from marginsieve.evaluation.papers import PAPERS, paper_of
from marginsieve.evaluation.reproduce import reproduce


@pytest.mark.parametrize("name", list(PAPERS))
def test_printed_figures_are_well_formed(name):
    printed = PAPERS[name].printed()
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
    printed = PAPERS[paper].printed()
    keys = {"table": table, "dataset": dataset, "method": method, "quantity": quantity}
    found = printed[np.all([printed[key] == wanted for key, wanted in keys.items()], axis=0)]
    assert value in found["value"].tolist()


def test_every_job_asks_for_something_that_was_printed():
    for paper in PAPERS.values():
        printed = paper.printed()
        for job in paper.jobs:
            if job.tables != ("figures",):
                part = printed[printed["table"].isin(job.tables) & printed["method"].isin(list(job.methods))]
                assert set(part["dataset"]) & set(job.data), job.name
                assert set(part["quantity"]) & set(job.quantities), job.name


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


def test_a_paper_is_reproduced_as_far_as_it_goes(tables):
    out = tables / "out"
    report = reproduce("kp-imbalanced", out, quick=True)
    text = report.read_text()
    assert "## Claims" in text
    assert "not comparable: missing svm_bfe, l1_cssvm" in text
    assert "![GLIOMA]" not in text  # two sizes make no curve
    table = pd.read_csv(out / "selection.csv")
    row = table[(table.dataset == "GLIOMA") & (table.method == "fisher") & (table.quantity == "balanced_accuracy_max")]
    assert row["printed"].item() == 81.4
    assert row["paper"].item() > 85
    assert row["verdict"].item() == "better"
    assert (table[table.method == "svm_bfe"]["verdict"] == "missing: the method does not exist yet").all()
    assert "Variants, mean / maximum over the sizes" in text
    assert "kp_cssvm[C2=0.125]" in text
    kp = table[(table.dataset == "SRBCT") & (table.method == "kp_cssvm") & (table.quantity == "balanced_accuracy_max")]
    assert kp["paper"].item() > 85
    assert (
        table[(table.dataset == "BULL") & (table.method == "fisher")]["verdict"].str.startswith("not comparable")
    ).all()
    assert (table[(table.dataset == "GORDON") & (table.method == "fisher")]["verdict"] == "not run").all()
    assert "\\begin{tabular}" in (out / "selection.tex").read_text()
    assert "GLIOMA" in (out / "table-1.csv").read_text()
    assert "Holm's p against the best" in text
    assert (out / "selection-ranks.svg").exists()
    assert "Our seconds for one split" in text
    calls = []
    reproduce("kp-imbalanced", out, quick=True, resume=True, progress=lambda *state: calls.append(state))
    assert all(done == total for _, done, total, _ in calls)  # nothing is run again


def test_without_data_everything_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MARGINSIEVE_DATA", str(tmp_path))
    text = reproduce("symon", tmp_path / "out", quick=True).read_text()
    assert "not run" in text
    with pytest.raises(InputError, match="there is no paper 'kp'; the papers are 'kp-imbalanced'"):
        paper_of("kp")


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
    from marginsieve import datasets
    from marginsieve.datasets.papers import PROBLEMS, folder

    if not (folder() / f"{PROBLEMS[name][0]}.parquet").is_file():
        pytest.skip("the papers' data sets are not here (MARGINSIEVE_DATA)")
    data = datasets.load(name)
    assert describe(data.X, data.y)["gfr"] == pytest.approx(gfr, abs=6e-4)
