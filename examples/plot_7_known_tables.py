"""
Tables of scikit-learn
======================

Three tables that come with scikit-learn: two classes, three classes and a number as the outcome. Nothing is told to the
study but the columns and the outcome.
"""

from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import marginsieve

QUICK = {"cv": 4, "n_repeats": 1, "without": ("suspects", "references", "other-lists", "unexplained")}

data = load_breast_cancer(as_frame=True)
tumours = data.target.map({0: "malignant", 1: "benign"}).rename("tumour")
study = marginsieve.study(data.data, tumours, methods="svm-rfe", positive="malignant", **QUICK)
print(study.result["answer"]["headline"])

# %%
# Thirty columns, of which ten are means of what the others are the worst or the spread of: groups of near-duplicates.
chosen = study.features.query("selected")
print(chosen[["name", "frequency", "group", "direction"]].to_string(index=False))

# %%
# The score against the number of features.
study.plot_sizes()

# %%
# Three classes of wine: the list tells each from the others.
data = load_wine(as_frame=True)
cultivars = data.target.map({0: "first", 1: "second", 2: "third"}).rename("cultivar")
wine = marginsieve.study(data.data, cultivars, methods="fisher", **QUICK)
print(wine.result["answer"]["headline"])
print(wine.features.query("selected")[["name", "direction"]].to_string(index=False))

# %%
# Progression of diabetes, a number: the methods and scores are those of numbers.
data = load_diabetes(as_frame=True, scaled=False)
diabetes = marginsieve.study(data.data, data.target.rename("progression"), methods="svm-rfe", **QUICK)
print(diabetes.result["answer"]["headline"])
print(diabetes.features.query("selected")[["name", "effect", "direction"]].to_string(index=False))

# %%
# Predicted against observed, out of fold.
diabetes.plot_agreement()
