"""Every setting of every method, from `pins.json`: another default of the library moves no verdict.

There, `selector` has what all recipes have in common, `recipes` their own arguments and what they set of their parts,
and `parts` the parameters of each part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from marginsieve import recipes
from marginsieve.errors import InputError

FREE = ("cache", "device", "n_jobs", "positive", "random_state")  # they decide no result, or are given by the table


@cache
def read_pins() -> dict[str, Any]:
    """What is pinned."""
    pins: dict[str, Any] = json.loads((files(__package__) / "pins.json").read_text(encoding="utf-8"))
    return pins


def pin(recipe: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe with all that they leave open; parameters of parts have their long names."""
    pins = read_pins()
    if recipe not in pins["recipes"]:
        raise InputError(f"pins.json has no recipe {recipe!r}")
    known = {**pins["selector"], **pins["recipes"][recipe]}
    out = {**{name: value for name, value in known.items() if "__" not in name}, **settings}
    params = recipes.configure(recipes.get(recipe), out).get_params()
    for name in params:
        owner, _, last = name.rpartition("__")
        is_told = name in out or (last in out and name not in known)  # a recipe's argument is that of a part
        if owner and not is_told and last not in FREE and not hasattr(params[name], "get_params"):
            part = type(params[owner]).__name__
            if name not in known and last not in pins["parts"].get(part, {}):
                raise InputError(f"pins.json has no value of {last!r} for the part {part!r}")
            out[name] = known[name] if name in known else pins["parts"][part][last]
    return out


def make_selector(recipe: str, **settings: Any) -> Any:
    """The selector of a recipe with every setting pinned."""
    return recipes.configure(recipes.get(recipe), pin(recipe, settings))
