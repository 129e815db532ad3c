"""The table of docs/options.md from the options of a study.

python docs/options_table.py writes it into the page; a test compares the page with it.
"""

import re
from dataclasses import fields
from pathlib import Path

from marginsieve.studies.options import StudyOptions, flag_of, info_of, kind_of

PAGE = Path(__file__).with_name("options.md")


def options():
    """A row for each option."""
    lines = ["| command | Python | default | |", "|---|---|---|---|"]
    for entry in fields(StudyOptions):
        info = info_of(entry)
        flag = f"`{flag_of(entry)}`" if info.command else "in Python alone"
        kind = kind_of(entry).replace("|", "or")
        lines.append(f"| {flag} | `{entry.name}`: {kind} | `{entry.default!r}` | {info.help} |")
    return "\n".join(lines)


def filled(page):
    """The page with its table as it is now."""
    block = f"<!-- options: begin -->\n{options()}\n<!-- options: end -->"
    return re.sub(r"(?s)<!-- options: begin -->.*<!-- options: end -->", lambda _: block, page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
