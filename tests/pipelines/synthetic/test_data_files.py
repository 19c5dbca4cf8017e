"""The generator's data files are checked when they load, refer only to what exists, and are all used."""

from importlib.resources import files
from pathlib import Path

import pytest

from pipelines.synthetic import data_files
from pipelines.synthetic.businesses.lenders import credit, lenders_of
from pipelines.synthetic.businesses.trades import trades
from pipelines.synthetic.data_files import Folder, load, load_named, load_table
from pipelines.synthetic.pdf import EVERY_LAYOUT, PdfLayout
from pipelines.synthetic.world.merchants import Bill, bills_by_family, merchants
from pipelines.synthetic.world.names import names
from pipelines.synthetic.world.styles import FILE, BankStyle, bank_styles
from pipelines.vocabulary.rule_files import RuleError


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package: its data files are read instead of the real ones."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(data_files, "files", lambda _: tmp_path)
    return folder


def test_unknown_field_is_refused_with_file_and_place(data: Path) -> None:
    (data / FILE).write_text("Some Bank: {bsb_prefix: '01', account_digits: 9, wordings: {}, colour: red}")
    with pytest.raises(RuleError, match=r"banks.yaml: .*unknown field `colour`.*\$\[0\]"):
        load_named(FILE, BankStyle, "name")


def test_value_of_another_type_is_refused(data: Path) -> None:
    (data / "numbers.yaml").write_text("[1, two]")
    with pytest.raises(RuleError, match=r"numbers.yaml: Expected `int`, got `str` - at `\$\[1\]`"):
        load("numbers.yaml", tuple[int, ...])


def test_empty_cell_takes_the_default(data: Path) -> None:
    (data / "bills.csv").write_text("name,rail,category,low,high,every,code\nASIC,bpay,fees,310,329,12,\n")
    assert load_table("bills.csv", Bill) == (
        Bill(name="ASIC", rail="bpay", category="fees", low=310, high=329, every=12),
    )


def test_cell_that_is_no_number_is_refused(data: Path) -> None:
    (data / "bills.csv").write_text("name,rail,category,low,high\nASIC,bpay,fees,many,329\n")
    with pytest.raises(RuleError, match=r"bills.csv: Expected `int`, got `str` - at `\$\[0\].low`"):
        load_table("bills.csv", Bill)


def test_bank_without_a_wording_is_refused(data: Path) -> None:
    (data / FILE).write_text(
        "One: {bsb_prefix: '01', account_digits: 9, wordings: {card: [a], atm: [b]}}\n"
        "Other: {bsb_prefix: '02', account_digits: 9, wordings: {card: [c]}}\n"
    )
    with pytest.raises(RuleError, match="Other has no wording for atm"):
        bank_styles.__wrapped__()


def test_layout_is_loaded_when_it_is_asked_for(data: Path) -> None:
    (data / "layouts").mkdir()
    (data / "layouts" / "broken.yaml").write_text("bank_name: Some Bank")
    layouts = Folder(PdfLayout, "layouts")
    assert list(layouts) == ["broken"]
    with pytest.raises(RuleError, match=r"layouts/broken.yaml: .*missing required field `style`"):
        layouts["broken"]


def test_every_reference_between_files_is_known() -> None:
    banks = {style.name for style in bank_styles()}
    assert {layout.style for layout in EVERY_LAYOUT.values()} <= banks
    assert {name for trade in trades() for name in trade.shared_spends} <= merchants().shared_spends.keys()
    assert bills_by_family().keys() == merchants().bill_families.keys() | {"water"}
    assert {bill.state for bill in bills_by_family()["water"]} == names().suburbs.keys()
    assert merchants().state_bodies.keys() == names().businesses_per_state.keys() == names().suburbs.keys()
    assert all(lenders_of(product) for product in credit().products)
    assert {product for weights in credit().appetite.values() for product in weights} <= credit().products.keys()


def test_every_file_is_used() -> None:
    here = files("pipelines.synthetic").joinpath("data")
    code = "".join(path.read_text("utf-8") for path in Path("pipelines/synthetic").rglob("*.py"))
    assert [file.name for file in here.iterdir() if f'"{file.name}"' not in code] == []
