"""A section of the report and a file format, each really added, in as many places as CONTRIBUTING says."""

import pandas as pd
import pytest
from markupsafe import Markup

import marginsieve
from marginsieve.data import make_cohort
from marginsieve.data.reading import READERS, read_table, register_reader
from marginsieve.errors import InputError
from marginsieve.report import SECTIONS, register_section, render


def test_a_file_format_is_one_reader(tmp_path):
    cohort = make_cohort(30, 5, n_relevant=1, random_state=0)
    path = tmp_path / "table.jsonl"
    cohort.frame().to_json(path, orient="records", lines=True)
    with pytest.raises(InputError, match=r"ends in '\.jsonl'; it must end in \.csv"):
        read_table(path)

    @register_reader(".jsonl")
    def read_lines(path, options):
        assert options.target == "outcome"
        return pd.read_json(path, lines=True)

    try:
        frame = read_table(path, target="outcome")
    finally:
        del READERS[".jsonl"]
    pd.testing.assert_frame_equal(frame[cohort.X.columns], cohort.X, check_dtype=False)


def test_a_section_of_the_report_is_one_function():
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    result = marginsieve.study(
        cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1, without=("suspects", "references"), n_permutations=24
    ).result

    @register_section("Weather <today>")
    def weather(result):
        return Markup("<p>{} rows under the sky</p>").format(result["table"]["rows"])

    @register_section("Nothing to show")
    def nothing(result):
        return None

    try:
        page = render(result)
    finally:
        del SECTIONS["Weather <today>"], SECTIONS["Nothing to show"]
    assert "<h2>Weather &lt;today&gt;</h2><p>40 rows under the sky</p>" in page
    assert "Nothing to show" not in page
    assert "under the sky" not in render(result)
