"""Folders and files of others: nothing that does not carry our mark is replaced, emptied or deleted."""

import json
import os
import sqlite3
import stat
import sys
import time
import types

import pandas as pd
import pytest

from marginsieve import InputError
from marginsieve.bench import Suite, run_suite
from marginsieve.data import make_cohort
from marginsieve.data.file_access import remove_leftovers, temporary_name
from marginsieve.engine.store import (
    FILE,
    RESCUED,
    Store,
    begin,
    changed_files,
    check_kind,
    claim,
    forget_empty,
    lock_folder,
    publish,
    read_mark,
)
from marginsieve.studies import files

from .commands import FAST
from .test_hostile import SPEC


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    run_suite(Suite.read(SPEC), folder)
    return folder


@pytest.fixture
def stored(suite, tmp_path):
    for path in suite.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The command in a folder with a small table."""
    from marginsieve.cli import main

    monkeypatch.chdir(tmp_path)
    cohort = make_cohort(60, 8, n_relevant=2, effect=2.5, random_state=0)
    cohort.frame().to_csv("t.csv", index=False)

    def call(line):
        monkeypatch.setattr(sys, "argv", ["marginsieve", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr()

    return call


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- other kinds of folders ----------------------------------------------------------------------------------------


def test_fresh_deletes_nothing_of_another_kind(stored):
    before = content(stored)
    with pytest.raises(InputError, match="holds a suite, not a study"):
        begin(stored, "study", resume=False, fresh=True)
    assert content(stored) == before
    assert [path.name for path in begin(stored, "suite", resume=False, fresh=True)] == [FILE]


def test_a_refused_study_takes_nothing_away_that_it_did_not_make(stored):
    before = content(stored)
    forget_empty(stored, is_new=False, marked=True)
    assert content(stored) == before
    claim(stored / "s", "study", [])
    forget_empty(stored / "s", is_new=True, marked=False)
    assert check_kind(stored / "s", "study") is not None
    forget_empty(stored / "s", is_new=True, marked=True)
    assert not (stored / "s").exists()


def test_a_study_whose_units_are_damaged_is_not_empty(tmp_path):
    claim(tmp_path, "study", [])
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("INSERT INTO units (key, checksum) VALUES ('k', 'wrong')")
    connection.close()
    forget_empty(tmp_path, is_new=False, marked=True)
    assert (tmp_path / FILE).exists()
    assert read_mark(tmp_path) is not None


# -- who may read them ---------------------------------------------------------------------------------------------


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(os.name != "posix", reason="the rights of files are those of POSIX")
def test_results_are_for_their_owner_alone_unless_the_umask_is_followed(run, tmp_path, monkeypatch):
    """F6: they were 0644 though they hold rows of patients, and the process's umask was changed to find that out."""
    before = os.umask(0o022)
    try:
        monkeypatch.setattr(os, "umask", None)
        for words, file, folder in (("", 0o600, 0o700), (" --follow-umask", 0o644, 0o755)):
            out = f"deep{file:o}/r"
            code, said = run(f"select t.csv --target outcome --out {out} {FAST}{words}")
            assert code == 0, said
            for line in (
                f"report {out} --aggregate",
                f"predict {out}/model.marginsieve t.csv --out deep{file:o}/p.csv",
            ):
                assert run(line + words)[0] == 0
            assert modes(tmp_path / f"deep{file:o}") == {file}
            assert stat.S_IMODE((tmp_path / out).stat().st_mode) == folder
            assert stat.S_IMODE((tmp_path / f"deep{file:o}").stat().st_mode) == folder
        assert (
            run("suspects t.csv --target outcome --out s.csv")[0] == 0
        )  # the option is the command's, not the process's
        assert stat.S_IMODE((tmp_path / "s.csv").stat().st_mode) == 0o600
        run_suite(Suite.read(SPEC), tmp_path / "suite")
        assert modes(tmp_path / "suite") == {0o600}
    finally:
        monkeypatch.undo()
        os.umask(before)


