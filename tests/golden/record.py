"""What every recipe, study and command gives, written down so that a change of structure can be compared with it.

    python tests/golden/record.py before.json     # on the earlier commit
    python tests/golden/record.py after.json before.json     # now, and what differs

Rankings and selected features must be the same; decision values agree to 1e-7 of their size.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

warnings.simplefilter("ignore")
DATA = os.environ.get("MARGINSIEVE_DATA", "")
OUT: dict[str, Any] = {}
SLOW = {"ramp_fs": {"solver": "fast", "shakes": 2}, "fs_svm": {"solver": "fast", "shakes": 2}}
NUMERIC = ("svm_rfe", "svm_bfe", "svdd_rfe", "l1_cssvm", "fisher", "stable_fisher", "hellinger", "su", "d_hell", "dbfs")


def cohorts() -> Any:
    try:
        from marginsieve.datasets import make_cohort
    except ImportError:
        from marginsieve.data import make_cohort
    return make_cohort


def told(selector: Any, rows: Any) -> dict[str, Any]:
    """Ranking, selection, decision values of some rows, threshold, notes."""
    order = np.argsort(selector.ranking_)
    value = np.asarray(selector.decision_function(rows), dtype=float)
    return {
        "order": hashlib.blake2b(order.astype(np.int64).tobytes(), digest_size=8).hexdigest(),
        "first": order[:60].tolist(),
        "support": np.flatnonzero(selector.support_).tolist()[:200],
        "decision": value.ravel()[:60].tolist(),
        "threshold": float(selector.threshold_),
        "predicted": [str(label) for label in selector.predict(rows)[:60]],
    }


def write(name: str, make: Any) -> None:
    since = time.perf_counter()
    try:
        OUT[name] = make()
    except Exception as error:
        OUT[name] = {"error": f"{type(error).__name__}: {error}"}
    print(f"{time.perf_counter() - since:7.2f}  {name}", file=sys.stderr, flush=True)


def recipe(name: str, X: Any, y: Any, fit: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    from marginsieve import recipes

    made = recipes.get(name)(**{"random_state": 0, **SLOW.get(name, {}), **settings})
    made.fit(X, y, **(fit or {}))
    return told(made, X)


def of_recipes() -> None:
    from marginsieve import recipes

    make = cohorts()
    numbers = make(70, 60, n_relevant=6, prevalence=0.35, effect=1.2, random_state=1)
    mixed = make(80, 25, n_relevant=4, n_categorical=8, n_categorical_relevant=3, missing=0.05, random_state=2)
    whole = make(80, 25, n_relevant=4, n_categorical=8, n_categorical_relevant=3, random_state=2)
    three = np.where(numbers.X.iloc[:, 0] > 0.7, "high", np.where(numbers.X.iloc[:, 1] > 0.3, "middle", "low"))
    rng = np.random.default_rng(3)
    dense = rng.normal(size=(60, 80)) * (rng.random((60, 80)) < 0.3)
    label = (dense[:, 0] + dense[:, 1] - dense[:, 2] + 0.3 * rng.normal(size=60) > 0).astype(int)
    weight = rng.integers(1, 4, 70).astype(float)
    groups = np.arange(70) // 2
    for name in recipes.names():
        write(f"numbers {name}", lambda n=name: recipe(n, numbers.X, numbers.y, n_features_to_select=8))
        write(f"own size {name}", lambda n=name: recipe(n, numbers.X.iloc[:, :30], numbers.y))
        write(f"three {name}", lambda n=name: recipe(n, numbers.X.iloc[:, :20], three, n_features_to_select=5))
        write(f"weights {name}", lambda n=name: recipe(n, numbers.X, numbers.y, {"sample_weight": weight, "groups": groups}, n_features_to_select=8))
        write(f"mixed {name}", lambda n=name: recipe(n, mixed.X, mixed.y, n_features_to_select=6))
        write(f"categories {name}", lambda n=name: recipe(n, whole.X, whole.y, n_features_to_select=6))
        write(f"sparse {name}", lambda n=name: recipe(n, sparse.csr_matrix(dense), label, n_features_to_select=7))
        write(f"ensemble {name}", lambda n=name: recipe(n, numbers.X.iloc[:, :30], numbers.y, ensemble=3, n_features_to_select=5))
        write(f"prefilter {name}", lambda n=name: recipe(n, numbers.X, numbers.y, prefilter=("fast", 20), keep=[numbers.X.columns[3]], n_features_to_select=5))
    for name in ("svm_rfe", "svm_bfe", "svdd_rfe", "fisher", "kp_svm", "kp_cssvm", "kp_svdd", "su", "relieff", "symon"):
        for kernel in ("linear", "gaussian", "polynomial", "clinical"):
            write(f"{kernel} {name}", lambda n=name, k=kernel: recipe(n, numbers.X, numbers.y, kernel=k, n_features_to_select=8))
    for name in ("svm_rfe", "l1_cssvm", "kp_cssvm", "clinical_rfe"):
        write(f"smote {name}", lambda n=name: recipe(n, numbers.X, numbers.y, sampler="smote", n_features_to_select=8))
        write(f"best {name}", lambda n=name: recipe(n, numbers.X, numbers.y, n_features_to_select="best", probability=True))
        write(f"costs {name}", lambda n=name: recipe(n, numbers.X, numbers.y, threshold=(1.0, 5.0), class_weight="balanced"))
    for update in ("multiplicative", "quasi-newton", "gradient"):
        for stop in ("ranking", "own"):
            write(f"kp {update} {stop}", lambda u=update, s=stop: recipe("kp_svm", numbers.X.iloc[:, :25], numbers.y, update=u, stop=s, n_features_to_select=6))
    write("exact ramp_fs", lambda: recipe("ramp_fs", numbers.X.iloc[:40, :8], numbers.y[:40], solver="exact", budget=3, C=0.1))
    write("daks ramp_fs", lambda: recipe("ramp_fs", numbers.X.iloc[:50, :30], numbers.y[:50], solver="daks", budget=4))
    for of in ("radius", "dual", "radius_as_printed", "dual_as_printed"):
        write(f"svdd {of}", lambda o=of: recipe("svdd_rfe", numbers.X, numbers.y, criterion=o, n_features_to_select=8))
    for final in ("c_svc", None):
        write(f"mkl final {final}", lambda f=final: recipe("mkl_rfe", mixed.X, mixed.y, final=f, n_features_to_select=6))


def of_tables() -> None:
    if not DATA:
        return
    for table, names in {
        "colon": ("svm_rfe", "fisher", "l1_cssvm", "kp_cssvm", "su", "clinical_rfe", "svdd_rfe", "ramp_svm", "relieff", "symon", "svm_bfe", "stable_fisher"),
        "glioma": ("svm_rfe", "kp_svm", "kp_svdd", "d_hell", "smote_relieff"),
        "hepatitis": ("clinical_rfe", "mkl_rfe", "hfs_nb", "hfs_5nn"),
        "heart": ("clinical_rfe", "hfs_nb", "hfs_5nn"),
        "sonar": ("svm_rfe", "ramp_svm", "svm_l1", "fsv", "ramp_fs", "fs_svm", "kp_svm"),
    }.items():
        frame = pd.read_parquet(Path(DATA) / f"{table}.parquet")
        target = "class" if "class" in frame else frame.columns[-1]
        y = frame.pop(target).astype(str)
        y = pd.Series(np.where(y == y.value_counts().index[0], "most", "other"))
        for name in names:
            write(f"{table} {name}", lambda n=name, X=frame, y=y: recipe(n, X, y, n_features_to_select=12))


def of_functions() -> None:
    import marginsieve
    from marginsieve import find_suspects, recipes, tune

    try:
        from marginsieve.evaluation import loo_decision, nested_cv
    except ImportError:
        from marginsieve.study import loo_decision, nested_cv
    make = cohorts()
    numbers = make(70, 60, n_relevant=6, prevalence=0.35, effect=1.2, flip=0.05, random_state=1)
    mixed = make(80, 25, n_relevant=4, n_categorical=8, n_categorical_relevant=3, missing=0.05, random_state=2)

    def nested(name: str, data: Any, **fit: Any) -> Any:
        made = nested_cv(recipes.get(name)(n_features_to_select=6), data.X, data.y, random_state=3, n_repeats=2, cv=3, **fit) if NEW else nested_cv(
            recipes.get(name)(n_features_to_select=6), data.X, data.y, seed=3, repeats=2, folds=3, **fit)
        return {"decision": made.decision.ravel().tolist(), "supports": [fold.support.tolist() for fold in made.folds], "scores": made.scores().value}

    write("nested fisher", lambda: nested("fisher", numbers))
    write("nested clinical_rfe", lambda: nested("clinical_rfe", mixed))
    write("nested groups", lambda: nested("svm_rfe", numbers, groups=np.arange(70) // 2))
    write("suspects", lambda: find_suspects(numbers.X, numbers.y, random_state=0).to_dict("list"))
    write("tune", lambda: (lambda t: {"params": {k: float(v) for k, v in t.params.items()}, "scores": t.scores})(tune(recipes.kp_cssvm(), numbers.X.iloc[:, :20], numbers.y, cv=3)))
    write("loo", lambda: {"decision": np.asarray(loo_decision(numbers.X.to_numpy(), numbers.y, class_weight="balanced")).ravel().tolist()})
    svdd = marginsieve.SVDD().fit(numbers.X)
    write("svdd", lambda: {"decision": svdd.decision_function(numbers.X).tolist()})
    mkl = marginsieve.MKLClassifier().fit(mixed.X, mixed.y)
    write("mkl", lambda: {"decision": mkl.decision_function(mixed.X).tolist(), "weights": mkl.weights_.tolist()})
    skip = {"seconds", "how", "version", "schema", "format", "versions"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items() if key not in skip}
        return [plain(entry) for entry in value] if isinstance(value, list) else value

    for name, data in (("numbers", numbers), ("mixed", mixed)):
        kw = {"n_repeats": 1, "cv": 3} if NEW else {"repeats": 1, "folds": 3}
        result = marginsieve.study(data.X, data.y, **kw).result
        write(f"study {name}", lambda r=result: plain(r))


def of_commands() -> None:
    with tempfile.TemporaryDirectory() as folder:
        def run(*words: str) -> str:
            done = subprocess.run([str(Path(sys.executable).parent / "marginsieve"), *words], cwd=folder, capture_output=True, text=True)
            return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"

        write("cohort", lambda: run("cohort", "c.csv", "--samples", "60", "--features", "60", "--flip", "0.05"))
        write("select", lambda: json.loads(run("select", "c.csv", "--target", "outcome", "--out", "r", "--json"))["features"])
        write("select written", lambda: sorted(path.name for path in (Path(folder) / "r").iterdir()))
        write("features.csv", lambda: (Path(folder) / "r" / "features.csv").read_text())
        write("suspects.csv", lambda: (Path(folder) / "r" / "suspects.csv").read_text())
        write("predictions.csv", lambda: (Path(folder) / "r" / "predictions.csv").read_text())
        write("predict", lambda: json.loads(run("predict", "r", "c.csv", "--json")))
        write("suspects command", lambda: json.loads(run("suspects", "c.csv", "--target", "outcome", "--json")))
        write("methods", lambda: [entry["name"] for entry in json.loads(run("methods", "--json"))])
        suite = 'name = "s"\n[protocol]\nname = "nested"\nfolds = 3\nrepeats = 1\n[[data]]\nname = "d"\ncohort = {n_samples = 60, n_features = 30, random_state = 0}\n[[method]]\nname = "svm-rfe"\n[[method]]\nname = "su"\n'
        (Path(folder) / "s.toml").write_text(suite)
        write("bench", lambda: json.loads(run("bench", "s.toml", "--out", "b", "--json")))


def same(a: Any, b: Any, path: str, out: list[str]) -> None:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                out.append(f"{path}/{key}: only {'before' if key in b else 'now'}")
            else:
                same(a[key], b[key], f"{path}/{key}", out)
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            out.append(f"{path}: {len(b)} entries before, {len(a)} now")
            return
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}[{k}]", out)
    elif isinstance(a, float) or isinstance(b, float):
        try:
            if not np.isclose(a, b, rtol=1e-7, atol=1e-7, equal_nan=True):
                out.append(f"{path}: {b} before, {a} now")
        except TypeError:
            out.append(f"{path}: {b!r} before, {a!r} now")
    elif a != b:
        out.append(f"{path}: {str(b)[:160]!r} before, {str(a)[:160]!r} now")


if __name__ == "__main__":
    import inspect

    import marginsieve as package

    NEW = "cv" in inspect.signature(package.study).parameters
    only = os.environ.get("ONLY", "")
    for part in (of_recipes, of_tables, of_functions, of_commands):
        if not only or part.__name__ in only.split(","):
            part()
    OUT = json.loads(json.dumps(OUT, default=lambda v: v.item() if hasattr(v, "item") else str(v)))
    Path(sys.argv[1]).write_text(json.dumps(OUT, indent=0, sort_keys=True))
    if len(sys.argv) > 2:
        before = json.loads(Path(sys.argv[2]).read_text())
        found: list[str] = []
        same(OUT, {key: value for key, value in before.items() if not only or key in OUT}, "", found)
        print("\n".join(found) or f"no difference in {len(OUT)} entries")
        sys.exit(bool(found))
