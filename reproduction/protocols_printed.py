"""How each paper splits its tables, what it tunes where, and which sizes it reports."""

from __future__ import annotations

from typing import Any

from marginsieve.engine import Protocol, register_protocol

POWERS = tuple(2.0**k for k in range(-7, 8))
MARGIN: dict[str, Any] = {"threshold": "margin"}
PRINTED = (
    Protocol(
        "kp-imbalanced",
        "loo",
        sizes=(20, 50, 100, 250, 500, 1000),
        grid={"machine__C": POWERS, "negative_weight": (0.01, 0.1, 0.5, 1.0)},
        tuned="reported",
        settings=MARGIN,
    ),
    Protocol(
        "kp-svm",
        "shares",
        repeats=100,
        test_share=0.4,
        outer_share=0.5,
        sizes=(20, 50, 100, 250, 500, 1000, 2000),
        grid={"machine__C": (0.1, 0.5, 1.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)},
        tuned="nested",
        settings=MARGIN,
    ),
    Protocol("mixed", "shares", repeats=200, test_share=0.1, sizes=(), settings=MARGIN),
    Protocol(
        "symon", "shares", repeats=1, test_share=0.3, validation_share=0.2, sizes=(0.2, 0.4, 0.6, 0.8), settings=MARGIN
    ),
)
for _protocol in PRINTED:
    register_protocol(_protocol)