# -- links ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_a_store_that_is_a_link_is_not_followed(tmp_path, ending):
    claim(tmp_path / "r", "suite", [])
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    os.symlink(victim, tmp_path / "r" / f"{FILE}{ending}")
    for call in (lambda: run_suite(Suite.read(SPEC), tmp_path / "r"), lambda: Store(tmp_path / "r")):
        with pytest.raises(InputError, match="is a link, which marginsieve did not make"):
            call()
    assert victim.read_bytes() == b""


def test_a_result_that_became_a_link_is_refused(tmp_path):
    claim(tmp_path, "study", [])
    publish(tmp_path, "study", {"report.html": b"1"})
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "report.html").unlink()
    os.symlink(tmp_path / "victim", tmp_path / "report.html")
    with pytest.raises(InputError, match="is a link"):
        publish(tmp_path, "study", {"report.html": b"2"})
    assert (tmp_path / "victim").read_text() == "mine"


# -- names ---------------------------------------------------------------------------------------------------------


def test_only_our_own_temporary_names_are_removed(tmp_path):
    theirs = (".marginsieve-notes", ".marginsieve-settings", ".marginsieve-0123456789abcdef", "x.part")
    for name in theirs:
        (tmp_path / name).write_text("mine")
    temporary_name(tmp_path).write_text("left")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(theirs)


def test_what_a_killed_command_left_beside_its_file_goes_after_a_day(tmp_path):
    old, new = temporary_name(tmp_path), temporary_name(tmp_path)
    for path in (old, new):
        path.write_text("left")
    os.utime(old, (time.time() - 90_000,) * 2)
    files.write_text(tmp_path / "page.html", "page")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([new.name, "page.html"])


def test_a_file_in_our_folder_that_we_did_not_publish_is_not_ours(tmp_path):
    claim(tmp_path, "study", ["a"])
    (tmp_path / "a").write_text("mine")
    with pytest.raises(InputError, match="holds 'a', which marginsieve did not write"):
        claim(tmp_path, "study", ["a"])
    publish(tmp_path, "study", {"b": b"1"}, gone=["a"])
    assert (tmp_path / "a").read_text() == "mine"
    publish(tmp_path, "study", {"c": b"1"}, gone=["b"])
    assert not (tmp_path / "b").exists()


def test_rescue_takes_a_free_name(stored):
    (stored / RESCUED).write_text("mine")
    connection = sqlite3.connect(stored / FILE)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("DROP TABLE meta")
    connection.close()
    for _ in range(2):  # the second time it is there already
        with pytest.raises(InputError, match=r"6 units of it can be read and are saved in rescued-2\.sqlite beside it"):
            Store(stored)
    assert (stored / RESCUED).read_text() == "mine"
    assert not (stored / "rescued-3.sqlite").exists()


def test_a_mark_leads_to_no_other_file(tmp_path):
    claim(tmp_path, "study", [])
    publish(tmp_path, "study", {"gone.csv": b"1", "changed.csv": b"1", "whole.csv": b"1"})
    (tmp_path / "gone.csv").unlink()
    (tmp_path / "changed.csv").write_text("2")
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/dev/zero", tmp_path / "zero")
    mark = json.loads((tmp_path / "marginsieve.json").read_text())
    mark["files"] |= dict.fromkeys(["pipe", "zero", "/dev/zero", "../x", "a\0b", ".", "lock", "x" * 300], "0")
    (tmp_path / "marginsieve.json").write_text(json.dumps(mark))
    told = changed_files(tmp_path)
    assert told[:2] == ["gone.csv is missing", "changed.csv was changed"]
    assert len(told) == 10
    assert not any("whole.csv" in one for one in told)


def test_a_lock_with_any_bytes_in_it(tmp_path):
    (tmp_path / "lock").write_bytes(bytes(range(256)))
    with lock_folder(tmp_path), pytest.raises(InputError, match="another run is at work"), lock_folder(tmp_path):
        pass
    (tmp_path / "lock").write_bytes(b"\xff\xfe" * 200)
    with lock_folder(tmp_path):
        assert (tmp_path / "lock").read_text().startswith("process ")


