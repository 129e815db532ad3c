"""Each row of CONTRIBUTING's table, really done in as many places as it says.

A section of the report, an analysis and a file format are registered from outside. A filter, a criterion, a kernel, a
machine, a search and a recipe are written into a copy of the repository; what holds for all parts is tested there for
the new entry, and so are the texts and pages that name parts. An outcome is added in test_outcome.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from typer.testing import CliRunner

import marginsieve
from marginsieve.cli.commands import app
from marginsieve.data import make_cohort
from marginsieve.data.reading import READERS, read_table, register_reader
from marginsieve.errors import InputError
from marginsieve.report import SECTIONS, register_section, render
from marginsieve.report.sections import load_plugins
from marginsieve.studies.analysis import ANALYSES

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/marginsieve")


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
    assert '<h2 id="weather-today">Weather &lt;today&gt;</h2>\n<p>40 rows under the sky</p>' in page
    assert '<a href="#weather-today">Weather &lt;today&gt;</a>' in page
    assert page.index('id="data"') < page.index('id="weather-today"') < page.index('id="how"')
    assert "Nothing to show" not in page
    assert "under the sky" not in render(result)


NEAREST = '''
"""How far the nearest row of the same class is: an analysis in one file."""

import numpy as np
from marginsieve.studies.analysis import register_analysis


@register_analysis
class Nearest:
    name, order = "nearest-rows", 75.0
    template = """{# 75: Nearest <rows> #}
{% set a = r.analyses["nearest-rows"] %}
{% if a %}<p>{{ a.median | num }} to the nearest row</p>{% endif %}"""

    def applies(self, facts):
        return None if facts.shape.rows <= 1000 else "there are more than 1,000 rows"

    def cost(self, facts):
        return 1e-6 * facts.shape.rows**2

    def run(self, run):
        Z = run.data.X.to_numpy(dtype=float)
        gaps = np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(axis=2)) + 1e9 * np.eye(len(Z))
        return {"median": np.median(gaps.min(axis=1)), "evident": run.evident}

    def sentence(self, result):
        return f"The nearest row is {result['analyses'][self.name]['median']:.2f} away."

    def doubt(self, result):
        return "rows are far from each other" if result["analyses"][self.name]["median"] > 1 else None
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package that has an analysis and a section; what it registers is forgotten afterwards."""
    (tmp_path / "nearest_rows.py").write_text(NEAREST)
    (tmp_path / "weather_report.py").write_text(
        "from markupsafe import Markup\nfrom marginsieve.report import register_section\n\n"
        "@register_section('Weather', place=15)\ndef weather(result):\n    return Markup('<p>It rains.</p>')\n"
    )
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[marginsieve.analyses]\nnearest = nearest_rows\n\n[marginsieve.sections]\nweather = weather_report\n"
    )
    before = dict(ANALYSES), dict(SECTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins.cache_clear()
    yield
    monkeypatch.undo()
    for registry, entries in zip((ANALYSES, SECTIONS), before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in ("nearest_rows", "weather_report"):
        sys.modules.pop(name, None)
    load_plugins.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_an_analysis_is_one_file(tmp_path):
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    settings = {"methods": "fisher", "cv": 3, "n_repeats": 1, "n_permutations": 24}
    study = marginsieve.study(cohort.X, cohort.y, without=("suspects", "references"), **settings)
    result = json.loads(json.dumps(study.result))
    median = result["analyses"]["nearest-rows"]["median"]
    assert median > 0
    assert result["protocol"]["plan"]["analyses"]["nearest-rows"] == []
    assert f"The nearest row is {median:.2f} away." in result["answer"]["sentences"]
    assert "rows are far from each other" in result["answer"]["doubts"]
    page = render(result)
    assert '<a href="#nearest-rows">Nearest &lt;rows&gt;</a>' in page
    assert page.index('id="methods"') < page.index('id="nearest-rows"') < page.index('id="data"')
    assert page.index('id="sizes"') < page.index('id="weather"') < page.index('id="features"')
    assert page.count("It rains.") == 1
    other = marginsieve.study(cohort.X, cohort.y, without=("suspects", "references", "nearest-rows"), **settings)
    assert other.result["analyses"]["nearest-rows"] is None
    assert other.result["protocol"]["left_out"]["nearest-rows"] == "it was not asked for"
    assert "nearest" not in other.html().lower().replace("neighbour", "")
    assert other.result["scores"] == study.result["scores"]
    again = marginsieve.study(cohort.X, cohort.y, methods="fisher", plan=result["protocol"]["plan"], cv=3)
    assert again.result["analyses"]["nearest-rows"] == result["analyses"]["nearest-rows"]


@pytest.mark.usefixtures("plugin")
def test_the_command_has_the_analyses_of_other_packages(tmp_path):
    table = tmp_path / "t.csv"
    make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0).frame().to_csv(table, index=False)
    words = ["select", str(table), "--target", "outcome", "--methods", "fisher", "--cv", "3", "--n-repeats", "1"]
    words += ["--n-permutations", "24", "--without", "suspects,references", "--out", str(tmp_path / "r")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert "The nearest row is" in " ".join(answer.output.split())
    page = (tmp_path / "r" / "report.html").read_text()
    assert 'id="nearest-rows"' in page
    assert "It rains." in page


@pytest.mark.usefixtures("plugin")
def test_analyses_that_cannot_be_run_or_left_out_are_refused():
    cohort = make_cohort(40, 6, n_relevant=2, effect=2.0, random_state=0)
    y = cohort.y.astype(str).where(np.arange(40) % 5 > 0, "third")
    for labels, settings, sentence in (
        (
            cohort.y,
            {"without": "nothing"},
            "it must be one of 'evidence', 'shuffled-study', 'effects', 'each-class', 'forecast', 'sites', 'blocks'",
        ),
        (cohort.y, {"with_": "nothing"}, "with_ is 'nothing'"),
        (cohort.y, {"without": "evidence"}, "without is 'evidence', which decides what can be said"),
        (cohort.y, {"with_": "costs"}, "with_ names 'costs', which cannot be run: no costs were given"),
        (
            y,
            {"with_": "other-lists"},
            "with_ names 'other-lists', which cannot be run: there are more than two classes",
        ),
    ):
        with pytest.raises(InputError, match=sentence):
            marginsieve.study(cohort.X, labels, methods="fisher", **settings)


def test_a_plugin_that_breaks_is_named_and_left_out(tmp_path, monkeypatch):
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('no luck')\n")
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[marginsieve.sections]\nbad = broken_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins.cache_clear()
    with pytest.warns(UserWarning, match="the plug-in 'bad' cannot be loaded: no luck"):
        load_plugins("marginsieve.sections")
    load_plugins.cache_clear()


def test_templates_can_be_read():
    folder = Path(marginsieve.__file__).parent / "report" / "templates"
    long = [path.name for path in folder.rglob("*.*") if any(len(line) > 160 for line in path.read_text().splitlines())]
    assert long == []


# -- parts and recipes, in a copy of the repository -------------------------------------------------------------------

FILTER = '''"""Signal to noise: the difference of the means over the sum of the standard deviations."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Resources, TableView
from ._columns import by_block, moments


class SignalToNoise(BaseEstimator):
    """``|mean_+ - mean_-| / (sd_+ + sd_-)``, by column.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import SignalToNoise
    >>> SVMSelector(criterion=SignalToNoise(), search="top_k").criterion
    SignalToNoise()
    """

    resources: ClassVar[Resources] = Resources(linear_in_rows=True)

    def __call__(self, table: TableView, y: Array, weight: Array) -> Array:
        """(n,)."""
        return by_block(table, y, weight, _ratio)


def _ratio(z: Array, label: Array, weight: Array) -> Array:
    mean, variance, _, least = moments(z, label, weight)
    spread = np.sqrt(np.maximum(variance[0], least)) + np.sqrt(np.maximum(variance[1], least))
    return np.asarray(np.abs(mean[0] - mean[1]) / np.where(spread > 0, spread, 1.0))
'''

CRITERION = '''"""Sensitivity: how fast the squared margin norm moves with the weight of a feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, HasMargin, ProblemView, Solution


class Sensitivity(BaseEstimator):
    """``w_j |dW^2 / dw_j|``, W^2 = c'Kc.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.criteria import Sensitivity
    >>> SVMSelector(criterion=Sensitivity()).criterion
    Sensitivity()
    """

    requires: ClassVar[tuple[type, ...]] = (HasMargin,)

    def score(self, problem: ProblemView, gram: Gram, solutions: Sequence[Solution]) -> Array:  # noqa: ARG002
        """(p,) summed over the binary problems."""
        return np.asarray(sum(gram.weight * np.abs(gram.weight_gradient(solution.coef)) for solution in solutions))
'''

KERNEL = '''"""The Laplace kernel: base_j(u, v) = -|u - v|, outer(A) = exp(A)."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..algebra import GenericGram
from ..contracts import Array, Gram, IntArray, TableView
from .numeric import KernelMixin


class Laplace(KernelMixin, BaseEstimator):
    """K(x, z) = exp(-sum_j w_j |x_j - z_j|).

    Parameters
    ----------
    average : bool, default=True
        Divide by the number of live features.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> from marginsieve.kernels import Laplace
    >>> recipes.svm_rfe(kernel=Laplace()).kernel
    Laplace()
    """

    def __init__(self, average: bool = True) -> None:
        self.average = average

    def start(self, table: TableView) -> Array:
        """(n,) of ones."""
        return np.ones(table.shape[1])

    def bind(self, table: TableView, feature_weight: Array, live: IntArray) -> Gram:
        """The Gram of some features of a table at weights (n,)."""
        return GenericGram(self, table, feature_weight, live)

    def base(self, u: Array, v: Array, kind: str, spread: float) -> Array:  # noqa: ARG002
        """-|u - v|."""
        return -np.abs(u - v)

    def outer(self, A: Array) -> Array:
        """exp(A)."""
        return np.exp(A)

    def outer_derivative(self, A: Array, order: int = 1) -> Array:  # noqa: ARG002
        """exp(A), whatever the order."""
        return np.exp(A)
'''

MACHINE = '''"""Least squares on a kernel: kernel ridge regression of the signs, with an intercept."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Array, Gram, Matrix, Solution, View, as_gram


class LeastSquares(BaseEstimator):
    """min 1/2 c'Kc + C/2 sum_i cost_i (y_i - f(x_i))^2, f(x) = sum_i c_i K(x_i, x) + b.

    Parameters
    ----------
    C : float, default=1.0
        Price of a squared error.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.machines import LeastSquares
    >>> SVMSelector(machine=LeastSquares(C=2.0)).machine
    LeastSquares(C=2.0)
    """

    needs = "gram"
    additive_only = False
    kinds: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def solve(self, view: View, y: Array, cost: Array, warm: Solution | None = None) -> Solution:  # noqa: ARG002
        """Rows of cost 0 take no part."""
        K, live = as_gram(view).matrix(), np.flatnonzero(cost)
        ones = np.ones((len(live), 1))
        inside = K[np.ix_(live, live)] + np.diag(1.0 / (self.C * cost[live]))
        system, right = np.block([[inside, ones], [ones.T, np.zeros((1, 1))]]), np.append(y[live], 0.0)
        solved = np.linalg.solve(system, right)
        c = np.zeros(len(y))
        c[live] = solved[:-1]
        slack = y - K @ c - solved[-1]
        objective = 0.5 * c @ K @ c + 0.5 * self.C * cost @ slack**2
        residual = float(np.abs(system @ solved - right).max())
        return Solution(c, float(solved[-1]), float(objective), residual, np.abs(slack), converged=residual < 1e-6)

    def decision(self, solution: Solution, view: View, Z: Matrix) -> Array:
        """f(z) of each row."""
        return as_gram(view).apply(solution.coef, Z) + solution.intercept

    def squared_norm(self, solution: Solution, gram: Gram) -> float:
        """c'Kc."""
        return float(solution.coef @ gram.apply(solution.coef))
'''

SEARCH = '''"""Second look: every feature is scored once, the better half once more by a machine on that half."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ..contracts import Path, ProblemView
from ..problem import step_of
from .ranking import worst_first


class SecondLook(BaseEstimator):
    """A ranking whose better half is scored twice.

    Examples
    --------
    >>> from marginsieve import SVMSelector
    >>> from marginsieve.searches import SecondLook
    >>> SVMSelector(search=SecondLook()).search
    SecondLook()
    """

    requires: ClassVar[tuple[type, ...]] = ()
    ranks_by: ClassVar[frozenset[str]] = frozenset({"criterion"})
    multiclass = True

    def run(self, problem: ProblemView, rng: np.random.Generator) -> Path:  # noqa: ARG002
        """Features to keep come first."""
        gram, steps = problem.gram(), []
        scores, order = np.zeros(len(gram.features)), np.arange(len(gram.features))
        for left in (len(order), max(len(order) // 2, 1)):
            since = time.perf_counter()
            live = np.sort(order[:left])
            gram = problem.gram(live)
            solutions = problem.solve(gram)
            scores[live] = problem.score(gram, solutions)
            worst = worst_first(scores[live], left, np.isin(live, problem.keep), problem.ties(gram, solutions))
            order[:left] = live[worst[::-1]]
            steps.append(step_of(left, solutions, since))
        return Path(order, scores, tuple(steps), "every feature was scored, the better half twice")
'''

RECIPE = '''

@register("maldonado2018", family="filter", takes="numbers sparse", cost=(0.2, 0.7, 1.3))
def quick_fisher(**settings: Any) -> SVMSelector:
    """The best features by the Fisher score, the machine on them with a large cost.

    Parameters
    ----------
    **settings
        Further parameters of SVMSelector.

    Returns
    -------
    SVMSelector
        The configured selector, not fitted.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.quick_fisher().search
    TopK()
    """
    return _filter(criteria.Fisher(), 10.0, "linear", None, standardize=True, **settings)
'''


def enter(room, dictionary, name, cls):
    """An entry in the dictionary of a room, its class imported and public."""
    return {
        SOURCE / room / "__init__.py": (
            (r"(?m)^from \.(?!\.)", f"from .{name} import {cls}\nfrom .", 1),
            (rf"(?ms)^({dictionary}: .*?\n)}}", rf'\1    "{name}": {cls},\n}}', 1),
            (r"(?m)^__all__ = \[", f'__all__ = ["{cls}", ', 1),
        )
    }


ADDED = {
    "filter": (
        {SOURCE / "criteria" / "signal_to_noise.py": FILTER},
        enter("criteria", "FILTERS", "signal_to_noise", "SignalToNoise"),
    ),
    "criterion": (
        {SOURCE / "criteria" / "sensitivity.py": CRITERION},
        enter("criteria", "CRITERIA", "sensitivity", "Sensitivity"),
    ),
    "kernel": ({SOURCE / "kernels" / "laplace.py": KERNEL}, enter("kernels", "KERNELS", "laplace", "Laplace")),
    "machine": (
        {SOURCE / "machines" / "least_squares.py": MACHINE},
        enter("machines", "MACHINES", "least_squares", "LeastSquares"),
    ),
    "search": (
        {SOURCE / "searches" / "second_look.py": SEARCH},
        enter("searches", "SEARCHES", "second_look", "SecondLook"),
    ),
    "recipe": (
        {},
        {
            SOURCE / "recipes" / "filters.py": ((r"\Z", lambda _: RECIPE, 1),),
            SOURCE / "recipes" / "__init__.py": (
                (r"    relieff,\n", "    quick_fisher,\n    relieff,\n", 1),
                (r'"relieff", ', '"quick_fisher", "relieff", ', 1),
            ),
            Path("benchmarks/suites/null.toml"): ((r"\Z", '\n[[method]]\nname = "quick-fisher"\n', 1),),
        },
    ),
}


def copy_with(folder, added, changed):
    """A copy of the repository with new files and replacements in others."""
    for name in ("src", "tests", "docs", "benchmarks", "reproduction", "examples"):
        ignored = shutil.ignore_patterns("_build", "gallery")  # compiled code goes along: its files are no older
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for path, text in added.items():
        folder.joinpath(path).write_text(text)
    for path, replacements in changed.items():
        text = folder.joinpath(path).read_text()
        for pattern, new, count in replacements:
            text, n = re.subn(pattern, new, text, count=count)
            assert n == count, pattern
        folder.joinpath(path).write_text(text)


def run_in(folder, *words):
    """The output of Python in the copy, which imports the copy's package."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(folder)))}
    process = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout[-6000:] + process.stderr[-2000:]
    return process.stdout


# What is run besides the tests that have the name of the entry: those over a dictionary, a folder or the pages as a
# whole.
WHOLE = "advice or part_is_named or every_filter or annotated or identifiers or circles or no_two_files or point_down"
PRODUCT = "test_product and backward and 2"
CHECKS = {
    "filter": (("criteria", "compatibility", "docs", "docstrings"), ("signal_to_noise", "marginsieve.criteria")),
    "criterion": (
        ("criteria", "compatibility", "docs", "docstrings"),
        ("sensitivity", "marginsieve.criteria", PRODUCT),
    ),
    "kernel": (
        ("kernels", "criteria", "scaling", "harmony", "compatibility", "docs", "docstrings", "parts"),
        ("laplace", "marginsieve.kernels", "refused", PRODUCT),
    ),
    "machine": (
        ("machines", "compatibility", "docs", "docstrings", "parts", "outcome"),
        ("least_squares", "marginsieve.machines", "refused", "lacks", "by_it", PRODUCT),
    ),
    "search": (
        ("searches", "compatibility", "docs", "docstrings", "parts"),
        ("second_look", "marginsieve.searches", "refused", "lacks", "by_it"),
    ),
    "recipe": (
        ("contract", "persistence", "searches", "selector", "evaluation", "docs", "docstrings", "cli"),
        ("quick_fisher", "scikit_learn and 10.0", "marginsieve.recipes", "page_of_methods", "null_gate", "listed"),
    ),
}
MOST_FILES = {"filter": 2, "criterion": 2, "kernel": 2, "machine": 2, "search": 2, "recipe": 4}


def add(kind, folder):
    """The files that one more of a kind takes, written into a copy."""
    added, changed = ADDED[kind]
    copy_with(folder, added, changed)
    if kind != "recipe":
        return {*added, *changed}
    run_in(folder, "docs/methods_table.py")
    return {*added, *changed, Path("docs/methods.md")}


def count_passed(folder, modules, names):
    """How many tests of some modules pass in the copy, of those with these names; none fails."""
    tests = [f"tests/test_{name}.py" for name in modules]
    chosen = ["-k", " or ".join(f"({name})" for name in names), "-m", "not data"]
    output = run_in(folder, "-m", "pytest", *tests, "-p", "no:cacheprovider", *chosen)
    return int(re.search(r"(\d+) passed", output)[1])


def test_a_filter_is_one_module_and_an_entry(tmp_path):
    assert len(add("filter", tmp_path)) == 2
    assert count_passed(tmp_path, ["criteria"], ["signal_to_noise"]) >= 10


@pytest.mark.long
@pytest.mark.parametrize("kind", ADDED)
def test_a_new_entry_takes_few_files_and_the_tests_over_all_take_it(kind, tmp_path):
    assert len(add(kind, tmp_path)) <= MOST_FILES[kind]
    modules, names = CHECKS[kind]
    assert count_passed(tmp_path, [*modules, "house"], [*names, WHOLE]) >= 10
