"""Folds that survive an interruption: a mapping kept in the store of a folder."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from .protocol import Fold
from .store import Store
from .suite import key_of
from .work import peak_memory, versions


class Memory(MutableMapping[str, Fold]):
    """Folds by name, of one table, method and setting (the `mark`); others in the same store are not seen."""

    def __init__(self, store: Store, mark: str, data: str, method: str) -> None:
        self.store, self.mark, self.data, self.method = store, mark, data, method
        known = {row["key"]: row["result"] for row in store.units() if row["status"] == "done"}
        self.folds: dict[str, Fold] = {}
        for key, result in known.items():
            if result and key == key_of(mark, result["name"]):
                self.folds[result["name"]] = Fold.from_dict(result)

    def __setitem__(self, name: str, fold: Fold) -> None:
        row = {
            "key": key_of(self.mark, name),
            "data": self.data,
            "method": self.method,
            "split": name,
            "repeat": fold.repeat,
            "status": "done",
            "params": {},
            "metrics": {},
            "result": fold.to_dict(),
            "error": None,
            "seconds": fold.seconds,
            "peak_mb": peak_memory(),
            "versions": versions(),
            "finished": None,
        }
        self.store.add([row])
        self.folds[name] = fold

    def __getitem__(self, name: str) -> Fold:
        return self.folds[name]

    def __delitem__(self, name: str) -> None:
        raise TypeError("a finished fold is not forgotten")

    def __iter__(self) -> Iterator[str]:
        return iter(self.folds)

    def __len__(self) -> int:
        return len(self.folds)
