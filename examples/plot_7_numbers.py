"""
Numbers: a concentration from a wide table
==========================================

The outcome is a number. Ten of 300 columns make it, and three rows carry the number of another row.
"""

import marginsieve
from marginsieve.data import make_cohort

cohort = make_cohort(100, 300, n_relevant=10, effect=0.6, flip=0.03, outcome="numbers", random_state=3)
quick = {"methods": "two-views", "n_repeats": 1, "without": ("substitutes", "other-lists")}
study = marginsieve.study(cohort.X, cohort.y, outcome="numbers", **quick)
for sentence in study.result["answer"]["sentences"]:
    print("-", sentence)

# %%
# What was planted, of what is listed, and the rows whose number is another row's, of those that are not explained:
listed = set(study.features.query("selected")["name"])
unexplained = {row["row"] - 1 for row in study.result["analyses"]["unexplained"]["rows"]}
print(f"{len(listed & cohort.truth.features)} of {len(listed)} listed features were planted")
print(f"wrong numbers: rows {sorted(cohort.truth.flipped)}; not explained: rows {sorted(unexplained)}")

# %%
# Predicted against observed, out of fold.
study.plot_agreement()

# %%
# A model of the list predicts further rows, each with an interval that is to hold 90 % of them.
new = make_cohort(5, 300, outcome="numbers", random_state=4).X
print(marginsieve.predict(study.model, new).table.round(2).to_string(index=False))
