"""Bytes of K/V caches after a prompt and after a step, on every side of the window's edge."""

import pytest

from costlib import observe, phases, reconcile
from costlib.fixtures import ODD, TOY
from costlib.observe import cache, models

ROW = 2 * 2 * 20 * 2  # K and V of one row, layer and sequence of ODD: 2 heads of 20, bf16
GROUPED = ODD.replace(num_attention_heads=4, num_key_value_heads=4, head_dim=18)


@pytest.mark.parametrize("name", cache.BUNDLES)
def test_the_bundle_is_what_the_cache_holds_now(name):
    assert observe.compare(name) == ""


@pytest.mark.parametrize("arch, b, s", [(ODD, 2, 31), (TOY, 3, 1), (GROUPED, 1, 17)])
def test_a_full_cache_is_the_ledgers(arch, b, s):
    found = cache.watch(models.build(arch, device="cpu").eval(), b, s)
    for point, rows in (("prefill", s), ("decode", s + 1)):
        assert found[point] == (phases.cache_bytes(arch, b, rows),) * 2


@pytest.mark.parametrize("s", [1, 14, 15, 16, 17, 40])
@pytest.mark.parametrize("model_type, windows", [("mistral", 3), ("gemma2", 2)])
def test_a_windowed_layer_shows_a_row_less_than_its_window_and_holds_the_prompt(model_type, windows, s):
    found = cache.watch(cache.windowed(ODD, model_type), 2, s)
    full = 3 - windows
    assert found["prefill"] == tuple(2 * ROW * (windows * rows + full * s) for rows in (min(s, 15), s))
    assert found["decode"] == tuple(2 * ROW * (windows * rows + full * (s + 1)) for rows in (min(s + 1, 15), min(s + 1, 16)))


@pytest.mark.parametrize("s, with_config", [(1, True), (14, True), (15, True), (16, True), (17, True), (17, False), (40, False)])
def test_every_residual_is_explained_on_both_sides_of_the_edge(s, with_config, monkeypatch):
    monkeypatch.setitem(cache.CASES, "case", (cache.sliding, ODD, 2, s, "mistral", 3, with_config))
    function, *arguments = cache.CASES["case"]
    seen = function("case", *arguments)
    assert reconcile.report((), cache.predicted("case"), seen)["status"] in ("exact", "explained")
