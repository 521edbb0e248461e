"""Colors of classes on the map differ, for every reader, by day and by night."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nodenova.report.html import SHARED, asset

# Machado, Oliveira and Fernandes 2009: what is left without cones for red, or for green.
SEEN_BY = {
    "all": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
PAPER = {"day": "ffffff", "night": "16181b"}
# CIEDE2000 of any two colors: 2 can just be told apart side by side.
FAR_FOR_ALL, FAR_WITHOUT_CONES = 15.0, 13.0
FIRST_STRONG, FIRST_LIGHT, FAR_BETWEEN = 4, 5, 12.5  # of both lists, as small runs show them


def linear(hexes: list[str]) -> np.ndarray:
    values = np.array([[int(h[i : i + 2], 16) for i in (0, 2, 4)] for h in hexes]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    t = (light @ TO_XYZ.T) / TO_XYZ.sum(axis=1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def ciede2000(one: np.ndarray, other: np.ndarray) -> float:
    """The difference of two colors in Lab (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    d_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    light, c = (l1 + l2) / 2, (c1 + c2) / 2
    h = h1 + turn / 2 if c1 * c2 else h1 + h2
    t = (
        1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
        + 0.32 * np.cos(np.radians(3 * h + 6)) - 0.20 * np.cos(np.radians(4 * h - 63))
    )  # fmt: skip
    of_l = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    of_c, of_h = (c2 - c1) / (1 + 0.045 * c), d_h / (1 + 0.015 * c * t)
    blue = 60 * np.exp(-(((h % 360 - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(blue))
    return float(np.sqrt(of_l**2 + of_c**2 + of_h**2 + rotation * of_c * of_h))


def palette(kind: str, time: str) -> list[str]:
    script = asset(SHARED, "points.js")
    listed = script[script.index(f"const {kind} = ") :]
    colors = re.search(rf"{time}: \[([^\]]*)\]", listed)
    assert colors is not None
    return re.findall(r"#([0-9a-f]{6})", colors[1])


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_measure_is_that_of_its_authors(one: tuple, other: tuple, difference: float) -> None:
    assert round(ciede2000(np.array(one), np.array(other)), 4) == difference


@pytest.mark.parametrize("reader", SEEN_BY)
@pytest.mark.parametrize("time", PAPER)
@pytest.mark.parametrize("kind", ["STRONG", "LIGHT"])
def test_no_two_colors_of_a_list_are_alike(kind: str, time: str, reader: str) -> None:
    seen = lab(np.clip(linear(palette(kind, time)) @ SEEN_BY[reader].T, 0, 1))
    assert len(seen) == 8
    pairs = [(i, j) for i in range(len(seen)) for j in range(i)]
    least = min(ciede2000(seen[i], seen[j]) for i, j in pairs)
    assert least >= (FAR_FOR_ALL if reader == "all" else FAR_WITHOUT_CONES)


@pytest.mark.parametrize("reader", SEEN_BY)
@pytest.mark.parametrize("time", PAPER)
def test_the_first_known_and_discovered_classes_have_colors_of_their_own(
    time: str, reader: str
) -> None:
    colors = palette("STRONG", time)[:FIRST_STRONG] + palette("LIGHT", time)[:FIRST_LIGHT]
    seen = lab(np.clip(linear(colors) @ SEEN_BY[reader].T, 0, 1))
    pairs = [(i, j) for i in range(len(seen)) for j in range(i)]
    assert min(ciede2000(seen[i], seen[j]) for i, j in pairs) >= FAR_BETWEEN


@pytest.mark.parametrize("time", PAPER)
@pytest.mark.parametrize("kind", ["STRONG", "LIGHT"])
def test_every_color_stands_out_from_the_paper(kind: str, time: str) -> None:
    colors, paper = (linear(h) @ TO_XYZ[1] for h in (palette(kind, time), [PAPER[time]]))
    high, low = np.maximum(colors, paper), np.minimum(colors, paper)
    assert ((high + 0.05) / (low + 0.05)).min() >= 1.5
