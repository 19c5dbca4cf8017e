"""How each bank words a movement on its statements: one table a bank, one wording or more a rail.

Direct entry carries 16 characters of remitter and 18 of reference, card schemes 22 of merchant and 13 of place:
the cuts below are the rails' own. Dates come as `{dmy}` 12/03/2025, `{dm}` 12/03, `{d_mon_y}` 12 MAR
2025; `{other4}` ends the own account on the other side; `{n7}` is a random number. A bank that includes a fee in
the purchase has no wording for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from random import Random
from types import MappingProxyType

from pipelines.sandbox.blanks import Blanks
from pipelines.sandbox.model import Booked, Party

Wordings = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class BankStyle:
    name: str
    bsb_prefix: str
    account_digits: int
    merchant_name: str  # its own terminal settlements
    capitals: bool
    gives_ids: bool  # its feed carries a transaction id
    dishonour_fee: int  # cents; some banks charge none
    wordings: Wordings


_CBA: Wordings = {
    "direct_credit": ("Direct Credit {code} {party:.16} {ref:.18}",),
    "direct_debit": ("Direct Debit {code} {party:.16} {ref:.18}",),
    "osko_in": ("Fast Transfer From {party} {ref}", "Fast Transfer From {party} to PayID Phone {ref}"),
    "osko_out": ("Transfer To {party} PayID Phone from CommBank App {ref}", "Fast Transfer To {party} {ref}"),
    "pay_anyone": ("Transfer to other Bank NetBank {party} {ref}", "Transfer To {party} NetBank {ref}"),
    "payroll": ("Direct Credit Batch NetBank {ref}",),
    "bpay": ("{party} NetBank BPAY {code} {ref}", "{party} CommBank app BPAY {code} {ref}"),
    "card": (
        "{party:.22} {place:.13} {region:.2} AUS Card xx{card} Value Date: {dmy}",
        "{party:.22} {place:.13} {region}AU Card xx{card} Value Date: {dmy}",
    ),
    "card_foreign": ("{party:.22} {place:.13} {region} Card xx{card} USD {usd} Value Date: {dmy}",),
    "card_refund": ("Refund Purchase {party:.22} {place:.13} AUS Card xx{card}",),
    "atm": ("Wdl ATM CBA ATM {place} {region:.2} 2{n5} AUS",),
    "cash_deposit": ("Cash Deposit CBA ATM {place} {region} 2{n5} AUS", "Cash Dep Branch {place}"),
    "own_out": ("Transfer to xx{other4} CommBank app", "Transfer to xx{other4} NetBank"),
    "own_in": ("Transfer from xx{other4} CommBank app", "Transfer from xx{other4} NetBank"),
    "own_out_elsewhere": ("Transfer to other Bank NetBank {party}",),
    "own_in_elsewhere": ("Direct Credit {n6} {party:.16}", "Fast Transfer From {party} transfer"),
    "card_payment": ("Transfer to xx{other4} NetBank Credit Card",),
    "card_payment_received": ("Payment Received, Thank You",),
    "purchase": ("{party:.22} {place:.13} {region}AU", "{party:.22} {place:.13} AUS"),
    "purchase_foreign": ("{party:.22} {place:.13} {region} ##{n4} {usd} US DOLLAR",),
    "loan_repayment": ("Loan Repayment LN REPAY {ref}",),
    "account_fee": ("Account Fee", "Monthly Account Fee"),
    "merchant_fee": ("Direct Debit {code} COMMBANK MERCHANT FEE {ref}",),
    "foreign_fee": ("International Transaction Fee Value Date: {dmy}",),
    "returned_debit": ("Return {dmy} {party:.16} {ref:.18}",),
    "dishonour_fee": ("Dishonour Fee Direct Debit {dmy}",),
    "interest_paid": ("Credit Interest",),
    "interest_charged": ("Debit Interest",),
    "card_interest": ("Interest charged on purchases",),
}
_WESTPAC: Wordings = {
    "direct_credit": ("Deposit {party:.16} {ref:.18}",),
    "direct_debit": ("Payment By Authority To {party:.16} {ref:.18}", "Withdrawal-Direct Debit {party:.16} {ref:.18}"),
    "osko_in": ("Deposit-Osko Payment {n7} {party} {ref}",),
    "osko_out": ("Withdrawal-Osko Payment {n7} {party} {ref}",),
    "pay_anyone": ("Withdrawal Online {n7} Pymt {party} {ref}", "Withdrawal Mobile {n7} Pymt {party} {ref}"),
    "payroll": ("Withdrawal Online {n7} Payroll {ref}",),
    "bpay": ("Withdrawal Online {n7} Bpay {party} {ref}", "Withdrawal Mobile {n7} Bpay {party} {ref}"),
    "card": (
        "Debit Card Purchase {party:.22} {place:.13} AUS",
        "Eftpos Debit 0{n6} {party:.22} {place:.13} {dm}",
    ),
    "card_foreign": ("Debit Card Purchase {party:.22} {place:.13} {region} USD {usd} Incl Foreign Trans Fee",),
    "card_refund": ("Refund By {party:.22} {place:.13} Card Credit",),
    "atm": ("Withdrawal-Atm Westpac {place} {region} {n6}",),
    "cash_deposit": ("Deposit Cash {place} {n6}", "Deposit Atm {place} {n6}"),
    "own_out": ("Withdrawal Online {n7} Tfr Westpac Bus {other4}", "Withdrawal Mobile {n7} Tfr xx{other4}"),
    "own_in": ("Deposit Online 2{n6} Tfr Westpac Bus {other4}", "Deposit Mobile 2{n6} Tfr xx{other4}"),
    "own_out_elsewhere": ("Withdrawal Online 1{n6} Pymt {party} Transfer",),
    "own_in_elsewhere": ("Deposit {party:.16} Transfer", "Deposit-Osko Payment 2{n6} {party} Transfer"),
    "card_payment": ("Withdrawal Online {n7} Tfr Busin Mcard {other4}",),
    "card_payment_received": ("Payment - Thank You",),
    "purchase": ("{party:.22} {place:.13} AUS",),
    "purchase_foreign": ("{party:.22} {place:.13} {region} U.S. DOLLAR {usd}",),
    "loan_repayment": ("Loan Repayment {ref}",),
    "account_fee": ("Monthly Plan Fee",),
    "merchant_fee": ("Westpac Merchant Fees {ref}",),
    "foreign_fee": (),
    "returned_debit": ("Deposit-Dishonour Return {party:.16} {ref:.18}",),
    "dishonour_fee": ("Outward Dishonour Fee",),
    "interest_paid": ("Interest Paid",),
    "interest_charged": ("Interest Charged",),
    "card_interest": ("Interest Charges",),
}
_NAB: Wordings = {
    "direct_credit": ("{ref:.18} {party:.16} {code}", "{ref:.18} {party:.16}"),
    "direct_debit": ("{ref:.18} {party:.16} {code}",),
    "osko_in": ("{ref} {party}", "Inter-Bank Credit {ref} {party}"),
    "osko_out": ("Online J0{n9} {ref} {party}",),
    "pay_anyone": ("Internet Transfer {ref} {party}", "Online J0{n9} {ref} {party}"),
    "payroll": ("NAB Connect Payroll {ref}",),
    "bpay": ("Internet Bpay {party} {ref}",),
    "card": ("V{card} {dm} {party:.22} {place:.13} 7{n10}", "Eftpos {dm} {party:.22} {place:.13}"),
    "card_foreign": ("V{card} {dm} USD {usd} {party:.22} {place:.13}",),
    "card_refund": ("V{card} {dm} Refund {party:.22} {place:.13}",),
    "atm": ("Rediatm {dm} {place} 0{n5}",),
    "cash_deposit": ("Cash Deposit {place}", "Deposit Cash {place} Idm"),
    "own_out": ("Internet Transfer Linked Acc Trns", "Online Linked Acc Trns xx{other4}"),
    "own_in": ("Internet Transfer Linked Acc Trns", "Online Linked Acc Trns xx{other4}"),
    "own_out_elsewhere": ("Internet Transfer To {party}",),
    "own_in_elsewhere": ("Transfer {party}", "Inter-Bank Credit {party}"),
    "card_payment": ("Internet Transfer NAB Business Visa xx{other4}",),
    "card_payment_received": ("Internet Payment Linked Acc Trns",),
    "purchase": ("{party:.22} {place:.13}",),
    "purchase_foreign": ("{party:.22} {place:.13} FRGN AMT: {usd} US dollar",),
    "loan_repayment": ("Loan Repayment {ref} NAB Business Loan",),
    "account_fee": ("Account Service Fee", "Account Fees"),
    "merchant_fee": ("NAB Merchant Fees {ref}",),
    "foreign_fee": ("International Transaction Fee",),
    "returned_debit": ("Dishonoured {party:.16} {ref:.18}",),
    "dishonour_fee": ("Inward Dishonour Fee",),
    "interest_paid": ("Interest",),
    "interest_charged": ("Interest Charged Debit",),
    "card_interest": ("Interest on Purchases",),
}
_ANZ: Wordings = {
    "direct_credit": ("Transfer From {party:.16} {ref:.18}",),
    "direct_debit": ("Payment To {party:.16} {ref:.18}",),
    "osko_in": ("Payment From {party} {ref}", "Transfer From {party} {ref}"),
    "osko_out": ("ANZ M-Banking Payment {n6} To {party} {ref}",),
    "pay_anyone": ("ANZ Internet Banking Payment {n6} To {party} {ref}",),
    "payroll": ("ANZ Internet Banking Payroll {n6} {ref}",),
    "bpay": ("ANZ Internet Banking Bpay {party} {{{ref}}}", "ANZ M-Banking Bpay {party} {{{ref}}}"),
    "card": (
        "Visa Debit Purchase Card {card} {party:.22} {place:.13} Effective Date {d_mon_y}",
        "Eftpos {party:.22} \\{place:.13} {region}AU",
    ),
    "card_foreign": ("Visa Debit Purchase Card {card} {usd} USD {party:.22} {place:.13} Incl O/S Fee",),
    "card_refund": ("Visa Debit Refund Card {card} {party:.22} {place:.13}",),
    "atm": ("ANZ Atm {place} {region} Card {card}",),
    "cash_deposit": ("Cash Deposit At {place} Branch", "ANZ Smart Atm Deposit {place} {n5}"),
    "own_out": (
        "ANZ Internet Banking Funds Tfer Transfer {n6} To {other9}",
        "ANZ M-Banking Funds Tfer {n6} To {other9}",
    ),
    "own_in": (
        "ANZ Internet Banking Funds Tfer Transfer {n6} From {other9}",
        "ANZ M-Banking Funds Tfer {n6} From {other9}",
    ),
    "own_out_elsewhere": ("ANZ Internet Banking Payment {n6} To {party}",),
    "own_in_elsewhere": ("Transfer From {party} Transfer", "Payment From {party} Funds"),
    "card_payment": ("ANZ Internet Banking Funds Tfer Transfer {n6} To Card xx{other4}",),
    "card_payment_received": ("Payment - Thank You",),
    "purchase": ("{party:.22} {place:.13}",),
    "purchase_foreign": ("{party:.22} {place:.13} {usd} USD Inc O/S Fee",),
    "loan_repayment": ("Loan Repayment To A/C {ref}",),
    "account_fee": ("Account Servicing Fee",),
    "merchant_fee": ("ANZ Worldline Merchant Fee {ref}",),
    "foreign_fee": (),
    "returned_debit": ("Dishonour - {party:.16} {ref:.18} Effective Date {d_mon_y}",),
    "dishonour_fee": ("Honour/Dishonour Fee",),
    "interest_paid": ("Credit Interest Paid",),
    "interest_charged": ("Debit Interest Charged",),
    "card_interest": ("Interest Charged On Purchases",),
}
_BENDIGO: Wordings = {
    "direct_credit": ("Direct Credit {party:.16} {ref:.18}",),
    "direct_debit": ("Direct Debit {party:.16} {ref:.18}",),
    "osko_in": ("Osko Payment 0{n9} {ref} {party}",),
    "osko_out": ("Osko Payment To {party} 0{n9} {ref}",),
    "pay_anyone": ("Pay Anyone {n10} {party} {ref}",),
    "payroll": ("Bulk Payment Wages {n10} {ref}",),
    "bpay": ("Bill Payment {n10} Bpay To: {party} {ref}",),
    "card": ("Retail Purchase {dm}, {party:.22}, {place:.13} AU Card No. xxxx{card}",),
    "card_foreign": (
        "Retail Purchase-International {dm}, {party:.22}, {place:.13} {region} USD {usd} Card No. xxxx{card}",
    ),
    "card_refund": ("Retail Purchase Refund {dm}, {party:.22}, {place:.13} AU",),
    "atm": ("ATM Withdrawal {dm}, {place}, {region} Card No. xxxx{card}",),
    "cash_deposit": ("Cash Deposit {place}",),
    "own_out": ("E-Banking Transfer {n10} To xxxxx{other4}",),
    "own_in": ("E-Banking Transfer {n10} From xxxxx{other4}",),
    "own_out_elsewhere": ("Pay Anyone {n10} {party} Transfer",),
    "own_in_elsewhere": ("Direct Credit {party:.16} Transfer", "Osko Payment 0{n9} Transfer {party}"),
    "card_payment": ("E-Banking Transfer {n10} To Business Credit Card xx{other4}",),
    "card_payment_received": ("E-Banking Payment Received {n10}",),
    "purchase": ("{party:.22}, {place:.13} AU",),
    "purchase_foreign": ("{party:.22}, {place:.13} {region} USD {usd}",),
    "loan_repayment": ("Loan Repayment {ref}",),
    "account_fee": ("Monthly Service Fee",),
    "merchant_fee": ("Direct Debit Tyro/Bendigo Merch Fee {ref}",),
    "foreign_fee": ("International Transaction Fee",),
    "returned_debit": ("Direct Debit Dishonour {party:.16} {ref:.18}",),
    "dishonour_fee": ("Dishonour Fee - Direct Debit",),
    "interest_paid": ("Interest",),
    "interest_charged": ("Debit Interest",),
    "card_interest": ("Interest Charged - Retail",),
}
_MACQUARIE: Wordings = {
    "direct_credit": ("{party:.16} {ref:.18}",),
    "direct_debit": ("{party:.16} - {ref:.18}",),
    "osko_in": ("{party} - {ref}", "From {party} - {ref}"),
    "osko_out": ("To {party} - {ref}",),
    "pay_anyone": ("Payment to {party} - {ref}",),
    "payroll": ("Bulk payment - {ref}",),
    "bpay": ("BPAY to {party} - {code} {ref}",),
    "card": ("{party:.22} {place:.13} {region}AU", "{party:.22} {place:.13} AUS"),
    "card_foreign": ("{party:.22} {place:.13} {region} (USD {usd})",),
    "card_refund": ("{party:.22} {place:.13} {region}AU - Refund",),
    "atm": ("ATM withdrawal - {place} {region}",),
    "cash_deposit": ("Cash deposit - {place}",),
    "own_out": ("Transfer to xx{other4}", "Transfer to linked account xx{other4}"),
    "own_in": ("Transfer from xx{other4}", "Transfer from linked account xx{other4}"),
    "own_out_elsewhere": ("Payment to {party} - Transfer",),
    "own_in_elsewhere": ("{party} - Transfer", "From {party} - Transfer"),
    "card_payment": ("Transfer to Business Credit Card xx{other4}",),
    "card_payment_received": ("Payment received - thank you",),
    "purchase": ("{party:.22} {place:.13} {region}AU",),
    "purchase_foreign": ("{party:.22} {place:.13} {region} (USD {usd})",),
    "loan_repayment": ("Loan repayment - {ref}",),
    "account_fee": ("Monthly account fee",),
    "merchant_fee": ("EFTPOS merchant fee - {ref}",),
    "foreign_fee": (),
    "returned_debit": ("Returned direct debit - {party:.16} {ref:.18}",),
    "dishonour_fee": ("Dishonour fee",),
    "interest_paid": ("Interest earned",),
    "interest_charged": ("Interest charged",),
    "card_interest": ("Interest charged on purchases",),
}
STYLES = (
    BankStyle("Commonwealth Bank", "06", 8, "CBA POS", False, False, 500, MappingProxyType(_CBA)),
    BankStyle("Westpac", "03", 6, "WESTPAC MERCHANT", True, False, 0, MappingProxyType(_WESTPAC)),
    BankStyle("NAB", "08", 9, "NAB MERCHANT SET", False, True, 0, MappingProxyType(_NAB)),
    BankStyle("ANZ", "01", 9, "ANZ WORLDLINE", True, False, 600, MappingProxyType(_ANZ)),
    BankStyle("Bendigo Bank", "633", 9, "BENDIGO MERCHANT", True, False, 1250, MappingProxyType(_BENDIGO)),
    BankStyle("Macquarie Bank", "18", 9, "MACQUARIE EFTPOS", False, True, 0, MappingProxyType(_MACQUARIE)),
)


def narrative(style: BankStyle, rng: Random, state: str, card: str, booked: Booked) -> str:
    """One statement line's text, as this bank would print it."""
    movement = booked.movement
    wordings = style.wordings[movement.rail]
    fields = Blanks(rng, _value_dates(movement.day - movement.day % 3))
    fields.update(
        party=movement.party.name,
        place=movement.party.place,
        code=movement.party.code,
        ref=movement.reference,
        region=movement.party.region or state,
        card=card,
        other4=booked.other[-4:],
        other9=booked.other,
        usd=_in_us_dollars(movement.cents),
    )
    text = " ".join(_wording(wordings, movement.party, rng).format_map(fields).split())
    return text.upper() if style.capitals else text


def _wording(wordings: tuple[str, ...], party: Party, rng: Random) -> str:
    """A terminal or payee keeps its wording from one time to the next; nameless movements vary."""
    if party.name:
        return wordings[(len(party.name) + len(party.place)) % len(wordings)]
    return rng.choice(wordings)


def _in_us_dollars(cents: int) -> str:
    """At a steady 0.65; the sandbox follows no market."""
    us = abs(cents) * 65 // 100
    return f"{us // 100}.{us % 100:02}"


@cache
def _value_dates(day: int) -> Mapping[str, object]:
    when = date.fromordinal(day)
    return {
        "dmy": f"{when:%d/%m/%Y}",
        "dm": f"{when:%d/%m}",
        "d_mon_y": f"{when:%d %b %Y}".upper(),
    }
