"""Rank statistics against Demsar's worked example, scipy and scikit-posthocs; stability against its definitions."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from marginsieve.bench import statistics as st
from marginsieve.engine import jaccard, kuncheva, nogueira
from marginsieve.errors import InputError

DEMSAR = pd.DataFrame(  # Demsar 2006, table 6 (voting: the paper ranks the two 0.975 apart)
    [
        (0.763, 0.768, 0.771, 0.798),
        (0.599, 0.591, 0.590, 0.569),
        (0.954, 0.971, 0.968, 0.967),
        (0.628, 0.661, 0.654, 0.657),
        (0.882, 0.888, 0.886, 0.898),
        (0.936, 0.931, 0.916, 0.931),
        (0.661, 0.668, 0.609, 0.685),
        (0.583, 0.583, 0.563, 0.625),
        (0.775, 0.838, 0.866, 0.875),
        (1.000, 1.000, 1.000, 1.000),
        (0.940, 0.962, 0.965, 0.962),
        (0.619, 0.666, 0.614, 0.669),
        (0.972, 0.981, 0.975, 0.9749),
        (0.957, 0.978, 0.946, 0.970),
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


def test_demsars_worked_example():
    compared = st.compare(DEMSAR)
    assert dict(zip(compared.methods, compared.ranks.round(3), strict=True)) == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.0,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    n, k = DEMSAR.shape
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(compared.ranks**2) - k * (k + 1) ** 2 / 4)
    assert chi2 == pytest.approx(9.28, abs=0.01)  # the paper's value does not count ties; ours does, as scipy's
    assert compared.chi2 == pytest.approx(stats.friedmanchisquare(*DEMSAR.to_numpy().T).statistic)
    assert compared.p_value == pytest.approx(stats.friedmanchisquare(*DEMSAR.to_numpy().T).pvalue)
    untied = np.array([np.roll(np.arange(1.0, 5.0), row) for row in range(14)])
    assert st.critical_difference(untied) == pytest.approx(1.25, abs=0.005)
    assert st.critical_difference(untied, alpha=0.10) == pytest.approx(1.12, abs=0.005)


def test_iman_and_davenport_is_demsars_f():
    """Without ties: chi2 = 9.28 with 14 data sets and 4 methods gives F = 3.69."""
    chi2 = 9.28
    assert 13 * chi2 / (14 * 3 - chi2) == pytest.approx(3.69, abs=0.01)
    rng = np.random.default_rng(0)
    ranks = st.rank_rows(rng.normal(size=(10, 4)))
    found, _, f, p = st.friedman(ranks)
    assert f == pytest.approx(9 * found / (30 - found))
    assert p == pytest.approx(stats.f.sf(f, 3, 27))


def test_wilcoxon_is_demsars_signed_rank_sum():
    """Table 2 of Demsar: C4.5 against C4.5+m has R+ = 93, R- = 12; zeros are split."""
    difference = np.round(DEMSAR["C4.5+m"] - DEMSAR["C4.5"], 3)
    ranks = stats.rankdata(np.abs(difference))
    zeros = ranks[difference == 0].sum() / 2
    assert (ranks[difference > 0].sum() + zeros, ranks[difference < 0].sum() + zeros) == (93.0, 12.0)
    assert st.wilcoxon_p(DEMSAR["C4.5+m"].to_numpy(), DEMSAR["C4.5"].to_numpy()) < 0.05
    assert st.wilcoxon_p(np.ones(5), np.ones(5)) == 1.0
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 12))
    assert st.wilcoxon_p(a, b) == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)


@pytest.mark.parametrize("count", [8, 14, 30])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_wilcoxon_is_scipys_with_ties_and_zeros(count, decimals):
    """With no tie and no zero the exact distribution; else scipy's treatment, whatever it is."""
    difference = np.round(np.random.default_rng(count).normal(0.3, size=count), decimals)
    whole = np.round(10.0**decimals * difference)  # without rounding errors, which part equal differences
    p = st.wilcoxon_p(difference + 0.7, np.full(count, 0.7))
    assert p == pytest.approx(stats.wilcoxon(whole).pvalue)
    if decimals == 8:
        assert p == pytest.approx(stats.wilcoxon(whole, method="exact").pvalue)


