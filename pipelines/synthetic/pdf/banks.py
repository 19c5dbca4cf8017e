"""The layouts by name, but for those held out."""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.synthetic.pdf import majors, others, special
from pipelines.synthetic.pdf.layout import PdfLayout

LAYOUTS: Mapping[str, PdfLayout] = MappingProxyType(
    {
        "cba": majors.CBA,
        "cba_netbank": majors.NETBANK,
        "cba_card": majors.CBA_CARD,
        "westpac": majors.WESTPAC,
        "nab": majors.NAB,
        "nab_listing": majors.NAB_LISTING,
        "anz": majors.ANZ,
        "anz_interim": majors.ANZ_INTERIM,
        "anz_card": majors.ANZ_CARD,
        "macquarie": others.MACQUARIE,
        "bendigo": others.BENDIGO,
        "ing": others.ING,
        "bankwest": others.BANKWEST,
        "me": others.ME,
        "st_george": others.ST_GEORGE,
        "up": others.UP,
        "unknown_bank": special.UNKNOWN_BANK,
        "signed_amounts": special.SIGNED_AMOUNTS,
        "sign_column": special.SIGN_COLUMN,
        "home_loan": special.HOME_LOAN,
        "several_accounts": special.SEVERAL_ACCOUNTS,
        "sectioned_card": special.SECTIONED_CARD,
    }
)
