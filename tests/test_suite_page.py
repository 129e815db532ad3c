"""The page of a suite holds its scores, its comparison and its failures."""

import re

import pytest

from marginsieve.bench import example_result
from marginsieve.cli import main

SUITE = """
name = "two & three"
[protocol]
name = "nested"
folds = 3
repeats = 1
[[data]]
name = "a"
cohort = { n_samples = 40, n_features = 8, n_relevant = 2, effect = 2.0, random_state = 0 }
[[method]]
name = "fisher"
[[method]]
name = "relieff"
"""


def test_every_score_of_the_table_is_on_the_page():
    result = example_result()
    page, scores = result.html("auc"), result.scores("auc")
    table = page.split('id="scores"')[1]
    shown = [float(value) for value in re.findall(r'<td class="n" data-value="([\d.]+)">', table)]
    assert set(scores["auc"].round(9)) <= {round(value, 9) for value in shown}


def test_the_comparison_is_that_of_the_statistics():
    result = example_result()
    compared, values = result.compare("auc"), result.summary("auc")["comparison"]
    assert [row["method"] for row in values["means"]] == list(compared.methods)
    assert values["p_value"] == pytest.approx(compared.p_value)
    assert f"critical difference of average ranks {compared.critical_difference:.2f}" in result.html("auc")


def test_the_command_writes_the_page_again_and_again(tmp_path, monkeypatch, capsys):
    (tmp_path / "s.toml").write_text(SUITE)
    words = ["marginsieve", "bench", str(tmp_path / "s.toml"), "--out", str(tmp_path / "o")]
    for _ in range(2):  # the second time it resumes, and the page is its own
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
    page = (tmp_path / "o" / "suite.html").read_text()
    assert "two &amp; three" in page
    assert "comparison" not in re.findall(r'<h2 id="(\w+)"', page)  # one table compares nothing
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "suite.html" in capsys.readouterr().out.replace("\n", "")
