"""A study that knows what was planted says what was found of it."""

import json

import pandas as pd
import pytest

from marginsieve.cli.arguments import truth_of
from marginsieve.cli.console import show_recovered
from marginsieve.data.cohort import Truth
from marginsieve.errors import InputError

PLANTED = Truth(("a", "b"), (("c", "d"),), {"e": "a"}, ("f",), (1, 5), ("x",))


@pytest.mark.parametrize(
    ("selected", "suspected", "sentence"),
    [
        (["a", "b", "c", "d", "e", "f"], [1, 5], "6 of 6 features, 0 false; 2 of 2 wrong labels, 0 false alarms"),
        (["a", "x", "y"], [1, 7], "1 of 6 features, 2 false; 1 of 2 wrong labels, 1 false alarm"),
        (["z"], None, "0 of 6 features, 1 false"),
    ],
)
def test_it_counts_what_was_found(selected, suspected, sentence, capsys):
    suspects = None
    if suspected is not None:
        suspects = pd.DataFrame({"row": range(1, 10), "suspect": [row in suspected for row in range(9)]})
    show_recovered(PLANTED, selected, suspects)
    assert " ".join(capsys.readouterr().out.split()) == f"found of what was planted: {sentence}"


def test_the_truth_is_read_back(tmp_path):
    file = tmp_path / "t.truth.json"
    file.write_text(json.dumps({**PLANTED.to_dict(), "marginsieve": "cohort", "sha256": "x"}))
    assert truth_of(file) == PLANTED


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"marginsieve": "study"}', '{"marginsieve": "cohort", "sha256": 1}'])
def test_anything_else_is_refused(text, tmp_path):
    file = tmp_path / "t.truth.json"
    file.write_text(text)
    with pytest.raises(InputError, match="is not what `marginsieve cohort` writes"):
        truth_of(file)
