"""
A gene-expression study
=======================

80 patients, 2,000 genes, ten of which differ between the classes; three labels are wrong.
"""

import marginsieve
from marginsieve.data import make_cohort

cohort = make_cohort(n_samples=80, n_features=2000, n_relevant=10, effect=1.8, flip=0.04, random_state=0)
study = marginsieve.study(cohort.X, cohort.y, methods="stable-fisher,svm-rfe", n_repeats=1)
print(study.result["answer"]["headline"])
for sentence in study.result["answer"]["sentences"]:
    print(sentence)

# %%
# What was planted, and what was found.
chosen = study.features.query("selected")
print(chosen[["name", "rank", "frequency"]].to_string(index=False))
print("planted among them:", chosen["name"].isin(cohort.truth.relevant).sum(), "of", len(cohort.truth.relevant))

# %%
# The score against the number of features: lines from inner folds, marks with the nested intervals.
study.plot_sizes()

# %%
# How often each feature was selected.
study.plot_features()

# %%
# A notebook shows ``study`` as the whole report; ``study.report("report.html")`` writes it to a file.