def test_nemenyi_equals_scikit_posthocs():
    scikit_posthocs = pytest.importorskip("scikit_posthocs", reason="needs the extra marginsieve[test-all]")
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(12, 5)) + np.arange(5) * 0.4, columns=list("abcde"))
    theirs = scikit_posthocs.posthoc_nemenyi_friedman(table.to_numpy())
    theirs.index = theirs.columns = list("abcde")
    for _, row in st.compare(table).pairs().iterrows():
        assert row.p_nemenyi == pytest.approx(theirs.loc[row["first"], row["second"]], abs=1e-6)


def test_holm_is_step_down():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(st.holm(p), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(st.holm(np.array([0.9, 0.8])), [1.0, 1.0])


@pytest.mark.parametrize("row", [(1.0, 2.0, 3.0), (1.5, 1.5, 3.0)])
def test_the_p_value_of_a_rank_difference_is_that_of_all_orders(row):
    """All 6^3 ways to order three rows of ranks, ties as they are, against the convolution."""
    orders = list(itertools.permutations(row))
    differences = np.array([np.mean([one[0] - one[1] for one in rows]) for rows in itertools.product(orders, repeat=3)])
    ranks = np.array([row, row[::-1], row])
    sizes = np.unique(np.abs(differences))
    slow = [np.mean(np.abs(differences) >= size - 1e-12) for size in sizes]
    np.testing.assert_allclose(st.rank_difference_p(ranks, sizes), slow)


def test_the_control_is_named_beforehand():
    compared = st.compare(DEMSAR, control="C4.5")
    table = compared.table().set_index("method")
    assert list(table.columns) == ["mean", "low", "high", "rank", "p_alone", "p_against_control"]
    assert np.isnan(table.loc["C4.5", "p_against_control"])
    others = table.drop(index="C4.5")
    alone = st.rank_difference_p(st.rank_rows(DEMSAR.to_numpy()), others["rank"].to_numpy() - table.loc["C4.5", "rank"])
    np.testing.assert_allclose(others["p_alone"], alone)
    np.testing.assert_allclose(others["p_against_control"], st.holm(alone))
    z = (table.loc["C4.5", "rank"] - others["rank"].to_numpy()) / np.sqrt(4 * 5 / (6 * 14))  # Demsar's, without ties
    np.testing.assert_allclose(alone, 2 * stats.norm.sf(np.abs(z)), atol=0.05)
    assert list(st.compare(DEMSAR).table().columns) == ["method", "mean", "low", "high", "rank"]
    with pytest.raises(InputError, match=r"control is 'C5'; it must be one of the methods: 'C4.5', 'C4.5\+m'"):
        st.compare(DEMSAR, control="C5")


@pytest.mark.parametrize(("n", "k"), [(8, 3), (12, 6)])
@pytest.mark.parametrize("tied", [False, True])
def test_the_family_wise_error_is_at_most_the_level(n, k, tied):
    """Without any difference between methods at most 5 % of tables have a p-value below .05, and Monte Carlo error.

    The control that is chosen after looking, the method with the best rank, exceeds it.
    """
    rng, draws, level = np.random.default_rng(5), 2000, 0.05
    errors = {"control": 0, "chosen after looking": 0, "nemenyi": 0, "wilcoxon": 0}
    for draw in range(draws):
        scores = rng.normal(size=(n, k))
        ranks = st.rank_rows(np.round(scores) if tied else scores)
        average = ranks.mean(axis=0)
        errors["control"] += np.nanmin(st.holm_against(ranks, 0)) <= level
        errors["chosen after looking"] += np.nanmin(st.holm_against(ranks, int(np.argmin(average)))) <= level
        if draw < draws // 20:  # the quantile and the signed ranks are slow
            errors["nemenyi"] += np.ptp(average) > st.critical_difference(ranks, level)
            pairs = [st.wilcoxon_p(scores[:, a], scores[:, b]) for a, b in itertools.combinations(range(k), 2)]
            errors["wilcoxon"] += st.holm(np.array(pairs)).min() <= level
    few = draws // 20
    assert errors["control"] <= draws * level + 3 * np.sqrt(draws * level * (1 - level))
    assert max(errors["nemenyi"], errors["wilcoxon"]) <= few * level + 3 * np.sqrt(few * level * (1 - level))
    if k > 3:
        assert errors["chosen after looking"] > errors["control"]


def test_groups_are_the_longest_runs():
    compared = st.compare(DEMSAR)
    assert compared.groups() == [(0, 3)]
    apart = pd.DataFrame(np.tile([3.0, 2.0, 1.0], (60, 1)), columns=list("abc"))
    assert st.compare(apart).groups() == []


def test_a_table_with_a_hole_names_it():
    hole = DEMSAR.copy()
    hole.iloc[2, 1] = np.nan
    with pytest.raises(InputError, match=r"no score of C4.5\+m on 2"):
        st.compare(hole)
    with pytest.raises(InputError, match="at least 2 data sets and 2 methods"):
        st.compare(DEMSAR.iloc[:1])


def test_bootstrap_of_the_mean():
    scores = np.column_stack([np.full(10, 0.5), np.linspace(0, 1, 10)])
    mean, low, high = st.bootstrap_mean(scores)
    assert (mean[0], low[0], high[0]) == pytest.approx((0.5, 0.5, 0.5))
    half = 1.96 * scores[:, 1].std() / np.sqrt(10)
    assert (low[1], high[1]) == pytest.approx((0.5 - half, 0.5 + half), abs=0.02)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_diagram_is_drawn(ending, tmp_path):
    path = tmp_path / f"cd.{ending}"
    st.compare(DEMSAR).plot(path)
    head = path.read_bytes()[:300]
    assert (b"<?xml" in head) if ending == "svg" else head.startswith(b"\x89PNG")
    if ending == "svg":
        again = tmp_path / "again.svg"
        st.compare(DEMSAR).plot(again)
        assert again.read_bytes() == path.read_bytes()


# -- stability ---------------------------------------------------------------------------------------------------


def random_sets(M, k, d, seed):
    rng = np.random.default_rng(seed)
    return [rng.choice(d, k, replace=False) for _ in range(M)]


def test_kuncheva_is_its_definition_and_equals_nogueira_at_one_size():
    sets, d, k = random_sets(6, 5, 20, 0), 20, 5
    slow = np.mean([(len(set(a) & set(b)) - k * k / d) / (k - k * k / d) for a, b in itertools.combinations(sets, 2)])
    assert kuncheva(sets, d) == pytest.approx(slow)
    assert nogueira(sets, d).value == pytest.approx(slow)


def test_jaccard_is_its_definition():
    sets = [[0, 1, 2], [1, 2, 3, 4], [9]]
    slow = np.mean([len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in itertools.combinations(sets, 2)])
    assert jaccard(sets, 10) == pytest.approx(slow)


def test_limits():
    assert nogueira([[1, 2]] * 25, 10).value == 1.0
    measure = nogueira(random_sets(100, 10, 200, 1), 200)
    assert measure.low < 0.01 < measure.high + 0.02
    assert abs(measure.value) < 0.02
    assert np.isnan(nogueira(random_sets(4, 3, 10, 2), 10).low)
    assert np.isnan(nogueira([[1, 2]] * 25, 10).low)
    assert np.isnan(nogueira([range(5)] * 3, 5).value)


@pytest.mark.parametrize("M", [5, 15, 100])
def test_nogueiras_interval_covers(M):
    """M independent sets: about 95 % of the 95 % intervals hold the true value (a feature model with known p)."""
    rng = np.random.default_rng(3)
    p = np.r_[np.full(5, 0.9), np.full(45, 0.1)]
    true = 1 - np.mean(p * (1 - p)) / (p.mean() * (1 - p.mean()))
    hits = 0
    for _ in range(200):
        sets = [np.flatnonzero(rng.random(50) < p) for _ in range(M)]
        measure = nogueira(sets, 50)
        hits += measure.low <= true <= measure.high
    assert 180 <= hits <= 199


def test_refusals():
    with pytest.raises(InputError, match=r"sets of one size; these have 1 to 2 features: use nogueira"):
        kuncheva([[1], [1, 2]], 5)
    with pytest.raises(InputError, match="at least 2"):
        jaccard([[1]], 5)
    with pytest.raises(InputError, match=r"outside 0\.\.4"):
        nogueira([[7], [1]], 5)
