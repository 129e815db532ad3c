"""Docstrings of public names: their parameters are those of the signature, and their examples run."""

import doctest
import importlib
import inspect
import re
import textwrap
import warnings
from ast import literal_eval
from dataclasses import fields, is_dataclass
from functools import cached_property

import pytest

from marginsieve.studies import running

MODULES = (
    "marginsieve",
    *(
        f"marginsieve.{name}"
        for name in (
            *("recipes", "kernels", "machines", "criteria", "searches", "data", "engine", "studies", "bench", "report"),
            *("outcomes", "algebra", "estimators", "solvers"),
        )
    ),
)
ESTIMATORS = ("SVMSelector", "SVDD", "MKLClassifier")
OF_ESTIMATORS = ("fit", "predict", "decision_function", "score_samples", "transform", "at_sizes", "predict_proba")
WITH_METHODS = ("Study", "SuiteResult", "Comparison", "Nested")  # every public method of these
DIALECT = ("told", "said", "presses for", "like no other", "worth its price", "its own number", "too good by luck")


def collect():
    """Every public callable once: (module, name, object)."""
    seen, found = set(), []

    def add(module, name, value):
        if id(value) not in seen:
            seen.add(id(value))
            found.append((module, name, value))

    for module in MODULES:
        home = importlib.import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            if not callable(value):
                continue
            add(module, name, value)
            for method in methods_of(name, value):
                add(module, f"{name}.{method}", getattr(value, method))
    return found


def methods_of(name, cls):
    if name in ESTIMATORS:
        return [method for method in OF_ESTIMATORS if method in vars(cls)]
    if name in WITH_METHODS:
        return [key for key, value in vars(cls).items() if inspect.isfunction(value) and not key.startswith("_")]
    return ["read"] if name == "Suite" else []


PUBLIC = collect()


def each(module, check):
    """Check every public callable of a module; a failure names it."""
    for home, name, value in PUBLIC:
        if home == module:
            try:
                check(value)
            except BaseException as error:
                error.add_note(f"in the docstring of {home}.{name}")
                raise


def test_nothing_public_is_left_out():
    assert len(PUBLIC) > 130


def sections(doc):
    """The sections of a numpydoc docstring by their titles; the text before the first has the title ''."""
    lines, found, title = inspect.cleandoc(doc).splitlines(), {"": []}, ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", below) and len(below) == len(line):
            title = line
            assert title not in found, f"the section {title} is there twice"
            found[title] = []
        elif not (title and not found[title] and re.fullmatch(r"-{3,}", line)):
            found[title].append(line)
    return {title: "\n".join(text).strip("\n") for title, text in found.items()}


def entries(text):
    """The documented names of a section: name -> (type, description); "X, y : type" documents two."""
    found = {}
    for head, description in re.findall(r"(?m)^(\S.*)\n((?:[ ]{4}.*\n?|\n)*)", text + "\n"):
        names, _, kind = head.partition(" : ")
        for name in names.split(","):
            assert name.strip() not in found, f"{name.strip()} is documented twice"
            found[name.strip().lstrip("*")] = kind.strip(), textwrap.dedent(description).strip()
    return found


def parameters(value):
    """The parameters of the signature but self; none of an exception."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return {}
    return {name: one for name, one in inspect.signature(value).parameters.items() if name != "self"}


def check_documented_parameters_are_those_of_the_signature(value):
    found = sections(value.__doc__)
    documented, known = entries(found.get("Parameters", "")), parameters(value)
    attributes = entries(found.get("Attributes", ""))
    if is_dataclass(value) and "Parameters" not in found:  # results, which nobody builds by hand: fields are attributes
        documented = {name: entry for name, entry in attributes.items() if name in known}
    assert list(documented) == list(known)
    for parameter, (kind, description) in [*documented.items(), *attributes.items()]:
        assert description, f"{parameter} is not described"
        assert kind or parameter == "settings", f"{parameter} has no type"


def check_documented_defaults_are_those_of_the_signature(value):
    documented = entries(sections(value.__doc__).get("Parameters", ""))
    for parameter, one in parameters(value).items():
        stated = re.search(r", default=(.+)$", documented.get(parameter, ("", ""))[0])
        has_default = one.default is not inspect.Parameter.empty
        if parameter in documented:
            assert bool(stated) == has_default, f"{parameter}: the default is not that of the signature"
        if stated and type(one.default).__name__ != "_HAS_DEFAULT_FACTORY_CLASS":
            assert literal_eval(stated[1]) == one.default, parameter


def check_every_section_that_is_due_is_there(value):
    found = sections(value.__doc__)
    assert found[""], "there is no summary"
    assert found.get("Examples"), "there is no example"
    if isinstance(value, type):
        assert "Returns" not in found
    else:
        annotation = inspect.signature(value).return_annotation
        assert ("Returns" in found) == (annotation not in (None, "None")), annotation
    order = [
        *("", "Parameters", "Returns", "Yields", "Attributes", "Raises", "See Also", "Notes", "References", "Examples")
    ]
    assert list(found) == sorted(found, key=order.index)


def check_attributes_of_dataclasses_are_there(value):
    if not (isinstance(value, type) and is_dataclass(value)):
        return
    properties = {key for key, one in inspect.getmembers(value) if isinstance(one, (property, cached_property))}
    documented = set(entries(sections(value.__doc__).get("Attributes", "")))
    known = {one.name for one in fields(value)} | properties
    assert {name for name in documented if not name.endswith("_")} <= known  # what ends so is set by `fit`


def check_docstrings_are_in_plain_english(value):
    text = " ".join(value.__doc__.split()).lower()
    assert not [word for word in DIALECT if re.search(rf"\b{word}\b", text)]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    "check",
    [
        check_documented_parameters_are_those_of_the_signature,
        check_documented_defaults_are_those_of_the_signature,
        check_every_section_that_is_due_is_there,
        check_attributes_of_dataclasses_are_there,
        check_docstrings_are_in_plain_english,
    ],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_docstrings(check, module):
    each(module, check)


STUDIES = {}  # of the examples, which show one study from many sides: it is run once


@pytest.fixture
def each_study_once(monkeypatch):
    run = running.run_study

    def remembered(data, options, **others):
        key = data.X.to_csv(), str(list(data.y)), repr(options), repr(others)
        if key not in STUDIES:
            STUDIES[key] = run(data, options, **others)
        return STUDIES[key]

    monkeypatch.setattr(running, "run_study", remembered)


@pytest.mark.usefixtures("each_study_once")
@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    """Each on its own, with nothing imported but what it imports itself; a fit may warn."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    report = []
    for home, name, value in PUBLIC:
        if home != module:
            continue
        tests = [test for test in finder.find(value, f"{home}.{name}", module=False, globs={}) if test.examples]
        assert len(tests) == 1, name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runner.run(tests[0], out=report.append)
    assert not report, "".join(report)
