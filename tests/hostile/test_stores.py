"""Stores that are damaged, cut short or forged."""

import sqlite3
import stat
from contextlib import closing

import pytest

from marginsieve import InputError
from marginsieve.bench import Suite, SuiteResult, run_suite
from marginsieve.cli.arguments import say_verified
from marginsieve.engine.store import FILE, Store, claim

from . import stores


@pytest.fixture
def stored(tmp_path):
    run_suite(Suite.read(stores.SPEC), tmp_path)
    return tmp_path


def changed(folder, *statements):
    """Change a store behind the back of its checksums."""
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for text in statements:
            connection.execute(text)
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")


def test_flipped_bytes_are_named_or_refused(tmp_path):
    found = stores.flips(tmp_path, 60, seed=3)
    assert stores.wrong(found) == []
    assert sum(kind == "named" for _, kind, _ in found) > 60


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE units SET result = CAST(X'22ff22' AS TEXT) WHERE split = '0.0'",
        "UPDATE units SET metrics = X'00ff' WHERE split = '0.0'",
        "UPDATE units SET seconds = 'long' WHERE split = '0.0'",
        "UPDATE units SET repeat = 1e308 * 10 WHERE split = '0.0'",
        "UPDATE units SET checksum = NULL WHERE split = '0.0'",
        "UPDATE data SET truth = '[' WHERE 1",
        "UPDATE meta SET value = '{' WHERE key = 'suite'",
        "UPDATE meta SET value = X'ff' WHERE key = 'current'",
        "UPDATE meta SET value = '9' WHERE key = 'schema'",
        "UPDATE meta SET value = 'x' WHERE key = 'schema'",
        "UPDATE meta SET key = 'curreni' WHERE key = 'current'",
        "UPDATE meta SET value = '[' WHERE key = 'checksums'",
        "DELETE FROM meta WHERE key = 'suite'",
        "UPDATE data SET positive = 7; UPDATE meta SET key = CAST(X'63ff' AS TEXT) WHERE key = 'checksums'",
    ],
)
def test_what_is_damaged_is_named_and_made_again(stored, change):
    expected = SuiteResult(stored).scores("auc")
    changed(stored, *change.split("; "))
    with pytest.raises(InputError, match="damaged: '"):
        say_verified(stored)
    with pytest.warns(UserWarning, match="is damaged: what is wrong is made again"):
        again = run_suite(Suite.read(stores.SPEC), stored)
    assert again.scores("auc").equals(expected)
    say_verified(stored)


@pytest.mark.parametrize("key", ["suite", "current"])
def test_reading_a_damaged_entry_is_an_error(stored, key):
    changed(stored, f"UPDATE meta SET value = '[1' WHERE key = '{key}'")
    with pytest.raises(InputError, match=f"is damaged .entry {key}.: the same command as before makes it again"):
        SuiteResult(stored).to_pandas()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
        "CREATE VIEW v AS SELECT * FROM units",
        "CREATE TABLE other (x)",
        "CREATE INDEX i ON units (data)",
    ],
)
def test_a_store_with_anything_else_in_it_is_refused(stored, text):
    changed(stored, text)
    for call in (lambda: run_suite(Suite.read(stores.SPEC), stored), lambda: SuiteResult(stored).to_pandas()):
        with pytest.raises(InputError, match="holds what marginsieve did not make"):
            call()


def test_a_store_of_another_schema_is_left_alone(stored):
    changed(stored, "UPDATE meta SET value = '9' WHERE key = 'schema'", "DELETE FROM meta WHERE key = 'checksums'")
    before = (stored / FILE).read_bytes()
    with pytest.raises(InputError, match=r"by a newer marginsieve \(schema 9"):
        Store(stored)
    assert (stored / FILE).read_bytes() == before


def test_a_store_of_before_has_no_checksums_of_entries(stored):
    changed(stored, "DELETE FROM meta WHERE key = 'checksums'")
    say_verified(stored)
    assert len(run_suite(Suite.read(stores.SPEC), stored).to_pandas()) == 6


def test_verifying_writes_nothing(stored):
    mode = stored.stat().st_mode
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in stored.iterdir()}
    stored.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        say_verified(stored)
        SuiteResult(stored).to_pandas()
    finally:
        stored.chmod(mode)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in stored.iterdir()} == before


@pytest.mark.parametrize("pages", [0, 1])
def test_a_store_whose_making_was_cut_short_is_made_again(tmp_path, pages):
    claim(tmp_path, "suite", [])
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        if pages:
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode = WAL")
    assert ((tmp_path / FILE).stat().st_size > 0) == bool(pages)
    assert len(run_suite(Suite.read(stores.SPEC), tmp_path).to_pandas()) == 6


def test_a_full_disk_at_the_making_of_a_store(tmp_path, monkeypatch):
    class Full(sqlite3.Connection):
        def execute(self, text, *values):
            if text.startswith("CREATE"):
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = 13
                raise error
            return super().execute(text, *values)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *values, **named: real(*values, **named, factory=Full))
    with pytest.raises(OSError, match=r"could not be written \(database or disk is full\)"):
        run_suite(Suite.read(stores.SPEC), tmp_path)
    monkeypatch.setattr(sqlite3, "connect", real)
    assert len(run_suite(Suite.read(stores.SPEC), tmp_path).to_pandas()) == 6
