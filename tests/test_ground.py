"""Units, ledgers, domains, records and hardware: what everything else stands on."""

import json
import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from costlib import fixtures, hardware
from costlib.domain import CODES, Count, ManifestError, Share, Size, checker
from costlib.ledger import Ledger, UnitError
from costlib.records import ArchitectureManifest, Experts, Tensor, Workload
from costlib.units import ceil_div, fixed, in_bytes, percent, scientific, short


def refused(code, call, *args, **kwargs):
    with pytest.raises(ManifestError) as refusal:
        call(*args, **kwargs)
    assert refusal.value.code == code
    return str(refusal.value)


@pytest.mark.parametrize("value", [0, 1, -7, Fraction(1, 2), Fraction(-5, 3), 10**30 + 5, Fraction(25, 1000)])
@pytest.mark.parametrize("digits", [0, 1, 2, 6])
def test_fixed_rounds_half_to_even_like_decimal(value, digits):
    value = Fraction(value)
    with localcontext(prec=60):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        assert fixed(value, digits) == f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN):,}"


@pytest.mark.parametrize("n", [1, 9, 10, 99_995, 1_026_432 * 10**18, 9_999_999, 315 * 10**21, 8_030_261_248])
def test_scientific_agrees_with_python_on_floats_it_can_hold(n):
    mantissa, exponent = f"{n:.3e}".split("e")
    assert scientific(n) == f"{mantissa}e{int(exponent)}"


def test_scientific_of_ratios_zero_and_negatives():
    assert [scientific(x) for x in (0, Fraction(1, 3), Fraction(-1, 3000), Fraction(99996, 10**5))] == [
        "0",
        "3.333e-1",
        "-3.333e-4",
        "1.000e0",
    ]


def test_short_percent_and_bytes():
    assert [short(92_485_674_566), short(1_849_713_491_320, 2), short(12)] == ["92.5B", "1.85T", "12"]
    assert percent(Fraction(1, 6)) == "16.7 %"
    assert in_bytes(16_060_522_496) == "16,060,522,496 B = 16.06 GB = 14.96 GiB"
    assert in_bytes(2_256) == "2,256 B = 2.26 kB = 2.20 KiB" and in_bytes(7) == "7 B"


def test_ceil_div_is_exact_where_float_division_is_not():
    assert ceil_div(1128, 64) == 18 and ceil_div(0, 5) == 0
    assert ceil_div(2**53 + 1, 1) == 2**53 + 1 != math.ceil((2**53 + 1) / 1)


def book(**rows):
    return Ledger({name.replace("_", "."): value for name, value in rows.items()}, "scalars", "test")


def test_a_path_answers_for_everything_below_it():
    ledger = book(a_x=1, a_y=2, ab=4)
    assert (ledger["a"], ledger["a.x"], ledger["ab"], ledger.total) == (3, 1, 4, 7)
    assert list(ledger) == ["a.x", "a.y", "ab"] and ledger.share("a") == Fraction(3, 7)
    with pytest.raises(KeyError, match="no row at or below 'b'; the rows are a.x, a.y, ab"):
        ledger["b"]


def test_ledgers_add_by_row_scale_move_and_roll_up():
    total = book(a=1, b=2) + 3 * book(b=1, c=5)
    assert dict(total) == {"a": 1, "b": 5, "c": 15}
    assert dict(book(x=1).under("blocks")) == {"blocks.x": 1}
    assert dict(book(a_x=1, a_y=2, b=4).rolled()) == {"a": 3, "b": 4}


def test_other_units_and_other_conventions_do_not_add():
    one = Ledger({"vocabulary": 1_050_673_152}, "scalars", "test")
    with pytest.raises(UnitError, match="different units: 'scalars' and 'B'"):
        one + Ledger({"table": 1_050_673_152}, "B", "test")
    with pytest.raises(UnitError, match="different conventions"):
        one + Ledger({"vocabulary": 1}, "scalars", "another")
    with pytest.raises(TypeError):
        one + 5


@pytest.mark.parametrize("value", [1.0, True, np.int64(3), "4", None, Fraction(1)])
def test_a_row_is_an_int(value):
    refused("RETURN", Ledger, {"a": value}, "scalars", "test")


def test_a_row_lies_below_no_other_row():
    assert "lies below the row 'a'" in refused("RETURN", Ledger, {"a": 1, "a.b": 2}, "scalars", "test")


def test_a_ledger_prints_aligned_with_shares_and_as_html():
    text = str(book(attention=1_000, mlp=3_000))
    assert text.splitlines() == [
        "attention  1,000   25.0 %",
        "mlp        3,000   75.0 %",
        "-------------------------",
        "total      4,000  100.0 %",
        "unit: scalars; test",
    ]
    assert "<td>3,000</td><td>75.0 %</td>" in book(attention=1_000, mlp=3_000)._repr_html_()
    assert "&lt;b&gt;" in Ledger({"<b>": 1}, "u", "c")._repr_html_()


@pytest.mark.parametrize(
    "hint, value, code",
    [
        (Count, -1, "NEG"),
        (Count, 1.0, "TYPE"),
        (Count, True, "TYPE"),
        (Count, np.int64(4), "TYPE"),
        (Count, "4", "TYPE"),
        (Size, 0, "NONPOS"),
        (Share, Fraction(3, 2), "RANGE"),
        (Share, 0, "RANGE"),
        (Share, 0.4, "TYPE"),
        (bool, 1, "TYPE"),
        (tuple[Size, ...], (1, 0), "NONPOS"),
        (tuple[Size, ...], [1], "TYPE"),
    ],
)
def test_a_value_outside_its_domain_is_refused_by_name(hint, value, code):
    assert "extent" in refused(code, checker(hint), "extent", value)


