"""The peak of a fit's memory beside what was estimated before it, each fit in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from marginsieve import recipes

SHAPES: dict[str, tuple[str, int, int, dict]] = {  # recipe, rows, columns, settings
    "fisher wide": ("fisher", 60, 40_000, {}),
    "fisher tall": ("fisher", 4_000, 50, {}),
    "rfe wide": ("svm_rfe", 100, 20_000, {}),
    "rfe tall": ("svm_rfe", 20_000, 8, {}),
    "rfe gaussian": ("svm_rfe", 1_500, 30, {"kernel": "gaussian"}),
    "rfe gaussian wide": ("svm_rfe", 150, 10_000, {"kernel": "gaussian"}),
    "bfe": ("svm_bfe", 1_000, 100, {}),
    "sphere": ("svdd_rfe", 2_000, 20, {}),
    "sphere wide": ("svdd_rfe", 100, 10_000, {}),
    "clinical": ("clinical_rfe", 1_000, 100, {}),
    "clinical wide": ("clinical_rfe", 100, 5_000, {}),
    "mkl": ("mkl_rfe", 200, 3_000, {"n_features_to_select": 5, "threshold": "margin"}),
    "kp": ("kp_cssvm", 100, 10_000, {}),
    "kp tall": ("kp_svm", 1_000, 20, {}),
    "l1": ("l1_cssvm", 100, 20_000, {"points": 8}),
    "su": ("su", 100, 20_000, {}),
    "hellinger": ("hellinger", 200, 20_000, {}),
    "relieff": ("relieff", 1_000, 500, {}),
    "svm l1": ("svm_l1", 100, 20_000, {"points": 5}),
    "ramp": ("ramp_svm", 60, 20_000, {"points": 2, "resamples": 0}),
    "symon": ("symon", 80, 10_000, {"improvisations": 20, "memory": 10}),
    "hfs": ("hfs_nb", 1_000, 1_000, {}),
    "ensemble": ("stable_fisher", 100, 10_000, {}),
    "sparse": ("svm_rfe", 1_000, 30_000, {"sparse": 0.1}),
    "thin": ("fisher", 200, 100_000, {"sparse": 1e-4}),
    "thin rfe": ("svm_rfe", 200, 60_000, {"sparse": 1e-4}),
    "l1 tall": ("svm_l1", 9_000, 10, {"points": 4}),
    "smote pca": ("smote_pca", 200, 5_000, {}),
    "smote relieff": ("smote_relieff", 800, 300, {}),
    "probability": ("svm_rfe", 1_500, 40, {"probability": True}),
    "three classes": ("svm_rfe", 700, 20, {"classes": 3}),
    "three classes wide": ("fisher", 90, 20_000, {"classes": 3}),
}


def one(name: str) -> tuple[float, float]:
    """(estimated, measured) MB of a fit in this process."""
    from marginsieve.estimators.inputs import encode
    from marginsieve.fitting.procedure import plan_of
    from marginsieve.fitting.settings import estimated_bytes

    recipe, m, n, settings = SHAPES[name]
    settings = dict(settings)
    thin, three = settings.pop("sparse", 0.0), settings.pop("classes", 2) == 3
    rng = np.random.default_rng(0)
    y = np.arange(m) % 3 if three else (np.arange(m) % 3 == 0).astype(int)
    if thin:
        cells = round(thin * n)
        columns = [np.sort(rng.choice(n, cells, replace=False)).astype(np.int32) for _ in range(m)]
        starts = np.arange(m + 1, dtype=np.int32) * cells
        X = sparse.csr_array((rng.normal(size=m * cells), np.concatenate(columns), starts), shape=(m, n))
    else:
        X = rng.normal(size=(m, n))
        X[:, :3] += 1.5 * y[:, None]
    made = recipes.get(recipe)(random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = rng.normal(size=(40, 30)) if thin else X[:40, :30]
        recipes.get(recipe)(random_state=0, **settings).fit(small, y[:40])  # compiled, libraries loaded
        encoded = encode(made, X, y, None)
        estimate = estimated_bytes(made, plan_of(made, encoded), encoded)
        del encoded
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _status("VmRSS")
        made.fit(X, y)
    return estimate / 2**20, (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    """KB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def measured(name: str) -> tuple[float, float]:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "hostile.memory", name], capture_output=True, text=True, check=True, timeout=600
    )
    estimate, peak = done.stdout.split()
    return float(estimate), float(peak)


def main() -> int:
    """One fit, or all of them."""
    if len(sys.argv) > 1:
        sys.stdout.write("{} {}\n".format(*one(sys.argv[1])))
        return 0
    for name in SHAPES:
        estimate, peak = measured(name)
        sys.stdout.write(f"{name:20s} {estimate:8.1f} MB estimated, {peak:8.1f} measured, {estimate / peak:5.2f}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
