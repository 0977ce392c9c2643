"""Spectral hashing against the eigenfunctions of a box."""

import numpy as np
import pytest

from bittern import InputError
from bittern.hashing.sh import SH


def box(sides, n=21):
    """Evenly spaced points in a box, n along each side, away from the origin."""
    axes = [np.linspace(-side / 2, side / 2, n) + 7 for side in sides]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(sides))


def smoothest(sides, n):
    """Axis and mode of the n smallest (kπ / side)², written out one by one."""
    waves = [
        ((k * np.pi / s) ** 2, axis, k) for axis, s in enumerate(sides) for k in range(1, n + 1)
    ]
    return [(axis, k) for _, axis, k in sorted(waves)[:n]]


@pytest.mark.parametrize("sides", [[10.0], [10.0, 4.1], [10.0, 7.3, 3.1]])
@pytest.mark.parametrize("n_bits", [1, 3, 9])
def test_on_a_uniform_box_it_takes_the_analytical_modes(sides, n_bits):
    points = box(sides)
    hasher = SH(n_bits).fit(points)
    found = list(zip(hasher.components_.tolist(), hasher.modes_.tolist(), strict=True))
    assert found == smoothest(sides[:n_bits], n_bits)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_on_a_uniform_box_bits_are_signs_of_the_analytical_eigenfunctions(dtype):
    sides = [10.0, 4.1]
    points = box(sides)
    rows = points.astype(dtype)
    bits = SH(6).fit(rows).transform(rows)
    for bit, (axis, k) in zip(bits.T, smoothest(sides, 6), strict=True):
        z = points[:, axis] - points[:, axis].min()
        wave = np.sin(np.pi / 2 + k * np.pi / sides[axis] * z)
        if k % 2 and bit[0] != (wave[0] > 0):
            wave = -wave  # an odd wave changes its sign with its axis
        apart = np.abs(wave) > 1e-4  # from the edges of the wave
        np.testing.assert_array_equal(bit[apart], wave[apart] > 0)
        assert apart.mean() > 0.9 and 0.3 < bit.mean() < 0.7


def test_bits_are_the_formula_on_the_principal_components():
    X = np.random.default_rng(1).standard_normal((300, 5)) * [4, 3, 2, 1, 0.5] + 10
    centred = X - X.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    hasher = SH(12).fit(X)
    bits = hasher.transform(X)
    for bit, component, k in zip(bits.T, hasher.components_, hasher.modes_, strict=True):
        z = X @ axes[component]
        phase = np.pi / 2 + k * np.pi / np.ptp(z) * (z - z.min())
        wave = np.sin(phase) > 0
        turned = np.sin(np.pi / 2 + k * np.pi / np.ptp(z) * (z.max() - z)) > 0
        assert (bit == wave).all() or (bit == turned).all()
    assert hasher.modes_.max() > 1 and len(set(hasher.components_)) > 1


def test_rows_on_a_line_are_cut_as_often_as_there_are_bits():
    line = np.linspace(0, 1, 1001)[:, None] * [3.0, 4.0]
    hasher = SH(5).fit(line)
    assert hasher.modes_.tolist() == [1, 2, 3, 4, 5]
    changes = (np.diff(hasher.transform(line).astype(int), axis=0) != 0).sum(axis=0)
    assert changes.tolist() == [1, 2, 3, 4, 5]  # cos(kπz) changes its sign k times


def test_a_component_longer_than_others_gives_more_bits():
    hasher = SH(8).fit(box([100.0, 1.0, 1.0]))
    assert set(hasher.components_) == {0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bits", [1, 7, 64, 65])
def test_rows_that_vary_by_rounding_at_most_get_zeros(dtype, n_bits):
    row = 1000 * np.random.default_rng(0).standard_normal(60)
    rounded = np.nextafter(np.tile(row, (31, 1)).astype(dtype), np.inf, dtype=dtype)
    rounded[::2] = row
    for rows in (rounded, np.tile(row, (31, 1)), np.full((10, 6), 0.1), row[None]):
        some = rows.astype(dtype)
        assert not SH(n_bits).fit(some).transform(some).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_on_the_edge_of_a_wave_get_the_same_bits_in_any_company(dtype):
    grid = box([10.0, 4.0], n=9) @ np.random.default_rng(3).standard_normal((2, 50))
    rows = (grid - grid.mean(axis=0) + 2).astype(dtype)
    hasher = SH(16).fit(rows)
    together = hasher.transform(rows)
    for n in (1, 2, 5):
        some = [hasher.transform(rows[i : i + n]) for i in range(0, len(rows), n)]
        np.testing.assert_array_equal(together, np.concatenate(some))
    assert len(np.unique(together, axis=0)) > 20


def test_bad_parameters_say_what_rule_they_broke():
    with pytest.raises(InputError, match=r"SH: n_bits must be between 1 and 4096, got 0"):
        SH(0).fit(np.eye(3))
