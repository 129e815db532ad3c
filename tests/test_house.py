"""How the package is laid out: rooms, imports that point down, names that are unique, what loads when."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

import marginsieve

SOURCE = Path(marginsieve.__file__).parent
FLOORS = (  # from the ground up: imports point down only
    *("errors", "contracts", "data", "solvers", "outcomes", "algebra", "batches", "problem", "kernels", "machines"),
    *(
        "criteria",
        "searches",
        "fitting",
        "estimators",
        "recipes",
        "report",
        "engine",
        "validation",
        "studies",
        "bench",
        "cli",
    ),
)
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def name_of(path):
    return ("marginsieve", *path.relative_to(SOURCE).with_suffix("").parts)


def imports():
    """(importing file, line, indented, imported module, imported names) of every import of our own modules."""
    for path, tree in MODULES.items():
        here = name_of(path)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = (*here[: len(here) - node.level],) if node.level else ()
            module += tuple((node.module or "").split(".")) if node.module else ()
            if module[:1] == ("marginsieve",):
                yield path, node.lineno, node.col_offset > 0, module, [alias.name for alias in node.names]


def rooms(module, names):
    """The rooms that an import reaches: its second part, or the names where it imports rooms themselves."""
    return [module[1]] if len(module) > 1 else [name for name in names if name in FLOORS]


def test_every_module_stands_in_a_room():
    outside = [
        path for path in MODULES if path.name not in ("__init__.py", "__main__.py") and name_of(path)[1] not in FLOORS
    ]
    assert outside == []


def test_imports_point_down():
    wrong = []
    for path, line, _, module, names in imports():
        here = name_of(path)[1]
        if here in FLOORS:
            up = [room for room in rooms(module, names) if room in FLOORS and FLOORS.index(room) > FLOORS.index(here)]
            wrong += [f"{path.relative_to(SOURCE)}:{line} imports {room}" for room in up]
    assert wrong == []


def test_no_import_of_ours_is_hidden_in_a_function():
    """Outside the command, which loads what a subcommand needs."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path, line, indented, _, _ in imports()
        if indented and name_of(path)[1] not in ("cli", "__init__")
    ]
    assert wrong == []


def test_modules_do_not_import_each_other_in_circles():
    files = {name_of(path): path for path in MODULES}
    graph = defaultdict(set)
    for path, _, indented, module, names in imports():
        if not indented:
            here = name_of(path)
            for name in names:
                target = (*module, name) if (*module, name) in files else module
                target = target if target in files else (*target, "__init__")
                if target in files and target != here:
                    graph[here].add(target)
    state = {}

    def visit(node, trail):
        if state.get(node) == "done":
            return
        assert state.get(node) != "open", f"a circle: {' -> '.join('.'.join(step[1:]) for step in (*trail, node))}"
        state[node] = "open"
        for other in sorted(graph[node]):
            if other[-1] != "__init__" or other[:-1] != node[: len(other) - 1]:  # a package loads its own modules
                visit(other, (*trail, node))
        state[node] = "done"

    for node in sorted(graph):
        visit(node, ())


def test_nothing_private_is_imported_from_another_room():
    wrong = []
    for path, line, _, module, names in imports():
        here = name_of(path)[1]
        if here in FLOORS and rooms(module, names) != [here]:
            hidden = [part for part in (*module, *names) if part.startswith("_") and not part.startswith("__")]
            wrong += [f"{path.relative_to(SOURCE)}:{line} {part}" for part in hidden]
    assert wrong == []


def test_no_two_files_and_no_two_classes_have_one_name():
    """Whatever underscores they begin with, and one of them or many."""
    files, classes, functions = defaultdict(list), defaultdict(list), defaultdict(set)
    for path, tree in MODULES.items():
        where = str(path.relative_to(SOURCE))
        if path.name not in ("__init__.py", "__main__.py"):
            files[path.stem.strip("_").removesuffix("s")].append(where)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name.strip("_")].append(where)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                functions[node.name].add(where)
    for known in (files, classes, functions):
        assert {name: paths for name, paths in known.items() if len(paths) > 1} == {}


def test_the_product_does_not_know_the_papers():
    """The reproductions stand beside the package and use it, never the other way round."""
    assert [
        path for path in MODULES if "import reproduction" in (text := path.read_text()) or "from reproduction" in text
    ] == []


@pytest.mark.parametrize("room", ["algebra", "batches", "solvers"])
def test_the_numerics_have_no_branch_on_a_geometry(room):
    for path in (SOURCE / room).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "geometry ==" not in text
        assert "geometry is" not in text


PARTS = {"kernel", "machine", "criterion", "search", "sampler", "prefilter", "final", "judge", "view", "gram"}
OF_PARTS = {"resolve", "view", "view_of", "for_columns", "for_size"}  # what these return is a part


