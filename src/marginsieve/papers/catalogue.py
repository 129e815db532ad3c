"""What each paper printed, and the jobs that make our figures for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import InputError, listing
from .exact_and_daks import ExactAndDaks
from .final_classifiers import FinalClassifiers
from .halves import COSTS as COSTS_18
from .halves import WIDTHS as WIDTHS_14
from .halves import SelectionOnHalf
from .mixed import FamilyComparison
from .paper import Claim, Job, Paper
from .parameters import KP_SVM_STUDIES
from .steps import StepTimes
from .symon import SYMON

ELEVEN = ("GORDON", "GLIOMA", "SRBCT", "BHAT1", "BHAT2", "BHAT3", "BHAT4", "CAR1", "CAR2", "CAR3", "CAR4")
ALL: dict[str, Any] = {"n_features_to_select": 1.0}
NONE: dict[str, Any] = {}
SMOTE: dict[str, Any] = {"sampler": "smote_each"}  # 400 % as Chawla et al. have it
GAUSSIAN: dict[str, Any] = {**ALL, "kernel": "gaussian"}

POWERS = tuple(2.0**k for k in range(-7, 8))
PRICE = {"machine__C": POWERS}
COSTS = {**PRICE, "negative_weight": (0.01, 0.1, 0.5, 1.0)}
SPARSE_COSTS = {**COSTS, "machine__C": POWERS[::2]}  # the l1 machine has no shortcut for leaving out a sample
KP_LOO: dict[str, Any] = {"name": "kp-imbalanced", "inner_folds": 5}
KP_PRINTED: dict[str, Any] = {"class_weight": None, "scaled": False}
MEAN_AND_MAX = {
    "balanced_accuracy_mean": ("balanced_accuracy", "mean"),
    "balanced_accuracy_max": ("balanced_accuracy", "max"),
}
FOLDS = {"scheme": "folds", "folds": 5, "repeats": 3}
WIDE = {**COSTS, "kernel__width": POWERS}  # widths in units of the live columns, see kernels.Gaussian
WIDTHS = tuple(2.0**k for k in range(-2, 3))
SPHERES = {"machine__r": (0.01, 0.05, 0.1, 0.2, 0.5), "machine__r_out": (0.05, 0.2, 0.5), "kernel__width": WIDTHS}
OF_EITHER_KERNEL: tuple[dict[str, Any], ...] = (NONE, {"kernel": "gaussian", "grid": WIDE})


def _plain_machines() -> dict[str, tuple[str, dict[str, Any]]]:
    """Tables 2 and 3: machines on all features, each with and without SMOTE but for the sphere."""
    kinds = {
        "svm_linear": ("fisher", ALL),
        "svm_gaussian": ("fisher", GAUSSIAN),
        "cs_svm_linear": ("fisher", ALL),
        "cs_svm_gaussian": ("fisher", GAUSSIAN),
        "l1_cssvm": ("l1_cssvm", {**ALL, "points": 2}),  # no ranking is asked for
    }
    with_smote = {f"{name}_smote": (recipe, {**settings, **SMOTE}) for name, (recipe, settings) in kinds.items()}
    drawn = ("fisher", {**GAUSSIAN, "sampler": "smote"})
    return {**kinds, **with_smote, "cs_svm_gaussian_drawn": drawn, "svdd": ("fisher", {**GAUSSIAN, "machine": "svdd"})}


def _plain_grids() -> dict[str, dict[str, tuple[Any, ...]]]:
    grids: dict[str, dict[str, tuple[Any, ...]]] = {"svdd": SPHERES, "cs_svm_gaussian_drawn": WIDE}
    for ending in ("", "_smote"):
        grids |= {f"svm_linear{ending}": PRICE, f"svm_gaussian{ending}": {**PRICE, "kernel__width": POWERS}}
        grids |= {f"cs_svm_gaussian{ending}": WIDE, f"l1_cssvm{ending}": SPARSE_COSTS}
    return grids


KP_IMBALANCED = Paper(
    "kp-imbalanced",
    "Maldonado and Lopez, Applied Soft Computing 67 (2018) 94-105",
    (
        Job(
            "selection",
            ("4", "5"),
            {**KP_LOO, "grid": COSTS},
            ELEVEN,
            ("GLIOMA", "SRBCT"),
            {
                "fisher": ("fisher", NONE),
                "svm_rfe": ("svm_rfe", NONE),
                "svm_bfe": ("svm_bfe", NONE),
                "l1_cssvm": ("l1_cssvm", NONE),
                "kp_cssvm": ("kp_cssvm", KP_PRINTED),
                "kp_svdd": ("kp_svdd", {"C2": 2.0**-3, "scaled": False}),
            },
            MEAN_AND_MAX,
            grids={"kp_cssvm": WIDE, "kp_svdd": SPHERES, "l1_cssvm": SPARSE_COSTS},
            variants={
                **dict.fromkeys(("fisher", "svm_rfe", "svm_bfe"), OF_EITHER_KERNEL),
                "kp_cssvm": (
                    {"C2": 2.0**-3},
                    {"C2": 2.0**-3, "refit": "start"},
                    {"C2": 2.0**-3, "kernel": "linear", "grid": COSTS},
                ),
                "l1_cssvm": (NONE, {"final": "c_svc"}),
            },
            untuned={"kp_cssvm": NONE, "kp_svdd": NONE},
            nested_protocol=FOLDS,
            control="kp_cssvm",
        ),
        Job(
            "oversampling",
            ("4", "5"),
            KP_LOO,
            ELEVEN,
            ("SRBCT",),
            {"kp_cssvm": ("kp_cssvm", {**KP_PRINTED, "C2": 2.0**-3, **SMOTE})},
            MEAN_AND_MAX,
            grids={"kp_cssvm": WIDE},
            nested=False,
        ),
        Job(
            "penalty",
            ("4", "5"),
            KP_LOO,
            ELEVEN,
            ("SRBCT",),
            {"kp_cssvm": ("kp_cssvm", KP_PRINTED)},
            MEAN_AND_MAX,
            grids={"kp_cssvm": WIDE},
            variants={"kp_cssvm": tuple({"C2": value} for value in POWERS)},
            nested=False,
        ),
        Job(
            "no-selection",
            ("2", "3"),
            {**KP_LOO, "sizes": [], "grid": COSTS},
            ELEVEN,
            ("GLIOMA", "SRBCT"),
            _plain_machines(),
            {"balanced_accuracy": ("balanced_accuracy", "value")},
            grids=_plain_grids(),
            nested_protocol={**FOLDS, "repeats": 1},
            control="cs_svm_gaussian",
        ),
    ),
    (
        Claim(
            "KP-CSSVM has the highest average of the maxima over the sizes",
            "section 5.3, table 6",
            best="kp_cssvm",
            among=("fisher", "svm_rfe", "svm_bfe", "l1_cssvm", "kp_cssvm", "kp_svdd"),
            quantity="balanced_accuracy_max",
            job="selection",
        ),
        Claim(
            "SVDD is outperformed by CS-SVM without selection",
            "section 5.2, tables 2 and 3",
            above=("cs_svm_linear", "cs_svm_gaussian"),
            below=("svdd",),
            quantity="balanced_accuracy",
            job="no-selection",
        ),
        Claim(
            "CS-SVM does at least as well as the plain SVM without selection (Gaussian kernel)",
            "section 5.2, tables 2 and 3",
            best="cs_svm_gaussian",
            among=("svm_gaussian", "cs_svm_gaussian"),
            quantity="balanced_accuracy",
            job="no-selection",
        ),
        Claim(
            "SMOTE improves the Gaussian CS-SVM",
            "section 5.2, tables 2 and 3",
            above=("cs_svm_gaussian_smote",),
            below=("cs_svm_gaussian",),
            quantity="balanced_accuracy",
            job="no-selection",
        ),
        Claim(
            "the classes of BHAT1 are linearly separable",
            "section 5.1",
            why_not="203 rows in 3,312 columns are, whatever the labels",
        ),
    ),
    (StepTimes("table-7", ELEVEN, "kp-imbalanced"),),
)


KP_SVM_SETS = {"DIABETES": 5, "WDBC": 15, "COLON": 20, "LYMPHOMA": 8}  # features that the paper's method kept
KP_SVM_CURVES = {  # sizes of figures 1 to 5
    "DIABETES": tuple(range(1, 9)),
    "WDBC": (2, 5, 10, 15, 20, 25, 30),
    "COLON": (20, 50, 100, 250, 500, 1000, 2000),
    "LYMPHOMA": (20, 50, 100, 250, 1000, 2000, 4026),
}
KP_SVM_QUICK = ("WDBC", "COLON")
KP_SVM_RIVALS = {
    "fisher": ("fisher", {"kernel": "gaussian"}),
    "svm_rfe": ("svm_rfe", {"kernel": "gaussian"}),
    "fsv": ("fsv", NONE),
}
RANKED: dict[str, Any] = {"update": "gradient", "stop": "ranking"}
EFFECTIVENESS = {"effectiveness_percent": ("accuracy", "value")}
SPLITS: dict[str, Any] = {
    "name": "kp-svm",
    "impute": True,
    "inner_folds": 5,
    "grid": {"machine__C": [0.1, 1.0, 10.0, 100.0]},
}


def _kp_svm_job(name: str, data: tuple[str, ...], sizes: Any, **fields: Any) -> Job:
    """Everything on 60 % of a half of the table: 100 splits, ten when quick."""
    chosen: dict[str, Any] = {
        "tables": ("3",),
        "methods": {**KP_SVM_RIVALS, "kp_svm": ("kp_svm", RANKED)},
        "quantities": EFFECTIVENESS,
        "nested": False,
        "quick_protocol": {"repeats": 10},
        **fields,
    }
    quick = tuple(label for label in data if label in KP_SVM_QUICK)
    return Job(name, protocol={**SPLITS, "sizes": sizes, "repeats": 100}, data=data, quick=quick, **chosen)


KP_SVM = Paper(
    "kp-svm",
    "Maldonado, Weber and Basak, Information Sciences 181 (2011) 115-128",
    (
        Job(
            "table-2",
            ("2",),
            {
                "name": "nested",
                "folds": 10,
                "repeats": 1,
                "tuned": "reported",
                "grid": {"machine__C": COSTS_18},
                "settings": {"threshold": "margin"},
                "impute": True,
            },
            tuple(KP_SVM_SETS),
            KP_SVM_QUICK,
            {f"svm_{kernel}": ("fisher", {**ALL, "kernel": kernel}) for kernel in ("linear", "polynomial", "gaussian")},
            EFFECTIVENESS,
            grids={
                "svm_polynomial": {"machine__C": COSTS_18, "kernel__degree": tuple(range(2, 10))},
                "svm_gaussian": {"machine__C": COSTS_18, "kernel__width": WIDTHS_14},
            },
            control="svm_gaussian",
        ),
        _kp_svm_job(
            "own-number",
            tuple(KP_SVM_SETS),
            [],
            methods={"kp_svm": ("kp_svm", NONE)},
            variants={"kp_svm": tuple({"C2": value} for value in (1.0, 4.0))},
        ),
        *(
            _kp_svm_job(f"at-own-number-{name.lower()}", (name,), [], follows="own-number:kp_svm", tables=("figures",))
            for name in KP_SVM_SETS
        ),
        *(
            _kp_svm_job(f"table-3-{name.lower()}", (name,), [size, size + 1])  # two, so that the size is named
            for name, size in KP_SVM_SETS.items()
        ),
    ),
    (
        Claim(
            "the Gaussian kernel is the best on all four sets without selection",
            "section 5.2, table 2",
            best="svm_gaussian",
            among=("svm_linear", "svm_polynomial", "svm_gaussian"),
            quantity="effectiveness_percent",
        ),
        Claim(
            "KP-SVM is the most effective at the number of features it determines",
            "section 5.2, table 3",
            best="kp_svm",
            among=("fisher", "svm_rfe", "fsv", "kp_svm"),
            quantity="effectiveness_percent",
        ),
    ),
    (SelectionOnHalf("halves", KP_SVM_CURVES, KP_SVM_SETS), *KP_SVM_STUDIES),
)

MIXED_SETS = ("ARRHYTHMIA430", "HEART", "HEPATITIS", "VANTVEER4348")  # Rheumagene is not public
ELIMINATION, HYBRID = ("clinical_rfe", "mkl_rfe"), ("hfs_nb", "hfs_5nn")


def _mixed_job(name: str, C: float) -> Job:
    """The paper does not say which C it used."""
    return Job(
        name,
        ("figures",),
        {"name": "mixed", "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 500, 1000, 2000]},
        MIXED_SETS,
        ("HEART",),
        {recipe: (recipe, {"C": C, "class_weight": "balanced"}) for recipe in (*ELIMINATION, *HYBRID)},
        {"balanced_accuracy": ("balanced_accuracy", "mean")},
        nested=False,
        quick_protocol={"repeats": 10},
    )


MIXED = Paper(
    "mixed",
    "Paul and Dupont, Kernel methods for mixed feature selection",
    (
        _mixed_job("curves", 1.0),
        _mixed_job("curves-c10", 10.0),
        replace(
            _mixed_job("all-genes", 1.0),
            protocol={"name": "mixed", "repeats": 50, "sizes": [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200]},
            data=("VANTVEER",),
            quick=(),
        ),
    ),
    (
        *(
            Claim(
                f"both RFE methods beat both HFS methods in balanced classification rate ({setting})",
                "section 5, figures 1 and 2",
                quantity="balanced_accuracy",
                job=job,
                above=ELIMINATION,
                below=HYBRID,
            )
            for job, setting in (("curves", "C = 1"), ("curves-c10", "C = 10"))
        ),
        Claim(
            "HFS is the more stable", "section 5, figure 2", why_not="the paper prints no value; see the comparisons"
        ),
    ),
    (
        *(FamilyComparison(job, MIXED_SETS, ELIMINATION, HYBRID) for job in ("curves", "curves-c10")),
        FamilyComparison("all-genes", ("VANTVEER",), ELIMINATION, HYBRID),
        FinalClassifiers("classifiers", MIXED_SETS, (*ELIMINATION, *HYBRID)),
    ),
)

RAMP_SETS = ("LEUKEMIA", "COLON", "SONAR", "WDBC", "DLBCL", "IONOSPHERE")
RAMP_LARGE = ("ARRHYTHMIA", "MFEAT", "LEPIOTA")
RAMP_QUICK = ("SONAR", "COLON")
RAMP_QUANTITIES = {
    "accuracy_percent": ("accuracy", "value"),
    "balanced_accuracy_percent": ("balanced_accuracy", "value"),
    "n_features_selected": ("n_features", "value"),
}
RAMP_PRICES = (1.0, 0.1, 10.0, 0.01, 100.0)
RAMP_BUDGETS = (10, 5, 20)  # the paper's are lost
SWAPS: dict[str, Any] = {"solver": "fast", "shakes": 0}
WHOLE: dict[str, Any] = {"stop": "own", "points": 2}  # no ranking is asked for
RAMP_NOISE = (("label-noise", "labels", "label noise"), ("svm-outliers", "outliers", "outliers"))
RAMP_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ramp_fs": ("ramp_fs", SWAPS),
    "fs_svm": ("fs_svm", SWAPS),
    "ramp_svm": ("ramp_svm", WHOLE),
    "svm_l1": ("svm_l1", WHOLE),
    "fisher": ("fisher", NONE),
    "svm_rfe": ("svm_rfe", NONE),
}


def _ramp_job(name: str, noise: str, note: str, large: bool = False) -> Job:
    """Every C and budget by swaps alone; the best by accuracy is reported, as in the paper."""
    budgets = RAMP_BUDGETS[:1] if large else RAMP_BUDGETS
    within = tuple({"C": C, "budget": budget} for C in RAMP_PRICES for budget in budgets)
    sizes = tuple({"C": C, "n_features_to_select": size} for C in RAMP_PRICES for size in budgets)
    return Job(
        f"{name}-large" if large else name,
        ("text 4.3",),
        {"name": f"ramp-loss-{noise}", "tuned": "", "impute": True},
        RAMP_LARGE if large else RAMP_SETS,
        () if large else RAMP_QUICK,
        RAMP_METHODS,
        RAMP_QUANTITIES,
        note=note,
        nested=False,
        variants={
            **dict.fromkeys(("ramp_fs", "fs_svm"), within),
            **dict.fromkeys(("ramp_svm", "svm_l1"), tuple({"C": C} for C in RAMP_PRICES)),
            **dict.fromkeys(("fisher", "svm_rfe"), sizes),
        },
        chosen_by="accuracy",
        control="ramp_fs",
    )


def _daks_job(name: str, noise: str, note: str, data: str) -> Job:
    """The best C and budget of RL-FS-M on one table, once more by DAKS."""
    source = _ramp_job(name, noise, note, large=data in RAMP_LARGE)
    return replace(
        source,
        name=f"{name}-daks-{data.lower()}",
        data=(data,),
        quick=tuple(label for label in (data,) if label in RAMP_QUICK),
        methods={"ramp_fs": ("ramp_fs", NONE)},
        variants={},
        chosen_by="",
        follows=f"{source.name}:ramp_fs",
        refined={"solver": "daks", "shakes": 10},
    )


RAMP_LOSS = Paper(
    "ramp-loss",
    "Baldomero-Naranjo, Martinez-Merino and Rodriguez-Chia, Expert Systems with Applications 178 (2021) 115017",
    (
        *(_ramp_job(*noise) for noise in RAMP_NOISE),
        *(_daks_job(*noise, data) for noise in RAMP_NOISE for data in RAMP_SETS),
        *(_ramp_job(*noise, large=True) for noise in RAMP_NOISE),
        *(_daks_job(*noise, data) for noise in RAMP_NOISE for data in RAMP_LARGE),
    ),
    tuple(
        Claim(
            f"RL-FS-M is the most accurate under {noise_name}",
            "section 4.3",
            best="ramp_fs",
            among=tuple(RAMP_METHODS),
            quantity="accuracy_percent",
            job=name,
        )
        for name, _, noise_name in RAMP_NOISE
    ),
    (ExactAndDaks("table-4", (*RAMP_SETS, *RAMP_LARGE)),),
)

PAPERS = {paper.name: paper for paper in (KP_IMBALANCED, KP_SVM, MIXED, SYMON, RAMP_LOSS)}


def paper_of(name: str) -> Paper:
    """A paper by its short name."""
    if name not in PAPERS:
        raise InputError(f"there is no paper {name!r}; the papers are {listing(list(PAPERS), most=10)}")
    return PAPERS[name]
