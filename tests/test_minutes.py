"""Minutes: the plan is looked at again after each step, and what was left out is recorded."""

import itertools
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from marginsieve import study
from marginsieve.data import make_cohort
from marginsieve.engine.store import open_store
from marginsieve.engine.units import OutOfTime, limit_seconds
from marginsieve.errors import InputError
from marginsieve.solvers.execution import Stopwatch, jit
from marginsieve.studies import pacing, planning
from marginsieve.studies.analyses.false_features import FalseFeatures
from marginsieve.studies.analyses.substitutes import Substitutes
from marginsieve.studies.analysis import Measured, Shape, load_analyses
from marginsieve.studies.measuring import Planner
from marginsieve.studies.options import StudyOptions

LEAST = {"evidence", "effects", "false-share", "forecast", "decision"}
load_analyses()


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


# -- a study that is too large for its minutes ------------------------------------------------------------------------


def chosen(m, n, mixed=False, **options):
    return planning.choose(Shape(m, n, mixed, 0.4), StudyOptions(minutes=1.0, **options))


@pytest.mark.parametrize(("m", "n"), [(2000, 2000), (200, 20_000), (50_000, 200), (60, 5000), (120, 90)])
def test_smaller_studies_cost_less_and_less(m, n):
    choice = chosen(m, n)
    sizes = [choice, *planning.smaller_choices(choice)]
    costs = [sum(planning.table_costs(each).values()) for each in sizes]
    assert costs == sorted(costs, reverse=True)
    last = sizes[-1]
    assert last.facts.used == min(choice.facts.used, planning.FEWEST[0])
    columns = n if last.options.prefilter is None else last.options.prefilter[1]
    assert columns == min(n, planning.FEWEST[1])
    assert last.cv == choice.cv
    for before, after in itertools.pairwise(sizes):  # neither half nor rows and columns at once
        rows = before.facts.used / after.facts.used
        wide = [n if each.options.prefilter is None else each.options.prefilter[1] for each in (before, after)]
        assert 1.0 < max(rows, wide[0] / wide[1]) <= 2.02
        assert min(rows, wide[0] / wide[1]) == 1.0


def test_what_was_given_is_not_made_smaller():
    assert {each.options.max_samples for each in planning.smaller_choices(chosen(900, 9000, max_samples=700))} == {700}
    some = planning.smaller_choices(chosen(900, 9000, prefilter=("fast", 3000)))
    assert {each.options.prefilter for each in some} == {("fast", 3000)}
    assert planning.smaller_choices(chosen(900, 9000, max_samples=700, prefilter=("fast", 3000))) == []
    many = planning.smaller_choices(chosen(100, 9000, n_features_to_select=500))
    assert min(each.options.prefilter[1] for each in many) == 2000  # room to choose from
    assert planning.smaller_choices(chosen(90, 90)) == []


class SlowMachine(Planner):
    """Folds take so many times what the table of costs says, and are not run."""

    times = 1.0
    tried: ClassVar[list] = []

    def sizes(self, choice):
        return [choice, *planning.smaller_choices(choice)]

    def first_folds(self, methods, choice, n_jobs, longest=None):
        self.tried.append(choice)
        cost = planning.table_costs(choice)
        return Measured({each.label: min(self.times * cost[each.label], 2.5 * longest) for each in methods}, {})


@pytest.mark.parametrize("times", [0.01, 0.3, 1.0, 10.0, 100.0, 1e6])
@pytest.mark.parametrize(("m", "n"), [(2000, 2000), (200, 20_000), (20_000, 200)])
def test_the_size_follows_from_what_folds_take(m, n, times, monkeypatch):
    monkeypatch.setattr(SlowMachine, "times", times)
    monkeypatch.setattr(SlowMachine, "tried", [])
    choice = chosen(m, n)
    run = SimpleNamespace(choice=choice, options=choice.facts.options)
    planner = SlowMachine(run=run, kept=None, n_jobs=1, since=time.perf_counter())
    found, known = planner.fit_size(choice)
    sizes = [choice, *planning.smaller_choices(choice)]
    seconds = [
        planner.least_seconds(each, Measured({k: times * v for k, v in planning.table_costs(each).items()}, {}))
        for each in sizes
    ]
    place = next(k for k, each in enumerate(sizes) if each.options == found.options)
    if seconds[-1] <= 30.0:
        assert seconds[place] <= 37.0
        assert place == 0 or seconds[place - 1] > 14.0  # and it is not much smaller than it must be
    else:
        assert place == len(sizes) - 1
    assert len(SlowMachine.tried) <= 6
    assert set(known.fold) == {found.methods[0].label, found.methods[-1].label}


@pytest.fixture(scope="module")
def table():
    return make_cohort(150, 130, n_relevant=5, effect=1.5, random_state=1)


