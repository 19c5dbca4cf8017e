"""Trials: what attacks and lookalikes on many customers change in their ratings, verdicts and limits.

subjects  the customers: a ledger each, and what is known of its accounts
rating    many ledgers rated at once, with the code of the reports and policies
trial     customers × manipulations, each compared with the same customer untouched
results   figures for each manipulation, and for the untouched customers
"""
