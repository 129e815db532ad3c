"""The tables of docs/methods.md from the registered recipes.

python docs/methods_table.py writes them into the page; a test compares the page with them.
"""

import re
from pathlib import Path

from marginsieve import recipes

PAGE = Path(__file__).with_name("methods.md")
FAMILIES = {
    "blend": "Several views",
    "elimination": "Elimination",
    "filter": "Filters",
    "linear": "Linear machines",
    "scaling": "Penalised scaling",
    "search": "Searches",
}
TAKES = {"numbers": "numbers", "categories": "categories", "missing": "missing cells", "sparse": "sparse"}


def short(key):
    """A reference as in a text: authors and year."""
    text, entry = recipes.reference_text(key), recipes.references()[key]
    count = entry.split("title")[0].count(" and ") + 1
    first = re.split(", | and ", text)[: min(count, 2)]
    year = re.search(r"year\s*=\s*\{(\d+)", entry)
    authors = f"{first[0]} et al." if count > 2 else " and ".join(first)
    return f"{authors} {year[1]}" if year else authors


def methods():
    """A table for each family, with one row for each of its recipes."""
    parts = []
    for family, heading in FAMILIES.items():
        lines = [f"## {heading}", "", "| recipe | command | outcomes | tables | what it does | source |"]
        lines.append("|---|---|---|---|---|---|")
        for name, recipe in recipes.RECIPES.items():
            if recipe.family == family:
                takes = ", ".join(text for key, text in TAKES.items() if key in recipe.takes)
                source = "; ".join(short(key) for key in recipe.citation)
                outcomes = ", ".join(sorted(recipe.outcomes))
                lines.append(f"| `{name}` | `{recipe.title}` | {outcomes} | {takes} | {recipe.does} | {source} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def sources():
    """What the recipes cite, each once."""
    keys = dict.fromkeys(key for recipe in recipes.RECIPES.values() for key in recipe.citation)
    return "\n".join(sorted(f"- {recipes.reference_text(key)}." for key in keys))


def filled(page):
    """The page with its tables as they are now."""
    for name, table in (("methods", methods()), ("sources", sources())):
        block = f"<!-- {name}: begin -->\n{table}\n<!-- {name}: end -->"
        page = re.sub(rf"(?s)<!-- {name}: begin -->.*<!-- {name}: end -->", lambda _, block=block: block, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
