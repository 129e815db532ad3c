"""
Times to an event, some of them not seen
========================================

Eight of 40 columns make the hazard. Two others make the time to which rows were followed: they say nothing of the
event, and are not to be listed.
"""

from matplotlib.figure import Figure

import marginsieve
from marginsieve.data import make_cohort

cohort = make_cohort(200, 40, n_relevant=8, effect=0.5, outcome="survival", censored=0.4, n_censoring=2, random_state=0)
quick = {"methods": "clinical-rfe", "n_repeats": 1, "without": ("substitutes", "other-lists", "references")}
study = marginsieve.study(cohort.X, cohort.y, horizon=500.0, **quick)
for sentence in study.result["answer"]["sentences"]:
    print("-", sentence)

# %%
# What is listed, of what was planted, and of the columns of the censoring:
listed = set(study.features.query("selected")["name"])
print(f"{len(listed & cohort.truth.features)} of {len(listed)} listed features were planted")
print("columns of the censoring in the list:", sorted(listed & set(cohort.truth.censoring)) or "none")

# %%
# Kaplan-Meier curves by thirds of the risk, out of fold.
figure = Figure(figsize=(5, 3.5), layout="constrained")
axes = figure.subplots()
for curve in study.result["curves"]["main"]["survival"]["groups"]:
    axes.step(curve["time"], curve["survival"], where="post", label=curve["name"])
axes.set(xlabel="time", ylabel="share without an event", ylim=(0, 1))
axes.legend()
figure

# %%
# Risk, median time and the chance of no event by the horizon of further rows.
new = make_cohort(5, 40, outcome="survival", random_state=4).X
print(marginsieve.predict(study.model, new).table.round(2).to_string(index=False))