def test_a_refusal_shortens_a_long_value():
    assert len(refused("TYPE", checker(Count), "m", "x" * 10**6)) < 300


def test_only_listed_codes_can_be_raised():
    with pytest.raises(LookupError, match="TYPE"):
        ManifestError("TYPO", "x")
    assert all(CODES.values())


def test_fixture_names_are_unique_and_survive_json():
    for manifest in fixtures.MANIFESTS.values():
        assert ArchitectureManifest.from_json(manifest.to_json()) == manifest
    assert len({m.sha256 for m in fixtures.MANIFESTS.values()}) == len(fixtures.MANIFESTS)
    for workload in fixtures.WORKLOADS.values():
        assert Workload.from_json(workload.to_json()) == workload


def test_canonical_json_does_not_depend_on_order_or_white_space():
    text = json.dumps(json.loads(fixtures.ODD_EXPERTS.to_json()), indent=3)
    shuffled = json.dumps(dict(reversed(json.loads(text).items())))
    assert ArchitectureManifest.from_json(shuffled).sha256 == fixtures.ODD_EXPERTS.sha256


def test_the_odd_fixture_has_nothing_equal_to_anything():
    m, w = fixtures.ODD, fixtures.TRAIN_ODD
    extents = [m.num_layers, m.hidden_size, m.num_attention_heads, m.num_key_value_heads, m.head_dim, m.d_q, m.d_kv]
    extents += [m.intermediate_size, m.vocab_size, w.batch_size, w.new_rows]
    assert len(set(extents)) == len(extents)
    assert m.intermediate_size % m.hidden_size and 1 < m.num_key_value_heads < m.num_attention_heads


def without(**changes):
    data = json.loads(fixtures.RUNNING.to_json())
    data.update(changes)
    return {key: value for key, value in data.items() if value is not ...}


@pytest.mark.parametrize(
    "changes, code, words",
    [
        ({"num_key_value_heads": 7}, "DIVIS", "num_attention_heads = 32 is not a multiple of num_key_value_heads = 7"),
        ({"num_layers": 0}, "NONPOS", "num_layers = 0"),
        ({"hidden_size": -4096}, "NONPOS", "hidden_size = -4096"),
        ({"hidden_size": 4096.0}, "TYPE", "hidden_size = 4096.0 is of type float"),
        ({"vocab_size": "128256"}, "TYPE", "vocab_size = '128256' is of type str"),
        ({"tie_word_embeddings": 1}, "TYPE", "tie_word_embeddings = 1"),
        ({"vocab_size": ...}, "MISSING", "vocab_size must be declared"),
        ({"hidden_sise": 4096}, "UNDECLARED", "no field 'hidden_sise'; its fields are"),
        ({"mlp": "swiglu"}, "ENUM", "mlp = 'swiglu'; allowed: gated, two-matrix"),
        ({"position": "learned"}, "INCONSISTENT", "max_positions = 0"),
        ({"max_positions": 4096}, "INCONSISTENT", "max_positions = 4096"),
        ({"experts": {"num_experts": 2, "experts_per_token": 3, "intermediate_size": 5}}, "RANGE", "exceeds"),
        ({"experts": {"num_experts": 2}}, "MISSING", "Experts.experts_per_token"),
        ({"extra_trainable_sets": [{"name": "a", "shape": [2, 0]}]}, "NONPOS", "shape[1] = 0"),
        ({"extra_trainable_sets": {"name": "a"}}, "TYPE", "extra_trainable_sets"),
    ],
)
def test_a_bad_manifest_is_refused_by_field_value_and_what_is_allowed(changes, code, words):
    assert words in refused(code, ArchitectureManifest.from_json, json.dumps(without(**changes)))


@pytest.mark.parametrize(
    "text, code",
    [
        ("{", "JSON"),
        ("", "JSON"),
        ('{"num_layers": 1, "num_layers": 2}', "JSON"),
        ('{"num_layers": NaN}', "JSON"),
        ("[1]", "TYPE"),
        ("3", "TYPE"),
        ("null", "TYPE"),
    ],
)
def test_bad_json_is_refused(text, code):
    refused(code, ArchitectureManifest.from_json, text)


def test_workloads_hold_their_phase():
    decode = fixtures.DECODE_32K
    refused("INCONSISTENT", decode.replace, new_rows=2)
    refused("INCONSISTENT", decode.replace, visible_rows=1, new_rows=2)
    refused("INCONSISTENT", fixtures.PREFILL_4K.replace, visible_rows=8192)
    assert fixtures.PREFILL_4K.replace(phase="prefill-chunk", visible_rows=8192).visible_rows == 8192


def test_records_are_frozen_and_replace_refuses_unknown_names():
    with pytest.raises(AttributeError):
        fixtures.RUNNING.num_layers = 3
    refused("UNDECLARED", fixtures.RUNNING.replace, layers=3)
    refused("INCONSISTENT", fixtures.RUNNING.replace, extra_trainable_sets=(Tensor(name="a", shape=(1,)),) * 2)
    refused("RANGE", fixtures.RUNNING.replace, experts=Experts(num_experts=2, experts_per_token=1, intermediate_size=3, first_dense_layers=32))


def test_every_hardware_figure_has_a_source_and_a_date():
    for chip in hardware.CHIPS.values():
        for figure in (chip.peak, chip.memory, chip.bandwidth, chip.power):
            assert figure.source and figure.as_of and (figure.verified or figure.note)
    assert not hardware.chip("TPU v5e").power.verified and not hardware.chip("TPU v5p").power.verified
    assert "H100, A100-80, TPU v5e, TPU v5p" in refused("ENUM", hardware.chip, "H200")
    refused("ENUM", hardware.chip, None)
