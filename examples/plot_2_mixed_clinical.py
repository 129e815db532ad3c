"""
A mixed clinical table
======================

Numbers, categories and empty cells together: nothing is encoded and nothing imputed.
"""

import marginsieve
from marginsieve.data import make_cohort

cohort = make_cohort(
    n_samples=150,
    n_features=20,
    n_relevant=4,
    n_categorical=10,
    n_categorical_relevant=3,
    effect=1.2,
    missing=0.05,
    random_state=0,
)
study = marginsieve.study(cohort.X, cohort.y, methods="clinical-rfe,su", n_repeats=1, without="suspects")
print(study.result["answer"]["headline"])
for finding in study.result["findings"]:
    print(finding["level"], "-", finding["text"])

# %%
# Effect sizes are Hedges' g for numbers and Cramér's V for categories.
for feature in study.result["features"]:
    effect = feature["effect"]
    print(f"{feature['name']:>8}  {effect['name']:>10} {effect['value']:6.2f}  {feature['direction']}")

# %%
# Precision and recall on samples that nothing was fitted on.
study.plot_precision_recall()
