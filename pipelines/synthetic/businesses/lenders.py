"""Who lends to small businesses, on what terms, and how it prints. Shares are of a month's turnover."""

from typing import NamedTuple


class Product(NamedTuple):
    """What kind of credit it is: the categories of its money in and out."""

    funding: str
    repayment: str


PRODUCTS = {
    "cash_advance": Product("cash_advance_funding", "cash_advance_repayment"),
    "term_loan": Product("term_loan_funding", "term_loan_repayment"),
    "line_of_credit": Product("line_of_credit_draw", "line_of_credit_repayment"),
    "asset_finance": Product("asset_finance_funding", "asset_finance_repayment"),
    "mortgage": Product("mortgage_funding", "mortgage_repayment"),
    "invoice_finance": Product("invoice_finance_funding", "invoice_finance_repayment"),
    "trade_credit": Product("trade_credit_funding", "trade_credit_repayment"),
    "payday_credit": Product("payday_credit", "payday_credit"),
    "tax_payment_plan": Product("", "tax_payment_plan"),
}


class Lender(NamedTuple):
    name: str
    product: str
    reference: str
    cadence: str  # business_daily, weekly, fortnightly, monthly; split_settlement; revolving
    factor: float  # repaid over lent
    payments: int
    size: tuple[float, float]  # lent, in months of turnover
    code: str
    rail: str = "direct_debit"


