"""
Credit risk with 3 % positives
==============================

1,200 loans, 3 % defaults. On such a table the threshold matters more than the selector: at a
threshold of 0 nearly every default is missed.
"""

import numpy as np

import marginsieve
from marginsieve import recipes
from marginsieve.data import make_cohort
from marginsieve.engine import nested_cv

loans = make_cohort(n_samples=1200, n_features=30, n_relevant=5, effect=1.0, prevalence=0.03, random_state=0)
study = marginsieve.study(loans.X, loans.y, methods="l1-cssvm", n_repeats=1, without="suspects", n_permutations=24)
print(study.result["answer"]["headline"])
scores = study.result["scores"]
print({name: round(scores[name]["value"], 2) for name in ("sensitivity", "specificity", "pr_auc")})

# %%
# The same machine with the threshold at 0 and without class weights.
plain = recipes.l1_cssvm(standardize=True, threshold="margin", n_features_to_select=5, random_state=0)
value = nested_cv(plain, loans.X, loans.y, n_repeats=1).scores().value
print({name: round(value[name], 2) for name in ("sensitivity", "specificity")})
assert value["sensitivity"] < scores["sensitivity"]["value"]

# %%
# Are the probabilities right? Observed shares against predicted ones, out of fold.
study.plot_calibration()

# %%
# What to check first: the ten loans with the highest out-of-fold probability.
first = study.predictions.nlargest(10, "probability")
print(first[["row", "label", "probability"]].to_string(index=False))
print("defaults among them:", int(np.sum(first["label"] == "case")))
