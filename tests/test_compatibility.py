"""Every combination of kernel, machine, criterion and search runs on a small table or is refused with a sentence."""

import itertools
import re

import numpy as np
import pytest

from marginsieve import SVMSelector
from marginsieve.errors import InputError
from marginsieve.fitting.compatibility import refuses, refuses_classes, refuses_mixed
from marginsieve.fitting.parts import AXES, resolve
from marginsieve.searches import SEARCHES, Harmony

NAMES = {axis: list(AXES[axis]) for axis in ("kernel", "machine", "criterion", "search")}
NAMES["criterion"].append(None)
ROWS = 18


def parts_of(chosen):
    return {axis: None if name is None else resolve(axis, name) for axis, name in chosen.items()}


def check_fitted(chosen, classes, X, y):
    """What must hold of a combination that is run."""
    selector = SVMSelector(**chosen, cv=3, random_state=0)
    if chosen["search"] == "harmony":
        selector.set_params(search=Harmony(d=3, memory=5, improvisations=5))
    selector.fit(X, y)
    assert sorted(selector.ranking_) == list(range(1, 7))
    few = chosen["search"] == "harmony" and classes == 3  # the best three on six rows
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


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("search", NAMES["search"])
def test_product(search, classes):
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % classes
    X = rng.normal(size=(ROWS, 6))
    X[:, 0] += 2.0 * y
    for kernel, machine, criterion in itertools.product(NAMES["kernel"], NAMES["machine"], NAMES["criterion"]):
        chosen = {"kernel": kernel, "machine": machine, "criterion": criterion, "search": search}
        parts = parts_of(chosen)
        sentence = refuses(**parts) or refuses_classes(classes, 1.0, "auto", parts["search"])
        try:
            if sentence is None:
                check_fitted(chosen, classes, X, y)
            else:
                check_refused(chosen, sentence, X, y)
        except BaseException as error:
            error.add_note(f"the combination was {chosen} with {classes} classes")
            raise