def annotations(tree):
    """(line, name, annotation) of every annotated variable and argument, and of what functions return."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            yield node.lineno, getattr(node.target, "id", getattr(node.target, "attr", "")), node.annotation
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield node.lineno, node.arg, node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.lineno, f"{node.name}()", node.returns


def test_parts_are_annotated_by_contracts():
    """No Any for what holds, takes or returns a part, or what a machine reads of a table."""
    wrong = []
    for path, tree in MODULES.items():
        for line, name, annotation in annotations(tree):
            word = name.strip("_()")
            part = word in (PARTS | OF_PARTS if name.endswith("()") else PARTS)
            part |= name == "value" and path.name == "parts.py"  # what `resolve` and its like are given
            held = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
            if part and "Any" in held:
                wrong.append(f"{path.relative_to(SOURCE)}:{line} {name}: {ast.unparse(annotation)}")
    assert wrong == []


def test_contributing_names_every_capability():
    """What a part may offer besides its contract is a runtime-checkable protocol, and CONTRIBUTING has them all."""
    text = (SOURCE.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    axes = {"Kernel", "Machine", "Criterion", "Search", "Sampler"}
    capabilities = {
        node.name
        for node in MODULES[SOURCE / "contracts.py"].body
        if isinstance(node, ast.ClassDef) and [ast.unparse(one) for one in node.decorator_list] == ["runtime_checkable"]
    }
    assert len(capabilities) > 15
    assert [name for name in sorted(capabilities - axes) if f"`{name}`" not in text] == []


DIALECT = {"told", "said", "made", "found", "wanted", "asked"}  # in no part of a name
ALONE = {"one", "came", "given"}  # no whole name of a variable or an argument
LONE = re.compile(  # participles, prepositions and adverbs that are no whole name of a function or class
    "_*([a-z]{2,}ed|spoken|shaken|chosen|taken|given|drawn|hidden|frozen|kept|held|left|put|made|found|told|said|known"
    "|shown|seen|of|at|on|by|in|into|as|above|below|beside|apart|within|among|along|without|together|afresh)"
)
EXCEPTIONS = {
    "embed": "a verb",
    "without": "the word of --without, of formulas and of sets",
    "predicted": "a value, and statisticians' word for it",
    "observed": "a value, and statisticians' word for it",
}


def stored_names(tree):
    """(line, name, whether of a function or class, whether of a variable or argument) of all that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name, True, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, False, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, False, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr, False, False


def test_identifiers_say_what_they_hold():
    """Functions are called by verbs or nouns, and nothing by a word that only its author understands."""
    wrong = []
    for path, tree in MODULES.items():
        for line, name, built, variable in stored_names(tree):
            odd = DIALECT & set(name.lower().split("_")) or (variable and name in ALONE)
            odd = odd or (built and LONE.fullmatch(name) and name.strip("_") not in EXCEPTIONS)
            if odd:
                wrong.append(f"{path.relative_to(SOURCE)}:{line} {name}")
    assert wrong == []


GENERATORS = {"make_cohort": 17, "cohort": 15}  # what a generated table can be is its parameters, as in scikit-learn's


def test_functions_are_short_and_take_few_arguments():
    """At most 60 lines apart from the docstring, and 12 arguments; constructors have scikit-learn's parameters."""
    wrong = []
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = node.body[min(1, len(node.body) - 1) if ast.get_docstring(node) else 0].lineno
                before_body = node.body[0].lineno - node.lineno
                length = node.end_lineno - first + 1 + before_body
                names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                count = len([name for name in names if name not in ("self", "cls")])
                if length > 60 or (count > GENERATORS.get(node.name, 12) and node.name != "__init__"):
                    wrong.append(
                        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {length} lines, {count} arguments"
                    )
    assert wrong == []


OF_CLASSES = re.compile(r"classes|positive|codes|class_weight|rarest\w*|balanced\w*|prevalence")
KNOW_CLASSES = {  # besides the rooms whose matter they are, and what each has of them
    "bench/suite.py": "a problem's class of interest",
    "cli/commands.py": "the options --positive and --prevalence",
    "data/cohort.py": "the share of cases that is drawn",
    "data/reading.py": "the class of interest of a data set",
    "data/table.py": "the codes of pandas' categories",
    "engine/nested.py": "the parameter `positive`",
    "estimators/classifiers.py": "scikit-learn's class_weight",
    "estimators/suspects.py": "wrong labels are those of classes",
    "estimators/fitted_selector.py": "the parameter `prevalence`",
    "fitting/settings.py": "scikit-learn's class_weight and `positive`",
    "searches/merge.py": "naive Bayes and neighbours judge by class",
    "studies/analyses/references.py": "scikit-learn's classifiers",
    "studies/analyses/substitutes.py": "a classifier's weights",
    "studies/options.py": "the option `positive`",
    "studies/running.py": "the option `positive`",
    "studies/selection.py": "the option `positive`",
    "validation/cohort_check.py": "the parameter `prevalence`",
}


def test_few_files_know_that_outcomes_are_classes():
    """Outside what is about classes or signs: outcomes, recipes, machines and the filters that count classes."""
    rooms = ("outcomes/", "recipes/", "machines/", "criteria/_columns.py", "criteria/relief.py")
    known = set()
    for path, text in ((path, path.read_text(encoding="utf-8")) for path in MODULES):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        if any(token.type == tokenize.NAME and OF_CLASSES.fullmatch(token.string) for token in tokens):
            known.add(path.relative_to(SOURCE).as_posix())
    assert {name for name in known if not name.startswith(rooms)} == set(KNOW_CLASSES)
    assert len(KNOW_CLASSES) <= 17


def test_dir_shows_the_public_names():
    assert set(dir(marginsieve)) == set(marginsieve.__all__)
    for name in marginsieve.__all__:
        assert getattr(marginsieve, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = marginsieve.nonsense


def test_the_command_shows_its_help_without_loading_numerics():
    code = (
        "import sys; import marginsieve.cli; print(sorted({'numpy', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_package_loads_nothing():
    code = "import sys; import marginsieve; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_study_is_a_plain_function():
    code = (
        "import types, marginsieve, marginsieve.studies; "
        "print(isinstance(marginsieve.study, types.FunctionType), marginsieve.studies.study is marginsieve.study)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"
