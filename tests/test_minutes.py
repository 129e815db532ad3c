"""Minutes: the plan is looked at again after each step, and what was left out is recorded."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from marginsieve import study
from marginsieve.data import make_cohort
from marginsieve.engine.store import open_store
from marginsieve.solvers.execution import Stopwatch, jit
from marginsieve.studies import pacing

LEAST = {"evidence", "effects", "false-share"}


def test_what_fits_follows_the_pace_so_far():
    work = SimpleNamespace(unit=2.0, done=0.0)
    pace = pacing.TimeLimit(work, SimpleNamespace(since=100.0), 60.0)
    pace.began = 110.0
    assert pace.fits(25.0, clock=110.0)  # 50 s of the 50 that are left
    assert not pace.fits(25.1, clock=110.0)
    work.done = 10.0  # expected for what took 20 s: half the speed
    assert pace.fits(7.5, clock=130.0)  # 15 s, twice as long, of 30
    assert not pace.fits(7.6, clock=130.0)
    work.done = 40.0  # faster than expected: nothing is promised for the rest
    assert pace.fits(15.0, clock=130.0)
    assert not pace.fits(15.1, clock=130.0)
    assert pacing.TimeLimit(work, SimpleNamespace(since=0.0), None).fits(1e9)


@pytest.fixture
def cohort():
    return make_cohort(50, 60, n_relevant=4, effect=1.5, random_state=0)


def test_a_busy_machine_leaves_out_what_a_study_can_do_without(cohort, monkeypatch, tmp_path):
    monkeypatch.setattr(pacing.TimeLimit, "fits", lambda *_, **__: False)
    settings = {"cv": 3, "n_repeats": 1}
    ran = study(cohort.X, cohort.y, minutes=60.0, folder=tmp_path, **settings)
    result = ran.result
    assert [method["title"] for method in result["methods"]] == ["two-views", "all features"]
    plan = result["protocol"]["plan"]
    assert set(plan["analyses"]) == LEAST
    assert plan["methods"] == ["two_views"]
    assert result["protocol"]["left_out"]["suspects"] == "the machine was slower than expected"
    assert "svm-rfe was left out: the machine was slower than expected" in result["protocol"]["chosen"]
    with open_store(tmp_path, "study") as store:
        assert store.meta("plan")["plan"] == plan
    monkeypatch.undo()
    again = study(cohort.X, cohort.y, plan=plan, **settings).result
    assert again["protocol"]["plan"] == plan
    for key in ("scores", "features", "lists"):
        assert again[key] == result[key]
    resumed = study(cohort.X, cohort.y, minutes=60.0, folder=tmp_path, **settings).result
    assert resumed["protocol"]["plan"] == plan


def test_methods_and_analyses_that_were_asked_for_are_run_whatever_the_clock_says(cohort, monkeypatch):
    monkeypatch.setattr(pacing.TimeLimit, "fits", lambda *_, **__: False)
    ran = study(cohort.X, cohort.y, minutes=60.0, cv=3, n_repeats=1, methods="fisher,su", with_="references")
    assert [method["title"] for method in ran.result["methods"]] == ["fisher", "su", "all features"]
    assert {*ran.result["protocol"]["plan"]["analyses"]} == LEAST | {"references"}


def test_without_a_limit_nothing_is_left_out(cohort):
    ran = study(cohort.X, cohort.y, methods="fisher", cv=3, n_repeats=1)
    assert {"suspects", "references"} <= set(ran.result["protocol"]["plan"]["analyses"])


def test_the_stopwatch_stands_still_while_a_loop_is_compiled():
    """The first fold of a method says what a fold takes, whatever is compiled in it."""

    @jit
    def add(values):
        total = 0.0
        for value in values:
            total += value
        return total

    watch, before, started = Stopwatch(), Stopwatch.compiling, time.perf_counter()
    assert add(np.ones(3)) == 3.0
    passed, compiled = time.perf_counter() - started, Stopwatch.compiling - before
    assert compiled > 0.0
    assert watch.seconds() == pytest.approx(passed - compiled, abs=0.01)
    add(np.ones(4))
    assert Stopwatch.compiling - before == compiled
