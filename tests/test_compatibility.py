"""Every combination of kernel, machine, criterion and search runs on a small table or is refused with a sentence."""

import itertools
import re

import numpy as np
import pytest
from tiers import long_but

from marginsieve import SVMSelector
from marginsieve.errors import InputError
from marginsieve.fitting.parts import AXES, refuses, resolve
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.searches import SEARCHES, Budget, Harmony

NAMES = {axis: list(AXES[axis]) for axis in ("kernel", "machine", "criterion", "search")}
NAMES["criterion"].append(None)
OF_OTHERS = {"cox", "martingale_ridge", "ranking_svm", "cox_score", "lasso"}  # outcomes than classes
CHEAP = {"harmony": Harmony(d=3, memory=5, improvisations=5), "budget": Budget(solver="fast")}
ROWS = 21


def refuse_classes(count, search, **settings):
    """Why so many classes cannot be served, or None."""
    target = ClassTarget.from_codes(np.arange(count))
    try:
        target.settle(Classes(**settings)).refuse(search)
    except InputError as error:
        return str(error)
    return None


def parts_of(chosen):
    return {axis: None if name is None else resolve(axis, name) for axis, name in chosen.items()}


FIXED = {"n_features_to_select": 3, "threshold": "margin"}


def check_fitted(chosen, classes, X, y, inner_folds):
    """What must hold of a combination that is run, with the number of features chosen in inner folds or given."""
    selector = SVMSelector(**chosen, cv=3, resamples=0, random_state=0, **({} if inner_folds else FIXED))
    if chosen["search"] in CHEAP:
        selector.set_params(search=CHEAP[chosen["search"]])
    selector.fit(X, y)
    assert sorted(selector.ranking_) == list(range(1, 7))
    few = chosen["search"] == "harmony" and classes == 3  # the best three on seven rows
    if chosen["machine"] != "svdd" and not few:  # a sphere around one of two equal classes need not find it
        assert selector.support_[0]
        assert selector.score(X, y) > 1.0 / classes
    assert selector.decision_function(X).shape == ((ROWS,) if classes == 2 else (ROWS, 3))


def check_refused(chosen, sentence, X, y):
    """What must hold of one that is not: the sentence is raised, and it says what to use."""
    assert len(sentence.split()) > 5
    with pytest.raises(InputError, match="use") as refusal:
        SVMSelector(**chosen, cv=3, random_state=0).fit(X, y)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("search", "classes"), long_but(itertools.product(NAMES["search"], [2, 3]), ("backward", 2), ("scaling", 3))
)
def test_product(search, classes):
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % classes
    X = rng.normal(size=(ROWS, 6))
    X[:, 0] += 2.0 * y
    folded = set()  # each kernel with each machine, and each criterion, once in inner folds: they run the same search
    for kernel, machine, criterion in itertools.product(NAMES["kernel"], NAMES["machine"], NAMES["criterion"]):
        if {machine, criterion} & OF_OTHERS:
            continue
        chosen = {"kernel": kernel, "machine": machine, "criterion": criterion, "search": search}
        parts = parts_of(chosen)
        sentence = refuses(**parts) or refuse_classes(classes, parts["search"])
        try:
            if sentence is None:
                seen = {(kernel, machine), criterion}
                check_fitted(chosen, classes, X, y, inner_folds=not seen <= folded)
                folded |= seen
            else:
                check_refused(chosen, sentence, X, y)
        except BaseException as error:
            error.add_note(f"the combination was {chosen} with {classes} classes")
            raise


# -- the advice -----------------------------------------------------------------------------------------------------

VALUE = r"(?:'\w+'|None)"
CHANGE = rf"(kernel|machine|criterion|search)=({VALUE}(?:, {VALUE})*(?: or {VALUE})?)"


def advice(sentence):
    """Every change that a sentence offers: dicts of axis to name."""
    out = []
    for way in re.split(r", or ", sentence.split(": use ")[1]):
        changes = {axis: re.findall(VALUE, values) for axis, values in re.findall(CHANGE, way)}
        assert changes, f"no advice in {way!r}"
        for values in itertools.product(*changes.values()):
            named = [None if value == "None" else value.strip("'") for value in values]
            out.append(dict(zip(changes, named, strict=True)))
    return out


def test_the_advice_leads_to_what_is_run():
    """A change that a sentence offers is run at once, or the sentences that follow it end in what is run."""

    def refusal(chosen):
        return refuses(**parts_of(chosen))

    found = set()
    for names in itertools.product(*NAMES.values()):
        chosen = dict(zip(NAMES, names, strict=True))
        sentence = refusal(chosen)
        if sentence is None or (sentence, chosen["search"]) in found:
            continue
        found.add((sentence, chosen["search"]))
        lacks = "needs a machine that" in sentence or "needs a criterion" in sentence
        for change in advice(sentence):
            now, steps = {**chosen, **change}, 1
            while (after := refusal(now)) is not None:
                assert steps < 4, f"{chosen}: {sentence} -> {now}: {after}"
                now, steps = {**now, **advice(after)[0]}, steps + 1
            assert steps == 1 or not lacks, f"{chosen}: {sentence}: {change} is refused"
    assert len(found) > 100


@pytest.mark.parametrize("name", SEARCHES)
def test_what_a_search_takes_is_said_of_classes(name):
    search = resolve("search", name)
    assert refuse_classes(2, search) is None
    assert (refuse_classes(3, search) is None) == search.multiclass


def test_what_costs_and_thresholds_take_is_said_of_classes():
    search = resolve("search", "backward")
    assert refuse_classes(2, search, negative_weight=3.0, threshold=0.5) is None
    assert refuse_classes(3, search, negative_weight=3.0).endswith("y has 3 classes: use class_weight instead")
    assert refuse_classes(3, search, threshold=0.5).endswith("a cut exists only between two; use 'margin'")


@pytest.mark.parametrize("axis", list(AXES))
def test_unknown_names_are_told_the_known_ones(axis):
    with pytest.raises(InputError, match=f"{axis} is 'nonsense'; the names are .*{next(iter(AXES[axis]))}"):
        resolve(axis, "nonsense")
    with pytest.raises(InputError, match=f"{axis} is 3; it must be a name or an object"):
        resolve(axis, 3)
