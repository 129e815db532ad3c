"""Planted label flips: find_suspects beside cleanlab's find_label_issues, `python -m benchmarks.suspects [table ...]`.

Cleanlab (the extra "bench") judges by five-fold probabilities of a logistic regression on standardised columns, as its
own documentation proposes, with the l2 and with the l1 penalty. The flips are the same for all.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from cleanlab.filter import find_label_issues
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginsieve import find_suspects
from marginsieve.data import make_cohort
from marginsieve.papers import named_problems

SETS = ("COLON", "LEUKEMIA", "DLBCL", "GLIOMA", "WDBC", "SONAR")
SHARES = (0.0, 0.05, 0.1)
REPEATS = 10
MODELS = {
    "cleanlab, l2": LogisticRegression(max_iter=2000),
    "cleanlab, l1": LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=500),
}


def generated(effect):
    cohort = make_cohort(100, 1000, n_relevant=10, effect=effect, prevalence=0.5, random_state=0)
    return cohort.X.to_numpy(dtype=float), (cohort.y == "case").to_numpy().astype(int)


def tables(names):
    for effect in () if names else (0.8, 1.2):
        yield f"generated 100 x 1,000, effect {effect:g}", *generated(effect)
    for name in named_problems.present(names or SETS):
        data = named_problems.load(name)
        y = np.asarray(data.y)
        yield f"{name} {data.X.shape[0]} x {data.X.shape[1]:,}", data.X.to_numpy(dtype=float), (y == y[0]).astype(int)


def judged(X, y, seed):
    """By method: (flags, score) of each sample."""
    ours = find_suspects(X, y, random_state=seed)
    out = {"find_suspects": (ours.suspect.to_numpy(), ours.suspicion.to_numpy())}
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for name, model in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = cross_val_predict(make_pipeline(StandardScaler(), model), X, y, cv=folds, method="predict_proba")
        out[name] = find_label_issues(y, p), 1.0 - p[np.arange(len(y)), y]
    return out


def main(names):
    rows = []
    for name, X, y in tables(names):
        for share in SHARES:
            for seed in range(REPEATS):
                rng = np.random.default_rng(seed)
                wrong = np.isin(np.arange(len(y)), rng.choice(len(y), round(share * len(y)), replace=False))
                for method, (flag, score) in judged(X, np.where(wrong, 1 - y, y), seed).items():
                    hits = int((flag & wrong).sum())
                    rows.append(
                        {
                            "table": name,
                            "flipped": share,
                            "method": method,
                            "precision": hits / flag.sum() if flag.any() else np.nan,
                            "recall": hits / wrong.sum() if wrong.any() else np.nan,
                            "f1": 2 * hits / (flag.sum() + wrong.sum()) if wrong.any() else np.nan,
                            "clean_flagged": (flag & ~wrong).sum() / (~wrong).sum(),
                            "auc": roc_auc_score(wrong, score) if wrong.any() else np.nan,
                        }
                    )
        frame = pd.DataFrame(rows).groupby(["table", "flipped", "method"], sort=False).mean().round(2)
        print(frame.loc[name].to_string(), name, "", sep="\n", flush=True)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
