"""Many resampled paths on a GPU, with the CPU beside it: `python -m benchmarks.gpu [names]`.

The CPU's seconds are those of a few paths on one core, times the number of paths. Figures are kept in benchmarks/gpu.md
with the commit and the machine.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import marginsieve
from marginsieve import recipes
from marginsieve.batches import lockstep
from marginsieve.batches.arrays import torch_on
from marginsieve.criteria import Fisher, MarginChange, ReliefF, SymmetricalUncertainty
from marginsieve.data.table import Table
from marginsieve.fitting.batched_searches import TrainingPart, rank_parts
from marginsieve.fitting.held_out import Member
from marginsieve.fitting.rows import Rows
from marginsieve.fitting.settings import Plan
from marginsieve.fitting.training import search_once
from marginsieve.kernels import Clinical, Gaussian, Linear
from marginsieve.machines import CSVC
from marginsieve.outcomes import Classes, ClassTarget
from marginsieve.searches import Backward, TopK

TEN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
DEVICE, JOBS = os.environ.get("DEVICE", "cuda"), int(os.environ.get("JOBS", "1"))
OUTCOME = Classes(class_weight="balanced")


def table(m, n, seed=0):
    rng = np.random.default_rng(seed)
    Z = np.empty((m, n), order="F")
    for start in range(0, n, 10_000):
        Z[:, start : start + 10_000] = rng.standard_normal((m, min(10_000, n - start)))
    y = np.arange(m) % 2
    Z[:, :40] += 0.7 * y[:, None]
    return Table(Z, ("real",) * n, tuple(map(str, range(n)))), y


def halves(y, count, seed=0):
    rng, m = np.random.default_rng(seed), len(y)
    parts = []
    for _ in range(count):
        rows = np.concatenate([rng.permutation(np.flatnonzero(y == code))[: m // 4] for code in (0, 1)])
        train = np.sort(rows)
        parts.append(TrainingPart(train, np.setdiff1d(np.arange(m), train), ClassTarget.from_codes(y)))
    return parts


def seconds(arrays, call):
    start = time.perf_counter()
    out = call()
    if arrays.library == "torch" and str(arrays.device).startswith("cuda"):
        arrays.xp.cuda.synchronize()
    return time.perf_counter() - start, out


def paths(arrays, name, plan, m, n, count, sizes, few=3):
    """Paths on halves of a table: seconds on the device, seconds on one core, and whether both say the same."""
    rows, y = table(m, n)
    parts = halves(y, count)
    rank_parts(arrays, plan, rows, parts[:2], sizes)  # compiled and loaded before the clock starts
    on_device, in_step = seconds(arrays, lambda: rank_parts(arrays, plan, rows, parts, sizes))
    start, same, apart = time.perf_counter(), 0, 0.0
    for one, part in list(zip(in_step, parts, strict=True))[:few]:
        whole = Rows(None, rows, part.target)
        searched = search_once(plan, whole.take(part.train), np.random.default_rng(0))
        member = Member.of(plan, searched, sizes, whole, part.test)
        same += set(searched.path.order[:50]) == set(one.order[:50])
        apart = max(apart, float(np.abs(member.values - one.values).max(initial=0.0)))
    cpu = (time.perf_counter() - start) / few * count
    worst = max(one.work.worst_residual for one in in_step)
    print(
        f"{name}, {m:,} x {n:,}, {count:,} paths: {on_device:.1f} s; one core {cpu:,.0f} s, "
        f"{cpu / on_device:,.0f} times as long; same first 50 in {same} of {few}, values within {apart:.0e}, "
        f"worst residual {worst:.0e}",
        flush=True,
    )


def machines(arrays):
    """Machines in step by their number and rows."""
    rng = np.random.default_rng(0)
    for m in (100, 160, 400):
        for count in (10, 100, 1000, 4000):
            if count * m * m > 2e8:
                continue
            X = arrays.to_device(rng.standard_normal((count, m, 30)))
            K = X @ X.transpose(1, 2) if arrays.library == "torch" else X @ X.transpose(0, 2, 1)
            y = arrays.to_device(np.where(rng.random((count, m)) < 0.5, 1.0, -1.0))
            top = arrays.to_device(np.ones((count, m)))
            lockstep.svc(arrays, K, y, top, 1e-6)
            took, solved = seconds(arrays, lambda K=K, y=y, top=top: lockstep.svc(arrays, K, y, top, 1e-6))
            worst = float(solved.violation.max())
            print(
                f"machines, {count:,} of {m} rows: {1e3 * took:.0f} ms, {1e6 * took / count:.0f} us each, "
                f"residual {worst:.0e}",
                flush=True,
            )


def large(arrays):
    """One Gaussian machine on 10,000 rows."""
    rng = np.random.default_rng(0)
    X = arrays.to_device(rng.standard_normal((10_000, 20)))
    K = arrays.xp.exp(-0.5 * arrays.xp.cdist(X, X) ** 2 / 20)[None]
    y = arrays.xp.sign(X[:, 0] + 0.5 * arrays.to_device(rng.standard_normal(10_000)))[None]
    for C in (1.0, 100.0):
        top = arrays.zeros(1, 10_000) + C
        lockstep.svc(arrays, K, y, top, 1e-6)
        took, solved = seconds(arrays, lambda top=top: lockstep.svc(arrays, K, y, top, 1e-6))
        print(
            f"one machine, 10,000 rows, C = {C:g}: {took:.2f} s, residual {float(solved.violation[0]):.0e}", flush=True
        )


def fisher(arrays):
    plan = Plan(Linear(), CSVC(), Fisher(), TopK(), OUTCOME, standardize=True)
    paths(arrays, "Fisher and ten machines", plan, 200, 500_000, 1000, TEN)


def linear(arrays):
    plan = Plan(Linear(), CSVC(), MarginChange(), Backward(), OUTCOME, standardize=True)
    paths(arrays, "linear elimination", plan, 200, 500_000, 1000, ())


def gaussian(arrays):
    plan = Plan(Gaussian(), CSVC(), MarginChange(), Backward(), OUTCOME, standardize=True)
    paths(arrays, "Gaussian elimination", plan, 200, 20_000, 1000, ())


def clinical(arrays):
    plan = Plan(Clinical(), CSVC(), MarginChange(), Backward(), OUTCOME)
    paths(arrays, "clinical elimination", plan, 200, 20_000, 1000, ())


def uncertainty(arrays):
    plan = Plan(Linear(), CSVC(), SymmetricalUncertainty(), TopK(), OUTCOME, standardize=True)
    paths(arrays, "symmetrical uncertainty", plan, 200, 100_000, 1000, ())


def relieff(arrays):
    plan = Plan(Gaussian(), CSVC(), ReliefF(), TopK(), OUTCOME, standardize=True)
    rows, y = table(1000, 230_000)
    whole = TrainingPart(np.arange(1000), np.empty(0, dtype=np.intp), ClassTarget.from_codes(y))
    rank_parts(arrays, plan, table(1000, 50)[0], [whole], ())
    on_device, (one,) = seconds(arrays, lambda: rank_parts(arrays, plan, rows, [whole], ()))
    some, _ = table(1000, 2300)
    start = time.perf_counter()
    search_once(plan, Rows(None, some, ClassTarget.from_codes(y)), np.random.default_rng(0))
    cpu = 100 * (time.perf_counter() - start)
    first = int(np.sum(one.order[:40] < 40))
    print(
        f"ReliefF, 1,000 x 230,000: {on_device:.1f} s; one core {cpu:,.0f} s; {first} of 40 planted first", flush=True
    )


def kp(arrays):  # noqa: ARG001
    """A whole fit of penalised scaling on a large table."""
    rows, y = table(10_000, 20_000)
    selector = recipes.kp_cssvm(n_features_to_select=40, device="cuda", similar=None, random_state=0)
    selector.set_params(threshold="margin", standardize=True)
    start = time.perf_counter()
    selector.fit(np.ascontiguousarray(rows.Z), y)
    took = time.perf_counter() - start
    path = selector.path_
    inside = int(np.sum(path.order[:40] < 40))
    print(f"KP, 10,000 x 20,000: {took:.1f} s, {len(path.steps)} steps; {inside} of 40 planted first", flush=True)


def study(arrays):  # noqa: ARG001
    """The default study with nested intervals, 200 shuffles and 50 pairs of halves, of gordon.npz."""
    data = np.load(Path(os.environ.get("TABLES", ".")) / "gordon.npz")
    start = time.perf_counter()

    def watch(what, part, _):
        if part == 0 or what not in seen:
            print(f"  {time.perf_counter() - start:.0f} s: {what}", flush=True)
        seen.add(what)

    seen: set[str] = set()
    fixed = {"n_permutations": 200, "intervals": "nested", "random_state": 0, "progress": watch}
    done = marginsieve.study(data["X"], data["y"], device=DEVICE, n_jobs=JOBS, **fixed)
    took = time.perf_counter() - start
    first = done.features["name"].head(10).tolist()
    print(f"study of {data['X'].shape} on {DEVICE}, {JOBS} processes: {took:.0f} s; {first}", flush=True)


def agreement(arrays):
    """Paths on halves of the tables that are given as files (npz: X, y), on the device and one by one."""
    for file in sorted(Path(os.environ.get("TABLES", ".")).glob("*.npz")):
        data = np.load(file)
        X, y = data["X"].astype(float), np.unique(data["y"], return_inverse=True)[1]
        rows = Table(np.asfortranarray(X), ("real",) * X.shape[1], tuple(map(str, range(X.shape[1]))))
        rng, parts = np.random.default_rng(1), []
        for k in range(300):
            labels = rng.permutation(y) if k % 2 else y
            half = np.concatenate([rng.permutation(np.flatnonzero(labels == c)) for c in (0, 1)])[::2]
            train = np.sort(half)
            parts.append(TrainingPart(train, np.setdiff1d(np.arange(len(y)), train), ClassTarget.from_codes(labels)))
        for name, kernel, criterion, search in (
            ("linear elimination", Linear(), MarginChange(), Backward()),
            ("clinical elimination", Clinical(), MarginChange(), Backward()),
            ("Gaussian elimination", Gaussian(), MarginChange(), Backward()),
            ("Fisher", Linear(), Fisher(), TopK()),
            ("ReliefF", Gaussian(), ReliefF(), TopK()),
            ("symmetrical uncertainty", Linear(), SymmetricalUncertainty(), TopK()),
        ):
            plan = Plan(kernel, CSVC(tol=1e-10), criterion, search, OUTCOME, standardize=True)
            took, in_step = seconds(arrays, partial(rank_parts, arrays, plan, rows, parts, (10, 50)))
            start = time.perf_counter()
            one_by_one = Parallel(-1)(delayed(_one)(plan, rows, part) for part in parts)
            cpu = time.perf_counter() - start
            same = sum(set(a[:50]) == set(b.order[:50]) for (a, _), b in zip(one_by_one, in_step, strict=True))
            apart = max(float(np.abs(v - b.values).max()) for (_, v), b in zip(one_by_one, in_step, strict=True))
            print(
                f"{file.stem}, {name}: same first 50 in {same} of {len(parts)}, values within {apart:.0e}; "
                f"{took:.1f} s, {cpu:.1f} s on {os.cpu_count()} cores",
                flush=True,
            )


def _one(plan, rows, part):
    whole = Rows(None, rows, part.target)
    searched = search_once(plan, whole.take(part.train), np.random.default_rng(0))
    return searched.path.order, Member.of(plan, searched, (10, 50), whole, part.test).values


def limits(arrays):
    """What the device does in plain matrix products and copies."""
    A = arrays.zeros(8192, 8192) + 1.0
    A @ A
    took, _ = seconds(arrays, lambda: [A @ A for _ in range(5)])
    big = arrays.zeros(2**28)
    copy, _ = seconds(arrays, lambda: [big + 1.0 for _ in range(10)])
    print(
        f"limits: {5 * 2 * 8192**3 / took / 1e12:.0f} TFLOP/s in float64 products, "
        f"{10 * 16 * 2**28 / copy / 1e9:,.0f} GB/s",
        flush=True,
    )


ALL = {
    one.__name__: one
    for one in (
        limits,
        machines,
        large,
        fisher,
        linear,
        gaussian,
        clinical,
        uncertainty,
        relieff,
        kp,
        study,
        agreement,
    )
}

if __name__ == "__main__":
    arrays = torch_on("cuda")
    for name in [one for one in sys.argv[1:] if one in ALL] or ALL:
        ALL[name](arrays)