def test_a_study_of_too_few_minutes_is_smaller_and_says_so(table, tmp_path):
    ran = study(table.X, table.y, minutes=np.float32(0.01), folder=tmp_path)
    result = ran.result
    plan = result["protocol"]["plan"]
    assert plan["smaller"] == {"rows": 100, "columns": 100}
    (doubt,) = [each for each in result["findings"] if each["code"] == "MS215"]
    assert "samples of 100 of the 150 rows" in doubt["text"]
    assert "100 of 130 columns by fisher" in doubt["text"]
    assert doubt["text"] in result["answer"]["doubts"]
    trained = "4/5 of the rows (samples of at most 100 of them), searching among the best 100 columns by fisher there"
    assert result["protocol"]["trained_on"] == trained
    assert f"Scores are of models on {trained}" in result["methods_text"]
    assert set(plan["analyses"]) == LEAST
    assert len(ran.predictions) == 150  # rows that were not trained on are predicted too
    again = study(table.X, table.y, plan=plan).result
    for key in ("scores", "features", "lists"):
        assert again[key] == result[key]
    assert again["protocol"]["plan"] == plan
    assert "MS215" in [each["code"] for each in again["findings"]]
    analyses = plan["analyses"]
    wrong = [{"smaller": {"rows": 0, "columns": 100}}, {"smaller": {"rows": 50}}, {"smaller": [50, 50]}]
    wrong += [{"methods": plan["methods"] * 2}]
    wrong += [{"repeats": 10**12}, {"analyses": {**analyses, "evidence": [10**12]}}]  # would never end
    for change in wrong:
        with pytest.raises(InputError, match="must be the plan of a result"):
            study(table.X, table.y, plan={**plan, **change})
    with pytest.raises(InputError, match="plan is 'x'; it must be the plan of a result"):
        study(table.X, table.y, plan="x")


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_folds_that_run_past_the_minutes_are_cut_and_begun_again_smaller(n_jobs, table, monkeypatch, tmp_path):
    monkeypatch.setattr(
        Planner, "fit_size", lambda self, choice: (choice, self.first_folds(choice.methods[::4], choice, 1))
    )
    monkeypatch.setattr(pacing.TimeLimit, "_until_cut", lambda _: 0.05)
    ran = study(table.X, table.y, minutes=1.0, cv=3, folder=tmp_path, without="suspects", n_jobs=n_jobs)
    plan = ran.result["protocol"]["plan"]
    assert set(plan["smaller"]) == {"rows", "columns"}
    assert any("begun again smaller" in text for text in ran.result["protocol"]["chosen"])
    assert [method["title"] for method in ran.result["methods"]] == ["two-views", "all features"]
    with open_store(tmp_path, "study") as store:
        assert store.meta("plan")["plan"] == plan
    monkeypatch.undo()
    again = study(table.X, table.y, cv=3, plan=plan, without="suspects").result
    assert again["scores"] == ran.result["scores"]


def test_an_analysis_that_runs_past_the_minutes_is_cut(cohort, monkeypatch):
    def run(self, run):
        if run.choice.efforts.get("false-share") != (0, 0):
            time.sleep(60.0)
        return original(self, run)

    original = FalseFeatures.run
    monkeypatch.setattr(FalseFeatures, "run", run)
    monkeypatch.setattr(Substitutes, "run", lambda *_: time.sleep(60.0))
    monkeypatch.setattr(pacing.TimeLimit, "_until_cut", lambda _: 5.0)
    since = time.perf_counter()
    result = study(cohort.X, cohort.y, minutes=10.0, methods="fisher", cv=3, n_repeats=1, without="references").result
    assert time.perf_counter() - since < 50.0
    assert result["protocol"]["left_out"]["substitutes"] == "it was cut by the clock"
    assert result["protocol"]["plan"]["analyses"]["false-share"] == [0, 0]
    assert result["analyses"]["false-share"]["share"] is None
    (sentence,) = [text for text in result["answer"]["sentences"] if "not estimated" in text]
    assert "did not fit into the minutes" in sentence


def test_an_analysis_of_a_number_that_was_given_is_measured_however_few_the_minutes(table):
    totals = []
    settings = {"methods": "fisher", "cv": 3, "alternatives": 1, "without": ("suspects", "references")}
    ran = study(table.X, table.y, minutes=1e-9, progress=lambda *step: totals.append(step[2]), **settings)
    assert ran.result["protocol"]["plan"]["analyses"]["other-lists"] == [1]
    assert np.isfinite(totals).all()


def test_a_plan_may_have_less_of_an_analysis_than_any_study(table):
    plan = {"methods": ["two_views", "svm_rfe"], "repeats": 1, "analyses": {"evidence": [500], "effects": []}}
    result = study(table.X, table.y, plan={**plan, "smaller": {"rows": 100, "columns": 100}}, cv=3).result
    assert [method["title"] for method in result["methods"]] == ["two-views", "svm-rfe", "all features"]


def test_minutes_hold_in_a_thread_too(table):
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(study, table.X, table.y, minutes=0.01).result().result
    assert "smaller" in result["protocol"]["plan"]


def test_limits_within_limits_leave_the_outer_one_as_it_is():
    since, before = time.perf_counter(), signal.getitimer(signal.ITIMER_REAL)[0]

    def work():
        with limit_seconds(1.0):
            for _ in range(100):
                with limit_seconds(30.0):
                    time.sleep(0.05)

    with pytest.raises(OutOfTime):
        work()
    assert 0.9 < time.perf_counter() - since < 4.0
    after = signal.getitimer(signal.ITIMER_REAL)[0]  # of pytest-timeout, where it uses a signal
    assert max(before - 5.0, 0.0) <= after <= before


def test_a_limit_in_a_thread_does_not_reach_what_comes_after_it():
    def work():
        for _ in range(300):
            with suppress(OutOfTime), limit_seconds(0.001):
                time.sleep(0.001)
        return sum(range(1000))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result(60) == 499500
