"""The methods by their names, each registered once with its citation, family, cost and what tables it takes."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from ..errors import InputError, listing, one_of
from ..estimators.fitted_selector import FittedSelector, describe_like
from ..outcomes import Classes, Numbers, Survival

OUTCOMES = (Classes.name, Numbers.name, Survival.name)
FAMILIES = ("blend", "elimination", "filter", "linear", "scaling", "search")
SHAPES = (
    *("numbers", "rare class", "mixed", "mixed, rare class"),
    *(f"outcome {name}{kind}" for name in ("numbers", "survival") for kind in ("", ", mixed")),
)
OTHERS = (3.0, 30.0, 15.0)  # the cost of a recipe that was not measured

Function = TypeVar("Function", bound=Callable[..., FittedSelector])


@dataclass(frozen=True)
class Recipe:
    """A named method: the function that returns its selector, and what is known about it.

    Parameters
    ----------
    name : str
        Name of the function.
    function : callable
        Function that returns a configured `SVMSelector` or `Blend`.
    citation : tuple of str
        Keys of BibTeX entries.
    family : str
        "blend", "elimination", "filter", "linear", "scaling" or "search".
    takes : frozenset of str
        Tables that it takes, of "numbers", "categories", "missing" and "sparse".
    outcomes : frozenset of str, default={"classes"}
        Outcomes that it takes, of "classes", "numbers" and "survival".
    cost : (float, float, float), default=(3.0, 30.0, 15.0)
        Seconds of one fit with its inner folds: at least, for a million cells, for a million pairs of rows.
    measured : bool, default=False
        Whether the cost was measured.
    default_for : mapping of str to int, default={}
        Shapes of tables for which a study runs the recipe by default, with its position.
    does_for : mapping of str to str, default={}
        For outcomes of which that is not the first sentence of the docstring: what it does.

    Attributes
    ----------
    title : str
        Name with hyphens, as on the command line.
    does : str
        First sentence of the function's docstring.
    source : str
        Where the method was published.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipe = recipes.entry("svm-rfe")
    >>> recipe.title, recipe.family, sorted(recipe.takes)
    ('svm-rfe', 'elimination', ['numbers', 'sparse'])
    """

    name: str
    function: Callable[..., FittedSelector]
    citation: tuple[str, ...]
    family: str
    takes: frozenset[str]
    outcomes: frozenset[str] = frozenset({Classes.name})
    cost: tuple[float, float, float] = OTHERS
    measured: bool = False
    default_for: Mapping[str, int] = field(default_factory=dict)
    does_for: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As the command writes it."""
        return self.name.replace("_", "-")

    @property
    def does(self) -> str:
        """What it does, in a sentence: the first of its docstring."""
        return " ".join((self.function.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def source(self) -> str:
        """Where it was published."""
        return "; ".join(reference_text(key) for key in self.citation)


class SharedParameters:
    """What several recipes have: one that documents a name without a description is given the one from here.

    Parameters
    ----------
    kernel
        Kernel of the machine, by name or as an object.
    C
        Cost of a margin error.
    C2
        Weight of the penalty on the scaling factors; 0 is no penalty.
    machine
        Machine fitted on the selected features; None is a support vector machine with this `C`.
    final
        Machine fitted on the selected features; None is the machine of the path, which may leave out some of them.
    step
        Features dropped in each step: a share of those that are left (in (0, 1), at least one feature) or a count.
    points
        Number of values of C on the path, each a fixed multiple of the one before.
    stop
        "ranking" ranks all features. With "own" the features with a nonzero weight at `C` rank first, and all of them
        are selected where `n_features_to_select` is None.
    cuts
        How numbers are cut into levels: into levels of equal weight, or by class entropy (Fayyad and Irani).
    bins
        Number of levels of equal weight.
    n_neighbors
        Number of neighbors of each class that a row is compared with.
    merge_cv
        Number of inner folds in which the two lists are merged; fewer where a class has fewer rows.
    budget
        Number of features, or the total that their costs may reach.
    solver
        How the program is solved: by descents and exchanges of features ("fast"), by these and then small exact
        programs ("daks"), or by these and then branch and bound on the whole program ("exact"), which also gives a
        bound on the objective; "auto" is "daks" where such programs help, else "fast". Tables of at most 30 rows and
        120 cells are solved to the optimum by each of them.
    feature_costs
        Cost of each column, by name or in the order of the columns; None is a cost of 1 for each, as it is for columns
        that a mapping does not name.
    shakes
        Number of random changes after which the exchanges start again.
    time_limit
        Seconds after which the best point so far is used; None is 60 for "fast", 180 for "auto" and "daks", 600
        for "exact".
    threshold
        Threshold of the decision value, as in SVMSelector.
    r
        Upper bound, in (0, 1], on the share of the majority class outside the sphere (approximately).
    r_out
        Upper bound on the share of the other class inside the sphere (approximately); 0 leaves that class out of the
        fit.
    standardize
        Scale every column to mean 0 and variance 1 over the training rows.
    **settings
        Further parameters of SVMSelector.
    SVMSelector
        The configured selector, not fitted.
    Blend
        The configured blend, not fitted.
    """


RECIPES: dict[str, Recipe] = {}
_extra: dict[str, str] = {}  # BibTeX entries that came with a recipe


def register(
    *citation: str,
    family: str,
    takes: str = "numbers",
    outcomes: str = "classes",
    cost: tuple[float, float, float] | None = None,
    default_for: Mapping[str, int] | None = None,
    does_for: Mapping[str, str] | None = None,
    bibtex: str = "",
) -> Callable[[Function], Function]:
    """Register a function that returns a configured `SVMSelector` or `Blend` as a method.

    Parameters
    ----------
    *citation : str
        BibTeX keys: in `references.bib`, or in `bibtex`.
    family : str
        "blend", "elimination", "filter", "linear", "scaling" or "search".
    takes : str, default="numbers"
        Tables that it takes, of "numbers", "categories", "missing" and "sparse", separated by spaces.
    outcomes : str, default="classes"
        Outcomes that it takes, of "classes", "numbers" and "survival", separated by spaces.
    cost : (float, float, float) or None, default=None
        Seconds of one fit with its inner folds: at least, for a million cells, for a million pairs of rows; None where
        that was not measured.
    default_for : mapping of str to int, or None, default=None
        Shapes of tables (`SHAPES`) for which a study runs the recipe by default, with its position.
    does_for : mapping of str to str, or None, default=None
        What it does with an outcome, in a sentence, where that is not the first one of the docstring.
    bibtex : str, default=""
        BibTeX entries that `references.bib` does not have.

    Returns
    -------
    callable
        A decorator that returns the function; only its docstring may be completed.

    Examples
    --------
    >>> from marginsieve import SVMSelector, recipes
    >>> @recipes.register("guyon2002", family="elimination")
    ... def plain_rfe(**settings):
    ...     '''Recursive elimination with the defaults.'''
    ...     return SVMSelector(**settings)
    >>> recipes.get("plain-rfe") is plain_rfe
    True
    >>> del recipes.RECIPES["plain_rfe"]
    """
    _extra.update(_entries(bibtex))
    if family not in FAMILIES:
        raise InputError(f"family is {family!r}; it must be one of {listing(FAMILIES)}")
    for name in outcomes.split():
        one_of("recipe", "outcomes", name, OUTCOMES)
    if not citation:
        raise InputError("citation is empty; a recipe cites where it was published")
    if unknown := [key for key in citation if key not in references()]:
        raise InputError(f"citation names {listing(unknown)}, which references.bib does not have: give bibtex")

    def add(function: Function) -> Function:
        name = describe_like(SharedParameters)(function).__name__
        sets = frozenset(takes.split()), frozenset(outcomes.split())
        known = OTHERS if cost is None else cost, cost is not None, default_for or {}, does_for or {}
        RECIPES[name] = Recipe(name, function, citation, family, *(*sets, *known))
        return function

    return add


def outcome_named(settings: Mapping[str, Any]) -> str:
    """The name of the outcome that a recipe is for, classes by default; some take others too."""
    outcome = settings.get("outcome", Classes.name)
    return str(getattr(outcome, "name", outcome))


def refuse_outcome(recipe: Recipe, outcome: str) -> None:
    """Refuse a recipe for an outcome that it does not take; of an outcome that is not ours its parts decide.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    outcome : str
        Name of the outcome.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.refuse_outcome(recipes.entry("lasso"), "numbers")  # nothing to refuse
    """
    if outcome in OUTCOMES and outcome not in recipe.outcomes:
        others = [RECIPES[name].title for name in names(outcome)]
        raise InputError(
            f"the method {recipe.title!r} takes {' and '.join(sorted(recipe.outcomes))}, and the outcome is {outcome}: "
            f"the methods for it are {listing(others, most=50)}"
        )


def configure(recipe: Callable[..., FittedSelector], settings: Mapping[str, Any]) -> FittedSelector:
    """The selector of a recipe; a setting may be any parameter of a part by its long name, as `kernel__width`.

    Parameters
    ----------
    recipe : callable
        Function that returns a configured selector.
    settings : mapping of str to object
        Arguments of the recipe, and parameters of the selector's parts.

    Returns
    -------
    SVMSelector or Blend
        The configured selector, not fitted.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.configure(recipes.svm_rfe, {"C": 10.0, "machine__tol": 1e-4}).machine
    CSVC(C=10.0, tol=0.0001)
    """
    selector = recipe(**{name: value for name, value in settings.items() if "__" not in name})
    selector.set_params(**{name: value for name, value in settings.items() if "__" in name})
    return selector


def names(outcome: str | None = None) -> list[str]:
    """The names of all recipes, or of those that take an outcome.

    Parameters
    ----------
    outcome : "classes", "numbers", "survival" or None, default=None
        The outcome; None is any.

    Returns
    -------
    list of str
        The names, in the order of registration.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> "svm_rfe" in recipes.names(), "lasso" in recipes.names("classes")
    (True, False)
    """
    return [name for name, recipe in RECIPES.items() if outcome is None or outcome in recipe.outcomes]


def entry(name: str) -> Recipe:
    """A recipe with what is known about it; svm-rfe and svm_rfe are the same.

    Parameters
    ----------
    name : str
        Name of the recipe.

    Returns
    -------
    Recipe
        The function with its citation, family, cost and the tables that it takes.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.entry("svm-rfe").citation
    ('guyon2002',)
    """
    plain = name.strip().lower().replace("-", "_")
    if plain not in RECIPES:
        close = difflib.get_close_matches(plain, RECIPES, n=1)
        titles = [RECIPES[name].title for name in close or RECIPES]
        hint = f"did you mean {titles[0]!r}?" if close else f"the methods are {listing(titles, most=50)}"
        raise InputError(f"there is no method {name!r}; {hint}")
    return RECIPES[plain]


def get(name: str) -> Callable[..., FittedSelector]:
    """The function of a recipe.

    Parameters
    ----------
    name : str
        Name of the recipe; svm-rfe and svm_rfe are the same.

    Returns
    -------
    callable
        Function that returns a configured `SVMSelector` or `Blend`.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.get("fisher")(n_features_to_select=10).n_features_to_select
    10
    """
    return entry(name).function


def defaults(shape: str) -> tuple[str, ...]:
    """The recipes that a study runs by default on tables of a shape, the main one first.

    Parameters
    ----------
    shape : str
        One of `SHAPES`: "numbers", "rare class", "mixed", "mixed, rare class" where the target is classes, "outcome
        numbers" and "outcome numbers, mixed" where it is numbers, and the same of survival.

    Returns
    -------
    tuple of str
        Names of recipes.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.defaults("numbers")
    ('two_views', 'svm_rfe', 'l1_cssvm', 'interactions')
    """
    chosen = [recipe for recipe in RECIPES.values() if shape in recipe.default_for]
    return tuple(recipe.name for recipe in sorted(chosen, key=lambda recipe: recipe.default_for[shape]))


# -- references --------------------------------------------------------------------------------------------------


@cache
def _shipped_references() -> dict[str, str]:
    return _entries(files(__package__).joinpath("references.bib").read_text(encoding="utf-8"))


def references() -> dict[str, str]:
    """The BibTeX entries of all recipes.

    Returns
    -------
    dict of str to str
        Entries by key.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.references()["guyon2002"].splitlines()[0]
    '@article{guyon2002,'
    """
    return {**_shipped_references(), **_extra}


def reference_text(key: str) -> str:
    """A BibTeX entry as a line of text: authors, title, where and when.

    Parameters
    ----------
    key : str
        Key of the entry.

    Returns
    -------
    str
        The reference.

    Examples
    --------
    >>> from marginsieve import recipes
    >>> recipes.reference_text("guyon2002").split(",")[0]
    'Guyon'
    """
    fields = {name: _plain(text) for name, text in _FIELD.findall(references()[key])}
    authors = [name.split(",")[0].strip() for name in re.split(r"\s+and\s+", fields.get("author", ""))]
    listed = ", ".join(authors[:-1]) + (" and " if len(authors) > 1 else "") + authors[-1]
    where = [fields[name] for name in ("journal", "booktitle", "note", "volume") if name in fields]
    year = f"({fields['year']})" if "year" in fields else ""
    parts = (f"{listed}, {fields['title']},", *where, year, fields.get("pages", ""))
    return " ".join(" ".join(part for part in parts if part).split()).rstrip(",")


def _plain(text: str) -> str:
    """BibTeX's accents, braces and dashes as characters."""
    text = _ACCENT.sub(lambda match: unicodedata.normalize("NFC", match[2] + _ACCENTS[match[1]]), text)
    return re.sub(r"[{}\\]", "", text).replace("--", "-")


_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303"}
_ACCENT = re.compile(r"\\(['`^\"~])\{?\\?(\w)\}?")
_FIELD = re.compile(r"(?s)(\w+)\s*=\s*\{((?:[^{}]|\{[^{}]*\})*)\}")


def _entries(text: str) -> dict[str, str]:
    entries = [entry.strip() for entry in re.split(r"(?m)^(?=@)", text) if entry.strip()]
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
