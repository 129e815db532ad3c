"""The sections of the page: files of templates/sections/, and those that others register.

A template of a section begins with a comment that holds its place and title, `{# 75: Sites #}`. One that comes out
empty has no heading and is not in the navigation.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from ..errors import InputError, one_line

HEAD = re.compile(r"\A\{#\s*(?P<place>[\d.]+):\s*(?P<title>.+?)\s*#\}")
LAST = 95.0  # the place of a section that says nothing of it: before how it was done

Draw = Callable[[dict[str, Any]], "Markup | None"]


@dataclass(frozen=True)
class Section:
    """A part of the page: a template, or a function of the result."""

    name: str  # its anchor
    title: str
    place: float
    template: str = ""
    draw: Draw | None = None


SECTIONS: dict[str, Section] = {}  # that were registered, by title


def register_section(title: str, place: float = LAST) -> Callable[[Draw], Draw]:
    """Make a function known that turns a result into a section of the page.

    Parameters
    ----------
    title : str
        The heading, which the navigation has too.
    place : float, default=95.0
        Where it stands: 10 is "How many features", 20 the features, 60 what could be measured instead, 65 the
        predictions, 70 the methods, 80 the suspects, 90 the data, 100 how it was done.

    Returns
    -------
    callable
        A decorator. The function takes the result and returns Markup, or None where it has nothing to show.

    Examples
    --------
    >>> from markupsafe import Markup
    >>> from marginsieve.report import SECTIONS, register_section
    >>> @register_section("Rows")
    ... def rows(result):
    ...     return Markup("<p>{}</p>").format(result["table"]["rows"])
    >>> SECTIONS.pop("Rows").title
    'Rows'
    """

    def add(draw: Draw) -> Draw:
        SECTIONS[title] = Section(anchor_of(title), title, place, draw=draw)
        return draw

    return add


def register_template(name: str, template: str) -> None:
    """Make the section of an analysis known; the name of a file of templates/sections/ is known already."""
    if template and not re.fullmatch(r"[\w-]+", template):
        section = read_section(name, template)
        SECTIONS[section.title] = section
    elif template and template not in shipped_sections():
        raise InputError(f"the template {template!r} of {name!r} is not a file of templates/sections/")


def read_section(name: str, template: str) -> Section:
    """A section from its template."""
    head = HEAD.match(template)
    if head is None:
        raise InputError(f"the template of {name!r} must begin with its place and title, as in {{# 60: Sites #}}")
    return Section(name, head["title"], float(head["place"]), template)


def anchor_of(title: str) -> str:
    """A title as an anchor."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


@cache
def shipped_sections() -> dict[str, Section]:
    """The sections of every page, by the names of their files."""
    folder = files(__package__).joinpath("templates", "sections")
    known = [(file.name.removesuffix(".html"), file.read_text(encoding="utf-8")) for file in folder.iterdir()]
    return {name: read_section(name, text) for name, text in known if HEAD.match(text)}


def sections_in_order() -> list[Section]:
    """All sections by their places, those of other packages too."""
    load_plugins("marginsieve.sections")
    load_plugins("marginsieve.analyses")
    return sorted([*shipped_sections().values(), *SECTIONS.values()], key=lambda section: section.place)


@cache
def load_plugins(group: str) -> None:
    """Load what other installed packages name under a group of entry points: they register what they have."""
    for entry in entry_points(group=group):
        try:
            entry.load()
        except Exception as error:  # of any package
            warnings.warn(f"the plug-in {entry.name!r} cannot be loaded: {one_line(error)}", UserWarning, stacklevel=2)