LENDERS = (
    Lender("BIZCAP AU PTY LTD", "cash_advance", "BC{n6}", "business_daily", 1.32, 110, (0.3, 0.8), "513044"),
    Lender("CAPIFY AUSTRALIA", "cash_advance", "CPFY{n6}", "business_daily", 1.29, 170, (0.3, 0.8), "408127"),
    Lender("FUNDO BUSINESS", "cash_advance", "FB{n7}", "business_daily", 1.34, 90, (0.15, 0.5), "498013"),
    Lender("SWOOP ADVANCE", "cash_advance", "SWP{n6}", "business_daily", 1.27, 130, (0.2, 0.7), "522871"),
    Lender("UNLOCKD CAPITAL", "cash_advance", "UC-{n6}", "business_daily", 1.36, 80, (0.2, 0.6), "530092"),
    Lender("RAPID ADVANCE AU", "cash_advance", "RA{n7}", "weekly", 1.28, 30, (0.2, 0.7), "519837"),
    Lender("PROSPA ADVANCE", "term_loan", "PRO{n8}", "weekly", 1.24, 52, (0.4, 1.0), "471833"),
    Lender("LUMI FINANCE", "term_loan", "LUMI{n7}", "weekly", 1.19, 52, (0.4, 0.9), "529903"),
    Lender("MOULA MONEY", "term_loan", "ML{n7}", "fortnightly", 1.17, 26, (0.4, 0.9), "481266"),
    Lender("ONDECK CAPITAL AUS", "term_loan", "OD{n8}", "weekly", 1.25, 52, (0.4, 0.9), "463120"),
    Lender("GETCAPITAL AUST", "term_loan", "GC{n6}", "weekly", 1.22, 52, (0.4, 0.8), "445091"),
    Lender("BANJO LOANS", "term_loan", "BJ{n6}", "weekly", 1.18, 78, (0.6, 1.4), "490631"),
    Lender("JUDO BANK", "term_loan", "JB{n9}", "monthly", 1.2, 48, (1.0, 2.6), "513999"),
    Lender("LIBERTY FINANCIAL", "term_loan", "{n9}", "monthly", 1.22, 36, (0.8, 1.8), "180247"),
    Lender("ANGLE FINANCE", "term_loan", "AF{n7}", "monthly", 1.21, 36, (0.6, 1.5), "520446"),
    Lender("", "term_loan", "{n9}", "monthly", 1.18, 48, (1.0, 2.4), "", "loan_repayment"),
    Lender("PROSPA LOC", "line_of_credit", "LOC{n7}", "weekly", 1.0, 0, (0.3, 0.8), "471833"),
    Lender("DYNAMONEY LTD", "line_of_credit", "DM-{n5}", "weekly", 1.0, 0, (0.3, 0.7), "492208"),
    Lender("SHIFT FINANCIAL", "line_of_credit", "SHIFT{n6}", "weekly", 1.0, 0, (0.3, 0.8), "466119"),
    Lender("LUMI LOC", "line_of_credit", "LL{n7}", "weekly", 1.0, 0, (0.2, 0.6), "529903"),
    Lender("TOYOTA FINANCE AU", "asset_finance", "{n10}", "monthly", 1.2, 60, (0.4, 0.9), "021418"),
    Lender("MACQUARIE LEASING", "asset_finance", "{n9}", "monthly", 1.2, 60, (0.4, 1.0), "182902"),
    Lender("METRO FINANCE", "asset_finance", "MF{n7}", "monthly", 1.22, 60, (0.4, 1.0), "409118"),
    Lender("NISSAN FINANCIAL", "asset_finance", "{n10}", "monthly", 1.21, 48, (0.3, 0.8), "227305"),
    Lender("VOLKSWAGEN FIN SE", "asset_finance", "{n9}", "monthly", 1.2, 48, (0.4, 0.9), "308726"),
    Lender("PEPPER ASSET FIN", "asset_finance", "{n8}", "monthly", 1.24, 60, (0.4, 1.0), "417730"),
    Lender("FLEXICOMMERCIAL", "asset_finance", "FC{n7}", "monthly", 1.22, 48, (0.2, 0.7), "356602"),
    Lender("GRENKE LEASING", "asset_finance", "{n3}-{n6}", "monthly", 1.2, 36, (0.1, 0.4), "483311"),
    Lender("RESIMAC LIMITED", "mortgage", "HL {n6}", "monthly", 1.9, 300, (4, 8), "402211"),
    Lender("PEPPER MONEY HL", "mortgage", "{n8}", "monthly", 1.9, 300, (4, 8), "417731"),
    Lender("FIRSTMAC LTD", "mortgage", "LOAN {n5}", "monthly", 1.9, 300, (4, 8), "310922"),
    Lender("LA TROBE FINANCIAL", "mortgage", "{n7}", "monthly", 1.9, 300, (4, 8), "190288"),
    Lender("", "mortgage", "HOME LN {n9}", "monthly", 1.9, 300, (4, 8), "", "loan_repayment"),
    Lender("SCOTTISH PACIFIC", "invoice_finance", "DF ADV {n4}", "on_collection", 1.025, 0, (0.2, 0.5), "466102"),
    Lender("EARLYPAY LIMITED", "invoice_finance", "INV FIN {n4}", "on_collection", 1.03, 0, (0.2, 0.5), "438840"),
    Lender("FUNDTAP", "invoice_finance", "FT{n6}", "on_collection", 1.035, 0, (0.1, 0.4), "527718"),
    Lender("TIMELIO", "invoice_finance", "TML{n5}", "on_collection", 1.03, 0, (0.2, 0.5), "492017"),
    Lender("ZIP BUSINESS PTY", "trade_credit", "ZB{n7}", "fortnightly", 1.06, 6, (0.04, 0.2), "512290"),
    Lender("BIZPAY GROUP LIM", "trade_credit", "INST {n5}", "weekly", 1.05, 12, (0.05, 0.3), "518844"),
    Lender("OCTET FINANCE", "trade_credit", "TRADE {n5}", "monthly", 1.06, 3, (0.1, 0.4), "449013"),
    Lender("TRADEPLUS24", "trade_credit", "TP{n6}", "monthly", 1.07, 4, (0.1, 0.4), "533107"),
    Lender("NIMBLE AUSTRALIA", "payday_credit", "{n8}", "fortnightly", 1.3, 6, (0.01, 0.03), "471882"),
    Lender("WALLET WIZARD", "payday_credit", "WW{n7}", "fortnightly", 1.35, 8, (0.01, 0.03), "480077"),
    Lender("CASH CONVERTERS PF", "payday_credit", "CCPF {n5}", "fortnightly", 1.3, 6, (0.01, 0.03), "345012"),
    Lender("SUNSHINE LOANS", "payday_credit", "SL{n6}", "weekly", 1.3, 10, (0.01, 0.03), "460318"),
)
# Card processors and platforms that lend to their own merchants: they keep a share of what they pay out.
SPLIT = {
    "Square": Lender("SQUARE LOANS", "cash_advance", "{a10}", "split_settlement", 1.13, 0, (0.3, 0.9), "519311"),
    "Stripe": Lender("STRIPE CAPITAL", "cash_advance", "SC{a8}", "split_settlement", 1.12, 0, (0.3, 0.8), "507352"),
    "Tyro": Lender("TYRO BUSINESS LOAN", "cash_advance", "TBL{n7}", "split_settlement", 1.14, 0, (0.3, 0.9), "439310"),
    "Shopify": Lender("SHOPIFY CAPITAL", "cash_advance", "{a10}", "split_settlement", 1.13, 0, (0.2, 0.7), "507394"),
    "PayPal": Lender("PAYPAL WORKING CAP", "cash_advance", "{n10}", "split_settlement", 1.14, 0, (0.1, 0.4), "310003"),
}
TAX_PLAN = Lender("TAX OFFICE PAYMENTS", "tax_payment_plan", "", "monthly", 1.08, 24, (0.5, 1.6), "75556", "bpay")
