"""Compiled loops on disk: several processes may write them at once, damage is compiled again."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile

SOURCE = """
from marginsieve.solvers.execution import jit

@jit
def add(values):
    total = 0.0
    for value in values:
        total += value
    return total
"""
NUMBERS = np.array([1.5, 2.5, -7.0])
COUNTS = np.array([1, 2, 4])


def load(folder: Path) -> ModuleType:
    """The module as a process of its own would have it."""
    file = folder / "loops.py"
    if not file.exists():
        file.write_text(SOURCE)
    specification = importlib.util.spec_from_file_location("loops", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def files_of(module: ModuleType) -> Any:
    return module.add._cache._cache_file


def compile_side_by_side(folder: Path) -> None:
    """Two processes on a new machine, for arrays of different types; the first to count its file writes it last."""
    first, second = load(folder), load(folder)
    with mock.patch.object(IndexDataCacheFile, "_load_index", return_value={}):
        late: list[tuple[Any, str, Any]] = []
        with mock.patch.object(IndexDataCacheFile, "_save_data", lambda *of: late.append(of)):
            first.add(NUMBERS)
        second.add(COUNTS)
    for of in late:
        type(of[0])._save_data(*of)


def test_processes_that_compile_at_once_do_not_take_each_others_code(tmp_path: Path) -> None:
    compile_side_by_side(tmp_path)
    third = load(tmp_path)
    assert third.add(COUNTS) == 7.0
    assert third.add.stats.cache_hits  # what was written last is used, and is the code for counts
    assert third.add(NUMBERS) == -3.0


def test_what_cannot_be_read_is_compiled_again(tmp_path: Path) -> None:
    load(tmp_path).add(NUMBERS)
    again = load(tmp_path)
    again.add(NUMBERS)
    assert again.add.stats.cache_hits
    cached = files_of(again)
    for ending in ("nbi", "nbc"):
        for file in Path(cached._cache_path).glob(f"*.{ending}"):
            file.write_bytes(file.read_bytes()[:40])
        damaged = load(tmp_path)
        assert damaged.add(NUMBERS) == -3.0
        assert not damaged.add.stats.cache_hits


def test_without_a_folder_to_write_loops_are_compiled_in_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert load(tmp_path).add(NUMBERS) == -3.0
