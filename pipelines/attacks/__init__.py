"""Attacks: changes to a ledger that make a business look better, and honest changes that look the same.

A trial (`pipelines.trials`) applies them to many customers and compares the ratings. `attacks.yaml` describes each
attack and lookalike in words; `registry` joins the words with the functions. The held-out ones (`held_out`) were
written by an author who had not seen the rules that detect them, and nobody who works on the rules reads them.
"""
