"""
Will it hold elsewhere?
=======================

A model is made in one laboratory and validated in another, where every column is shifted and fewer patients are ill.
"""

from matplotlib.figure import Figure

import marginsieve
from marginsieve.data import make_cohort

old, new = make_cohort(
    n_samples=100,
    n_features=300,
    n_relevant=8,
    effect=1.2,
    prevalence=(0.4, 0.25),
    cohorts=2,
    shift=1.0,
    random_state=1,
)
quick = {"methods": "fisher", "n_repeats": 1, "without": ("suspects", "references", "substitutes", "false-share")}
study = marginsieve.study(old.X, old.y, next_cohort="25+75", **quick)
for sentence in study.result["answer"]["sentences"]:
    if sentence.startswith("Forecast"):
        print(sentence)

# %%
# The model is sealed: it is scored as it is, and beside that with its columns aligned by the new laboratory's own rows.
# The prevalence there is known from elsewhere, not from these labels.
validation = study.validate(new.X, new.y, name="laboratory B", prevalence=0.25)
cohort = validation.result["cohorts"][0]
for sentence in cohort["sentences"]:
    print("-", sentence)

# %%
# The ranking holds; the cut is what is lost, and alignment brings it back.
promise = validation.result["promise"]["scores"]
rows = [("promised", promise)] + [(name.replace("_", " "), line["scores"]) for name, line in cohort["lines"].items()]
figure = Figure(figsize=(6, 3), layout="constrained")
for axes, name in zip(figure.subplots(1, 2, sharey=True), ("auc", "balanced_accuracy"), strict=True):
    for place, (label, scores) in enumerate(rows):
        score = scores[name]
        axes.plot([score["low"], score["high"]], [-place, -place], color=f"C{place}")
        axes.plot(score["value"], -place, "o", color=f"C{place}", label=label)
    axes.set_xlabel(validation.result["short_names"][name])
    axes.set_yticks([-place for place in range(len(rows))], [label for label, _ in rows])
figure