# -- files of the command ------------------------------------------------------------------------------------------


def test_commands_replace_only_what_they_wrote(run, tmp_path):
    code, said = run(f"select t.csv --target outcome --out r {FAST}")
    assert code == 0, said
    (tmp_path / "mine.csv").write_text("my work")
    (tmp_path / "mine.html").write_text("my page")
    os.symlink(tmp_path / "mine.csv", tmp_path / "link.csv")
    for line in ("predict r/model.marginsieve t.csv", "suspects t.csv --target outcome"):
        for name in ("mine.csv", "link.csv"):
            code, said = run(f"{line} --out {name}")
            assert code == 2
            assert "was not written by this command" in " ".join(said.err.split())
        assert [run(f"{line} --out new.csv{k}")[0] for k in ("", " --json")] == [0, 0]  # our own is replaced
        (tmp_path / "new.csv").unlink()
    assert run("report r --out mine.html")[0] == 2
    assert (tmp_path / "mine.csv").read_text() == "my work"
    assert (tmp_path / "mine.html").read_text() == "my page"
    assert run("report r --out mine.html --force")[0] == 0
    assert run("report r --out mine.html")[0] == 0
    assert run("report r")[0] == 0
    assert changed_files(tmp_path / "r") == []
    assert run("predict r/model.marginsieve t.csv --out link.csv --force")[0] == 0
    assert (tmp_path / "mine.csv").read_text() == "my work"
    code, said = run("bench t.toml --out r --verify")
    assert code == 0
    (tmp_path / "r" / "report.html").unlink()
    code, said = run("bench t.toml --out r --verify")
    assert code == 2
    assert "1 entry is damaged: 'report.html is missing'" in " ".join(said.err.split())


def test_an_annotated_copy_is_claimed_and_appears_whole(tmp_path, monkeypatch):
    class Data:
        def __init__(self):
            self.var, self.uns, self.var_names = pd.DataFrame(index=["a"]), {}, pd.Index(["a"])

        def write_h5ad(self, path):
            path.write_bytes(b"copy")

    monkeypatch.setitem(sys.modules, "anndata", types.SimpleNamespace(read_h5ad=lambda _: Data()))
    features = pd.DataFrame({"name": ["a"], "selected": [True], "rank": [1], "frequency": [1.0]})
    result = {"answer": {"headline": ""}, "method": "m", "version": "1", "how": {"command": None}, "scores": {}}
    table, out = tmp_path / "t.h5ad", tmp_path / "r"
    table.write_bytes(b"table")
    out.mkdir()
    (out / "t.h5ad").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"holds 't\.h5ad', which marginsieve did not write"):
        files.check_folder(out, table)
    (out / "t.h5ad").unlink()
    for _ in range(2):
        files.check_folder(out, table)
        assert files.write_back(table, out, features, result).read_bytes() == b"copy"
    assert changed_files(out) == []
    (out / "t.h5ad").unlink()
    (tmp_path / "victim").write_bytes(b"mine")
    os.symlink(tmp_path / "victim", out / "t.h5ad")
    with pytest.raises(InputError, match="is a link"):
        files.write_back(table, out, features, result)
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert table.read_bytes() == b"table"
    assert sorted(path.name for path in out.iterdir()) == ["marginsieve.json", "t.h5ad"]


@pytest.mark.parametrize(
    "line", ["cohort c.csv --n-samples 40 --n-features 8 --n-relevant 2 --n-redundant 0", "report r"]
)
def test_a_full_disk_is_the_systems(run, tmp_path, monkeypatch, line):
    assert run(f"select t.csv --target outcome --out r {FAST}")[0] == 0

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = content(tmp_path), content(tmp_path / "r")
    code, said = run(line)
    assert code == 3
    assert "no space left on device" in " ".join(said.err.split())
    assert (content(tmp_path), content(tmp_path / "r")) == before


def test_a_claimed_folder_needs_room(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        claim(tmp_path / "new", "study", [])
    assert list((tmp_path / "new").iterdir()) == []
