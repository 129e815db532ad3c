"""Every combination of kernel, machine, criterion and search runs on a small table or is refused with a sentence."""

import itertools

import numpy as np
import pytest

from marginsieve import SVMSelector
from marginsieve.errors import InputError
from marginsieve.fitting.compatibility import refuses, refuses_classes
from marginsieve.fitting.parts import AXES, resolve
from marginsieve.searches import Harmony

NAMES = {axis: [*known, None] if axis == "criterion" else list(known) for axis, known in AXES.items()}
PRODUCT = list(itertools.product(*NAMES.values()))


@pytest.mark.parametrize("names", PRODUCT, ids=lambda names: "-".join(map(str, names)))
@pytest.mark.parametrize("classes", [2, 3])
def test_product(names, classes):
    rng = np.random.default_rng(0)
    y = np.arange(21) % classes
    X = rng.normal(size=(21, 6))
    X[:, 0] += 2.0 * y
    chosen = dict(zip(AXES, names, strict=True))
    parts = {axis: resolve(axis, name) for axis, name in chosen.items()}
    sentence = refuses(**parts) or refuses_classes(classes, 1.0, "auto", parts["search"])
    selector = SVMSelector(**chosen, cv=3, random_state=0)
    if chosen["search"] == "harmony":
        selector.set_params(search=Harmony(d=3, memory=10, improvisations=20))
    if sentence is None:
        selector.fit(X, y)
        assert sorted(selector.ranking_) == list(range(1, 7))
        one = chosen["search"] == "harmony" and classes == 3  # the best three on seven rows
        if chosen["machine"] != "svdd" and not one:  # a sphere around one of two equal classes need not find it
            assert selector.support_[0]
            assert selector.score(X, y) > 1.0 / classes
        assert selector.decision_function(X).shape == ((21,) if classes == 2 else (21, 3))
    else:
        assert len(sentence.split()) > 5
        with pytest.raises(InputError, match="use"):
            selector.fit(X, y)


@pytest.mark.parametrize("axis", list(AXES))
def test_unknown_names_are_told_the_known_ones(axis):
    with pytest.raises(InputError, match=f"{axis} is 'nonsense'; the names are .*{next(iter(AXES[axis]))}"):
        resolve(axis, "nonsense")
    with pytest.raises(InputError, match=f"{axis} is 3; it must be a name or an object"):
        resolve(axis, 3)
