"""
Choosing a method
=================

Several methods on the same splits, all features beside them: how well, how stable, how many.
"""

import pandas as pd

import marginsieve
from marginsieve.data import make_cohort

cohort = make_cohort(n_samples=120, n_features=300, n_relevant=8, n_redundant=4, effect=1.2, random_state=1)
names = ["fisher", "su", "svm-rfe", "l1-cssvm"]
study = marginsieve.study(cohort.X, cohort.y, methods=names, n_repeats=1, without="suspects")
rows = [
    {
        "method": method["title"],
        "features": method["n_features"],
        "balanced accuracy": method["scores"]["balanced_accuracy"]["value"],
        "against all": method["difference"]["balanced_accuracy"]["value"],
        "stability": method["stability"]["value"] if method["stability"] else None,
    }
    for method in study.result["methods"]
]
print(pd.DataFrame(rows).round(2).to_string(index=False))

# %%
# The methods differ less than their intervals are wide: believe the features that most of them select.
study.plot_sizes()

# %%
for feature in study.result["features"]:
    planted = "planted" if feature["name"] in cohort.truth.relevant else ""
    others = ", ".join(feature["also_by"])
    print(f"{feature['name']:>6} in {feature['frequency']:.0%} of folds, also by {others} {planted}")
