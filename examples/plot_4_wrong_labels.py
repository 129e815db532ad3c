"""
Finding wrong labels
====================

Five of 100 labels are flipped. Each sample is judged by machines that did not see it.
"""

from matplotlib.figure import Figure

from marginsieve import find_suspects
from marginsieve.data import make_cohort

cohort = make_cohort(n_samples=100, n_features=500, n_relevant=10, effect=1.8, flip=0.05, random_state=3)
judged = find_suspects(cohort.X, cohort.y, random_state=0)
print(judged[judged["suspect"]].sort_values("suspicion", ascending=False).round(2))
print("flipped:", sorted(cohort.truth.flipped))

# %%
# The margin is below 0 on the wrong side; suspicion takes into account how well the classes can be told apart.
figure = Figure(figsize=(6, 3.5), layout="constrained")
axes = figure.subplots()
wrong = judged.index.isin(cohort.truth.flipped)
axes.scatter(judged["margin"][~wrong], judged["suspicion"][~wrong], label="right label", alpha=0.6)
axes.scatter(judged["margin"][wrong], judged["suspicion"][wrong], label="flipped label", marker="x")
axes.set_xlabel("margin")
axes.set_ylabel("probability that the label is wrong")
axes.legend()
figure
