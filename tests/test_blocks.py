"""Blocks of columns that a new cohort may lack: a model for that case, its score, and who takes it."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import marginsieve
from marginsieve.cli.commands import app
from marginsieve.data import make_cohort
from marginsieve.errors import InputError
from marginsieve.studies.analyses.missing_blocks import find_blocks, model_name

OTHERS = ("suspects", "references", "substitutes", "other-lists", "false-share")
QUICK = {"methods": "fisher", "cv": 3, "n_repeats": 1, "without": OTHERS}


@pytest.fixture(scope="module")
def cohorts():
    """Two cohorts of which every second column is of the block mrna_, the others of protein_."""
    pair = make_cohort(90, 30, n_relevant=8, effect=1.2, cohorts=2, random_state=2)
    names = [f"{'mrna' if j % 2 else 'protein'}_{j}" for j in range(30)]
    return [(each.X.set_axis(names, axis=1), each.y) for each in pair]


@pytest.fixture(scope="module")
def study(cohorts):
    (X, y), _ = cohorts
    return marginsieve.study(X, y, blocks=("mrna_", "protein_"), **QUICK)


def test_blocks_are_prefixes_or_named_for_each_column():
    names = ["a_1", "b_1", "a_2", "c"]
    known = find_blocks(("a_", "b_"), names)
    assert {block: columns.tolist() for block, columns in known.items()} == {"a_": [0, 2], "b_": [1]}
    known = find_blocks({"c": "clinical", "a_1": "assay", "elsewhere": "assay"}, names)
    assert {block: columns.tolist() for block, columns in known.items()} == {"clinical": [3], "assay": [0]}
    assert model_name("Protein (RPPA)") == "model-without-protein-rppa.marginsieve"
    for blocks, sentence in (
        (("z_",), "blocks is 'z_', with which no feature"),
        ({"z": "assay"}, "none of which is a feature"),
        (("a_", "a"), "differ in signs alone"),
    ):
        with pytest.raises(InputError, match=sentence):
            find_blocks(blocks, names)
    with pytest.raises(InputError, match="blocks is 3; it must be a name or a sequence of names"):
        marginsieve.study(np.zeros((9, 2)), np.arange(9) % 2, blocks=3)


def test_a_cohort_without_a_block_gets_the_model_that_was_made_for_it(study, cohorts):
    _, (X, y) = cohorts
    (absent,) = (row for row in study.result["analyses"]["blocks"]["blocks"] if row["name"] == "protein_")
    assert absent["n_columns"] == 15
    model = study.models_without["protein_"]
    assert all(name.startswith("mrna_") for name in model.get_feature_names_out())
    part = X[[name for name in X.columns if name.startswith("mrna_")]]
    validation = study.validate(part, y)
    assert validation.result["promise"]["scores"]["auc"]["value"] == absent["scores"]["auc"]["value"]
    predicted = marginsieve.predict(model, part).table["predicted"]
    assert (validation.predictions["cohort"]["predicted"].to_numpy() == predicted.to_numpy()).all()
    whole = study.validate(X, y)
    assert whole.result["promise"]["scores"]["auc"]["value"] == study.result["scores"]["auc"]["value"]
    listed = study.model.get_feature_names_out()
    with pytest.raises(InputError, match="the table lacks"):  # one column is no block
        study.validate(X.drop(columns=listed[0]), y)


def test_the_model_without_a_block_is_that_of_a_study_without_it(study, cohorts):
    (X, y), (new, _) = cohorts
    mrna = [name for name in X.columns if name.startswith("mrna_")]
    alone = marginsieve.study(X[mrna], y, **QUICK)
    row = next(row for row in study.result["analyses"]["blocks"]["blocks"] if row["name"] == "protein_")
    for name in ("auc", "balanced_accuracy", "brier"):
        assert row["scores"][name] == alone.result["scores"][name]
        change = alone.result["scores"][name]["value"] - study.result["scores"][name]["value"]
        assert row["difference"][name]["value"] == pytest.approx(change, abs=1e-12)
    ours = study.models_without["protein_"]
    assert set(ours.get_feature_names_out()) == set(alone.model.get_feature_names_out())
    tables = [marginsieve.predict(model, new[mrna]).table for model in (ours, alone.model)]
    pd.testing.assert_frame_equal(*tables, rtol=0, atol=1e-12)
    assert "without protein_ AUC" in " ".join(study.result["answer"]["sentences"])
    assert "model-without-protein.marginsieve" in study.html()


def test_a_cohort_without_two_blocks_gets_the_model_without_both(cohorts):
    (X, y), (new, labels) = cohorts
    blocks = {name: ("ab", "cd", "ef")[j % 3] for j, name in enumerate(sorted(X.columns))}
    study = marginsieve.study(X, y, blocks=blocks, **QUICK)
    rows = {row["name"]: row for row in study.result["analyses"]["blocks"]["blocks"]}
    for first, second in (("ab", "cd"), ("ab", "ef"), ("cd", "ef")):
        row = rows[f"{first} and {second}"]
        absent = {name for name, block in blocks.items() if block in (first, second)}
        assert set(row["columns"]) == absent
        assert row["n_columns"] == len(absent)
        validation = study.validate(new.drop(columns=sorted(absent)), labels)
        assert validation.result["promise"]["scores"]["auc"]["value"] == row["scores"]["auc"]["value"]
        assert not absent & {column["name"] for column in validation.result["cohorts"][0]["drift"]["columns"]}
    one = study.validate(new.drop(columns=[name for name, block in blocks.items() if block == "ab"]), labels)
    assert one.result["promise"]["scores"]["auc"]["value"] == rows["ab"]["scores"]["auc"]["value"]
    assert "lack two" in " ".join(study.result["answer"]["sentences"])


def test_a_model_that_needs_nothing_of_the_second_block_serves_both(cohorts):
    (X, y), (new, labels) = cohorts
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(len(X), 3)), columns=["z_1", "z_2", "z_3"])
    columns = [name for name in X.columns if name.startswith("mrna_")]
    table = pd.concat([X, noise], axis=1)
    study = marginsieve.study(table, y, blocks=("protein_", "z_"), n_features_to_select=3, **QUICK)
    rows = {row["name"]: row for row in study.result["analyses"]["blocks"]["blocks"]}
    assert rows["z_"]["model"] is None  # noise is in neither list
    assert rows["protein_ and z_"]["model"] == rows["protein_"]["model"]
    assert list(study.models_without) == ["protein_"]
    promise = study.validate(new[columns], labels).result["promise"]["scores"]
    assert promise["auc"]["value"] == rows["protein_"]["scores"]["auc"]["value"]


def test_the_command_writes_and_takes_the_models(cohorts, tmp_path):
    (X, y), (new, labels) = cohorts
    X.assign(outcome=y).to_csv(tmp_path / "old.csv", index=False)
    part = new[[name for name in new.columns if name.startswith("mrna_")]]
    part.assign(outcome=labels).to_csv(tmp_path / "new.csv", index=False)
    blocks = [(name, name.split("_")[0]) for name in X.columns]
    pd.DataFrame(blocks, columns=["column", "block"]).to_csv(tmp_path / "blocks.csv", index=False)

    def call(*words):
        known = CliRunner().invoke(app, [str(word) for word in words])
        assert known.exit_code == 0, (known.output, known.exception)
        return known.output

    words = ["--methods", "fisher", "--cv", "3", "--n-repeats", "1", "--without", ",".join(OTHERS)]
    out = tmp_path / "out"
    table = tmp_path / "blocks.csv"
    call("select", tmp_path / "old.csv", "--target", "outcome", "--out", out, "--blocks", table, *words)
    assert {path.name for path in out.glob("model-without-*")} == {
        "model-without-mrna.marginsieve",
        "model-without-protein.marginsieve",
    }
    known = json.loads(call("validate", out, tmp_path / "new.csv", "--out", tmp_path / "v", "--json"))
    assert known["cohorts"][0]["labelled"] == 90
    rows = json.loads(call("predict", out, tmp_path / "new.csv", "--json"))["rows"]
    assert len(rows) == 90
    call("select", tmp_path / "old.csv", "--target", "outcome", "--out", out, *words)
    assert list(out.glob("model-without-*")) == []  # of a study that is no longer there
