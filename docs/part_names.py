"""The names of parts for the page of the API, from the dictionaries in which they are registered."""

from functools import partial

from marginsieve.criteria import CRITERIA, FILTERS
from marginsieve.kernels import KERNELS
from marginsieve.machines import MACHINES
from marginsieve.searches import SEARCHES

PARTS = {
    "kernel": (KERNELS,),
    "machine": (MACHINES,),
    "criterion": (CRITERIA, FILTERS),
    "search": (SEARCHES,),
}


def names_of(cls):
    """How a selector names a part: criterion="fisher"."""
    return [
        f'{axis}="{name}"'
        for axis, dictionaries in PARTS.items()
        for dictionary in dictionaries
        for name, make in dictionary.items()
        if (make.func if isinstance(make, partial) else make) is cls
    ]


def add_names(_app, what, _name, obj, _options, lines):
    """A line below the first paragraph of the docstring of a part."""
    if what == "class" and (names := names_of(obj)):
        end = lines.index("") if "" in lines else len(lines)
        lines[end:end] = ["", f"By name: {', '.join(f'`{name}`' for name in names)}."]
